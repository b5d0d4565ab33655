"""Which pods of a group are assumed, and when the group counts as schedulable: one class per way of kube-scheduler.

Source: the pod group cycles of kube-scheduler 1.36 (`PermitVerdict`) and 1.37 (`FeasibilityVerdict`).
"""

from __future__ import annotations

from typing import ClassVar, Protocol

from attrs import define, field

from trio_sched.engine.evaluation.decision import ScheduleResult, SchedulingFailure
from trio_sched.engine.evaluation.reservation import PermitWait, reserve_and_permit, reserve_only
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.hooks.plugin_calls import call_status_hook
from trio_sched.engine.hooks.plugin_failures import PluginFailures
from trio_sched.engine.hooks.status_labels import status_label
from trio_sched.engine.pod_groups.pod_group_results import (
    WAITING_ON_PREEMPTION,
    GroupResult,
    PodResult,
    group_unschedulable,
)
from trio_sched.engine.registry.profile import Profile
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.pod_groups import PlacementProgress, PodGroupInfo
from trio_sched.plugin_api.status import Code, Status, failure, unschedulable


@define(eq=False, kw_only=True)
class GroupAttempt:
    """What a verdict is about: one placement of one attempt."""

    profile: Profile
    group: PodGroupInfo
    state: CycleState
    """The cycle state of the group."""
    scheduled: int
    """How many pods of the group have had a node before."""
    members: int
    """How many pods, or child groups, are to be tried."""
    is_part: bool = False
    """Whether the group is in a tree: that it is schedulable counts there, also without another pod that fits."""
    plugin_failures: PluginFailures
    tries_all: bool
    """Whether to go on with pods that cannot make the group schedulable any more, to know which of them fit."""
    result: GroupResult
    """What it comes to; the verdict sets its status."""


class GroupVerdict(Protocol):
    """Says what becomes of a group while its pods are tried one after the other."""

    calls_post_filter: ClassVar[bool]
    """Whether post_filter is called for a pod that fits nowhere."""

    def __init__(self, attempt: GroupAttempt) -> None: ...

    def begin(self) -> bool:
        """Before the first pod: whether it is to be tried."""
        ...

    def reserve(self, pod: Pod, placed: ScheduleResult) -> PermitWait | SchedulingFailure | None:
        """Call the hooks of a pod that was assumed; a failure says why it cannot stay there."""
        ...

    def after(self, pod: PodResult) -> bool:
        """After a pod that fits, or was rejected: whether the next one is to be tried."""
        ...

    def end(self) -> None:
        """After the last pod that was tried."""
        ...


@define(eq=False)
class PermitVerdict:
    """All pods are tried; the group is schedulable once permit lets one pass."""

    calls_post_filter: ClassVar[bool] = True
    attempt: GroupAttempt
    _needs_preemption: bool = field(default=False, init=False)

    def begin(self) -> bool:
        """The first pod is always tried."""
        return True

    def reserve(self, pod: Pod, placed: ScheduleResult) -> PermitWait | SchedulingFailure | None:
        """Call reserve and permit."""
        return reserve_and_permit(self.attempt.profile, pod, placed)

    def after(self, pod: PodResult) -> bool:
        """The next pod is always tried."""
        if pod.placed is not None:
            self._needs_preemption = self._needs_preemption or pod.failed is not None
            if pod.wait is None:
                result = self.attempt.result
                result.waiting_on_preemption = self._needs_preemption
                result.status = group_unschedulable(WAITING_ON_PREEMPTION) if self._needs_preemption else None
        return True

    def end(self) -> None:
        """What permit has said stands."""


@define(eq=False)
class FeasibilityVerdict:
    """The plugins say after each pod whether enough of them fit, or cannot any more."""

    calls_post_filter: ClassVar[bool] = False
    attempt: GroupAttempt
    _tried: int = field(default=0, init=False)
    _placed: int = field(default=0, init=False)

    def begin(self) -> bool:
        """Whether the group could be scheduled if all of its pods fit."""
        self.attempt.result.tells_members = True
        return self._goes_on()

    def reserve(self, pod: Pod, placed: ScheduleResult) -> SchedulingFailure | None:
        """Call reserve; permit is called only when the pod is about to be bound."""
        return reserve_only(self.attempt.profile, pod, placed)

    def after(self, pod: PodResult) -> bool:
        """Whether the group is schedulable, or still can be."""
        return self.count(is_placed=pod.placed is not None)

    def count(self, *, is_placed: bool) -> bool:
        """Count a pod, or a child group; whether the group is schedulable, or still can be."""
        self._tried += 1
        self._placed += is_placed
        return self._goes_on()

    def end(self) -> None:
        """Without further pods, "not yet" is no; and a group of which no pod fits is not scheduled."""
        result = self.attempt.result
        if result.status is None:
            if not result.fitting and not self.attempt.is_part:
                result.status = group_unschedulable()
        elif result.status.code == Code.WAIT:
            result.status = group_unschedulable(*result.status.all_reasons)

    def _goes_on(self) -> bool:
        attempt = self.attempt
        can_succeed = self._ask()
        return can_succeed or (attempt.tries_all and not attempt.result.is_error)

    def _ask(self) -> bool:
        attempt = self.attempt
        progress = PlacementProgress(attempt.scheduled + self._placed, attempt.members - self._tried)
        with attempt.profile.measured.point("PlacementFeasible") as timer:
            try:
                status = self._first_objection(progress)
            except HookFailed as failed:
                timer.status = status_label(failed.status)
                attempt.plugin_failures.add_status(failed.status, attempt.group.key)
                attempt.result.status = failure(f"failed to evaluate placement feasibility: {failed}")
                return False
            timer.status = status_label(status)
        if status is not None and status.is_rejected:
            attempt.result.status = self._rejection(status)
            return False
        attempt.result.status = status
        return True

    def _rejection(self, status: Status) -> Status:
        """The status of a group that the plugins reject."""
        return group_unschedulable(*status.all_reasons)

    def _first_objection(self, progress: PlacementProgress) -> Status | None:
        """The first rejection, else the first "not yet", else None."""
        found: Status | None = None
        for hook in self.attempt.profile.placement_feasible:
            status = call_status_hook(hook, self.attempt.group, progress, self.attempt.state)
            if status is not None and status.is_rejected:
                return status
            found = found or status
        return found


@define(eq=False)
class CompositeVerdict(FeasibilityVerdict):
    """The same for a composite group, of which child groups are counted; as in 1.37, only the reason is told."""

    def _rejection(self, status: Status) -> Status:
        return unschedulable(*status.all_reasons)
