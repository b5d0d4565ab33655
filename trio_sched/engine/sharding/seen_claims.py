"""What has to be seen of the claims of a pod that another process nominates: they are written before that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trio_sched.engine.object_cache import ObjectCache
from trio_sched.objects.pod import Pod

_BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
_CLAIM: Final = "PersistentVolumeClaim"
_VOLUME: Final = "PersistentVolume"
DEVICES: Final = "ResourceClaim"

Place = tuple[str, str, str]
"""The kind of an object, its namespace and its name."""


def first_unseen(pod: Pod, objects: ObjectCache) -> Place | None:
    """The first of *objects* that does not show yet that a volume or a device was given to *pod*; None: all do."""
    return next(_unseen(pod, objects), None)


def _unseen(pod: Pod, objects: ObjectCache) -> Iterator[Place]:
    if _CLAIM in objects.kinds:
        for name in _volume_claims(pod):
            claim = objects.get(_CLAIM, name, pod.namespace)
            if claim is None or _BIND_COMPLETED not in (claim.metadata.annotations or {}):
                yield _CLAIM, pod.namespace, name
            elif _VOLUME in objects.kinds and objects.get(_VOLUME, claim.spec.volume_name) is None:
                yield _VOLUME, "", claim.spec.volume_name
    if DEVICES in objects.kinds:
        for name in _device_claims(pod):
            found = objects.get(DEVICES, name, pod.namespace)
            users = () if found is None else found.status.reserved_for or ()
            if found is None or found.status.allocation is None or all(one.uid != pod.uid for one in users):
                yield DEVICES, pod.namespace, name


def _volume_claims(pod: Pod) -> Iterator[str]:
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            yield f"{pod.name}-{volume.name}"


def _device_claims(pod: Pod) -> Iterator[str]:
    made = {one.name: one.resource_claim_name for one in pod.status.resource_claim_statuses or ()}
    for entry in pod.spec.resource_claims or ():
        name = entry.resource_claim_name or made.get(entry.name)
        if name:
            yield name
