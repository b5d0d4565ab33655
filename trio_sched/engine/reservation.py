"""What follows once a node is chosen: reserve, permit, and giving everything back."""

from __future__ import annotations

from attrs import frozen

from trio_sched.engine.decision import Unplaced, unfit
from trio_sched.engine.filtering import plugin_failed
from trio_sched.engine.profile import Profile
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.status import Code, Status, unresolvable
from trio_sched.plugin_api.verdicts import Diagnosis, NodeStatuses, Wait

LONGEST_WAIT_SECONDS = 15 * 60.0


@frozen
class Waits:
    """Some plugins want to wait; for each, how long at most."""

    timeout_seconds: dict[str, float]


def rejected_after_choice(status: Status, node_name: str) -> Unplaced:
    """The outcome when a plugin refuses the node that was chosen."""
    plugins = frozenset({status.plugin} if status.plugin else ())
    return unfit(
        Diagnosis(
            NodeStatuses.of({node_name: status}, unresolvable()),
            unschedulable_plugins=plugins,
            pending_plugins=plugins if status.code == Code.PENDING else frozenset(),
            total_nodes=1,
        ),
        code=status.code,
    )


def run_reserve(profile: Profile, pod: Pod, node_name: str, state: CycleState) -> Unplaced | None:
    """Ask every plugin to set aside what the pod needs; the outcome of the cycle if one does not."""
    for caller in profile.reserve:
        prefix = f'running Reserve plugin "{caller.plugin}"'
        try:
            status: Status | None = caller.call(pod, node_name, state)
        except Exception as exc:
            return Unplaced(plugin_failed(prefix, caller.plugin, exc).status)
        if status is None or status.code == Code.SUCCESS:
            continue
        if status.is_rejected:
            return rejected_after_choice(status.by(caller.plugin), node_name)
        return Unplaced(plugin_failed(prefix, caller.plugin, status.error or status.message).status)
    return None


def run_unreserve(profile: Profile, pod: Pod, node_name: str, state: CycleState) -> list[tuple[str, BaseException]]:
    """Let every plugin give back what it set aside, last first; returns those that failed at it."""
    failures: list[tuple[str, BaseException]] = []
    for caller in profile.unreserve:
        try:
            caller.call(pod, node_name, state)
        except Exception as exc:  # the others must give back all the same
            failures.append((caller.plugin, exc))
    return failures


def run_permit(profile: Profile, pod: Pod, node_name: str, state: CycleState) -> Waits | Unplaced | None:
    """Ask every plugin for its permission."""
    waits: dict[str, float] = {}
    for caller in profile.permit:
        prefix = f'running Permit plugin "{caller.plugin}"'
        try:
            answer: Status | Wait | None = caller.call(pod, node_name, state)
        except Exception as exc:
            return Unplaced(plugin_failed(prefix, caller.plugin, exc).status)
        if isinstance(answer, Wait):
            waits[caller.plugin] = min(answer.timeout_seconds, LONGEST_WAIT_SECONDS)
        elif answer is not None and answer.code != Code.SUCCESS:
            if answer.is_rejected:
                return rejected_after_choice(answer.by(caller.plugin), node_name)
            return Unplaced(plugin_failed(prefix, caller.plugin, answer.error or answer.message).status)
    return Waits(waits) if waits else None
