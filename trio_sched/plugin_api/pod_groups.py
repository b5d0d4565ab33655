"""What hooks about pod groups take and return: the group of an attempt, its state, and placements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from attrs import field, frozen

from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_groups.composite_pod_group import CompositePodGroup
from trio_sched.objects.pod_groups.pod_group import PodGroup
from trio_sched.objects.pod_groups.workload_groups import workload_and_group as workload_and_group
from trio_sched.plugin_api.status import Status
from trio_sched.snapshot.node_columns import NodeColumns

MAX_LEVELS: Final = 4
"""How many levels of groups a tree has at most, pod groups included."""


class PodGroupState(Protocol):
    """The pods of a group that the scheduler knows: those it schedules, and those that have a node."""

    @property
    def pod_count(self) -> int:
        """How many pods it has."""
        ...

    @property
    def scheduled_count(self) -> int:
        """How many of them are assumed on a node or bound to one."""
        ...

    @property
    def unscheduled_pods(self) -> Sequence[Pod]:
        """Its pods that are neither assumed nor bound."""
        ...

    @property
    def assumed_uids(self) -> Sequence[str]:
        """The UIDs of its pods that are assumed on a node and not bound yet."""
        ...

    @property
    def node_names(self) -> Mapping[str, str]:
        """UID → node, of its pods that are assumed or bound."""
        ...


@frozen(eq=False)
class PodGroupTree:
    """A group, and the groups below it; a pod group has none."""

    group: PodGroup | CompositePodGroup
    children: tuple[PodGroupTree, ...] = ()

    @property
    def leaves(self) -> Iterator[PodGroup]:
        """The pod groups in the tree, in the order in which they are scheduled."""
        if isinstance(self.group, PodGroup):
            yield self.group
        for child in self.children:
            yield from child.leaves


@frozen(eq=False)
class PodGroupInfo:
    """A pod group, or a composite one, in one attempt to schedule it."""

    namespace: str
    name: str
    pods: tuple[Pod, ...]
    """The pods that the attempt is about, in the order in which they are scheduled."""
    kind: str = "PodGroup"
    """Or ``CompositePodGroup``."""
    group_names: tuple[str, ...] = field(kw_only=True)
    """The pod groups whose pods these are: itself, or all below the composite one."""

    @group_names.default
    def _itself(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


@frozen
class PlacementProgress:
    """How far the attempt to place a pod group has come; for a composite one what is counted are its child groups."""

    scheduled: int
    """How many pods of the group have a node: those that had one before, and those of the attempt that fit."""
    remaining: int
    """How many pods of the attempt have not been tried yet."""


@frozen
class Placement:
    """Nodes that all pods of a group are scheduled to, if they fit there."""

    name: str = ""
    node_names: frozenset[str] | None = None
    """None: all nodes."""


@frozen(eq=False)
class PlacementAssignments:
    """A placement that the group fits in."""

    placement: Placement
    nodes: NodeColumns
    """The nodes of the placement, without the pods of the group that the attempt is about."""
    assignments: tuple[tuple[Pod, str], ...]
    """The pods that found a node, each with its name."""


@frozen(eq=False)
class PodGroupPostFilterResult:
    """Returned by pod_group_post_filter: the group fits once some pods have left."""

    victims: tuple[Pod, ...] = ()
    """The pods to evict; none if those that have to leave are leaving already: then nominations stay as they are."""
    message: str = ""
    """What the condition of the group says about it, from 1.37 on."""
    pdb_violations: int = 0
    """How many of the evictions violate a PodDisruptionBudget, for a metric of 1.37."""
    group_disruptions: int = 0
    """How many pods of groups are evicted, those of a group that is evicted as a whole being one; likewise."""


class PodGroupTrial(Protocol):
    """Tries to schedule a pod group under the assumption that some pods are not there; nothing happens to these."""

    @property
    def assigned_pods(self) -> Iterable[tuple[Pod, str]]:
        """All pods of the cluster that are assumed or bound, each with the name of its node; not those of the group."""
        ...

    @property
    def node_names(self) -> frozenset[str]:
        """The nodes on which the pods of the group were placed when it fit last."""
        ...

    def remove(self, pods: Iterable[Pod]) -> None:
        """Assume from now on that *pods* are not on their nodes."""
        ...

    def restore(self, pods: Iterable[Pod]) -> None:
        """Assume no longer that *pods*, which were removed, are gone."""
        ...

    def run(self) -> Status | None:
        """Try to schedule the group as things are assumed to be; None if it fits, else why it does not."""
        ...

    def still_fits(self) -> bool:
        """Whether its pods fit, as things are assumed to be, on the nodes where they were placed when it fit last."""
        ...
