"""How far the rules reach that decide on which node a pod may run: whose task it is to decide on it."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from trio_sched.engine.sharding.repelling_terms import RepellingTerms
from trio_sched.objects.pod import Pod
from trio_sched.objects.selector import NodeSelectorRequirement, NodeSelectorTerm
from trio_sched.objects.storage.volume import Volume
from trio_sched.snapshot.labels.affinity_terms import affinity_terms


class Scope(Enum):
    """Who decides on a pod, and where it may go."""

    LOCAL = "local"
    """Its rules judge a node by itself: the holder of the shard of its owner decides, on any node."""
    LANE = "lane"
    """Its rules reach beyond a node: the holder of the lane decides, on any node."""
    CLAIMS = "claims"
    """It claims volumes or devices: the holder of the lane gives it these, and decides, on any node."""
    DEVICES = "devices"
    """It gets devices for an extended resource: the holder of the lane decides, on any node, and binds it to a place
    that is kept. The owner of the node could take the claim for one that an earlier attempt has left."""
    GROUP = "group"
    """It is in a pod group: the holder of the lane decides, on any node, whatever its rules are and whatever it claims,
    and binds it once its group has its places."""
    CONFINED = "confined"
    """It needs something that only one process may give away: the holder of the lane decides, on its own nodes."""


def owner_of(pod: Pod) -> str:
    """What the pods of a workload have in common: the UID of their controller; of a pod without one its own."""
    for reference in pod.metadata.owner_references or ():
        if reference.controller:
            return reference.uid
    return pod.uid


def pinned_node(pod: Pod) -> str:
    """The only node that *pod* may run on, as its own fields say; empty: there may be others.

    The pods of a DaemonSet are pinned so.
    """
    term = _only_term(pod)
    return "" if term is None else _only_value(term.match_fields, "metadata.name")


def required_label(pod: Pod, label: str) -> str:
    """The only value of *label* that nodes may have for *pod*, as its own fields say; empty: there may be others."""
    value, term = (pod.spec.node_selector or {}).get(label, ""), _only_term(pod)
    return value if value or term is None else _only_value(term.match_expressions, label)


def _only_term(pod: Pod) -> NodeSelectorTerm | None:
    """The term of the required node affinity of *pod*, if there is just one."""
    affinity = pod.spec.affinity
    node_affinity = None if affinity is None else affinity.node_affinity
    required = None if node_affinity is None else node_affinity.required_during_scheduling_ignored_during_execution
    terms = () if required is None else required.node_selector_terms or ()
    return terms[0] if len(terms) == 1 else None


def _only_value(requirements: tuple[NodeSelectorRequirement, ...] | None, key: str) -> str:
    for one in requirements or ():
        if one.key == key and one.operator == "In" and len(one.values or ()) == 1:
            return (one.values or ("",))[0]
    return ""


def is_in_group(pod: Pod) -> bool:
    """Whether *pod* is in a pod group, if the gate GenericWorkload is on."""
    return pod.spec.scheduling_group is not None or pod.spec.workload_ref is not None


def scope_of(pod: Pod, terms: RepellingTerms, is_device: Callable[[str], bool], *, has_groups: bool = True) -> Scope:
    """The scope of *pod* among pods with *terms*.

    Args:
        pod: the pod.
        terms: of required anti-affinity.
        is_device: says which extended resources are devices.
        has_groups: gate GenericWorkload.
    """
    spec = pod.spec
    if has_groups and is_in_group(pod):
        return Scope.GROUP
    if requests_device(pod, is_device):
        return Scope.DEVICES
    if spec.resource_claims or any(map(_is_given_away, spec.volumes or ())):
        return Scope.CLAIMS
    constraints = spec.topology_spread_constraints or ()
    if any(one.when_unsatisfiable != "ScheduleAnyway" for one in constraints):
        return Scope.LANE
    own = affinity_terms(pod)
    if own.required_affinity or own.required_anti_affinity or own.problem:
        return Scope.LANE
    return Scope.LANE if terms.selects(pod) else Scope.LOCAL


def _is_given_away(volume: Volume) -> bool:
    """Whether there is less of the volume than there are nodes: all that is not an image, a secret, an empty folder."""
    return (
        volume.persistent_volume_claim is not None
        or volume.ephemeral is not None
        or volume.csi is not None
        or volume.gce_persistent_disk is not None
        or volume.aws_elastic_block_store is not None
        or volume.azure_disk is not None
        or volume.cinder is not None
        or volume.portworx_volume is not None
        or volume.vsphere_volume is not None
        or volume.iscsi is not None
        or volume.rbd is not None
    )


def requests_device(pod: Pod, is_device: Callable[[str], bool]) -> bool:
    """Whether *pod* requests an extended resource that *is_device* says is devices."""
    for container in (*(pod.spec.containers or ()), *(pod.spec.init_containers or ())):
        for name in container.resources.requests or () if container.resources is not None else ():
            if "/" in name and is_device(name):
                return True
    return False
