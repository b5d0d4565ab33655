"""Preemption for pod groups that do not fit: of their pods, or of the group as a whole; one class per way.

Source: the pod group cycles of kube-scheduler 1.36 (`PreemptForPods`) and 1.37 (`PreemptForGroup`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

from attrs import define, evolve

from trio_sched.daemon.pods.preemption_executor import GROUP, HeldPreemption, Loss, PreemptionExecutor
from trio_sched.engine.group_forest import AnyGroup
from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.hooks.plugin_calls import call_pod_group_post_filter
from trio_sched.engine.hooks.status_labels import status_label
from trio_sched.engine.pod_groups.pod_group_cycle import PodGroupCycle
from trio_sched.engine.pod_groups.pod_group_results import GroupResult, completed, error_text
from trio_sched.engine.pod_groups.pod_group_trial import PodGroupTrial
from trio_sched.plugin_api.pod_groups import PodGroupInfo, PodGroupPostFilterResult
from trio_sched.plugin_api.status import Code, Status, failure, unschedulable

_NO_POST_FILTER = "default preemption plugin is not registered, workload aware preemption is disabled"
_NOT_HELPFUL = "preemption is not helpful for scheduling the pod group"


class GroupPreemption(Protocol):
    """What is done for a group that does not fit."""

    in_background: bool
    """Whether victims are deleted while the scheduler goes on."""

    async def preempt(self, cycle: PodGroupCycle, result: GroupResult, held: Iterable[HeldPreemption]) -> GroupResult:
        """Make room for the group, if that helps.

        Args:
            cycle: the attempt.
            result: what it came to.
            held: the preemptions that its pods need.

        Returns:
            What the attempt has come to now.
        """
        ...


@define(eq=False, kw_only=True)
class _Eviction:
    """Evicts pods for a group."""

    executor: PreemptionExecutor
    find_group: Callable[[PodGroupInfo], AnyGroup | None]
    """A group as the watch shows it."""
    in_background: bool
    """Gate SchedulerAsyncPreemption."""

    async def evict(
        self, cycle: PodGroupCycle, found: PodGroupPostFilterResult, plugin: str, places: Mapping[str, str]
    ) -> Status | None:
        """Evict the victims that *plugin* has *found*; a failure says why that is not possible."""
        group = self.find_group(cycle.group)
        if group is None or not found.victims:
            return None
        loss = Loss(found.pdb_violations, found.group_disruptions)
        return await self.executor.preempt_for_group(
            group, cycle.group.pods, found.victims, plugin, loss, places=places, in_background=self.in_background
        )


@define(eq=False, kw_only=True)
class PreemptForPods(_Eviction):
    """What the pods that fit nowhere would preempt is evicted if the group fits then; or what the group would."""

    async def preempt(self, cycle: PodGroupCycle, result: GroupResult, held: Iterable[HeldPreemption]) -> GroupResult:
        """See `GroupPreemption.preempt`."""
        if result.waiting_on_preemption:
            result = await self._carry_out(result, held)
        if cycle.scheduler.preempts_for_groups and result.status is not None and result.status.is_rejected:
            result = await self._preempt_for_group(cycle, result)
        return result

    async def _carry_out(self, result: GroupResult, held: Iterable[HeldPreemption]) -> GroupResult:
        """Carry out the preemptions that the group needs: not before, and not for a group that fits nowhere."""
        for preempt in held:
            problem = await preempt()
            if problem is not None:
                return evolve(result, status=problem, waiting_on_preemption=False)
        return result

    async def _preempt_for_group(self, cycle: PodGroupCycle, result: GroupResult) -> GroupResult:
        """Find pods whose eviction makes room for the whole group, and evict them."""
        found = self._found(cycle)
        if isinstance(found, Status):
            if not found.is_rejected:
                return evolve(result, status=found, waiting_on_preemption=False)
            assert result.status is not None
            reasons = (*result.status.reasons, found.message)
            return evolve(result, status=evolve(result.status, reasons=reasons))
        problem = await self.evict(cycle, *found)
        if problem is not None:
            return evolve(result, status=problem, waiting_on_preemption=False)
        nominations = found[2] if self.executor.reserves_for_groups else None
        return evolve(result, waiting_on_preemption=True, victims=found[0].victims, nominations=nominations)

    def _found(self, cycle: PodGroupCycle) -> tuple[PodGroupPostFilterResult, str, Mapping[str, str]] | Status:
        hooks = cycle.profile.pod_group_post_filter
        if not hooks:
            return unschedulable(_NO_POST_FILTER)
        with PodGroupTrial(cycle) as trial:
            returned = _called(hooks[0], cycle, trial)
        if returned is None:
            return unschedulable(_NOT_HELPFUL)
        return returned if isinstance(returned, Status) else (returned, hooks[0].plugin, dict(trial.places))


@define(eq=False, kw_only=True)
class PreemptForGroup(_Eviction):
    """The plugins are asked once for a group that is unschedulable, and not for its pods."""

    async def preempt(self, cycle: PodGroupCycle, result: GroupResult, held: Iterable[HeldPreemption]) -> GroupResult:
        """See `GroupPreemption.preempt`."""
        if result.status is None or result.status.code != Code.UNSCHEDULABLE:
            return result
        result = completed(result, cycle.infos)
        assert result.status is not None
        reasons = list(result.status.reasons)
        for hook in cycle.profile.pod_group_post_filter:
            measured, metrics = cycle.profile.measured, self.executor.metrics
            with measured.point("PodGroupPostFilter") as timer, PodGroupTrial(cycle) as trial:
                returned = _called(hook, cycle, trial)
                timer.status = status_label(returned if isinstance(returned, Status) else None)
                metrics.workload_preemptions[timer.status,] += 1
                if trial.began is not None:
                    metrics.evaluations.observe(measured.clock() - trial.began, GROUP, timer.status)
            if isinstance(returned, PodGroupPostFilterResult):
                problem = await self.evict(cycle, returned, hook.plugin, trial.places)
                if problem is not None:
                    return evolve(result, status=failure(f"pod group preemption: {error_text(problem)}"))
                told = (*reasons, *_said(returned.message))
                return evolve(
                    result,
                    status=evolve(result.status, reasons=told),
                    waiting_on_preemption=True,
                    nominations=dict(trial.places) if returned.victims else dict(nominated_nodes(cycle)),
                    victims=returned.victims,
                )
            if returned is not None and not returned.is_rejected:
                return evolve(result, status=returned)
            reasons += _said("" if returned is None else returned.message)
        return evolve(result, status=evolve(result.status, reasons=tuple(reasons)))


def _called(hook: BoundHook, cycle: PodGroupCycle, trial: PodGroupTrial) -> PodGroupPostFilterResult | Status | None:
    try:
        return call_pod_group_post_filter(hook, cycle.group, trial)
    except HookFailed as failed:
        cycle.scheduler.plugin_failures.add(failed, cycle.group.key)
        return failed.status


def _said(message: str) -> list[str]:
    return [message] if message else []


def nominated_nodes(cycle: PodGroupCycle) -> Iterator[tuple[str, str]]:
    """UID and node of the pods that are nominated."""
    for info in cycle.infos:
        node_name = cycle.scheduler.queue.nominator.node_of(info.uid)
        if node_name:
            yield info.uid, node_name
