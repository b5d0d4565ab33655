"""What follows once a node is chosen: reserve, permit, and unreserve where the pod will not run there after all."""

from __future__ import annotations

from attrs import field, frozen

from trio_sched.engine.evaluation.decision import ScheduleResult, SchedulingFailure, fit_failure
from trio_sched.engine.hooks.attempt_trace import AttemptTrace
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.hooks.plugin_calls import call_permit, call_status_hook, call_unreserve
from trio_sched.engine.hooks.plugin_failures import PluginFailures
from trio_sched.engine.hooks.status_labels import SUCCESS, WAIT, status_label
from trio_sched.engine.registry.profile import Profile
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.status import Code, Status, failure, unresolvable
from trio_sched.plugin_api.verdicts import Diagnosis, NodeStatuses, Wait

MAX_PERMIT_WAIT_SECONDS = 15 * 60.0


@frozen
class PermitWait:
    """The plugins whose permit returned Wait; for each, how long at most."""

    timeout_seconds: dict[str, float]
    messages: dict[str, str] = field(factory=dict)
    """Why each of them waits, if it says so."""

    @property
    def message(self) -> str:
        """Why the last of them waits."""
        return self.messages.get(next(reversed(self.timeout_seconds)), "")


def rejected_on_node(status: Status, node_name: str) -> SchedulingFailure:
    """The outcome when a plugin rejects the node that was chosen."""
    plugins = frozenset({status.plugin} if status.plugin else ())
    return fit_failure(
        Diagnosis(
            NodeStatuses.of({node_name: status}, unresolvable()),
            unschedulable_plugins=plugins,
            pending_plugins=plugins if status.code == Code.PENDING else frozenset(),
            total_nodes=1,
        ),
        code=status.code,
    )


def permit_failed(status: Status, node_name: str) -> SchedulingFailure:
    """The outcome when a waiting pod was rejected, timed out or was preempted."""
    if status.is_rejected:
        return rejected_on_node(status, node_name)
    return SchedulingFailure(failure(f"waiting on permit for pod: {status.message}").by(status.plugin))


def run_reserve(profile: Profile, pod: Pod, node_name: str, state: CycleState) -> SchedulingFailure | None:
    """Call every reserve; the outcome of the cycle if one rejects or fails."""
    try:
        for hook in profile.reserve:
            status = call_status_hook(hook, pod, node_name, state)
            if status is not None:
                return rejected_on_node(status, node_name)
    except HookFailed as failed:
        return SchedulingFailure(failed.status)
    return None


def run_unreserve(
    profile: Profile, pod: Pod, node_name: str, state: CycleState, plugin_failures: PluginFailures
) -> None:
    """Call every unreserve, last first, whatever fails; failures go to *plugin_failures*."""
    for hook in profile.unreserve:
        try:
            call_unreserve(hook, pod, node_name, state)
        except HookFailed as failed:
            plugin_failures.add(failed, pod.key)


def run_permit(profile: Profile, pod: Pod, node_name: str, state: CycleState) -> PermitWait | SchedulingFailure | None:
    """Call every permit: None permits, `SchedulingFailure` ends the cycle."""
    waits: dict[str, float] = {}
    messages: dict[str, str] = {}
    try:
        for hook in profile.permit:
            returned = call_permit(hook, pod, node_name, state)
            if isinstance(returned, Wait):
                waits[hook.plugin] = min(returned.timeout_seconds, MAX_PERMIT_WAIT_SECONDS)
                if returned.message:
                    messages[hook.plugin] = returned.message
            elif returned is not None:
                return rejected_on_node(returned, node_name)
    except HookFailed as failed:
        return SchedulingFailure(failed.status)
    return PermitWait(waits, messages) if waits else None


def reserve_only(profile: Profile, pod: Pod, placed: ScheduleResult) -> SchedulingFailure | None:
    """Call every reserve, and measure that; `SchedulingFailure` ends the cycle."""
    measured = profile.measured
    began = measured.clock()
    refused = run_reserve(profile, pod, placed.node_name, placed.state)
    if refused is None:
        measured.reserved.observe(measured.clock() - began)
    else:
        measured.observe("Reserve", status_label(refused.status), measured.clock() - began)
    return refused


def reserve_and_permit(
    profile: Profile, pod: Pod, placed: ScheduleResult, trace: AttemptTrace | None = None
) -> PermitWait | SchedulingFailure | None:
    """Call every reserve and every permit, and measure that: None permits, `SchedulingFailure` ends the cycle."""
    if not placed.state.record_plugin_metrics:
        return _reserve_and_permit(profile, pod, placed)
    with profile.measured.after_decision.timing(trace):
        return _reserve_and_permit(profile, pod, placed)


def _reserve_and_permit(profile: Profile, pod: Pod, placed: ScheduleResult) -> PermitWait | SchedulingFailure | None:
    measured = profile.measured
    began = measured.clock()
    refused = run_reserve(profile, pod, placed.node_name, placed.state)
    reserved = measured.clock()
    if refused is not None:
        measured.observe("Reserve", status_label(refused.status), reserved - began)
        return refused
    measured.reserved.observe(reserved - began)
    if not profile.permit:
        measured.not_asked_to_permit += 1
        return None
    outcome = run_permit(profile, pod, placed.node_name, placed.state)
    if isinstance(outcome, SchedulingFailure):
        status = status_label(outcome.status)
    else:
        status = SUCCESS if outcome is None else WAIT
    measured.observe("Permit", status, measured.clock() - reserved)
    return outcome
