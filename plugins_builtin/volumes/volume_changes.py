"""What would give a pending pod's claim a volume: one that is made by hand, or one that is there."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from plugins_builtin.volumes.available_volumes import free_volumes
from plugins_builtin.volumes.volumes import BIND_COMPLETED, NO_PROVISIONER, STORAGE, requested_nano, whole_bytes
from trio_sched.plugin_api import (
    Change,
    ClaimReference,
    CsiPersistentVolumeSource,
    Edit,
    Handle,
    ObjectMeta,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    StorageClass,
    nearest_name,
    quantity_text,
    replace_fields,
)

_CLAIM: Final = "PersistentVolumeClaim"


def with_named_volume(handle: Handle, claim: PersistentVolumeClaim) -> Iterator[Change]:
    """*claim* made again with the name of a free volume much like the one that it names, which does not exist."""
    near = nearest_name(claim.spec.volume_name, [one.name for one in free_volumes(handle, claim)])
    if near is None:
        return
    made = replace_fields(claim, spec=replace_fields(claim.spec, volume_name=near))
    reference = ClaimReference(kind=_CLAIM, api_version="v1", namespace=claim.metadata.namespace, name=claim.name)
    of_claim = partial(Edit, kind=_CLAIM, name=claim.name, namespace=claim.metadata.namespace)

    def taken(one: Any) -> Any:
        return replace_fields(one, spec=replace_fields(one.spec, claim_ref=reference))

    yield Change(
        title=f"recreate the claim {claim.name} with volumeName {near}",
        edits=(
            of_claim(apply=lambda _old: made, recreate=True),
            Edit(kind="PersistentVolume", name=near, apply=taken, is_consequence=True),
            of_claim(apply=partial(_bound, name=near), is_consequence=True),
        ),
        corrects=True,
    )


def _bound(one: Any, name: str) -> Any:
    """A claim that the volume controller has bound to the volume *name*."""
    annotations = {**(one.metadata.annotations or {}), BIND_COMPLETED: "yes"}
    metadata = replace_fields(one.metadata, annotations=annotations)
    status = replace_fields(one.status, phase="Bound")
    return replace_fields(one, metadata=metadata, spec=replace_fields(one.spec, volume_name=name), status=status)


def with_volume(handle: Handle, claim: PersistentVolumeClaim, name: str) -> Iterator[Change]:
    """A volume for *claim*, which the volume controller then binds."""
    if handle.object("PersistentVolume", name) is not None:
        return
    found = class_of(handle, claim)
    driver = found.provisioner if found is not None and found.provisioner not in ("", NO_PROVISIONER) else "example.com"
    size = quantity_text(STORAGE, whole_bytes(requested_nano(claim))) if requested_nano(claim) else "1Gi"
    model = PersistentVolumeSpec()
    reference = ClaimReference(
        kind=_CLAIM, api_version="v1", namespace=claim.metadata.namespace, name=claim.name, uid=claim.metadata.uid
    )
    spec = replace_fields(
        model,
        capacity={STORAGE: size},
        access_modes=claim.spec.access_modes or ("ReadWriteOnce",),
        claim_ref=reference,
        storage_class_name=claim.storage_class,
        volume_mode=claim.spec.volume_mode,
        csi=CsiPersistentVolumeSource(driver=driver, volume_handle=name),
    )
    volume = PersistentVolume(metadata=ObjectMeta(name=name), spec=spec)

    yield Change(
        title=f"make a volume of {size} for the claim {claim.name}",
        edits=(
            Edit(kind="PersistentVolume", name=name, apply=lambda _none: volume),
            Edit(
                kind=_CLAIM,
                name=claim.name,
                namespace=claim.metadata.namespace,
                apply=partial(_bound, name=name),
                is_consequence=True,
            ),
        ),
        note="put the driver and the handle of a real volume in",
    )


def class_of(handle: Handle, claim: PersistentVolumeClaim) -> StorageClass | None:
    """The class of *claim*, if it exists."""
    found: StorageClass | None = handle.object("StorageClass", claim.storage_class) if claim.storage_class else None
    return found
