"""A scheduler that looks for victims on its own nodes first, and on those of others if there are none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import define, evolve

from trio_sched.engine.evaluation.decision import SchedulingFailure
from trio_sched.engine.evaluation.preemption import Evictable
from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.scheduler import Scheduler
from trio_sched.engine.sharding.owned_shards import OwnedShards
from trio_sched.engine.sharding.pod_scope import Scope
from trio_sched.engine.sharding.reserved_places import is_preempting_for_group, is_reserved
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.preemption import BudgetsByNamespace, DryRun

_TAKES_BACK_CLAIMS: Final = "DynamicResources"
"""The plugin whose post_filter takes devices away from claims, which only the lane may do."""


@define(eq=False, kw_only=True)
class ShardedScheduler(Scheduler):
    """Decides for its shards."""

    owned: OwnedShards

    def dry_run_preemption(
        self,
        pod: Pod,
        state: CycleState,
        node_names: Sequence[str],
        num_candidates: int,
        budgets: BudgetsByNamespace,
        *,
        evictable: Evictable | None = None,
    ) -> DryRun:
        """Find the victims of *pod* on own nodes, or else on those whose owners can be asked; see `Scheduler`."""
        owned = self.owned
        own = [name for name in node_names if owned.owns_node(name)]
        nominated = pod.nominated_node_name
        if (is_reserved(pod) and nominated in own) or (is_preempting_for_group(pod) and nominated in node_names):
            # Others may be as good, and reserving a place there would begin all over.
            kept = [nominated]
            found = super().dry_run_preemption(pod, state, kept, num_candidates, budgets, evictable=evictable)
            if found.candidates:
                return found
        found = super().dry_run_preemption(pod, state, own, num_candidates, budgets, evictable=evictable)
        if found.candidates or not owned.decides_on(pod) or owned.scope(pod) is Scope.CONFINED:
            return found
        others = [name for name in node_names if not owned.owns_node(name)]
        if not others:
            return found
        elsewhere = super().dry_run_preemption(pod, state, others, num_candidates, budgets, evictable=evictable)
        statuses = {**found.statuses, **elsewhere.statuses}
        return evolve(elsewhere, statuses=statuses, error=found.error or elsewhere.error)

    def _post_filters_of(self, pod: Pod) -> tuple[BoundHook, ...]:
        hooks = super()._post_filters_of(pod)
        if not self.owned.is_proposed(pod):
            return hooks
        return tuple(hook for hook in hooks if hook.plugin != _TAKES_BACK_CLAIMS)

    def keep_place(self, pod: Pod, node_name: str, *, now: float) -> SchedulingFailure | None:
        """Assume *pod*, of a group that another process decides on, on an own node if it fits there; else why not.

        Raises:
            CacheError: it is on a node already.
        """
        with self.trial():
            decision = self.decide_in_placement(QueuedPodInfo(pod, now), frozenset({node_name}))
        if isinstance(decision, SchedulingFailure):
            return decision
        self.queue.nominator.delete(pod.uid)
        self.assume(pod, decision)
        return None

    def could_keep_place(self, pod: Pod, node_name: str, *, now: float) -> SchedulingFailure | None:
        """None if *pod* would fit on an own node once less important pods were evicted there; else why not."""
        with self.trial():
            decision = self.decide_in_placement(QueuedPodInfo(pod, now), frozenset({node_name}))
            if not isinstance(decision, SchedulingFailure):
                return None
            state = CycleState(is_trial=True) if decision.state is None else decision.state
            found = super().dry_run_preemption(pod, state, [node_name], 1, {})
        return None if found.candidates else decision
