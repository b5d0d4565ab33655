"""A simulated volume controller: binds claims, provisions volumes, and releases those of deleted claims.

It replaces the controllers of Kubernetes that bind claims, create claims for ephemeral volumes and delete them, and
the provisioners of all drivers.
"""

from collections.abc import Callable, Iterator
from typing import Any

from attrs import define, field, frozen

from trio_sched.objects.amounts.quantity import parse_nano
from trio_sched.simulator.controllers.controller import Controller
from trio_sched.simulator.controllers.events import EventRecorder
from trio_sched.simulator.controllers.volumes.volume_shapes import (
    BIND_COMPLETED,
    SELECTED_NODE,
    bound_claim,
    bound_volume,
    class_name,
    ephemeral_claim,
    fits,
    is_bound_to,
    new_volume,
)
from trio_sched.simulator.errors.status_errors import ApiError
from trio_sched.simulator.label_matching import matches_labels
from trio_sched.simulator.registry.lifecycle import DeleteOptions, create, delete, write_fields
from trio_sched.simulator.storage.object_store import Change, StoredObject

PROVISION_SECONDS = "trio-sched.dev/provision-seconds"
"""Annotation of a storage class: how long provisioning a volume of it takes."""

PROVISION_FAILURES = "trio-sched.dev/provision-failures"
"""Annotation of a storage class: how often provisioning for a claim fails before it succeeds."""

_CLAIMS, _VOLUMES, _CLASSES = "persistentvolumeclaims", "persistentvolumes", "storageclasses.storage.k8s.io"
_NO_PROVISIONER = "kubernetes.io/no-provisioner"


@frozen(kw_only=True)
class VolumePace:
    """How fast volumes are bound and provisioned, in seconds, and how often that fails.

    Attributes:
        bind_seconds: from a change of a claim or a volume to the reaction of the controller.
        provision_seconds: to provision a volume, unless its class has the annotation.
        provision_failures: how many tries for each claim fail, unless its class has the annotation.
    """

    bind_seconds: float = 0.2
    provision_seconds: float = 1.0
    provision_failures: int = 0


