import pytest

from trio_sched.daemon.writes.scheduler_events import (
    LeaseEvent,
    PodEvent,
    became_leader,
    failed_scheduling,
    preempted,
    scheduled,
    skipped_deleting,
    stopped_leading,
)
from trio_sched.objects.lease import Lease
from trio_sched.objects.metadata import ObjectMeta
from trio_sched.testing import pod

LOCK = Lease(ObjectMeta("lock", namespace="kube-system", uid="u-9", resource_version="7"))
POD = pod("p", namespace="shop")


def as_text(event: PodEvent) -> tuple[str, str, str, str, str]:
    return event.type, event.reason, event.action, event.note, event.reporting_controller


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (scheduled(POD, "n"), ("Normal", "Scheduled", "Binding", "Successfully assigned shop/p to n")),
        (failed_scheduling(POD, "no room"), ("Warning", "FailedScheduling", "Scheduling", "no room")),
        (skipped_deleting(POD), ("Warning", "FailedScheduling", "Scheduling", "skip schedule deleting pod: shop/p")),
    ],
)
def test_events_about_a_pod_read_as_those_of_kube_scheduler(event: PodEvent, expected: tuple[str, ...]) -> None:
    assert as_text(event) == (*expected, "default-scheduler")
    assert event.pod is POD


@pytest.mark.parametrize(
    ("before_binding", "note"),
    [
        (False, "Preempted by pod u-1 on node n"),
        (True, "Preempted by pod u-1 on node n (in kube-scheduler memory)."),
    ],
)
def test_the_event_of_a_victim_is_reported_by_the_profile_of_the_preemptor(before_binding: bool, note: str) -> None:
    event = preempted(POD, "n", kind="pod", uid="u-1", profile="mine", before_binding=before_binding)
    assert event.pod is POD
    assert as_text(event) == ("Normal", "Preempted", "Preempting", note, "mine")


def test_only_scheduled_events_cannot_repeat() -> None:
    assert scheduled(POD, "n").once
    repeatable = [
        failed_scheduling(POD, ""),
        skipped_deleting(POD),
        preempted(POD, "n", kind="pod", uid="u-1", profile="mine"),
    ]
    assert not any(event.once for event in repeatable)


@pytest.mark.parametrize(
    ("event", "note"),
    [
        (became_leader(LOCK, identity="me", component="c"), "me became leader"),
        (stopped_leading(LOCK, identity="me", component="c"), "me stopped leading"),
    ],
)
def test_events_of_the_leader_election_are_about_the_lease(event: LeaseEvent, note: str) -> None:
    assert (event.namespace, event.name, event.component) == ("kube-system", "lock", "c")
    assert (event.type, event.reason, event.note) == ("Normal", "LeaderElection", note)
    assert (event.uid, event.resource_version) == ("u-9", "7")
