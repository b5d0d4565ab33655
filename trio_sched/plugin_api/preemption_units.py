"""Units of preemption: single pods, and groups of which all pods are evicted at once; not exported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from attrs import define, field, frozen

from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_groups.composite_pod_group import CompositePodGroup
from trio_sched.objects.pod_groups.pod_group import PodGroup
from trio_sched.plugin_api.pod_groups import MAX_LEVELS
from trio_sched.plugin_api.preemption import NOT_STARTED, started_at

OF_NO_GROUP: Final = 0
OF_GROUP: Final = 1
OF_COMPOSITE_GROUP: Final = 2

FindGroup = Callable[[str, str, str], Any]
"""The PodGroup or CompositePodGroup of a kind, name and namespace; None if there is none."""


@define(eq=False)
class PreemptionUnit:
    """Pods that are evicted together: those of a group, or a single one."""

    priority: int
    rank: int
    """`OF_NO_GROUP`, `OF_GROUP`, which a single pod of a group has, too, or `OF_COMPOSITE_GROUP`."""
    pods: list[Pod] = field(factory=list)
    node_names: list[str] = field(factory=list)
    """Where they are, in the same order."""

    def add(self, pod: Pod, node_name: str) -> None:
        """One pod more."""
        self.pods.append(pod)
        self.node_names.append(node_name)

    @property
    def importance(self) -> tuple[int, int, int, str]:
        """Sorts the most important unit first."""
        start = min(map(started_at, self.pods), default=NOT_STARTED)
        return -self.priority, -self.rank, -len(self.pods), start


@frozen(eq=False, kw_only=True)
class DisruptionRules:
    """Which pods of groups are evicted together, and the priority of those that are not.

    Source: the units of preemption of kube-scheduler 1.36 and 1.37.
    """

    find_group: FindGroup
    has_trees: bool = False
    """Gate CompositePodGroup."""
    group_priority_counts: bool = False
    """Whether a pod that is evicted alone has the priority of its group; else it has its own."""

    def groups_of(self, pod: Pod) -> list[PodGroup | CompositePodGroup]:
        """The groups that *pod* is in, as far as they are known, the root of the tree last."""
        scheduling_group = pod.spec.scheduling_group
        if scheduling_group is None:
            return []
        group = self.find_group("PodGroup", scheduling_group.pod_group_name or "", pod.namespace)
        return [] if group is None else self.with_parents(group)

    def with_parents(self, group: PodGroup) -> list[PodGroup | CompositePodGroup]:
        """*group* and the groups above it, the root of the tree last."""
        found: list[PodGroup | CompositePodGroup] = [group]
        while self.has_trees and len(found) < MAX_LEVELS and (name := found[-1].spec.parent_composite_pod_group_name):
            parent = self.find_group("CompositePodGroup", name, group.namespace)
            if parent is None:
                break
            found.append(parent)
        return found

    def disrupted_together(self, pod: Pod) -> PodGroup | CompositePodGroup | None:
        """The highest group that *pod* is in of those whose pods are evicted together; None: it is evicted alone."""
        together = [one for one in self.groups_of(pod) if one.is_disrupted_together]
        return together[-1] if together else None

    def priority(self, pod: Pod) -> int:
        """The priority of *pod* as a victim of its own."""
        groups = self.groups_of(pod) if self.group_priority_counts else []
        return groups[-1].spec.priority or 0 if groups else pod.priority

    def new_unit(self, pod: Pod, group: PodGroup | CompositePodGroup | None) -> PreemptionUnit:
        """A unit, without pods, for *pod* and those that are evicted with it because they are in *group*."""
        if group is None:
            return PreemptionUnit(self.priority(pod), OF_NO_GROUP if pod.spec.scheduling_group is None else OF_GROUP)
        rank = OF_COMPOSITE_GROUP if isinstance(group, CompositePodGroup) else OF_GROUP
        return PreemptionUnit(self.groups_of(pod)[-1].spec.priority or 0, rank)
