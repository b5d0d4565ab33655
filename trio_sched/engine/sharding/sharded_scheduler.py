"""A scheduler that evicts pods from its own nodes only."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define

from trio_sched.engine.evaluation.preemption import Evictable
from trio_sched.engine.scheduler import Scheduler
from trio_sched.engine.sharding.owned_shards import OwnedShards
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.preemption import BudgetsByNamespace, DryRun


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
        """Find the victims of *pod* on those of the nodes that are this process's; see `Scheduler`."""
        own = [name for name in node_names if self.owned.owns_node(name)]
        return super().dry_run_preemption(pod, state, own, num_candidates, budgets, evictable=evictable)
