"""What would give a pending pod the volume of a claim: another claim, another class, a volume made by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial, reduce
from typing import Any, Final

from attrs import evolve

from plugins_builtin.volumes.available_volumes import free_volumes, is_selected, kept_volumes
from plugins_builtin.volumes.volume_changes import class_of, with_volume
from plugins_builtin.volumes.volumes import (
    NO_PROVISIONER,
    SELECTED_NODE,
    STORAGE,
    WAIT_FOR_FIRST_CONSUMER,
    capacity_nano,
    limit_nano,
    named_claims,
    requested_nano,
    volume_mode,
    whole_bytes,
)
from trio_sched.plugin_api import (
    Change,
    CSINode,
    CSIStorageCapacity,
    Edit,
    Handle,
    LabelSelector,
    ObjectMeta,
    OwnerReference,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    Volume,
    amount_text,
    delete_pod,
    edit_pod,
    quantity_text,
    replace_fields,
    some_names,
)

_CLAIM: Final = "PersistentVolumeClaim"
_PROTECTION: Final = "kubernetes.io/pvc-protection"
"""The finalizer that kube-controller-manager removes from a claim once no pod uses it."""
_DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
_SHARED: Final = "ReadWriteOnce"
_RETAIN: Final = "Retain"
_MAX_VOLUMES: Final = 3
"""Volumes that a claim is fitted to."""
MAX_USERS: Final = 5
"""Pods that one change deletes at most."""


def with_claim(pod: Pod, volume: Volume, name: str) -> Change:
    """The claim *name* used by *volume* of the pod."""

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


def shared_claim(handle: Handle, pod: Pod, name: str) -> Iterator[Change]:
    """A claim like *name*, which only one pod can use, that several can use in its place."""
    claim, made = handle.object(_CLAIM, name, pod.namespace), f"{name}-shared"
    if claim is None or handle.object(_CLAIM, made, pod.namespace) is not None:
        return
    usable, found = classes_with_provisioner(handle), class_of(handle, claim)
    chosen = found if found in usable else (usable[0] if usable else None)
    class_name = claim.storage_class if chosen is None else chosen.metadata.name
    spec = replace_fields(
        claim.spec, access_modes=(_SHARED,), storage_class_name=class_name, volume_name="", selector=None
    )
    new = PersistentVolumeClaim(metadata=ObjectMeta(name=made, namespace=pod.namespace), spec=spec)
    create = Edit(kind=_CLAIM, name=made, namespace=pod.namespace, apply=lambda _none: new)
    used = [with_claim(pod, one, made) for one in pod.spec.volumes or () if _names(one, name)]
    edits = (create, *(edit for change in used for edit in change.edits))
    title = f"a new, empty claim {made} with {_SHARED}"
    note = f"all pods on one node can use it, on several nodes only as ReadWriteMany; the data stays on {name}"
    change = Change(title=title, edits=edits, note=note)
    if chosen is not None:
        yield change
        return
    for volume in with_volume(handle, new, f"{made}-volume"):
        yield change & volume


def _names(volume: Volume, name: str) -> bool:
    return volume.persistent_volume_claim is not None and volume.persistent_volume_claim.claim_name == name


def with_made_claim(handle: Handle, namespace: str, name: str) -> Iterator[Change]:
    """A claim of that name, of a class that makes volumes; without such a class one with a volume."""
    usable = classes_with_provisioner(handle)
    chosen = next((one for one in usable if is_default(one)), usable[0] if usable else None)
    model = PersistentVolumeClaim(metadata=ObjectMeta(name=name, namespace=namespace))
    spec = replace_fields(
        model.spec,
        access_modes=("ReadWriteOnce",),
        storage_class_name="" if chosen is None else chosen.metadata.name,
        resources=replace_fields(model.spec.resources, requests={STORAGE: "1Gi"}),
        volume_mode="Filesystem",
    )
    made = replace_fields(model, spec=spec)
    edit = Edit(kind=_CLAIM, name=name, namespace=namespace, apply=lambda _none: made)
    claimed = Change(
        title=f"make the claim {name}" + (f" (1Gi of class {chosen.metadata.name})" if chosen is not None else ""),
        edits=(edit, *_provisioned(handle, made, chosen)),
        note="its size is a guess",
    )
    if chosen is not None:
        yield claimed
        return
    for change in with_volume(handle, made, f"{name}-volume"):
        yield claimed & change


def with_default_class(handle: Handle, claim: PersistentVolumeClaim) -> Iterator[Change]:
    """A class as the default one, which a claim that names none gets then."""
    for found in classes_with_provisioner(handle)[:1]:
        name = found.metadata.name
        given = replace_fields(claim, spec=replace_fields(claim.spec, storage_class_name=name))
        of_claim = partial(Edit, kind=_CLAIM, name=claim.name, namespace=claim.metadata.namespace)
        edits = (
            Edit(kind="StorageClass", name=name, apply=_as_default),
            of_claim(apply=partial(_given, given), is_consequence=True),
            *_provisioned(handle, given, found),
        )
        note = "all claims without a class get it, also new ones"
        yield Change(title=f"make {name} the default storage class", edits=edits, note=note)


def _given(made: PersistentVolumeClaim, _old: Any) -> PersistentVolumeClaim:
    return made


def _as_default(one: Any) -> Any:
    annotations = {**(one.metadata.annotations or {}), _DEFAULT_CLASS: "true"}
    return replace_fields(one, metadata=replace_fields(one.metadata, annotations=annotations))


def with_new_class(handle: Handle, claim: PersistentVolumeClaim) -> Iterator[Change]:
    """The class of *claim*, which is missing, like one that the cluster has."""
    usable = classes_with_provisioner(handle)
    if not usable:
        return
    like = next((one for one in usable if is_default(one)), usable[0])
    name = claim.storage_class
    made = replace_fields(like, metadata=ObjectMeta(name=name))
    edit = Edit(kind="StorageClass", name=name, apply=lambda _none: made)
    yield Change(
        title=f"create the storage class {name} like {like.metadata.name}",
        edits=(edit, *_provisioned(handle, claim, like)),
        note=f"with the provisioner {like.provisioner}; parameters are yours to add",
    )


def selected_node(claim: PersistentVolumeClaim) -> str | None:
    """The node for which the volume of *claim* is to be made; None if none was chosen."""
    return (claim.metadata.annotations or {}).get(SELECTED_NODE)


def without_selected_node(claim: PersistentVolumeClaim) -> Change:
    """*claim*, for whose volume another node may be chosen."""

    def changed(one: Any) -> Any:
        kept = {key: text for key, text in (one.metadata.annotations or {}).items() if key != SELECTED_NODE}
        return replace_fields(one, metadata=replace_fields(one.metadata, annotations=kept or None))

    edit = Edit(kind=_CLAIM, name=claim.name, namespace=claim.metadata.namespace, apply=changed)
    return Change(
        title=f"let another node be chosen for the claim {claim.name}",
        edits=(edit,),
        note="a volume that is being made may be left over",
    )


def without_volume(handle: Handle, claim: PersistentVolumeClaim) -> Change:
    """*claim* made again without the volume that it names, and does not have."""
    edits = with_class(handle, claim, claim.storage_class).edits
    return Change(title=f"recreate the claim {claim.name} without volumeName", edits=edits)


def with_class(handle: Handle, claim: PersistentVolumeClaim, name: str) -> Change:
    """*claim* made again with the class *name*, which cannot be changed."""
    spec = replace_fields(claim.spec, storage_class_name=name, volume_name="")
    annotations = {
        key: value for key, value in (claim.metadata.annotations or {}).items() if key.startswith("trio-sched")
    }
    metadata = replace_fields(claim.metadata, annotations=annotations or None)
    made = replace_fields(claim, metadata=metadata, spec=spec)
    edit = Edit(
        kind=_CLAIM, name=claim.name, namespace=claim.metadata.namespace, apply=lambda _old: made, recreate=True
    )
    edits = (edit, *_provisioned(handle, made, class_of(handle, made)))
    return Change(title=f"recreate the claim {claim.name} with class {name}", edits=edits)


def _provisioned(handle: Handle, claim: PersistentVolumeClaim, found: StorageClass | None) -> Iterator[Edit]:
    """What the provisioner of the class *found* does for *claim* at once; nothing if it waits for a consumer."""
    if found is not None and found.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER and _makes_volumes(found):
        for made in with_volume(handle, claim, f"{claim.name}-volume"):
            yield from (evolve(one, is_consequence=True) for one in made.edits)


def as_available(handle: Handle, claim: PersistentVolumeClaim) -> Iterator[Change]:
    """*claim*, which has no volume, made again as it would get one of those that its class has, or can make."""
    for volume in kept_volumes(handle, claim)[:_MAX_VOLUMES]:
        edit = partial(Edit, kind="PersistentVolume", name=volume.name)
        yield Change(
            title=f"free the volume {volume.name}",
            edits=(edit(apply=_without_claim), edit(apply=_available, is_consequence=True)),
            note="the pod gets what is on it",
        )
    if not _is_provisioned(handle, claim):
        for volume in free_volumes(handle, claim)[:_MAX_VOLUMES]:
            fields: dict[str, Any] = {}
            if capacity_nano(volume) < requested_nano(claim):
                fields["size"] = quantity_text(STORAGE, capacity_nano(volume) // 10**9)
            if not set(claim.spec.access_modes or ()) <= set(volume.spec.access_modes or ()):
                fields["access_modes"] = volume.spec.access_modes or ()
            if volume_mode(volume) != volume_mode(claim):
                fields["volume_mode"] = volume_mode(volume)
            if not is_selected(claim, volume):
                fields["selector"] = _selector_for(claim, volume)
            if fields:
                yield _changed(claim, **fields)
    most = _most_provisioned(handle, claim)
    if most is not None and 0 < most[0] < requested_nano(claim):
        yield _changed(claim, size=quantity_text(STORAGE, most[0] // 10**9))


def _changed(claim: PersistentVolumeClaim, size: str = "", **fields: Any) -> Change:
    """*claim* made again with another *size* and other *fields* of its spec."""
    what = [size] if size else []
    if size:
        requests = {**(claim.spec.resources.requests or {}), STORAGE: size}
        fields["resources"] = replace_fields(claim.spec.resources, requests=requests)
    what += [", ".join(fields["access_modes"])] if "access_modes" in fields else []
    what += [f"volumeMode {fields['volume_mode']}"] if "volume_mode" in fields else []
    labels = fields["selector"].match_labels if fields.get("selector") else {}
    what += [f"selector {', '.join(f'{key}={value}' for key, value in labels.items())}"] if labels else []
    is_without = "selector" in fields and not labels
    titles = ([f"with {' and '.join(what)}"] if what else []) + (["without selector"] if is_without else [])
    spec = replace_fields(claim.spec, **fields)
    edit = Edit(
        kind=_CLAIM,
        name=claim.name,
        namespace=claim.metadata.namespace,
        apply=lambda one: replace_fields(one, spec=spec),
        recreate=True,
    )
    return Change(title=f"recreate the claim {claim.name} {', '.join(titles)}", edits=(edit,))


def _selector_for(claim: PersistentVolumeClaim, volume: PersistentVolume) -> LabelSelector | None:
    """The selector of *claim* with the values that *volume* has; None if that takes more than other values."""
    selector, labels = claim.spec.selector, volume.metadata.labels or {}
    if selector is None or selector.match_expressions or not (selector.match_labels or {}).keys() <= labels.keys():
        return None
    return replace_fields(selector, match_labels={key: labels[key] for key in selector.match_labels or {}})


def _is_provisioned(handle: Handle, claim: PersistentVolumeClaim) -> bool:
    found = class_of(handle, claim)
    return found is not None and _makes_volumes(found)


def _makes_volumes(found: StorageClass) -> bool:
    return found.provisioner not in ("", NO_PROVISIONER)


def _without_claim(volume: PersistentVolume) -> PersistentVolume:
    return replace_fields(volume, spec=replace_fields(volume.spec, claim_ref=None))


def _available(volume: PersistentVolume) -> PersistentVolume:
    return replace_fields(volume, status=replace_fields(volume.status, phase="Available"))


def most_text(handle: Handle, claim: PersistentVolumeClaim) -> str:
    """How much the largest volume may have that the class of *claim* can make, and where; empty if that is enough."""
    most = _most_provisioned(handle, claim)
    if most is None or most[0] >= requested_nano(claim):
        return ""
    return f"{amount_text(STORAGE, whole_bytes(most[0]))} ({most[1]})"


def _most_provisioned(handle: Handle, claim: PersistentVolumeClaim) -> tuple[int, str] | None:
    """The largest volume that can be made, in nano bytes, and the labels of the nodes; None if that is not known."""
    pools = [one for one in handle.objects("CSIStorageCapacity") if one.storage_class_name == claim.storage_class]
    return max(((limit_nano(one) or 0, _where(one)) for one in pools), default=None)


def _where(pool: CSIStorageCapacity) -> str:
    labels = (pool.node_topology.match_labels or {}) if pool.node_topology is not None else {}
    return ", ".join(f"{name}={text}" for name, text in labels.items()) or "everywhere"


def from_elsewhere(handle: Handle, claim: PersistentVolumeClaim) -> Iterator[Change]:
    """*claim*, which gets no volume of its class, with one of another class, or one that is made by hand."""
    for one in classes_with_provisioner(handle):
        if one.metadata.name != claim.storage_class:
            yield with_class(handle, claim, one.metadata.name)
    yield from with_volume(handle, claim, f"{claim.name}-volume")


def of_other_drivers(handle: Handle, pod: Pod, driver: str, count: int) -> Iterator[Change]:
    """So many claims of *pod* that have no volume yet, and would get one of *driver*, made again with another class."""
    claims = [handle.object(_CLAIM, name, pod.namespace) for name in named_claims(pod)]
    movable = [
        one for one in claims if one is not None and not one.spec.volume_name and _driver_of(handle, one) == driver
    ]
    if 0 < count <= len(movable):
        for found in classes_with_provisioner(handle):
            if found.provisioner != driver:
                first, *others = [with_class(handle, one, found.metadata.name) for one in movable[-count:]]
                yield reduce(lambda one, other: one & other, others, first)


def _driver_of(handle: Handle, claim: PersistentVolumeClaim) -> str:
    found = class_of(handle, claim)
    return "" if found is None else found.provisioner


def larger_limit(node_name: str, driver: str, count: int) -> Change:
    """The CSINode of a node with another number of volumes that it takes of *driver*."""

    def changed(one: CSINode) -> CSINode:
        drivers = tuple(
            replace_fields(each, allocatable=replace_fields(each.allocatable, count=count))
            if each.name == driver and each.allocatable is not None
            else each
            for each in one.spec.drivers or ()
        )
        return replace_fields(one, spec=replace_fields(one.spec, drivers=drivers))

    return Change(
        title=f"raise the limit of {driver} on {node_name} to {count} volumes",
        edits=(Edit(kind="CSINode", name=node_name, apply=changed),),
        note="from Kubernetes 1.35 on; the driver says how many it attaches: let it say so, else the pod may not start",
    )


def with_new_claim(handle: Handle, claim: PersistentVolumeClaim) -> Iterator[Change]:
    """A new claim instead of *claim*, whose volume cannot be used where the pod fits, and is kept."""
    found = class_of(handle, claim)
    usable = [one.metadata.name for one in classes_with_provisioner(handle)]
    own = found is not None and found.metadata.name in usable
    title, note = f"a new, empty claim {claim.name}", f"the data stays on the volume {claim.spec.volume_name}"
    volume: PersistentVolume | None = handle.object("PersistentVolume", claim.spec.volume_name)
    kept = [] if volume is None else list(_retained(volume))
    for name in [claim.storage_class] if own else usable[:1]:
        yield Change(title=title, edits=(*kept, *with_class(handle, claim, name).edits), note=note)
    if not own and not usable:
        recreated = Change(title=title, edits=(*kept, *with_class(handle, claim, claim.storage_class).edits), note=note)
        metadata = replace_fields(claim.metadata, uid="")
        for made in with_volume(handle, replace_fields(claim, metadata=metadata), f"{claim.name}-volume"):
            yield recreated & made


def _retained(volume: PersistentVolume) -> Iterator[Edit]:
    """What keeps *volume* once its claim is gone, unless it is kept in any case."""
    if volume.spec.persistent_volume_reclaim_policy in (None, _RETAIN):
        return

    def retained(one: Any) -> Any:
        return replace_fields(one, spec=replace_fields(one.spec, persistent_volume_reclaim_policy=_RETAIN))

    yield Edit(kind="PersistentVolume", name=volume.name, apply=retained)


def once_deleted(handle: Handle, claim: PersistentVolumeClaim, users: Sequence[Pod]) -> Iterator[Change]:
    """The claim is recreated, once the pods are gone that keep it; with a volume if its class makes none."""
    if len(users) > MAX_USERS:
        return
    metadata = ObjectMeta(name=claim.name, namespace=claim.metadata.namespace)
    made = PersistentVolumeClaim(metadata=metadata, spec=replace_fields(claim.spec, volume_name=""))
    edit = Edit(
        kind=_CLAIM, name=claim.name, namespace=claim.metadata.namespace, apply=lambda _old: made, recreate=True
    )
    names = f"delete {some_names([one.key for one in users])} and make" if users else "make"
    title = f"{names} a new, empty claim {claim.name} once the old one is gone"
    note, others = "what is on the old one may be lost", set(claim.metadata.finalizers or ()) - {_PROTECTION}
    if others:
        title += f", without the finalizers {some_names(sorted(others))}"
        note += "; what has set the finalizers is to remove them, after work of its own"
    again = Change(title=title, edits=(*map(delete_pod, users), edit), note=note)
    if _is_provisioned(handle, claim):
        yield again
        return
    for volume in with_volume(handle, made, f"{claim.name}-volume"):
        yield again & volume


def owned_claim(pod: Pod, claim: PersistentVolumeClaim) -> Iterator[Change]:
    """The claim of an ephemeral volume made anew for *pod*, once that of another is deleted."""
    edit = partial(Edit, kind=_CLAIM, name=claim.name, namespace=claim.metadata.namespace)
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True)
    metadata = ObjectMeta(name=claim.name, namespace=claim.metadata.namespace, owner_references=(owner,))
    made = PersistentVolumeClaim(metadata=metadata, spec=replace_fields(claim.spec, volume_name=""))
    yield Change(
        title=f"delete the claim {claim.name}",
        edits=(edit(apply=lambda _old: None), edit(apply=lambda _none: made, is_consequence=True)),
        note="what is on it is lost; kube-controller-manager makes another one for this pod",
    )


def classes_with_provisioner(handle: Handle) -> list[StorageClass]:
    """The classes that make volumes; those that do once a node is chosen come first, as they can make one there."""
    found = [one for one in handle.objects("StorageClass") if _makes_volumes(one)]
    return sorted(found, key=lambda one: one.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER)


def is_default(one: StorageClass) -> bool:
    """Whether claims without a class get this one."""
    return (one.metadata.annotations or {}).get(_DEFAULT_CLASS) == "true"
