"""What the volume plugins share: the claims of a pod, sizes, and the node affinity of volumes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from trio_sched.plugin_api import (
    BoolArray,
    CSIStorageCapacity,
    Hint,
    LabelSelector,
    NodeColumns,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    Volume,
    match_node_selector,
    match_term,
    parse_nano,
    quote,
    term_problem,
)

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
FILESYSTEM: Final = "Filesystem"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
STORAGE: Final = "storage"

_SELECTOR_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def claim_not_found(name: str) -> str:
    """The error of a lister for a claim that does not exist."""
    return f"persistentvolumeclaim {quote(name)} not found"


def volume_not_found(name: str) -> str:
    """The error of a lister for a volume that does not exist."""
    return f"persistentvolume {quote(name)} not found"


def class_not_found(name: str) -> str:
    """The error of a lister for a storage class that does not exist."""
    return f"storageclass.storage.k8s.io {quote(name)} not found"


# --- the claims of a pod ----------------------------------------------------------------------------------------------


def has_claims(pod: Pod) -> bool:
    """Whether *pod* refers to a claim by name."""
    for volume in pod.spec.volumes or ():  # noqa: SIM110 - any() takes twice as long
        if volume.persistent_volume_claim is not None:
            return True
    return False


def has_claims_of_any_kind(pod: Pod) -> bool:
    """Whether *pod* refers to a claim by name, or has an ephemeral volume."""
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None or volume.ephemeral is not None:
            return True
    return False


def named_claims(pod: Pod) -> Iterator[str]:
    """The names of the claims that the volumes of *pod* refer to, in order."""
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name


def claim_name(pod: Pod, volume: Volume) -> str | None:
    """The name of the claim of *volume*; None if it has none, "" if the pod was not validated."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.name}-{volume.name}" if volume.ephemeral is not None else None


def is_claim_by_name(pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> Hint:
    """Hint: QUEUE if *new* is a claim that the pod refers to by name."""
    return Hint.QUEUE if pod.namespace == new.metadata.namespace and new.name in named_claims(pod) else Hint.SKIP


def is_claim(pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> Hint:
    """Hint: QUEUE if *new* is a claim that the pod refers to by name, or that of an ephemeral volume of the pod."""
    names = (claim_name(pod, volume) for volume in pod.spec.volumes or ())
    return Hint.QUEUE if pod.namespace == new.metadata.namespace and new.name in names else Hint.SKIP


def not_owned(pod: Pod, claim: PersistentVolumeClaim) -> str | None:
    """Why *claim*, named as the claim of an ephemeral volume of *pod*, is not owned by it; None if it is."""
    for owner in claim.metadata.owner_references or ():
        if owner.controller:
            if owner.uid == pod.uid and claim.metadata.namespace == pod.namespace:
                return None
            break
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"


# --- claims and volumes -----------------------------------------------------------------------------------------------


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether *claim* has a volume and the volume controller has completed the binding."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in (claim.metadata.annotations or {})


def requested_nano(claim: PersistentVolumeClaim) -> int:
    """The storage that *claim* requests, in nano bytes; 0 if it requests none."""
    amount = (claim.spec.resources.requests or {}).get(STORAGE)
    return 0 if amount is None else parse_nano(amount)


def capacity_nano(volume: PersistentVolume) -> int:
    """The capacity of *volume*, in nano bytes; 0 if it has none."""
    amount = (volume.spec.capacity or {}).get(STORAGE)
    return 0 if amount is None else parse_nano(amount)


def volume_mode(one: PersistentVolume | PersistentVolumeClaim) -> str:
    """``Filesystem``, unless *one* says ``Block``."""
    return one.spec.volume_mode or FILESYSTEM


def whole_bytes(nano: int) -> int:
    """Nano bytes as bytes, rounded up."""
    return -(-nano // 10**9)


def limit_nano(pool: CSIStorageCapacity) -> int | None:
    """The size of the largest volume that *pool* can provide, in nano bytes; None if that is not published."""
    amount = pool.maximum_volume_size if pool.maximum_volume_size is not None else pool.capacity
    return None if amount is None else parse_nano(amount)


def refers_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether *volume* is bound or pre-bound to *claim*."""
    reference = volume.spec.claim_ref
    return (
        reference is not None
        and reference.name == claim.name
        and reference.namespace == claim.metadata.namespace
        and reference.uid in ("", claim.metadata.uid)
    )


# --- node affinity and label selectors --------------------------------------------------------------------------------


def match_volume_affinity(affinity: NodeSelector | None, nodes: NodeColumns) -> BoolArray:
    """Shape (nodes,): which nodes match the required node *affinity* of a volume; all of them for None."""
    if affinity is None:
        return np.ones(len(nodes), dtype=np.bool_)
    matched = np.zeros(len(nodes), dtype=np.bool_)
    for term in affinity.node_selector_terms or ():
        if not term.match_fields:
            matched |= match_node_selector(NodeSelector(node_selector_terms=(term,)), nodes)
        elif term_problem(term) is None:
            # kube-scheduler matches the term against a node without a name, so field requirements do not apply.
            matched |= match_term(NodeSelectorTerm(match_expressions=term.match_expressions), nodes)
    return matched


def selector_term(selector: LabelSelector) -> NodeSelectorTerm | None:
    """The label selector as a node selector term that matches the same labels; None if it does not parse."""
    requirements = [
        NodeSelectorRequirement(key=key, operator="In", values=(value,))
        for key, value in (selector.match_labels or {}).items()
    ]
    for expression in selector.match_expressions or ():
        if expression.operator not in _SELECTOR_OPERATORS:
            return None
        requirements.append(
            NodeSelectorRequirement(key=expression.key, operator=expression.operator, values=expression.values or None)
        )
    term = NodeSelectorTerm(match_expressions=tuple(requirements))
    return None if term_problem(term) else term
