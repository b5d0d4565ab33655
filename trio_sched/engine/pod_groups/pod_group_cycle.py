"""The scheduling cycle of a pod group: one pod after the other is assumed where it fits, and all are reverted.

So the pods that come later see those before them. Whether the group is schedulable is what plugins say once a pod is
assumed (`group_verdicts`). Then the same places are taken for real (`pod_group_results.outcomes`).

Nothing here waits: what may take time is asked for as a step that the daemon takes (`GroupSteps`). Between the
placements of a group, when nothing is assumed, it may let other tasks run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from attrs import define, evolve, field

from trio_sched.engine.cache import CacheError
from trio_sched.engine.evaluation.decision import Decision, ScheduleResult, SchedulingFailure
from trio_sched.engine.evaluation.extender_cycle import NodesForExtenders
from trio_sched.engine.evaluation.hook_steps import post_filter_steps
from trio_sched.engine.evaluation.host_selection import select_host
from trio_sched.engine.evaluation.reservation import PermitWait
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.hooks.placement_values import check_placement_score_range
from trio_sched.engine.hooks.plugin_calls import (
    call_normalize_placement_score,
    call_placement_generate,
    call_placement_score,
)
from trio_sched.engine.hooks.status_labels import status_label
from trio_sched.engine.pod_groups.group_steps import AskExtenders, Assumed, GroupSteps, Pause, at_once
from trio_sched.engine.pod_groups.group_verdicts import (
    FeasibilityVerdict,
    GroupAttempt,
    GroupVerdict,
    PermitVerdict,
)
from trio_sched.engine.pod_groups.pod_group_explanation import shortage
from trio_sched.engine.pod_groups.pod_group_results import (
    GroupPart,
    GroupResult,
    PlacementResult,
    PodResult,
    completed,
    error_text,
    group_unschedulable,
    other_pod_failed,
)
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.registry.profile import Profile
from trio_sched.engine.scheduler import Scheduler
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.pod_groups import Placement, PlacementAssignments, PodGroupInfo
from trio_sched.plugin_api.status import Status, failure, unschedulable
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.unlisted_terms import unlisted_pod


@define(eq=False, kw_only=True)
class PodGroupCycle:
    """One attempt to schedule the pods of a group."""

    scheduler: Scheduler
    profile: Profile
    infos: list[QueuedPodInfo]
    """In the order in which they are scheduled."""
    group: PodGroupInfo
    by_placement: bool = False
    """Gate TopologyAwareWorkloadScheduling."""
    is_extended: Callable[[Pod], bool] = lambda _pod: False
    """Whether extenders are interested in a pod."""
    tries_all: bool = False
    """Whether every pod is tried, to explain what becomes of the group."""
    is_part: bool = False
    """Whether the group is in a tree that is tried as a whole, see `GroupTreeCycle`."""
    _state: CycleState = field(factory=CycleState, init=False)
    _post_filters: bool = field(default=True, init=False)
    _asks_extenders: bool = field(default=True, init=False)
    _verdict: type[GroupVerdict] = field(init=False)

    def __attrs_post_init__(self) -> None:
        asks = self.scheduler.behaviour.groups_ask_placement_feasible
        self._verdict = FeasibilityVerdict if asks else PermitVerdict

    def run(self, *, post_filters: bool = True, ask_extenders: bool = True) -> GroupSteps[GroupResult]:
        """Find out where the pods fit; nothing is assumed any more at the end.

        Args:
            post_filters: whether to call them for pods that fit nowhere.
            ask_extenders: whether to ask the extenders that are interested in a pod.
        """
        self._post_filters, self._asks_extenders = post_filters, ask_extenders
        return (yield from self._anywhere(Placement(), None))

    def _anywhere(self, within: Placement, kept: Assumed | None) -> GroupSteps[GroupResult]:
        """Find out where the pods fit among the nodes of *within*.

        With *kept*, the pods of a group that fits stay assumed, and are added to it: the group is one of several.
        """
        if not self.by_placement:
            return (yield from self._in_placement(within, kept))
        placements = self._generate(within)
        if isinstance(placements, Status):
            return GroupResult(placements)
        measured = self.profile.measured
        measured.generated_placements += len(placements)
        first: GroupResult | None = None
        found: list[GroupResult] = []
        failed: list[PlacementResult] = []
        keeps_first = kept if len(placements) == 1 else None
        for placement in placements:
            if first is not None and kept is None:
                yield Pause()
            began = measured.clock()
            result = yield from self._in_placement(placement, keeps_first)
            if result.is_error:
                return result
            measured.placement_tried(is_feasible=result.status is None, seconds=measured.clock() - began)
            if first is None:
                first = best = result
            elif result.fitting > best.fitting:
                best = result
            if result.status is None or result.waiting_on_preemption:
                found.append(result)
            else:
                name = placement.name
                failed.append(PlacementResult(name=name, fitting=result.fitting, shortage=result.shortage))
        assert first is not None, "there is a placement"
        if not found:
            return self._none_fits(first, best, failed)
        if len(found) > 1:
            chosen = self._choose(found)
            if isinstance(chosen, Status):
                return GroupResult(chosen)
        else:
            chosen = found[0]
        if len(placements) == 1:
            return chosen
        # Other tasks may have run since this placement was tried: it is certain only now that it still fits.
        return (yield from self._in_placement(chosen.placement, kept))

    def run_within(self, parent: PodGroupCycle, within: Placement, kept: Assumed) -> GroupSteps[GroupResult]:
        """Find out where the pods fit among the nodes of *within*, as a part of the attempt of *parent*.

        The pods of a group that is schedulable stay assumed, and are added to *kept*.
        """
        self._post_filters, self._asks_extenders = parent._post_filters, parent._asks_extenders
        self._state = CycleState()
        return (yield from self._anywhere(within, kept))

    def parts(self, _found: GroupResult, result: GroupResult) -> list[GroupPart]:
        """What an attempt came to for each pod group.

        Args:
            _found: what it came to before preemption.
            result: what it came to.
        """
        is_complete = result.status is None or not self.is_part
        return [GroupPart(self.group.key, self.infos, result if is_complete else completed(result, self.infos))]

    @property
    def entity_key(self) -> str:
        """The key of the group, or tree, in the queue."""
        return self.group.key

    @property
    def keys(self) -> frozenset[str]:
        """The pod groups whose pods are tried."""
        return frozenset(f"{self.group.namespace}/{name}" for name in self.group.group_names)

    def run_at_once(self) -> GroupResult:
        """What `run` comes to if nothing waits: no post_filter is called and no extender asked."""
        return at_once(self.run(post_filters=False, ask_extenders=False))

    def fits_at(self, places: Mapping[str, str]) -> bool:
        """Whether pods fit on certain nodes, one after the other; nothing is assumed any more at the end.

        Args:
            places: UID → node, of the pods to try.
        """
        self._post_filters = self._asks_extenders = False
        verdict = self._verdict(self._attempt(GroupResult(None)))
        assumed: Assumed = []
        try:
            for info in self.infos:
                node_name = places.get(info.uid)
                if node_name is not None:
                    nominated = self.scheduler.queue.nominator.node_of(info.uid)
                    pod = at_once(self._schedule(info, Placement(node_names=frozenset({node_name})), verdict))
                    if pod.placed is None:
                        return False
                    assumed.append((info, pod.placed, nominated))
        finally:
            self._revert_all(assumed)
        return True

    @staticmethod
    def _none_fits(first: GroupResult, best: GroupResult, tried: Sequence[PlacementResult]) -> GroupResult:
        assert first.status is not None
        why = f"0/{len(tried)} placements are available, first placement status: {error_text(first.status)}"
        return evolve(
            first,
            status=unschedulable(why),
            placement=best.placement,
            shortage=best.shortage,
            fitting=best.fitting,
            tried=tuple(tried),
        )

    # --- placements -------------------------------------------------------------------------------------------------

    def _generate(self, within: Placement) -> tuple[Placement, ...] | Status:
        """The placements to try, at least one, among the nodes of *within*; or why there is none."""
        if not self.profile.placement_generate:
            return (within,)
        (hook,) = self.profile.placement_generate
        measured = self.profile.measured
        with measured.point("PlacementGenerate") as timer:
            try:
                returned = call_placement_generate(hook, self.group, self._nodes(within), self._state)
            except HookFailed as failed:
                timer.status = status_label(failed.status)
                return failed.status
            timer.status = status_label(returned if isinstance(returned, Status) else None)
        if returned is None:
            return (within,)
        if isinstance(returned, Status):
            return returned
        return tuple([_narrowed(one, within) for one in returned]) or unschedulable("no feasible placements found").by(
            hook.plugin
        )

    def _choose(self, results: Sequence[GroupResult]) -> GroupResult | Status:
        """One of the placements with the highest score."""
        candidates = [
            PlacementAssignments(
                result.placement,
                self._nodes(result.placement),
                tuple(self._assignments(result)),
            )
            for result in results
        ]
        totals = np.zeros(len(candidates), dtype=np.int64)
        with self.profile.measured.point("PlacementScore") as timer:
            try:
                for hook in self.profile.placement_score:
                    scores = call_placement_score(hook, self.group, candidates, self._state)
                    if hook.normalize is not None:
                        scores = call_normalize_placement_score(hook, self.group, scores.copy(), self._state)
                    check_placement_score_range(hook, scores)
                    totals += scores * hook.weight
            except HookFailed as failed:
                timer.status = status_label(failed.status)
                return failed.status
        return results[select_host(totals, self.scheduler.rng)]

    def _assignments(self, result: GroupResult) -> Iterator[tuple[Pod, str]]:
        """The pods that fit, each with the name of its node."""
        return ((pod.info.pod, pod.placed.node_name) for pod in result.pods if pod.placed is not None)

    def _nodes(self, placement: Placement) -> NodeColumns:
        table = self.scheduler.cache.table
        nodes = NodeColumns(table)
        if placement.node_names is None:
            return nodes
        rows = sorted(table.row_of[name] for name in placement.node_names if name in table.row_of)
        return nodes.take(np.array(rows, dtype=np.intp))

    # --- the pods, one after the other ------------------------------------------------------------------------------

    def _in_placement(self, placement: Placement, kept: Assumed | None) -> GroupSteps[GroupResult]:
        """Schedule the pods to the nodes of *placement*; see `_anywhere`."""
        result = GroupResult(group_unschedulable(), placement=placement)
        verdict = self._verdict(self._attempt(result))
        assumed: Assumed = []
        try:
            for info in self.infos if verdict.begin() else ():
                nominated = self.scheduler.queue.nominator.node_of(info.uid)
                pod = yield from self._schedule(info, placement, verdict)
                result.pods.append(pod)
                if pod.placed is not None:
                    result.fitting += 1
                    assumed.append((info, pod.placed, nominated))
                else:
                    assert pod.failed is not None
                    status = pod.failed.status
                    if not status.is_rejected:
                        result.status, result.waiting_on_preemption = other_pod_failed(status), False
                        return result
                    if not result.shortage:
                        nodes = self._nodes(placement)
                        result.shortage = shortage(info.pod, pod.failed, nodes, self.scheduler.cache.options)
                if not verdict.after(pod):
                    break
            verdict.end()
            if kept is not None and result.status is None:
                kept += assumed
                assumed = []
        finally:  # also if the process ends while a step is taken
            self._revert_all(assumed)
        return result

    def _attempt(self, result: GroupResult) -> GroupAttempt:
        group = self.scheduler.cache.groups.get(self.group.key)
        return GroupAttempt(
            profile=self.profile,
            group=self.group,
            state=self._state,
            scheduled=0 if group is None else group.scheduled_count,
            members=len(self.infos),
            is_part=self.is_part,
            plugin_failures=self.scheduler.plugin_failures,
            tries_all=self.tries_all,
            result=result,
        )

    def _schedule(self, info: QueuedPodInfo, placement: Placement, verdict: GroupVerdict) -> GroupSteps[PodResult]:
        """Find a node for one pod and assume it there."""
        failed: SchedulingFailure | None = None
        decision = yield from self._decide(info, placement.node_names)
        if isinstance(decision, SchedulingFailure):
            failed = decision
            calls = self._post_filters and verdict.calls_post_filter
            if calls and failed.diagnosis is not None and self.profile.post_filter:
                self.scheduler.measurements.post_filters += 1
                hooks = self.profile.post_filter
                failed = yield from post_filter_steps(hooks, info.pod, failed, self.scheduler.plugin_failures)
            if not failed.nominated_node_name:
                return PodResult(info, failed=failed)
            state = decision.state if decision.state is not None else CycleState(is_trial=True)
            decision = ScheduleResult(failed.nominated_node_name, state, 0, 0, self.profile)
        reserved = self._assume(info.pod, decision, verdict)
        if isinstance(reserved, SchedulingFailure):
            return PodResult(info, failed=reserved)
        return PodResult(info, decision, failed, reserved)

    def _decide(self, info: QueuedPodInfo, only: frozenset[str] | None) -> GroupSteps[Decision]:
        scheduler = self.scheduler
        if not self._asks_extenders or not self.is_extended(info.pod):
            with scheduler.trial():
                return scheduler.decide_in_placement(info, only)

        def find_feasible(*, nominated_first: bool = True) -> NodesForExtenders | SchedulingFailure:
            with scheduler.trial():
                return scheduler.find_feasible_nodes(info, nominated_first=nominated_first, placement=only)

        feasible = find_feasible()
        if isinstance(feasible, SchedulingFailure):
            return feasible
        answer = yield AskExtenders(info, feasible, partial(find_feasible, nominated_first=False))
        if isinstance(answer, SchedulingFailure):
            return answer
        assert isinstance(answer, tuple)
        feasible, left = answer
        with scheduler.trial():
            return scheduler.select_host_among(info, feasible, left, placement=only)

    def _assume(self, pod: Pod, placed: ScheduleResult, verdict: GroupVerdict) -> PermitWait | SchedulingFailure | None:
        try:
            self.scheduler.assume(pod, placed)
        except CacheError as problem:
            return SchedulingFailure(failure(problem))
        self.scheduler.queue.nominator.delete(pod.uid)
        self._hide_terms(pod, placed.node_name)
        outcome = verdict.reserve(pod, placed)
        if isinstance(outcome, SchedulingFailure):
            self.scheduler.unreserve_and_forget(pod, placed)
            self.scheduler.cache.table.unlisted_pods.pop(pod.uid, None)
        return outcome

    def _hide_terms(self, pod: Pod, node_name: str) -> None:
        table = self.scheduler.cache.table
        row = table.row_of.get(node_name)
        if row is None or pod.spec.affinity is None:
            return
        others = [pod_info for uid, pod_info in table.pods[row].items() if uid != pod.uid]
        unlisted = unlisted_pod(pod, node_name, others, table.unlisted_pods)
        if unlisted is not None:
            table.unlisted_pods[pod.uid] = unlisted

    def _revert_all(self, assumed: Assumed) -> None:
        for info, placed, nominated in reversed(assumed):
            self._revert(info, placed, nominated)

    def _revert(self, info: QueuedPodInfo, placed: ScheduleResult, nominated: str | None) -> None:
        self.scheduler.cache.table.unlisted_pods.pop(info.uid, None)
        try:
            self.scheduler.unreserve_and_forget(info.pod, placed)
        except CacheError:  # it was bound by another scheduler while a step was taken
            return
        finally:
            placed.state.is_trial = False
        if nominated is not None:
            self.scheduler.queue.nominator.add(info.pod, nominated)


def _narrowed(placement: Placement, within: Placement) -> Placement:
    return evolve(placement, node_names=within.node_names) if placement.node_names is None else placement