@define(eq=False)
class VolumeController(Controller):
    """Binds and provisions all claims and volumes of a cluster."""

    pace: VolumePace = field(factory=VolumePace)
    _failures: dict[str, int] = field(factory=dict, init=False)
    """UID of a claim → how many tries have failed."""
    _volumes_of_claim: dict[str, dict[str, None]] = field(factory=dict, init=False)
    """Key of a claim → volumes whose ``claimRef`` names it."""
    _recorder: EventRecorder = field(init=False)

    @_recorder.default
    def _make_recorder(self) -> EventRecorder:
        return EventRecorder(self.server, "persistentvolume-controller")

    def start(self) -> None:
        """Look at claims, volumes and pods; follow these and storage classes."""
        store = self.server.store
        for name, sync in ((_CLAIMS, self._sync_claim), (_VOLUMES, self._sync_volume)):
            for key in store.collection(name).objects:
                self._plan(sync, key)
        for pod in store.collection("pods").objects.values():
            self._plan_pod(pod)
        for volume in store.collection(_VOLUMES).objects.values():
            self._volumes_of_claim.setdefault(_claim_of(volume), {})[volume.key] = None
        self.listen(_CLAIMS, self._on_claim)
        self.listen(_VOLUMES, self._on_volume)
        self.listen(_CLASSES, self._on_class)
        self.listen("pods", self._on_pod)

    def _plan(self, act: Callable[[str], None], key: str, *, wait_seconds: float | None = None) -> None:
        self._steps.plan(act, key, self.pace.bind_seconds if wait_seconds is None else wait_seconds)

    # --- changes ----------------------------------------------------------------------------------------------------

    def _on_claim(self, change: Change) -> None:
        if change.type != "DELETED":
            self._plan(self._sync_claim, change.current.key)
            return
        self._failures.pop(change.current.fields["metadata"]["uid"], None)
        for volume in self._volumes_of_claim.get(change.current.key, ()):
            self._plan(self._sync_volume, volume)

    def _on_volume(self, change: Change) -> None:
        volume = change.current
        if change.previous is not None:
            self._volumes_of_claim.get(_claim_of(change.previous), {}).pop(volume.key, None)
        if change.type != "DELETED":
            self._volumes_of_claim.setdefault(_claim_of(volume), {})[volume.key] = None
        self._plan(self._sync_volume, volume.key)

    def _on_class(self, change: Change) -> None:
        for claim in self._stored(_CLAIMS):
            self._plan(self._sync_claim, claim.key)

    def _on_pod(self, change: Change) -> None:
        if change.type != "MODIFIED":
            self._plan_pod(change.current)

    def _plan_pod(self, pod: StoredObject) -> None:
        if any("ephemeral" in volume for volume in pod.fields["spec"].get("volumes") or ()):
            self._plan(self._sync_ephemeral_claims, pod.key)

    def _stored(self, collection: str) -> Iterator[StoredObject]:
        return iter(list(self.server.store.collection(collection).in_order()))

    # --- claims -----------------------------------------------------------------------------------------------------

    def _sync_claim(self, key: str) -> None:
        claim = self.server.store.get(_CLAIMS, key)
        if claim is None or "deletionTimestamp" in claim.fields["metadata"]:
            return
        annotations, wanted = claim.fields["metadata"].get("annotations") or {}, claim.fields["spec"].get("volumeName")
        if wanted:
            volume = self.server.store.get(_VOLUMES, wanted)
            if BIND_COMPLETED not in annotations:
                if volume is not None and ("claimRef" not in volume.fields["spec"] or is_bound_to(volume, claim)):
                    self._bind(claim, volume)
            elif volume is None and (claim.fields.get("status") or {}).get("phase") == "Bound":
                self._write(_CLAIMS, claim, status={**claim.fields["status"], "phase": "Lost"})
            return
        naming = (self.server.store.get(_VOLUMES, name) for name in self._volumes_of_claim.get(key, ()))
        kept = next((volume for volume in naming if volume is not None and is_bound_to(volume, claim)), None)
        if kept is not None:
            self._bind(claim, kept)
            return
        storage_class = self.server.store.get(_CLASSES, class_name(claim))
        binds_late = (
            storage_class is not None and storage_class.fields.get("volumeBindingMode") == "WaitForFirstConsumer"
        )
        if not binds_late:
            fitting = [volume for volume in self._stored(_VOLUMES) if _can_be_bound(volume, claim)]
            if fitting:
                self._bind(claim, min(fitting, key=_size))
                return
        provisions = storage_class is not None and storage_class.fields.get("provisioner") not in ("", _NO_PROVISIONER)
        if storage_class is not None and provisions and (not binds_late or SELECTED_NODE in annotations):
            wait = _number(storage_class, PROVISION_SECONDS, self.pace.provision_seconds)
            self._plan(self._provision, key, wait_seconds=wait)

    def _bind(self, claim: StoredObject, volume: StoredObject) -> None:
        metadata, spec = bound_volume(volume, claim)
        self._write(_VOLUMES, volume, metadata=metadata, spec=spec, status={"phase": "Bound"})
        self._write(_CLAIMS, claim, **bound_claim(claim, volume))

    def _provision(self, key: str) -> None:
        claim = self.server.store.get(_CLAIMS, key)
        if claim is None or claim.fields["spec"].get("volumeName"):
            return
        metadata = claim.fields["metadata"]
        annotations = metadata.get("annotations") or {}
        storage_class = self.server.store.get(_CLASSES, class_name(claim))
        if storage_class is None:
            return
        node = None
        if storage_class.fields.get("volumeBindingMode") == "WaitForFirstConsumer":
            node = self.server.store.get("nodes", annotations.get(SELECTED_NODE, ""))
        failed = self._failures.get(metadata["uid"], 0)
        if failed < _number(storage_class, PROVISION_FAILURES, self.pace.provision_failures):
            self._failures[metadata["uid"]] = failed + 1
            self._fail_provisioning(claim, storage_class)
            return
        if node is None and SELECTED_NODE in annotations:
            self._fail_provisioning(claim, storage_class)
            return
        volume = new_volume(claim, storage_class, node)
        stored = create(self.server.state, self.server.state.types.core(_VOLUMES), "", volume)
        self._bind(claim, stored)

    def _fail_provisioning(self, claim: StoredObject, storage_class: StoredObject) -> None:
        """Record that provisioning failed, and unset the selected node, so that the scheduler may choose another."""
        why = f'failed to provision volume with StorageClass "{storage_class.key}": the simulator was told to fail'
        self._recorder.warning(self.server.state.types.core(_CLAIMS), claim, "ProvisioningFailed", why)
        metadata = dict(claim.fields["metadata"])
        annotations = dict(metadata.get("annotations") or {})
        if annotations.pop(SELECTED_NODE, None) is None:
            self._plan(self._sync_claim, claim.key)
        else:
            self._write(_CLAIMS, claim, metadata={**metadata, "annotations": annotations})

    # --- volumes ----------------------------------------------------------------------------------------------------

    def _sync_volume(self, key: str) -> None:
        volume = self.server.store.get(_VOLUMES, key)
        if volume is None:
            for left in self._stored(_CLAIMS):
                if left.fields["spec"].get("volumeName") == key:
                    self._plan(self._sync_claim, left.key)
            return
        reference = volume.fields["spec"].get("claimRef")
        phase = (volume.fields.get("status") or {}).get("phase")
        if reference:
            claim = self.server.store.get(_CLAIMS, f"{reference.get('namespace')}/{reference.get('name')}")
            if claim is not None and is_bound_to(volume, claim):
                self._sync_claim(claim.key)
                return
            if reference.get("uid"):
                self._release(volume)
                return
        if phase != "Available":
            self._write(_VOLUMES, volume, status={"phase": "Available"})
        if not reference:
            self._plan_unbound_claims(volume)

    def _plan_unbound_claims(self, volume: StoredObject) -> None:
        """Plan the unbound claims of the class of *volume*, which may be bound to it."""
        for claim in self._stored(_CLAIMS):
            if not claim.fields["spec"].get("volumeName") and class_name(claim) == class_name(volume):
                self._plan(self._sync_claim, claim.key)

    def _release(self, volume: StoredObject) -> None:
        if volume.fields["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            delete(self.server.state, self.server.state.types.core(_VOLUMES), volume, DeleteOptions())
        elif (volume.fields.get("status") or {}).get("phase") != "Released":
            self._write(_VOLUMES, volume, status={"phase": "Released"})

    # --- ephemeral volumes ------------------------------------------------------------------------------------------

    def _sync_ephemeral_claims(self, key: str) -> None:
        """Create the claims for a pod's ephemeral volumes, or delete them after the pod."""
        pod = self.server.store.get("pods", key)
        claims = self.server.state.types.core(_CLAIMS)
        if pod is None:
            namespace, _slash, name = key.partition("/")
            for owned in list(self.server.store.collection(_CLAIMS).in_order(namespace)):
                owners = owned.fields["metadata"].get("ownerReferences") or ()
                if any(owner.get("kind") == "Pod" and owner.get("name") == name for owner in owners):
                    delete(self.server.state, claims, owned, DeleteOptions())
            return
        for volume in pod.fields["spec"].get("volumes") or ():
            if "ephemeral" in volume:
                fields = ephemeral_claim(pod, volume)
                namespace = pod.fields["metadata"]["namespace"]
                if self.server.store.get(_CLAIMS, f"{namespace}/{fields['metadata']['name']}") is None:
                    try:
                        create(self.server.state, claims, namespace, fields)
                    except ApiError:
                        continue  # the pod stays pending, as in a cluster where admission refuses the claim

    def _write(self, collection: str, stored: StoredObject, **changes: Any) -> None:
        current = self.server.store.get(collection, stored.key)
        if current is not None:
            write_fields(self.server.state, self.server.state.types.core(collection), current, **changes)


def _claim_of(volume: StoredObject) -> str:
    reference = volume.fields["spec"].get("claimRef") or {}
    return f"{reference.get('namespace')}/{reference.get('name')}"


def _number(storage_class: StoredObject, annotation: str, default: float) -> float:
    text = (storage_class.fields["metadata"].get("annotations") or {}).get(annotation)
    return default if text is None else float(text)


def _size(volume: StoredObject) -> tuple[int, str]:
    return parse_nano((volume.fields["spec"].get("capacity") or {}).get("storage", 0)), volume.key


def _can_be_bound(volume: StoredObject, claim: StoredObject) -> bool:
    selector = claim.fields["spec"].get("selector")
    labels = volume.fields["metadata"].get("labels") or {}
    return (
        (volume.fields.get("status") or {}).get("phase") == "Available"
        and "claimRef" not in volume.fields["spec"]
        and class_name(volume) == class_name(claim)
        and fits(volume, claim)
        and (selector is None or matches_labels(selector, labels))
    )
