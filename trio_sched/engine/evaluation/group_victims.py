"""What a pod that preempts may evict of a node, where pods of groups are evicted together, on other nodes, too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from attrs import define, field

from trio_sched.engine.cache import Cache
from trio_sched.engine.group_forest import GroupForest, key_of
from trio_sched.objects.pod_groups.composite_pod_group import CompositePodGroup
from trio_sched.objects.pod_groups.pod_group import PodGroup
from trio_sched.plugin_api.preemption_units import DisruptionRules, PreemptionUnit
from trio_sched.snapshot.pod_info import PodInfo


@define(eq=False)
class GroupVictims:
    """The units on nodes, as the cache has them now.

    Source: the victims of kube-scheduler 1.37.
    """

    cache: Cache
    rules: DisruptionRules
    forest: GroupForest | None
    """None without the gate CompositePodGroup."""
    _by_uid: dict[str, PreemptionUnit] = field(factory=dict)
    """Group → all of its pods, of those whose pods are evicted together."""

    def on_node(self, node_name: str, pod_infos: Iterable[PodInfo]) -> Iterator[PreemptionUnit]:
        """The units that have pods on a node; *pod_infos* are all that are there."""
        seen: set[str] = set()
        for pod_info in pod_infos:
            pod = pod_info.pod
            group = self.rules.disrupted_together(pod)
            if group is None:
                unit = self.rules.new_unit(pod, None)
                unit.add(pod, node_name)
                yield unit
            elif (uid := group.metadata.uid) not in seen:
                seen.add(uid)
                if uid not in self._by_uid:
                    self._by_uid[uid] = self.rules.new_unit(pod, group)
                    self._add_pods(self._by_uid[uid], group)
                yield self._by_uid[uid]

    def _add_pods(self, unit: PreemptionUnit, group: PodGroup | CompositePodGroup) -> None:
        keys = [key_of(group)] if self.forest is None else sorted(self.forest.leaves_below(key_of(group)))
        members = [one for one in map(self.cache.groups.get, keys) if one is not None]
        for uid in chain.from_iterable(one.node_names for one in members):
            cached = self.cache.get(uid)
            if cached is not None and cached.node_name in self.cache.table.row_of:
                unit.add(cached.pod_on_node, cached.node_name)
