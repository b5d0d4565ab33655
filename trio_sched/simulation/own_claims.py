"""What a pod got because of where it was placed, volumes and devices, which is no reason for having placed it there."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import msgspec
from attrs import define, field
from msgspec import structs

from trio_sched.engine.scheduler import Scheduler
from trio_sched.objects.resource.resource_claim import ResourceClaim, ResourceClaimStatus
from trio_sched.objects.storage.persistent_volume import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    PersistentVolumeStatus,
)
from trio_sched.simulator.controllers.volumes.volume_shapes import BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE
from trio_sched.simulator.storage.object_store import ObjectStore, StoredObject

_CLAIM, _VOLUME, _DEVICE_CLAIM = "PersistentVolumeClaim", "PersistentVolume", "ResourceClaim"
_CLASSES: Final = "storageclasses.storage.k8s.io"
_DEVICE_CLAIMS: Final = "resourceclaims.resource.k8s.io"
_LATE: Final = "WaitForFirstConsumer"
_OF_BINDING: Final = frozenset({BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE})
_decode_claim = msgspec.json.Decoder(PersistentVolumeClaim).decode
_decode_volume = msgspec.json.Decoder(PersistentVolume).decode
_decode_device_claim = msgspec.json.Decoder(ResourceClaim).decode


@define(eq=False)
class OwnClaims:
    """Tells which volumes and devices pods got in a simulation, and hides them.

    Args:
        store: the objects, as they are at the beginning.
    """

    store: ObjectStore
    _bound: frozenset[str] = field(init=False)
    """The claims that had a volume at the beginning."""
    _volumes: frozenset[str] = field(init=False)
    _allocated: frozenset[str] = field(init=False)

    def __attrs_post_init__(self) -> None:
        claims, devices = self._stored("persistentvolumeclaims"), self._stored(_DEVICE_CLAIMS)
        self._bound = frozenset(one.key for one in claims if one.fields["spec"].get("volumeName"))
        self._volumes = frozenset(one.key for one in self._stored("persistentvolumes"))
        self._allocated = frozenset(one.key for one in devices if (one.fields.get("status") or {}).get("allocation"))

    def _stored(self, collection: str) -> Iterator[StoredObject]:
        return self.store.collection(collection).in_order()

    @contextmanager
    def hidden(self, key: str, scheduler: Scheduler) -> Generator[None, None, None]:
        """In the block, *scheduler* sees the claims that the pod *key* alone has without what they got for it.

        These are bound when a node is chosen; what others use too, or was bound before, stays as it is.
        """
        pod = self.store.get("pods", key)
        with ExitStack() as restored:
            if pod is not None and pod.fields["spec"].get("nodeName"):
                seen = _Objects(scheduler, restored)
                for claim in self._own_volume_claims(pod):
                    self._unbind(claim, seen)
                for devices in self._own_device_claims(pod):
                    seen.put(_DEVICE_CLAIM, devices, structs.replace(devices, status=ResourceClaimStatus()))
            yield

    def _own_volume_claims(self, pod: StoredObject) -> Iterator[PersistentVolumeClaim]:
        namespace = pod.fields["metadata"]["namespace"]
        names = set(_claim_names(pod))
        for other in self.store.collection("pods").in_order(namespace) if names else ():
            if other.key != pod.key:
                names.difference_update(_claim_names(other))
        for name in sorted(names):
            stored = self.store.get("persistentvolumeclaims", f"{namespace}/{name}")
            if stored is None or stored.key in self._bound or not stored.fields["spec"].get("volumeName"):
                continue
            claim = _decode_claim(stored.encoded(b"{"))
            storage_class = self.store.get(_CLASSES, claim.storage_class)
            if storage_class is not None and storage_class.fields.get("volumeBindingMode") == _LATE:
                yield claim

    def _own_device_claims(self, pod: StoredObject) -> Iterator[ResourceClaim]:
        uid = pod.fields["metadata"]["uid"]
        for stored in self.store.collection(_DEVICE_CLAIMS).in_order(pod.fields["metadata"]["namespace"]):
            consumers = (stored.fields.get("status") or {}).get("reservedFor") or ()
            if stored.key not in self._allocated and [one.get("uid") for one in consumers] == [uid]:
                yield _decode_device_claim(stored.encoded(b"{"))

    def _unbind(self, claim: PersistentVolumeClaim, seen: _Objects) -> None:
        annotations = {
            name: value for name, value in (claim.metadata.annotations or {}).items() if name not in _OF_BINDING
        }
        unbound = structs.replace(
            claim,
            metadata=structs.replace(claim.metadata, annotations=annotations),
            spec=structs.replace(claim.spec, volume_name=""),
            status=PersistentVolumeClaimStatus(phase="Pending"),
        )
        stored = self.store.get("persistentvolumes", claim.spec.volume_name)
        if stored is not None:
            volume = _decode_volume(stored.encoded(b"{"))
            free = structs.replace(
                volume,
                spec=structs.replace(volume.spec, claim_ref=None),
                status=PersistentVolumeStatus(phase="Available"),
            )
            seen.put(_VOLUME, volume, free if stored.key in self._volumes else None)
        seen.put(_CLAIM, claim, unbound)


@define(eq=False)
class _Objects:
    """What a scheduler sees of objects, until *restored* is closed."""

    scheduler: Scheduler
    restored: ExitStack

    def put(self, kind: str, was: Any, seen: Any | None) -> None:
        """Let it see *seen* in place of *was*; None: nothing."""
        self._set(kind, was, seen)
        self.restored.callback(self._set, kind, was, was)

    def _set(self, kind: str, of: Any, seen: Any | None) -> None:
        cache, metadata = self.scheduler.object_cache, of.metadata
        if kind not in cache.kinds:
            return  # then no plugin looks at them
        if seen is None:
            cache.remove(kind, metadata.name, metadata.namespace)
        else:
            cache.put(kind, metadata.name, metadata.namespace, seen)
        if cache.count_change(kind):
            self.scheduler.invalidate_signatures()


def _claim_names(pod: StoredObject) -> Iterator[str]:
    """The names of the claims behind the volumes of *pod*."""
    for volume in pod.fields["spec"].get("volumes") or ():
        if claim := volume.get("persistentVolumeClaim"):
            yield claim["claimName"]
        elif "ephemeral" in volume:
            yield f"{pod.fields['metadata']['name']}-{volume['name']}"
