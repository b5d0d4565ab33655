"""DefaultPreemption: a pod that fits nowhere may take the place of less important ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar

from trio_sched.plugin_api import (
    NOT_STARTED,
    Action,
    Code,
    CycleState,
    DefaultPreemptionArgs,
    Diagnosis,
    DryRun,
    EventRegistration,
    Handle,
    Hint,
    NodeStatuses,
    Pod,
    PostFilterResult,
    Resource,
    Status,
    Victims,
    failure,
    fit_error,
    hookimpl,
    on,
    started_at,
    unresolvable,
    unschedulable,
)

NAME = "DefaultPreemption"
BEING_MADE = "waiting for the preemption for this pod to be finished"
NOT_HELPFUL = unresolvable("Preemption is not helpful for scheduling")
_PRIORITY_OFFSET = 2**31
"""Makes every priority positive, so that more victims never look like fewer."""


class DefaultPreemption:
    """Chooses the node where the least has to go, and has it evicted.

    Source: preemption of kube-scheduler 1.36: eligibility, candidates, tie-breaks and texts.
    """

    name: ClassVar[str] = NAME
    Args: ClassVar[type[DefaultPreemptionArgs]] = DefaultPreemptionArgs
    watches: ClassVar[tuple[str, ...]] = ("PodDisruptionBudget",)

    def __init__(self, args: DefaultPreemptionArgs, handle: Handle) -> None:
        self._args = args
        self._handle = handle
        self._is_async = handle.feature_enabled("SchedulerAsyncPreemption")

    @hookimpl
    def pre_enqueue(self, pod: Pod) -> Status | None:
        """While its victims are still being evicted there is no point in trying the pod."""
        return unresolvable(BEING_MADE) if self._is_async and self._handle.is_evicting_for(pod) else None

    @hookimpl
    async def post_filter(self, pod: Pod, diagnosis: Diagnosis, state: CycleState) -> PostFilterResult:
        """Find victims, have them evicted, and promise their node to the pod."""
        result = await self._preempt(pod, diagnosis, state)
        status = result.status
        if status is None:
            return result
        text = f"preemption: {status.message}"
        told = failure(text) if status.code == Code.ERROR else unschedulable(text)
        return PostFilterResult(told, result.nominated_node_name)

    async def _preempt(self, pod: Pod, diagnosis: Diagnosis, state: CycleState) -> PostFilterResult:
        current = self._handle.pending_pod(pod.namespace, pod.name)
        if current is None:
            return PostFilterResult(failure(f'pod "{pod.name}" not found'))
        statuses = diagnosis.statuses.by_node()
        absent = diagnosis.statuses.absent
        refusal = self._not_eligible(current, statuses, absent)
        if refusal:
            return PostFilterResult(unschedulable(refusal))
        names = self._handle.nodes.names
        if not names:
            return PostFilterResult(failure("no nodes available"))
        potential = [name for name in names if statuses.get(name, absent).code == Code.UNSCHEDULABLE]
        tried = DryRun({}, {})
        if potential:
            in_order, enough = self._from_anywhere(potential), self._enough(potential)
            tried = self._handle.dry_run_preemption(pod, state, in_order, enough)
        candidates = tried.candidates
        if not candidates:
            if tried.error is not None:
                return PostFilterResult(tried.error)
            told = Diagnosis(NodeStatuses.of(tried.statuses, NOT_HELPFUL), total_nodes=len(names))
            return PostFilterResult(unschedulable(fit_error(told)), "")
        try:
            candidates = await self._handle.ask_extenders_about_preemption(pod, candidates)
        except Exception as problem:  # an extender that cannot be left out has the last word
            return PostFilterResult(failure(problem))
        if not candidates:
            return PostFilterResult(unschedulable("no candidate node for preemption"))
        node_name = choose(candidates)[0]
        problem_status = await self._handle.evict(
            current, candidates[node_name].pods, node_name, NAME, in_background=self._is_async
        )
        if problem_status is not None:
            return PostFilterResult(problem_status)
        return PostFilterResult(None, node_name)

    # --- who may preempt --------------------------------------------------------------------------------------------

    def _not_eligible(self, pod: Pod, statuses: Mapping[str, Status], absent: Status) -> str:
        """Why *pod* may not preempt; empty if it may."""
        if pod.spec.preemption_policy == "Never":
            return "not eligible due to preemptionPolicy=Never."
        nominated = self._handle.nominated_node(pod)
        if not nominated or statuses.get(nominated, absent).code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return ""
        position = self._handle.nodes.position(nominated)
        if position is None:
            return ""
        on_node = self._handle.nodes.node(position).pods
        # What we have evicted ourselves may not have been seen to be going yet.
        if self._handle.is_evicting_from(nominated) or any(
            other.priority < pod.priority and _goes_by_preemption(other) for other in on_node
        ):
            return "not eligible due to a terminating pod on the nominated node."
        return ""

    # --- where ------------------------------------------------------------------------------------------------------

    def _enough(self, potential: Sequence[str]) -> int:
        """How many candidates are enough to choose from."""
        share = len(potential) * self._args.min_candidate_nodes_percentage // 100
        return min(max(share, self._args.min_candidate_nodes_absolute), len(potential))

    def _from_anywhere(self, potential: Sequence[str]) -> Sequence[str]:
        """The same nodes, beginning anywhere, so that it is not always the same ones that are tried."""
        start = self._handle.rng.randrange(len(potential))
        return [*potential[start:], *potential[:start]]

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """Pods that it gates hear of deletions; what frees them is the hint of whoever turned them away."""
        return [on(Resource.POD, Action.DELETE, lambda _pod, _old, _new: Hint.SKIP)] if self._is_async else []


def _goes_by_preemption(pod: Pod) -> bool:
    if pod.metadata.deletion_timestamp is None:
        return False
    for condition in pod.status.conditions or ():
        if condition.type == "DisruptionTarget":
            return condition.status == "True" and condition.reason == "PreemptionByScheduler"
    return False


def choose(candidates: Mapping[str, Victims]) -> list[str]:
    """The candidates that none is better than, in the order given.

    Better is, one after the other: fewer violated budgets; a less important most important victim; a smaller sum of
    priorities; fewer victims; a most important victim (the one among them that started first) that started later.
    """
    best = list(candidates)
    rules: tuple[Callable[[Victims], int], ...] = (
        lambda victims: victims.pdb_violations,
        lambda victims: victims.pods[0].priority if victims.pods else -_PRIORITY_OFFSET,
        lambda victims: sum(pod.priority + _PRIORITY_OFFSET for pod in victims.pods),
        lambda victims: len(victims.pods),
    )
    for badness in rules:
        if len(best) > 1:
            rated = {name: badness(candidates[name]) for name in best}
            least = min(rated.values())
            best = [name for name in best if rated[name] == least]
    if len(best) > 1:
        started = {name: _earliest_start(candidates[name].pods) for name in best}
        latest = max(started.values())
        best = [name for name in best if started[name] == latest]
    return best


def _earliest_start(victims: Sequence[Pod]) -> str:
    highest = max((pod.priority for pod in victims), default=0)
    return min((started_at(pod) for pod in victims if pod.priority == highest), default=NOT_STARTED)
