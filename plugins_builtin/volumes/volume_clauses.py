"""What the plugins of volumes say of a pending pod: each of its claims, what is wrong with it, and who uses it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import numpy as np
from attrs import evolve

from plugins_builtin.volumes.available_volumes import why_none
from plugins_builtin.volumes.claim_changes import (
    MAX_USERS,
    as_available,
    classes_with_provisioner,
    from_elsewhere,
    is_default,
    larger_limit,
    most_text,
    of_other_drivers,
    once_deleted,
    owned_claim,
    selected_node,
    shared_claim,
    with_claim,
    with_class,
    with_default_class,
    with_made_claim,
    with_new_claim,
    with_new_class,
    without_selected_node,
    without_volume,
)
from plugins_builtin.volumes.volume_changes import class_of, with_named_volume, with_volume
from plugins_builtin.volumes.volumes import (
    NO_PROVISIONER,
    STORAGE,
    WAIT_FOR_FIRST_CONSUMER,
    claim_name,
    is_fully_bound,
    match_volume_affinity,
    named_claims,
    not_owned,
    requested_nano,
    whole_bytes,
)
from trio_sched.plugin_api import (
    BoolArray,
    Change,
    Clause,
    Handle,
    NodeColumns,
    NodeSelector,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    Volume,
    amount_text,
    delete_pod,
    nearest_name,
    some_names,
)

_CLAIM: Final = "PersistentVolumeClaim"
_HOSTNAME: Final = "kubernetes.io/hostname"
_MAX_SHOWN: Final = 2
"""Nodes that are named."""


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
        elif volume.persistent_volume_claim is None and not_owned(pod, claim) is not None:
            owner = next((one.name for one in claim.metadata.owner_references or () if one.controller), "")
            text = f"the claim {name} of its ephemeral volume {volume.name} is " + (
                f"that of {owner}" if owner else "nobody's, and was not made for this pod"
            )
            yield _clause("ClaimOfAnother", name, text, partial(owned_claim, pod, claim))
        elif claim.metadata.deletion_timestamp is not None:
            held = some_names(claim.metadata.finalizers or ()) or "nothing that is known"
            text = f"the claim {name} is being deleted, and held by {held}"
            users = _users(handle, pod, name)
            text += f"; it is used by {some_names([one.key for one in users])}" if users else ""
            yield _clause("ClaimIsBeingDeleted", name, text, partial(once_deleted, handle, claim, users))
        elif claim.status.phase == "Lost":
            text = f"the claim {name} is bound to the volume {claim.spec.volume_name}, which does not exist"
            yield _clause("ClaimLost", name, text, partial(with_volume, handle, claim, claim.spec.volume_name))
        elif not is_fully_bound(claim) and not _waits_for_consumer(handle, claim):
            yield _unbound(handle, claim)
        elif not is_fully_bound(claim):
            yield from _not_made(handle, claim)
        elif is_fully_bound(claim) and handle.object("PersistentVolume", claim.spec.volume_name) is None:
            text = f"the claim {name} is bound to the volume {claim.spec.volume_name}, which does not exist"
            yield _clause("VolumeNotFound", name, text, partial(with_volume, handle, claim, claim.spec.volume_name))


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
            yield with_claim(pod, volume, near)
        yield from with_made_claim(handle, pod.namespace, name)

    return _clause("ClaimNotFound", name, text, changes)


def _waits_for_consumer(handle: Handle, claim: PersistentVolumeClaim) -> bool:
    found = class_of(handle, claim)
    return not claim.spec.volume_name and found is not None and found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def _unbound(handle: Handle, claim: PersistentVolumeClaim) -> Clause:
    """A claim that has to be bound before the pod is scheduled, and is not."""
    name, wanted, found = claim.name, claim.storage_class, class_of(handle, claim)
    size = amount_text(STORAGE, whole_bytes(requested_nano(claim)), round_up=True)
    text = f"the claim {name} ({size}) has no volume"
    reason, near = "ClaimUnbound", None

    def named() -> Iterator[Change]:
        yield from with_named_volume(handle, claim)
        yield from with_volume(handle, claim, claim.spec.volume_name)

    if claim.spec.volume_name:
        text += f": it names the volume {claim.spec.volume_name}, which is not bound to it"
        volume: PersistentVolume | None = handle.object("PersistentVolume", claim.spec.volume_name)
        if volume is None:
            text += " and does not exist"
            return _clause("VolumeNotFound", name, text, named)
        other = volume.spec.claim_ref
        if other is not None and (other.namespace, other.name) != (claim.metadata.namespace, name):
            text += f", but to the claim {other.namespace}/{other.name}"
    elif not wanted:
        default = next((one for one in handle.objects("StorageClass") if is_default(one)), None)
        text += ", and no storage class" + ("" if default is not None else "; the cluster has no default one")
    elif found is None:
        reason = "StorageClassNotFound"
        near = nearest_name(wanted, [one.metadata.name for one in handle.objects("StorageClass")])
        text += f": there is no storage class {wanted}" + (f"; there is {near}" if near else "")
    elif found.provisioner in ("", NO_PROVISIONER):
        text += f": the class {wanted} provisions nothing, and no volume is free for it{why_none(handle, claim)}"
    else:
        text += f": the provisioner {found.provisioner} of its class {wanted} has made none{_known(handle, found)}"

    def changes() -> Iterator[Change]:
        if claim.spec.volume_name:
            yield without_volume(handle, claim)
        else:
            yield from as_available(handle, claim)
        for one in ([near] if near else []) + [one.metadata.name for one in classes_with_provisioner(handle)][:1]:
            if one != wanted:
                yield evolve(with_class(handle, claim, one), corrects=one == near)
        if reason == "StorageClassNotFound":
            yield from with_new_class(handle, claim)
        if claim.spec.storage_class_name is None and not any(map(is_default, handle.objects("StorageClass"))):
            yield from with_default_class(handle, claim)
        yield from with_volume(handle, claim, f"{name}-volume")

    return _clause(reason, name, text, changes)


def _not_made(handle: Handle, claim: PersistentVolumeClaim) -> Iterator[Clause]:
    """A claim whose volume is to be made for the node that was chosen."""
    node, found = selected_node(claim), class_of(handle, claim)
    if node is None or handle.nodes.position(node) is None or found is None:
        return
    text = (
        f"the claim {claim.name} is to get its volume on {node}, and the provisioner {found.provisioner} of its class "
    )
    text += f"{claim.storage_class} has made none yet{_known(handle, found)}"

    yield Clause(
        reason="VolumeNotMade",
        title=f"volume of claim {claim.name}",
        cause=text,
        is_awaited=True,
        changes=lambda _nodes: from_elsewhere(handle, claim),
    )


def _known(handle: Handle, found: StorageClass) -> str:
    drivers = {one.metadata.name for one in handle.objects("CSIDriver")}
    if found.provisioner in drivers or not drivers:
        return ""
    near = nearest_name(found.provisioner, drivers)
    return f"; no such driver is installed{f', but {near} is' if near else ''}"


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
        node_labels={} if volume is None else _labels_of(volume.required_affinity),
        changes=lambda _nodes: with_new_claim(handle, claim),
    )


def zone_clause(
    handle: Handle,
    nodes: NodeColumns,
    claim: PersistentVolumeClaim,
    zones: Mapping[str, Sequence[str]],
    fails: BoolArray,
) -> Clause:
    """The zone labels of the volume that *claim* has, by key; *fails*, shape (nodes,), says where none matches."""
    name = claim.spec.volume_name
    where = " and ".join(f"{key} {', '.join(values)}" for key, values in zones.items())
    cause = f"the volume {name} of the claim {claim.name} is in {where}{_nodes_text(nodes, ~fails)}"
    return Clause(
        reason="VolumeZoneMismatch",
        title=f"zone of volume {name}",
        fails=fails,
        cause=cause,
        is_given=True,
        node_labels={key: values[0] for key, values in zones.items() if values},
        changes=lambda _nodes: with_new_claim(handle, claim),
    )


def _labels_of(affinity: NodeSelector | None) -> dict[str, str]:
    """Labels that match *affinity*, if it asks for labels that several nodes can have."""
    for term in (affinity.node_selector_terms or ()) if affinity is not None else ():
        wanted = {one.key: one.values[0] for one in term.match_expressions or () if one.operator == "In" and one.values}
        if len(wanted) == len(term.match_expressions or ()) and not term.match_fields and _HOSTNAME not in wanted:
            return wanted
    return {}


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
    name, found, node = claim.name, class_of(handle, claim), selected_node(claim)
    size = amount_text(STORAGE, whole_bytes(requested_nano(claim)), round_up=True)
    text, labels = f"the claim {name} ({size} of class {claim.storage_class}) can get no volume there: {reasons}", {}
    if node is not None:
        text = f"the claim {name} ({size} of class {claim.storage_class}) is to get its volume on {node}"
        text += "" if handle.nodes.position(node) is not None else ", which does not exist"
    elif found is not None and found.provisioner in ("", NO_PROVISIONER):
        text = f"the class {claim.storage_class} of the claim {name} ({size}) provisions nothing"
        text += f", and no free volume suits it{why_none(handle, claim)}"
    elif found is not None and found.allowed_topologies:
        allowed = found.allowed_topologies[0].match_label_expressions or ()
        labels = {one.key: one.values[0] for one in allowed if one.values and one.key != _HOSTNAME}
        texts = [
            f"{one.key} in {', '.join(one.values or ())}"
            for term in found.allowed_topologies
            for one in term.match_label_expressions or ()
        ]
        text += f"; the class allows {some_names(texts)}"
    elif most := most_text(handle, claim):
        text += f"; the most that is left for one volume is {most}"

    def changes(_nodes: BoolArray) -> Iterator[Change]:
        if node is not None:
            yield without_selected_node(claim)
        yield from as_available(handle, claim)
        yield from from_elsewhere(handle, claim)

    return Clause(
        reason="NoVolumeForClaim",
        title=f"claim {name}",
        fails=fails,
        cause=text,
        is_given=node is not None and handle.nodes.position(node) is not None,
        node_labels=labels,
        changes=changes,
    )


# --- limits, claims and disks in use ---------------------------------------------------------------------------------


def limit_clause(
    handle: Handle,
    nodes: NodeColumns,
    pod: Pod,
    driver: str,
    fails: BoolArray,
    counts: Mapping[int, tuple[int, int, int]],
) -> Clause:
    """The volumes of a *driver* that a node can have.

    Args:
        handle: for the claims of the pod.
        nodes: all nodes.
        pod: the pod.
        driver: the CSI driver.
        fails: shape (nodes,): where there would be too many.
        counts: by the position of such a node, how many there are, how many more the pod needs, and the limit.
    """

    def cause(otherwise: BoolArray) -> str:
        where = otherwise & fails if (otherwise & fails).any() else fails
        texts = []
        for position in np.flatnonzero(where).tolist()[:_MAX_SHOWN]:
            used, more, limit = counts[position]
            texts.append(f"{nodes.name(position)} has {used} of at most {limit}, and it needs {more} more")
        text = f"volumes of the driver {driver}: {'; '.join(texts)}"
        most = max(limit for _used, _more, limit in counts.values())
        if len(counts) == len(nodes) and all(more > limit for _used, more, limit in counts.values()):
            text += f"; by itself it has more than any node takes, which is {most} at most"
        return text

    def changes(where: BoolArray) -> Iterator[Change]:
        usable = [one for one in counts if where[one]]
        excess = {one: counts[one][0] + counts[one][1] - counts[one][2] for one in usable}
        nearest = sorted(usable, key=lambda one: (excess[one], one))[:_MAX_SHOWN]
        if nearest:
            yield from of_other_drivers(handle, pod, driver, excess[nearest[0]])
        for position in nearest:
            used, more, _limit = counts[position]
            yield larger_limit(nodes.name(position), driver, used + more)

    return Clause(reason="TooManyVolumes", title=f"volumes of {driver}", fails=fails, cause=cause, changes=changes)


def in_use_clause(handle: Handle, nodes: NodeColumns, pod: Pod, name: str) -> Clause:
    """A ReadWriteOncePod claim that running pods use."""
    users = [
        (other, node.name)
        for node in nodes
        for other in node.pods
        if other.namespace == pod.namespace and name in named_claims(other)
    ]
    ending = [other for other, _node in users if other.metadata.deletion_timestamp is not None]
    texts = [f"{other.key} ({node}{', being deleted' if other in ending else ''})" for other, node in users]
    cause = f"the claim {name} is ReadWriteOncePod and in use by {some_names(texts)}"

    def changes(_nodes: BoolArray) -> Iterator[Change]:
        if 0 < len(users) <= MAX_USERS and not ending:
            pods = [other for other, _node in users]
            yield Change(title=f"delete {some_names([one.key for one in pods])}", edits=tuple(map(delete_pod, pods)))
        yield from shared_claim(handle, pod, name)

    fails = np.ones(len(nodes), dtype=np.bool_)
    return Clause(reason="ClaimInUse", title=f"claim {name} for itself", fails=fails, cause=cause, changes=changes)


def disk_clause(nodes: NodeColumns, fails: BoolArray, conflicts: Callable[[Pod], bool]) -> Clause:
    """Disks that other pods on the nodes have mounted."""

    def cause(otherwise: BoolArray) -> str:
        where = otherwise & fails if (otherwise & fails).any() else fails
        users = [
            f"{other.key} ({nodes.name(position)})"
            for position in np.flatnonzero(where).tolist()[:MAX_USERS]
            for other in nodes.node(position).pods
            if conflicts(other)
        ]
        return f"a disk of it is mounted by {some_names(users)}"

    return Clause(reason="DiskInUse", title="disks that can be mounted once", fails=fails, cause=cause)
