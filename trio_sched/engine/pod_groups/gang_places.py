"""Which places a gang that is not scheduled holds; when it may is what `gang_holds` says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import define, field

from trio_sched.engine.pod_group_state import PodGroupStates
from trio_sched.engine.pod_groups.gang_holds import GangHolds
from trio_sched.engine.pod_groups.pod_group_cycle import PodGroupCycle
from trio_sched.engine.pod_groups.pod_group_results import GroupResult
from trio_sched.engine.pod_groups.pod_group_trial import PodGroupTrial
from trio_sched.objects.pod import Pod

_PER_NODE: Final = frozenset({"DaemonSet", "Node"})
_LASTING: Final = frozenset({"ReplicaSet", "StatefulSet", "ReplicationController"})
"""Owners whose pods are not likely to leave."""


@define(eq=False)
class GangPlaces:
    """The places that gangs hold, and those that they would like to."""

    states: PodGroupStates
    holds: GangHolds = field(factory=GangHolds)
    _too_large: dict[str, int] = field(factory=dict, init=False)
    """Gangs that would not fit in an empty cluster → the generation of the nodes for which that was found out."""

    def to_hold(self, cycle: PodGroupCycle, result: GroupResult, now: float) -> Mapping[str, str]:
        """UID → node of the places that a gang holds until its next attempt; none if it may hold none.

        Args:
            cycle: the attempt.
            result: what it came to: the gang is not scheduled.
            now: the time.
        """
        key, infos = cycle.group.key, cycle.infos
        priority = max(info.pod.priority for info in infos)
        first_tries = (info.initial_attempt_timestamp for info in infos)
        waiting_since = min((first for first in first_tries if first is not None), default=now)
        if not self.holds.may_hold(key, priority, waiting_since=waiting_since, now=now):
            return {}
        targets = self.holds.targets(key)
        if targets is None:
            targets = self._find_targets(key, cycle)
            if targets is None:
                return {}
            self.holds.hold(key, priority, targets, now)
        found = {pod.info.uid: pod.placed.node_name for pod in result.pods if pod.placed is not None}
        return {**targets, **found}

    def _find_targets(self, key: str, cycle: PodGroupCycle) -> Mapping[str, str] | None:
        """Where the pods of the gang would be placed once pods have left that are likely to; None if nowhere, ever.

        If the gang fits only without pods that are not likely to leave, it has no targets, and may hold what it finds.
        """
        generation = cycle.scheduler.cache.table.nodes_generation
        if self._too_large.get(key) == generation:
            return None
        self._too_large = {
            known: seen
            for known, seen in self._too_large.items()
            if seen == generation and self.states.get(known) is not None
        }
        with PodGroupTrial(cycle) as trial:
            others = [pod for pod, _node_name in trial.assigned_pods if not _is_owned_by(pod, _PER_NODE)]
            trial.remove([pod for pod in others if not _is_owned_by(pod, _LASTING)])
            if trial.run() is None:
                return dict(trial.places)
            trial.remove(others)
            if trial.run() is None:
                return {}
        self._too_large[key] = generation
        return None


def _is_owned_by(pod: Pod, kinds: frozenset[str]) -> bool:
    return any(owner.kind in kinds for owner in pod.metadata.owner_references or ())
