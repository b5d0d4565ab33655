"""What the volume plugins share: the claims of a pod, what they say, and from which nodes volumes can be reached."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    node_selector_matches,
    parse_nano,
    term_problem,
)

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
STORAGE: Final = "storage"

_SELECTOR_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def claim_not_found(name: str) -> str:
    """What a lister says of a claim that does not exist."""
    return f'persistentvolumeclaim "{name}" not found'


def volume_not_found(name: str) -> str:
    """What a lister says of a volume that does not exist."""
    return f'persistentvolume "{name}" not found'


def class_not_found(name: str) -> str:
    """What a lister says of a storage class that does not exist."""
    return f'storageclass.storage.k8s.io "{name}" not found'


# --- the pod's side ---------------------------------------------------------------------------------------------------


def has_claims(pod: Pod) -> bool:
    """Whether *pod* uses a claim by name."""
    return any(volume.persistent_volume_claim is not None for volume in pod.spec.volumes or ())


def has_claims_of_any_kind(pod: Pod) -> bool:
    """Whether *pod* uses a claim, by name or one that is made for it."""
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None or volume.ephemeral is not None:
            return True
    return False


def named_claims(pod: Pod) -> Iterator[str]:
    """The claims that *pod* uses by name, volume by volume."""
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name


def claim_name(pod: Pod, volume: Volume) -> str | None:
    """The claim behind *volume*; None if there is none. It may be "" in a pod that nobody has checked."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.name}-{volume.name}" if volume.ephemeral is not None else None


def is_claim_by_name(pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> Hint:
    """Hint: the pod may be helped by a claim that it uses by name."""
    return Hint.QUEUE if pod.namespace == new.metadata.namespace and new.name in named_claims(pod) else Hint.SKIP


def is_claim(pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> Hint:
    """Hint: the pod may be helped by a claim that it uses by name, or that is made for it."""
    names = (claim_name(pod, volume) for volume in pod.spec.volumes or ())
    return Hint.QUEUE if pod.namespace == new.metadata.namespace and new.name in names else Hint.SKIP


def not_owned(pod: Pod, claim: PersistentVolumeClaim) -> str | None:
    """Why *claim*, whose name is that of an ephemeral volume of *pod*, is not for it; None if it is."""
    for owner in claim.metadata.owner_references or ():
        if owner.controller:
            if owner.uid == pod.uid and claim.metadata.namespace == pod.namespace:
                return None
            break
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"


# --- claims and volumes -----------------------------------------------------------------------------------------------


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether *claim* has its volume, and the volume controller has said so."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in (claim.metadata.annotations or {})


def requested_nano(claim: PersistentVolumeClaim) -> int:
    """How much storage *claim* asks for, in nano bytes; 0 if it does not say."""
    amount = (claim.spec.resources.requests or {}).get(STORAGE)
    return 0 if amount is None else parse_nano(amount)


def capacity_nano(volume: PersistentVolume) -> int:
    """How large *volume* is, in nano bytes; 0 if it does not say."""
    amount = (volume.spec.capacity or {}).get(STORAGE)
    return 0 if amount is None else parse_nano(amount)


def whole_bytes(nano: int) -> int:
    """Nano bytes as bytes, rounded up."""
    return -(-nano // 10**9)


def limit_nano(pool: CSIStorageCapacity) -> int | None:
    """How large a volume out of *pool* may be, in nano bytes; None if it does not say."""
    amount = pool.maximum_volume_size if pool.maximum_volume_size is not None else pool.capacity
    return None if amount is None else parse_nano(amount)


def refers_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether *volume* is kept for *claim* or belongs to it."""
    reference = volume.spec.claim_ref
    return (
        reference is not None
        and reference.name == claim.name
        and reference.namespace == claim.metadata.namespace
        and reference.uid in ("", claim.metadata.uid)
    )


# --- the nodes' side --------------------------------------------------------------------------------------------------


def reachable_from(affinity: NodeSelector | None, nodes: NodeColumns) -> BoolArray:
    """Shape (nodes,): from which nodes a volume with this required *affinity* can be reached."""
    if affinity is None:
        return np.ones(len(nodes), dtype=np.bool_)
    matched = np.zeros(len(nodes), dtype=np.bool_)
    for term in affinity.node_selector_terms or ():
        if not term.match_fields:
            matched |= match_node_selector(NodeSelector(node_selector_terms=(term,)), nodes)
        elif term_problem(term) is None:
            # kube-scheduler shows the term a node without a name, of which no field is looked at.
            matched |= match_term(NodeSelectorTerm(match_expressions=term.match_expressions), nodes)
    return matched


def selector_term(selector: LabelSelector) -> NodeSelectorTerm | None:
    """The label selector as a term of node selectors, which means the same on labels; None if it does not parse."""
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


def nodes_with_labels(selector: LabelSelector | None, nodes: NodeColumns) -> BoolArray:
    """Shape (nodes,): which nodes a label selector chooses; a missing one, or one that does not parse, chooses none."""
    term = None if selector is None else selector_term(selector)
    return np.zeros(len(nodes), dtype=np.bool_) if term is None else match_term(term, nodes)


def labels_chosen(term: NodeSelectorTerm, labels: Mapping[str, str]) -> bool:
    """Whether *labels* are what the *term* of `selector_term` chooses."""
    return not term.match_expressions or node_selector_matches(NodeSelector(node_selector_terms=(term,)), "", labels)
