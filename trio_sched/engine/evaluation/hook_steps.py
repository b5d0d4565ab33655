"""Sequences of hooks that may be ``async``: the engine says which call comes next, the daemon makes and awaits it.

A sequence is a generator that yields a `HookCall`, is sent its `HookResult`, and returns the outcome.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence, Set
from typing import TypeVar

from attrs import evolve, frozen

from trio_sched.engine.evaluation.decision import ScheduleResult, SchedulingFailure, fit_failure
from trio_sched.engine.hooks.attempt_trace import AttemptTrace
from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.hooks.plugin_calls import (
    HookCall,
    HookResult,
    call_pre_bind_pre_flight,
    read_post_filter_result,
    read_status_result,
    read_value,
)
from trio_sched.engine.hooks.plugin_failures import PluginFailures
from trio_sched.engine.hooks.status_labels import SUCCESS, status_label
from trio_sched.engine.registry.profile import Profile
from trio_sched.go.text import quote
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.status import Code, Status, failure
from trio_sched.plugin_api.verdicts import PreFlight

T = TypeVar("T")
HookSteps = Generator[HookCall, HookResult, T]


def post_filter_steps(
    hooks: Sequence[BoundHook], pod: Pod, unplaced: SchedulingFailure, plugin_failures: PluginFailures
) -> HookSteps[SchedulingFailure]:
    """Call one post_filter after the other until one ends the phase; the outcome of the cycle with their messages.

    Args:
        hooks: every post_filter of the profile of *pod* that is to be called.
        pod: the pod that fits nowhere.
        unplaced: why; it has a diagnosis.
        plugin_failures: gets the failures of plugins.
    """
    diagnosis = unplaced.diagnosis
    assert diagnosis is not None
    state = unplaced.state if unplaced.state is not None else CycleState()
    reasons: list[str] = []
    nominated: str | None = None
    for hook in hooks:
        result = yield HookCall(hook, (pod, diagnosis, state))
        try:
            returned = read_post_filter_result(hook, result)
        except HookFailed as failed:
            plugin_failures.add(failed, pod.key)
            return fit_failure(evolve(diagnosis, post_filter_message=str(failed)), nominated_node_name=None)
        if returned is None:
            continue
        status = returned.status
        if status is not None and status.code in (Code.UNSCHEDULABLE, Code.PENDING):
            reasons.extend(status.all_reasons)
            if returned.nominated_node_name is not None:
                nominated = returned.nominated_node_name
            continue
        # Success, UnschedulableAndUnresolvable or Error end the phase.
        is_error = status is not None and status.code == Code.ERROR
        if is_error:
            plugin_failures.add_status(status, pod.key)
        message = "" if status is None else status.message
        nominated = None if is_error else returned.nominated_node_name
        return fit_failure(evolve(diagnosis, post_filter_message=message), nominated_node_name=nominated)
    return fit_failure(evolve(diagnosis, post_filter_message=", ".join(reasons)), nominated_node_name=nominated)


# --- the binding cycle ----------------------------------------------------------------------------------------------


@frozen
class PreBindPlan:
    """The pre_binds that have something to do, in order; those of one group run concurrently."""

    groups: tuple[tuple[BoundHook, ...], ...]
    has_pre_flight: bool = False
    """Whether any plugin has pre_bind_pre_flight."""


def plan_pre_bind(
    profile: Profile, pod: Pod, placed: ScheduleResult, trace: AttemptTrace | None = None
) -> PreBindPlan | SchedulingFailure:
    """Run pre_bind_pre_flight, and measure that: which plugins have nothing to do, and which may run concurrently."""
    measured = profile.measured
    began = measured.clock()
    if placed.state.record_plugin_metrics:
        with measured.after_decision.timing(trace):
            plan = _plan_pre_bind(profile, pod, placed)
    else:
        plan = _plan_pre_bind(profile, pod, placed)
    seconds = measured.clock() - began
    if isinstance(plan, SchedulingFailure):
        measured.observe("PreBindPreFlight", status_label(plan.status), seconds)
    elif plan.groups:
        measured.observe("PreBindPreFlight", SUCCESS, seconds)
    else:
        measured.pre_flight_skipped.observe(seconds)
    return plan


def _plan_pre_bind(profile: Profile, pod: Pod, placed: ScheduleResult) -> PreBindPlan | SchedulingFailure:
    skipped: set[str] = set()
    parallel: set[str] = set()
    for hook in profile.pre_bind_pre_flight:
        try:
            returned = call_pre_bind_pre_flight(hook, pod, placed.node_name, placed.state)
        except HookFailed as failed:
            return SchedulingFailure(failed.status)
        if isinstance(returned, PreFlight):
            if returned.allow_parallel:
                parallel.add(hook.plugin)
        elif returned is not None:
            skipped.add(hook.plugin)
    has_pre_flight = bool(profile.pre_bind_pre_flight)
    if len(skipped) == len(profile.pre_bind):  # as for nearly every pod
        return PreBindPlan((), has_pre_flight)
    return PreBindPlan(group_pre_binds(profile.pre_bind, skipped, parallel), has_pre_flight)


def group_pre_binds(
    hooks: Sequence[BoundHook], skipped: Set[str], parallel: Set[str]
) -> tuple[tuple[BoundHook, ...], ...]:
    """Group adjacent pre_binds that may run in parallel; others end a group even if skipped, as in kube-scheduler."""
    groups: list[tuple[BoundHook, ...]] = []
    together: list[BoundHook] = []
    for hook in hooks:
        if hook.plugin in parallel:
            if hook.plugin not in skipped:
                together.append(hook)
            continue
        if together:
            groups.append(tuple(together))
            together = []
        if hook.plugin not in skipped:
            groups.append((hook,))
    if together:
        groups.append(tuple(together))
    return tuple(groups)


def read_pre_bind(hook: BoundHook, result: HookResult) -> Status | None:
    """What came of one pre_bind; None if it succeeded."""
    try:
        return read_status_result(hook, result)
    except HookFailed as failed:
        return failed.status


def pre_bind_cancelled(group: Sequence[BoundHook], cause: str) -> Status:
    """The status of a pod whose pre_bind was cancelled while *group* ran, for *cause*."""
    plugin = group[0].plugin
    return failure(f"running PreBind plugin {quote(plugin)}: {cause}").by(plugin)


def bind_steps(profile: Profile, pod: Pod, placed: ScheduleResult) -> HookSteps[SchedulingFailure | None]:
    """Call one bind after the other until one does not skip; None once the pod is bound."""
    for hook in profile.bind:
        result = yield HookCall(hook, (pod, placed.node_name, placed.state))
        try:
            status = read_status_result(hook, result)
        except HookFailed as failed:
            return SchedulingFailure(failed.status)
        if status is None:
            return None
        if status.code != Code.SKIP:
            return SchedulingFailure(status)
    return SchedulingFailure(Status(Code.SKIP))


def post_bind_steps(
    profile: Profile, pod: Pod, placed: ScheduleResult, plugin_failures: PluginFailures
) -> HookSteps[None]:
    """Call every post_bind; a failure does not change that the pod is bound."""
    for hook in profile.post_bind:
        result = yield HookCall(hook, (pod, placed.node_name, placed.state))
        try:
            read_value(hook, result)
        except HookFailed as failed:
            plugin_failures.add(failed, pod.key)
