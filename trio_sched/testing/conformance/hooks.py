"""The part of the conformance checks that calls every hook once: does it answer with what the hook may return."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from queue import SimpleQueue
from threading import Thread
from typing import Final

import numpy as np
import trio
from trio.testing import MockClock

from trio_sched.daemon.hooks.hook_calls import make_call
from trio_sched.daemon.plugins.kind_mistakes import declared_writes, undeclared_write
from trio_sched.engine.evaluation.filtering import run_pre_filters
from trio_sched.engine.hooks.bound_hooks import BoundHook, FilterHook
from trio_sched.engine.hooks.hook_failure import HookFailed, HookTimedOut
from trio_sched.engine.hooks.placement_values import check_placement_score_range
from trio_sched.engine.hooks.plugin_calls import (
    HookCall,
    HookResult,
    call_filter,
    call_normalize_placement_score,
    call_normalize_score,
    call_permit,
    call_placement_generate,
    call_placement_score,
    call_pod_group_post_filter,
    call_pre_bind_pre_flight,
    call_queue_sort,
    call_sign,
    call_status_hook,
    call_unreserve,
    clone_state,
    explain,
    read_post_filter_result,
    read_status_result,
    read_value,
)
from trio_sched.engine.registry.profile import Profile
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.pod_groups import Placement, PlacementAssignments, PlacementProgress, PodGroupInfo
from trio_sched.plugin_api.status import Status, unschedulable
from trio_sched.plugin_api.verdicts import Diagnosis, NodeStatuses, QueuedPod
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing.builders import pod
from trio_sched.testing.conformance.results import ask
from trio_sched.testing.conformance.subject import GROUP_NAME, Subject, Trial
from trio_sched.testing.hook_limit import HookLimit, HookNeverReturned

_LONGEST_WAIT_SECONDS: Final = 3600.0
"""What a pre_bind returns that waits longer, on a clock that jumps, is not looked at; others are cancelled before."""


def drive(trial: Trial, columns: NodeColumns, waiting: Pod) -> None:
    """Call every hook about *waiting*; what they return is of no interest, nor whether they fail."""
    try:
        trial.profile.signature(waiting)
        results = ask(trial, waiting, columns, columns)
        if results is not None and results.scores is not None:
            (scorer,) = trial.profile.score
            if scorer.normalize is not None:
                call_normalize_score(scorer, waiting, results.scores.copy(), CycleState())
    except HookFailed:
        pass  # reported where answers are checked
    for _problem in call_hooks(trial.profile, columns, waiting):
        pass


def hook_problems(subject: Subject) -> Iterator[str]:
    """Failures and wrong answers of the hooks other than filter and score, and verdicts that cannot be explained.

    Also what they write without declaring it.
    """
    trial = subject.fresh()
    columns = NodeColumns(trial.show(subject.cluster))
    for waiting in subject.pods:
        yield from call_hooks(trial.profile, columns, waiting)
    declared = declared_writes(trial.plugin)
    for written, verb in dict.fromkeys(trial.handle._written):
        if (written, verb) not in declared:
            yield undeclared_write(written, verb)


def call_hooks(profile: Profile, columns: NodeColumns, waiting: Pod) -> Iterator[str]:
    """Call every hook other than filter and score; what is wrong with its answer."""
    where = f"pod {waiting.name!r}"
    state = CycleState()
    try:
        for hook in profile.pre_enqueue:
            call_status_hook(hook, waiting)
        for hook in profile.queue_sort:
            call_queue_sort(hook, QueuedPod(waiting, 0.0))
        call_sign(profile.sign.values(), waiting)
        _call_group_hooks(profile, columns, waiting)
        if run_pre_filters(profile.pre_filter, waiting, columns, state).rejected is not None or not len(columns):
            return
        for filter_hook in profile.filter:
            if not filter_hook.per_node and filter_hook.plugin not in state.skip_filter:
                yield from _explanation_problems(filter_hook, waiting, columns, state, where)
        other, view, name = pod("other", labels={"app": "web"}), columns.node(0), columns.name(0)
        for extension in (*profile.add_pod.values(), *profile.remove_pod.values()):
            if extension.plugin not in state.skip_filter:
                call_status_hook(extension, waiting, other, view, clone_state(state))
        yield from _binding_problems(profile, waiting, name, state, where)
    except HookFailed as failed:
        yield f"{where}: {failed}"


def _call_group_hooks(profile: Profile, columns: NodeColumns, waiting: Pod) -> None:
    """Call the hooks about pod groups, with a group of one pod and a placement with all nodes.

    Raises:
        HookFailed: one of them failed, or returned something else than it may.
    """
    group, state = PodGroupInfo(waiting.namespace, GROUP_NAME, (waiting,)), CycleState()
    for hook in profile.placement_generate:
        call_placement_generate(hook, group, columns, state)
    for hook in profile.placement_feasible:
        for scheduled in (0, 1):
            call_status_hook(hook, group, PlacementProgress(scheduled, 1 - scheduled), state)
    names = columns.names[:1]
    assigned = PlacementAssignments(Placement(), columns, tuple((waiting, name) for name in names))
    for scorer in profile.placement_score:
        scores = call_placement_score(scorer, group, [assigned], state)
        if scorer.normalize is not None:
            scores = call_normalize_placement_score(scorer, group, scores.copy(), state)
        check_placement_score_range(scorer, scores)
    for hook in profile.pod_group_post_filter:
        call_pod_group_post_filter(hook, group, _NothingHelps())


class _NothingHelps:
    """A `PodGroupTrial` of a group that fits nowhere, in a cluster without pods."""

    assigned_pods: tuple[tuple[Pod, str], ...] = ()
    node_names: frozenset[str] = frozenset()

    def remove(self, pods: Iterable[Pod]) -> None:
        """There are none."""

    def restore(self, pods: Iterable[Pod]) -> None:
        """There are none."""

    def run(self) -> Status | None:
        """It does not fit."""
        return unschedulable("no room")

    def still_fits(self) -> bool:
        """It never has."""
        return False


def _explanation_problems(
    hook: FilterHook, waiting: Pod, columns: NodeColumns, state: CycleState, where: str
) -> Iterator[str]:
    verdicts = call_filter(hook, waiting, columns, state)
    for code in np.unique(verdicts.codes).tolist():
        try:
            if code:
                explain(hook, verdicts, code)
        except HookFailed as failed:
            if failed.returned_error and not verdicts.may_fail:
                yield f"{where}: filter fails on single nodes, so its Verdicts must say may_fail=True: {failed}"
            else:
                yield f"{where}: {failed}"


def _binding_problems(profile: Profile, waiting: Pod, node_name: str, state: CycleState, where: str) -> Iterator[str]:
    nowhere = Diagnosis(NodeStatuses((), (), unschedulable("no room")), total_nodes=1)
    args = waiting, node_name, state
    for hook in profile.reserve:
        call_status_hook(hook, *args)
    for hook in profile.permit:
        call_permit(hook, *args)
    has_nothing_to_do = {
        hook.plugin for hook in profile.pre_bind_pre_flight if isinstance(call_pre_bind_pre_flight(hook, *args), Status)
    }
    pre_binds = [hook for hook in profile.pre_bind if hook.plugin not in has_nothing_to_do]
    for hooks, given, read in (
        (profile.post_filter, (waiting, nowhere, state), read_post_filter_result),
        (pre_binds, args, read_status_result),
        (profile.bind, args, read_status_result),
        (profile.post_bind, args, read_value),
    ):
        for hook in hooks:
            result = _called(hook, given)
            if result is None:
                continue
            try:
                read(hook, result)
            except HookFailed as failed:
                yield f"{where}: {failed}"
    for hook in profile.unreserve:
        call_unreserve(hook, *args)


def _called(hook: BoundHook, args: tuple[object, ...]) -> HookResult | None:
    """What a hook that may be ``async`` gives against a fake handle; None if it waits for something for too long."""

    async def call() -> HookResult | None:
        with trio.move_on_after(_LONGEST_WAIT_SECONDS):
            result = await make_call(HookCall(hook, args))
            return None if isinstance(result.error, HookTimedOut) else result
        return None

    def run() -> HookResult | None:
        with HookLimit() as limit:
            return trio.run(call, clock=MockClock(autojump_threshold=0), instruments=[limit])

    if not trio.lowlevel.in_trio_run():
        return run()
    results: SimpleQueue[HookResult | HookNeverReturned | None] = SimpleQueue()

    def run_and_tell() -> None:  # trio runs once per thread, and the test itself may be async
        try:
            results.put(run())
        except HookNeverReturned as error:
            results.put(error)

    Thread(target=run_and_tell, daemon=True).start()
    result = results.get()
    if isinstance(result, HookNeverReturned):
        raise result
    return result
