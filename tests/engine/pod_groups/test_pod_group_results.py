"""The table of what follows for each pod of a group, row by row."""

import pytest
from gangs import member

from trio_sched.engine.evaluation.decision import ScheduleResult, SchedulingFailure
from trio_sched.engine.evaluation.reservation import PermitWait
from trio_sched.engine.pod_groups.pod_group_results import (
    WAITING_ON_PREEMPTION,
    GroupResult,
    PodResult,
    PodToBind,
    PodToRequeue,
    completed,
    group_unschedulable,
    other_pod_failed,
    outcomes,
)
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.plugin_api import CycleState, Status, failure, unschedulable
from trio_sched.testing import make_profile

INFO = QueuedPodInfo(member("p", "g"), 0.0)
PLACED = ScheduleResult("n", CycleState(), 1, 1, make_profile(["GangScheduling"]))
WAIT = PermitWait({"GangScheduling": 300.0}, {"GangScheduling": "waiting for more"})
REJECTED = SchedulingFailure(unschedulable("no room"), nominated_node_name=None)
BROKEN = SchedulingFailure(failure("broken"), nominated_node_name="x")
PREEMPTING = SchedulingFailure(unschedulable("after a preemption"), nominated_node_name="n")

FITS = PodResult(INFO, PLACED)
WAITS = PodResult(INFO, PLACED, wait=WAIT)
DOES_NOT_FIT = PodResult(INFO, failed=REJECTED)
FAILED = PodResult(INFO, failed=BROKEN)
NEEDS_PREEMPTION = PodResult(INFO, PLACED, PREEMPTING, WAIT)
WAITING = group_unschedulable(WAITING_ON_PREEMPTION)
PERMIT_TEXT = "waiting for more, one or more plugins asked to wait and no plugin rejected pod"


def outcome(status: Status | None, pod: PodResult | None, *, waiting: bool = False) -> PodToBind | PodToRequeue:
    result = GroupResult(status, [] if pod is None else [pod], waiting_on_preemption=waiting)
    (found,) = outcomes([INFO], result)
    return found


def test_from_1_37_on_a_pod_that_fits_is_told_why_its_group_is_not_scheduled() -> None:
    result = GroupResult(group_unschedulable("too few"), [FITS], tells_members=True)
    (found,) = outcomes([INFO], result)
    assert isinstance(found, PodToRequeue)
    assert found.outcome.message == "pod group is unschedulable, too few"


def test_pods_are_nominated_where_they_fit_once_the_victims_of_their_group_have_left() -> None:
    infos = [QueuedPodInfo(member(name, "g"), 0.0) for name in ("fits", "rejected", "untried", "unplaced")]
    fits, rejected, untried, _ = infos
    tried = [PodResult(fits, PLACED), PodResult(rejected, failed=REJECTED)]
    status = group_unschedulable("too few")
    result = completed(GroupResult(status, tried), infos)
    assert [one.failed and one.failed.message for one in result.pods] == [None, "no room", *[status.message] * 2]
    result.waiting_on_preemption = True
    result.nominations = {fits.uid: "a", rejected.uid: "b", untried.uid: "c"}
    found = [one.outcome.nominated_node_name for one in outcomes(infos, result) if isinstance(one, PodToRequeue)]
    assert found == ["a", "b", "c", None]


def test_a_pod_that_fits_is_bound_if_its_group_is_scheduled() -> None:
    found = outcome(None, FITS)
    assert isinstance(found, PodToBind)
    assert (found.info, found.placed) == (INFO, PLACED)


ERROR = other_pod_failed(failure("broken"))
GROUP_TEXT = "failed to schedule other pod from a pod group: broken"


@pytest.mark.parametrize(
    ("status", "pod", "waiting", "message", "nominated"),
    [
        (ERROR, FAILED, False, "broken", ""),
        (ERROR, DOES_NOT_FIT, False, GROUP_TEXT, ""),
        (ERROR, FITS, False, GROUP_TEXT, ""),
        (ERROR, None, False, GROUP_TEXT, ""),
        (None, DOES_NOT_FIT, False, "no room", None),
        (WAITING, FITS, True, f"pod group is unschedulable, {WAITING_ON_PREEMPTION}", "n"),
        (WAITING, DOES_NOT_FIT, True, "no room", None),
        (WAITING, NEEDS_PREEMPTION, True, "after a preemption", "n"),
        (group_unschedulable(), WAITS, False, f"pod group is unschedulable, {PERMIT_TEXT}", ""),
        (group_unschedulable(), NEEDS_PREEMPTION, False, f"pod group is unschedulable, {PERMIT_TEXT}", ""),
        (group_unschedulable(), FITS, False, "pod group is unschedulable, ", ""),
        (group_unschedulable(), DOES_NOT_FIT, False, "no room", None),
        (unschedulable("no feasible placements found"), None, False, "no feasible placements found", None),
    ],
)
def test_other_pods_are_requeued_with_the_reason(
    status: Status | None, pod: PodResult | None, waiting: bool, message: str, nominated: str | None
) -> None:
    found = outcome(status, pod, waiting=waiting)
    assert isinstance(found, PodToRequeue)
    assert (found.outcome.message, found.outcome.nominated_node_name) == (message, nominated)
