"""A scheduler that looks for victims on its own nodes first, and on those of others if there are none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import define, evolve

from trio_sched.engine.evaluation.decision import Decision, SchedulingFailure
from trio_sched.engine.evaluation.preemption import Evictable, dry_run
from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.engine.registry.profile import Profile
from trio_sched.engine.scheduler import Scheduler
from trio_sched.engine.sharding.owned_shards import OwnedShards
from trio_sched.engine.sharding.pod_scope import Scope
from trio_sched.engine.sharding.reserved_places import is_preempting_for_group, is_reserved
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.preemption import BudgetsByNamespace, DryRun
from trio_sched.plugin_api.verdicts import Input

GIVES_DEVICES: Final = "DynamicResources"
"""The plugin that judges a node by its devices, which only the lane gives away; its post_filter takes them back."""
_GIVE_AWAY: Final = frozenset({GIVES_DEVICES, "VolumeBinding", "VolumeRestrictions", "VolumeZone", "NodeVolumeLimits"})
_OF_NODE: Final = frozenset({Input.NODE, Input.PODS, Input.AMOUNTS})


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
        return tuple(hook for hook in hooks if hook.plugin != GIVES_DEVICES)

    def keep_place(self, pod: Pod, node_name: str) -> SchedulingFailure | None:
        """Assume *pod*, which another process decides on and binds, on an own node if it fits there; else why not.

        Raises:
            CacheError: it is on a node already.
        """
        decision = self._decide_on_place(pod, node_name)
        if isinstance(decision, SchedulingFailure):
            return decision
        self.queue.nominator.delete(pod.uid)
        self.assume(pod, decision)
        return None

    def could_keep_place(self, pod: Pod, node_name: str) -> SchedulingFailure | None:
        """None if *pod* would fit on an own node once less important pods were evicted there; else why not."""
        decision = self._decide_on_place(pod, node_name)
        if not isinstance(decision, SchedulingFailure):
            return None
        state = CycleState(is_trial=True) if decision.state is None else decision.state
        found = dry_run(
            self._profile_of_place(pod),
            self.cache.table,
            pod,
            state,
            self.nominated_before(pod),
            [node_name],
            budgets={},
            num_candidates=1,
            groups=self._group_victims(),
        )
        return None if found.candidates else decision

    def _decide_on_place(self, pod: Pod, node_name: str) -> Decision:
        with self.trial():
            profile, only = self._profile_of_place(pod), frozenset({node_name})
            return self._plain_cycle(pod, self.nominated_before(pod), profile, only).decide(self.rng)

    def _profile_of_place(self, pod: Pod) -> Profile:
        """The profile of *pod*, which another process decides on and binds, with what is to be judged here.

        Of a pod of a group only that one sees where the others are going to be, and which volumes and devices they get.
        Nobody else places pods that such rules are about, so whether the pod has room on the node is left.
        """
        profile = self.profiles[pod.scheduler_name]
        if self.owned.scope(pod) is not Scope.GROUP:
            return profile
        judges = {name for name, inputs in profile.depends_on.items() if inputs <= _OF_NODE} - _GIVE_AWAY
        return evolve(
            profile,
            pre_filter=tuple(hook for hook in profile.pre_filter if hook.plugin in judges),
            filter=tuple(hook for hook in profile.filter if hook.plugin in judges),
            add_pod={name: hook for name, hook in profile.add_pod.items() if name in judges},
            remove_pod={name: hook for name, hook in profile.remove_pod.items() if name in judges},
        )
