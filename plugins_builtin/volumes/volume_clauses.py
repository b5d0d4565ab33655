"""What the plugins of volumes say of a pending pod: each of its claims, what is wrong with it, and who uses it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from attrs import evolve

from plugins_builtin.volumes.volumes import (
    BIND_COMPLETED,
    NO_PROVISIONER,
    STORAGE,
    WAIT_FOR_FIRST_CONSUMER,
    capacity_nano,
    claim_name,
    is_fully_bound,
    match_volume_affinity,
    named_claims,
    requested_nano,
    whole_bytes,
)
from trio_sched.plugin_api import (
    BoolArray,
    Change,
    ClaimReference,
    Clause,
    CsiPersistentVolumeSource,
    Edit,
    Handle,
    NodeColumns,
    NodeSelector,
    ObjectMeta,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    Pod,
    StorageClass,
    Volume,
    amount_text,
    delete_pod,
    edit_pod,
    nearest_name,
    quantity_text,
    replace_fields,
    some_names,
)

_DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
_CLAIM: Final = "PersistentVolumeClaim"
_MAX_USERS: Final = 5


# --- claims that no node can help -----------------------------------------------------------------------------------


def claim_clauses(pod: Pod, handle: Handle) -> Iterator[Clause]:
    """A clause for each claim that has no volume, and gets none when a node is chosen."""
    for volume in pod.spec.volumes or ():
        name = claim_name(pod, volume)
        if name is None:
            continue
        claim: PersistentVolumeClaim | None = handle.object(_CLAIM, name, pod.namespace)
        if claim is None:
            yield _missing(pod, handle, volume, name)
        elif claim.metadata.deletion_timestamp is not None:
            held = some_names(claim.metadata.finalizers or ()) or "nothing that is known"
            text = f"the claim {name} is being deleted, and held by {held}"
            users = _users(handle, pod, name)
            text += f"; it is used by {some_names([one.key for one in users])}" if users else ""
            yield _clause("ClaimIsBeingDeleted", name, text, partial(_once_deleted, claim, users))
        elif claim.status.phase == "Lost":
            text = f"the claim {name} is bound to the volume {claim.spec.volume_name}, which does not exist"
            yield _clause("ClaimLost", name, text, partial(_with_volume, handle, claim, claim.spec.volume_name))
        elif not is_fully_bound(claim) and not _waits_for_consumer(handle, claim):
            yield _unbound(handle, claim)
        elif is_fully_bound(claim) and handle.object("PersistentVolume", claim.spec.volume_name) is None:
            text = f"the claim {name} is bound to the volume {claim.spec.volume_name}, which does not exist"
            yield _clause("VolumeNotFound", name, text, partial(_with_volume, handle, claim, claim.spec.volume_name))


def _clause(reason: str, name: str, cause: str, changes: Callable[[], Iterable[Change]] = lambda: ()) -> Clause:
    return Clause(reason=reason, title=f"claim {name}", cause=cause, changes=lambda _nodes: changes())


def _users(handle: Handle, pod: Pod, name: str) -> list[Pod]:
    """The running pods that use the claim *name* in the namespace of *pod*."""
    return [
        other
        for node in handle.nodes
        for other in node.pods
        if other.namespace == pod.namespace and name in named_claims(other)
    ]


def _once_deleted(claim: PersistentVolumeClaim, users: Sequence[Pod]) -> Iterator[Change]:
    """The claim is recreated, once the pods are gone that keep it."""
    if len(users) > _MAX_USERS:
        return
    metadata = ObjectMeta(name=claim.name, namespace=claim.metadata.namespace)
    made = PersistentVolumeClaim(metadata=metadata, spec=replace_fields(claim.spec, volume_name=""))
    edit = Edit(
        kind=_CLAIM, name=claim.name, namespace=claim.metadata.namespace, apply=lambda _old: made, recreate=True
    )
    names = f"delete {some_names([one.key for one in users])} and make" if users else "make"
    title = f"{names} a new, empty claim {claim.name} once the old one is gone"
    yield Change(title=title, edits=(*map(delete_pod, users), edit), note="what is on the old one may be lost")


def _missing(pod: Pod, handle: Handle, volume: Volume, name: str) -> Clause:
    others = [one for one in handle.objects(_CLAIM) if one.metadata.namespace == pod.namespace]
    near = nearest_name(name, [one.name for one in others])
    if volume.persistent_volume_claim is None:
        text = f"the claim {name} of its ephemeral volume {volume.name} does not exist yet"
        return _clause("ClaimNotFound", name, f"{text}; kube-controller-manager makes it")
    elsewhere = [one.metadata.namespace for one in handle.objects(_CLAIM) if one.name == name]
    text = f"there is no claim {name} in namespace {pod.namespace}"
    if near:
        text += f"; there is {near}"
    elif elsewhere:
        text += f"; namespace {some_names(elsewhere)} has one"

    def changes() -> Iterator[Change]:
        if near:
            yield _with_claim(pod, volume, near)
        yield from _made_claim(handle, pod.namespace, name)

    return _clause("ClaimNotFound", name, text, changes)


def _with_claim(pod: Pod, volume: Volume, name: str) -> Change:
    def changed(one: Pod) -> Pod:
        volumes = tuple(
            replace_fields(
                entry, persistent_volume_claim=replace_fields(entry.persistent_volume_claim, claim_name=name)
            )
            if entry.name == volume.name and entry.persistent_volume_claim is not None
            else entry
            for entry in one.spec.volumes or ()
        )
        return replace_fields(one, spec=replace_fields(one.spec, volumes=volumes))

    return Change(title=f"use the claim {name}", edits=(edit_pod(pod, changed),), corrects=True)


def _made_claim(handle: Handle, namespace: str, name: str) -> Iterator[Change]:
    """A claim of that name, of a class that waits for its consumer; without such a class one with a volume."""
    usable = _classes_with_provisioner(handle)
    chosen = next((one for one in usable if _is_default(one)), usable[0] if usable else None)
    model = PersistentVolumeClaim(metadata=ObjectMeta(name=name, namespace=namespace))
    spec = replace_fields(
        model.spec,
        access_modes=("ReadWriteOnce",),
        storage_class_name="" if chosen is None else chosen.metadata.name,
        resources=replace_fields(model.spec.resources, requests={STORAGE: "1Gi"}),
        volume_mode="Filesystem",
    )
    made = replace_fields(model, spec=spec)
    claimed = Change(
        title=f"make the claim {name}" + (f" (1Gi of class {chosen.metadata.name})" if chosen is not None else ""),
        edits=(Edit(kind=_CLAIM, name=name, namespace=namespace, apply=lambda _none: made),),
        note="its size is a guess",
    )
    if chosen is not None:
        yield claimed
        return
    for with_volume in _with_volume(handle, made, f"{name}-volume"):
        yield claimed & with_volume


def _classes_with_provisioner(handle: Handle) -> list[StorageClass]:
    return [
        one
        for one in handle.objects("StorageClass")
        if one.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER and one.provisioner not in ("", NO_PROVISIONER)
    ]


def _is_default(one: StorageClass) -> bool:
    return (one.metadata.annotations or {}).get(_DEFAULT_CLASS) == "true"


def _class_of(handle: Handle, claim: PersistentVolumeClaim) -> StorageClass | None:
    found: StorageClass | None = handle.object("StorageClass", claim.storage_class) if claim.storage_class else None
    return found


def _waits_for_consumer(handle: Handle, claim: PersistentVolumeClaim) -> bool:
    found = _class_of(handle, claim)
    return not claim.spec.volume_name and found is not None and found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def _unbound(handle: Handle, claim: PersistentVolumeClaim) -> Clause:
    """A claim that has to be bound before the pod is scheduled, and is not."""
    name, wanted, found = claim.name, claim.storage_class, _class_of(handle, claim)
    size = amount_text(STORAGE, whole_bytes(requested_nano(claim)), round_up=True)
    text = f"the claim {name} ({size}) has no volume"
    reason, near = "ClaimUnbound", None
    if claim.spec.volume_name:
        text += f": it names the volume {claim.spec.volume_name}, which is not bound to it"
        volume: PersistentVolume | None = handle.object("PersistentVolume", claim.spec.volume_name)
        if volume is None:
            text += " and does not exist"
            return _clause("VolumeNotFound", name, text, lambda: _with_volume(handle, claim, claim.spec.volume_name))
    elif not wanted:
        default = next((one for one in handle.objects("StorageClass") if _is_default(one)), None)
        text += ", and no storage class" + ("" if default is not None else "; the cluster has no default one")
    elif found is None:
        reason = "StorageClassNotFound"
        near = nearest_name(wanted, [one.metadata.name for one in handle.objects("StorageClass")])
        text += f": there is no storage class {wanted}" + (f"; there is {near}" if near else "")
    elif found.provisioner in ("", NO_PROVISIONER):
        text += f": the class {wanted} provisions nothing, and no volume is free for it{_why_none(handle, claim)}"
    else:
        text += f": the provisioner {found.provisioner} of its class {wanted} has made none{_known(handle, found)}"

    def changes() -> Iterator[Change]:
        for one in ([near] if near else []) + [one.metadata.name for one in _classes_with_provisioner(handle)][:1]:
            if one != wanted:
                yield evolve(_with_class(claim, one), corrects=one == near)
        if reason == "StorageClassNotFound":
            yield from _with_new_class(handle, wanted)
        yield from _with_volume(handle, claim, f"{name}-volume")

    return _clause(reason, name, text, changes)


def _with_new_class(handle: Handle, name: str) -> Iterator[Change]:
    """The class that is missing, like one that the cluster has."""
    usable = _classes_with_provisioner(handle)
    if not usable:
        return
    like = next((one for one in usable if _is_default(one)), usable[0])
    made = replace_fields(like, metadata=ObjectMeta(name=name))
    title = f"create the storage class {name} like {like.metadata.name}"
    edit = Edit(kind="StorageClass", name=name, apply=lambda _none: made)
    yield Change(
        title=title, edits=(edit,), note=f"with the provisioner {like.provisioner}; parameters are yours to add"
    )


def _known(handle: Handle, found: StorageClass) -> str:
    drivers = {one.metadata.name for one in handle.objects("CSIDriver")}
    if found.provisioner in drivers or not drivers:
        return ""
    near = nearest_name(found.provisioner, drivers)
    return f"; no such driver is installed{f', but {near} is' if near else ''}"


def _why_none(handle: Handle, claim: PersistentVolumeClaim) -> str:
    """Why the free volumes of its class do not suit *claim*."""
    free = [
        one
        for one in handle.objects("PersistentVolume")
        if one.storage_class == claim.storage_class and one.spec.claim_ref is None
    ]
    if not free:
        return " (there is none of this class)"
    largest = max(free, key=capacity_nano)
    if capacity_nano(largest) < requested_nano(claim):
        return f" (the largest is {largest.name} with {amount_text(STORAGE, whole_bytes(capacity_nano(largest)))})"
    modes = set(claim.spec.access_modes or ())
    if not any(modes <= set(one.spec.access_modes or ()) for one in free):
        return f" (none of the {len(free)} allows {', '.join(sorted(modes))})"
    return f" (none of the {len(free)} fits its selector, mode or size)"


def _with_class(claim: PersistentVolumeClaim, name: str) -> Change:
    spec = replace_fields(claim.spec, storage_class_name=name, volume_name="")
    annotations = {
        key: value for key, value in (claim.metadata.annotations or {}).items() if key.startswith("trio-sched")
    }
    metadata = replace_fields(claim.metadata, annotations=annotations or None)
    made = replace_fields(claim, metadata=metadata, spec=spec)
    edit = Edit(
        kind=_CLAIM, name=claim.name, namespace=claim.metadata.namespace, apply=lambda _old: made, recreate=True
    )
    return Change(title=f"recreate the claim {claim.name} with class {name}", edits=(edit,))


def _with_volume(handle: Handle, claim: PersistentVolumeClaim, name: str) -> Iterator[Change]:
    """A volume for *claim*, which the volume controller then binds."""
    if handle.object("PersistentVolume", name) is not None:
        return
    found = _class_of(handle, claim)
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

    def bound(one: Any) -> Any:
        annotations = {**(one.metadata.annotations or {}), BIND_COMPLETED: "yes"}
        metadata = replace_fields(one.metadata, annotations=annotations)
        status = replace_fields(one.status, phase="Bound")
        return replace_fields(one, metadata=metadata, spec=replace_fields(one.spec, volume_name=name), status=status)

    yield Change(
        title=f"make a volume of {size} for the claim {claim.name}",
        edits=(
            Edit(kind="PersistentVolume", name=name, apply=lambda _none: volume),
            Edit(
                kind=_CLAIM,
                name=claim.name,
                namespace=claim.metadata.namespace,
                apply=bound,
                is_consequence=True,
            ),
        ),
        note="put the driver and the handle of a real volume in",
    )


# --- claims that only some nodes can use ----------------------------------------------------------------------------


def bound_clause(handle: Handle, nodes: NodeColumns, claim: PersistentVolumeClaim, fails: BoolArray) -> Clause:
    """The node affinity of the volume that *claim* has; *fails*, shape (nodes,), says where it does not match."""
    name = claim.spec.volume_name
    volume: PersistentVolume | None = handle.object("PersistentVolume", name)
    text = "" if volume is None else _affinity_text(volume.required_affinity)
    where = "" if volume is None else _nodes_text(nodes, match_volume_affinity(volume.required_affinity, nodes))
    cause = f"the volume {name} of the claim {claim.name} can be used where {text or 'it says'} only{where}"
    return Clause(
        reason="VolumeNodeAffinity",
        title=f"volume {name}",
        fails=fails,
        cause=cause,
        is_given=True,
        changes=lambda _nodes: _new_claims(handle, claim),
    )


def zone_clause(
    handle: Handle, nodes: NodeColumns, claim: PersistentVolumeClaim, zones: str, fails: BoolArray
) -> Clause:
    """The zone labels of the volume that *claim* has."""
    name = claim.spec.volume_name
    cause = f"the volume {name} of the claim {claim.name} is in {zones}{_nodes_text(nodes, ~fails)}"
    return Clause(
        reason="VolumeZoneMismatch",
        title=f"zone of volume {name}",
        fails=fails,
        cause=cause,
        is_given=True,
        changes=lambda _nodes: _new_claims(handle, claim),
    )


def _new_claims(handle: Handle, claim: PersistentVolumeClaim) -> Iterator[Change]:
    found = _class_of(handle, claim)
    usable = [one.metadata.name for one in _classes_with_provisioner(handle)]
    own = found is not None and found.metadata.name in usable
    for name in [claim.storage_class] if own else usable[:1]:
        change = _with_class(claim, name)
        note = f"the data stays on the volume {claim.spec.volume_name}"
        yield Change(title=f"a new, empty claim {claim.name}", edits=change.edits, note=note)


def _affinity_text(affinity: NodeSelector | None) -> str:
    terms = []
    for term in (affinity.node_selector_terms or ()) if affinity is not None else ():
        parts = [f"{one.key} {one.operator} {', '.join(one.values or ())}" for one in term.match_expressions or ()]
        terms.append(" and ".join(parts))
    return " or ".join(terms)


def _nodes_text(nodes: NodeColumns, where: BoolArray) -> str:
    names = [nodes.name(position) for position in np.flatnonzero(where).tolist()]
    return f": {some_names(names)}" if names else ", where there is no node"


def unbound_clause(handle: Handle, claim: PersistentVolumeClaim, fails: BoolArray, reasons: str) -> Clause:
    """A claim that gets its volume when a node is chosen, and can get none on the nodes that *fails* says."""
    name, found = claim.name, _class_of(handle, claim)
    size = amount_text(STORAGE, whole_bytes(requested_nano(claim)), round_up=True)
    text = f"the claim {name} ({size} of class {claim.storage_class}) can get no volume there: {reasons}"
    if found is not None and found.provisioner in ("", NO_PROVISIONER):
        text = f"the class {claim.storage_class} of the claim {name} ({size}) provisions nothing"
        text += f", and no free volume suits it{_why_none(handle, claim)}"
    elif found is not None and found.allowed_topologies:
        texts = [
            f"{one.key} in {', '.join(one.values or ())}"
            for term in found.allowed_topologies
            for one in term.match_label_expressions or ()
        ]
        text += f"; the class allows {some_names(texts)}"

    def changes(_nodes: BoolArray) -> Iterator[Change]:
        for one in [one.metadata.name for one in _classes_with_provisioner(handle)]:
            if one != claim.storage_class:
                yield _with_class(claim, one)
        yield from _with_volume(handle, claim, f"{name}-volume")

    return Clause(reason="NoVolumeForClaim", title=f"claim {name}", fails=fails, cause=text, changes=changes)


# --- claims and disks in use ----------------------------------------------------------------------------------------


def in_use_clause(nodes: NodeColumns, pod: Pod, name: str) -> Clause:
    """A ReadWriteOncePod claim that running pods use."""
    users = [
        (other, node.name)
        for node in nodes
        for other in node.pods
        if other.namespace == pod.namespace and name in named_claims(other)
    ]
    texts = [f"{other.key} ({node})" for other, node in users]
    cause = f"the claim {name} is ReadWriteOncePod and in use by {some_names(texts)}"

    def changes(_nodes: BoolArray) -> Iterator[Change]:
        if 0 < len(users) <= _MAX_USERS:
            pods = [other for other, _node in users]
            yield Change(title=f"delete {some_names([one.key for one in pods])}", edits=tuple(map(delete_pod, pods)))

    fails = np.ones(len(nodes), dtype=np.bool_)
    return Clause(reason="ClaimInUse", title=f"claim {name} for itself", fails=fails, cause=cause, changes=changes)


def disk_clause(nodes: NodeColumns, fails: BoolArray, conflicts: Callable[[Pod], bool]) -> Clause:
    """Disks that other pods on the nodes have mounted."""

    def cause(otherwise: BoolArray) -> str:
        where = otherwise & fails if (otherwise & fails).any() else fails
        users = [
            f"{other.key} ({nodes.name(position)})"
            for position in np.flatnonzero(where).tolist()[:_MAX_USERS]
            for other in nodes.node(position).pods
            if conflicts(other)
        ]
        return f"a disk of it is mounted by {some_names(users)}"

    return Clause(reason="DiskInUse", title="disks that can be mounted once", fails=fails, cause=cause)
