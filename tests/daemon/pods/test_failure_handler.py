from typing import Any

import pytest
import trio
from attrs import define, evolve, field
from msgspec.structs import replace
from reporting import ReportingAssembly
from stage import Assemble
from stored_objects import Store
from trio.testing import MockClock

from trio_sched.daemon.limits import MAX_EVENT_NOTE_BYTES
from trio_sched.daemon.pods.failure_handler import FailureHandler
from trio_sched.engine.evaluation.decision import SchedulingFailure
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.queue.scheduling_queue import SchedulingQueue
from trio_sched.kube_client.pods import patch_pod_status
from trio_sched.objects.changes import Change, Changes
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api import Code, Status, failure
from trio_sched.testing import node, pod
from trio_sched.verbosity import V2

HUGE = pod("p", cpu=64)
NO_ROOM = "0/1 nodes are available: 1 Insufficient cpu."


def failed(message: str = "disk not found", *, nominated: str | None = "") -> SchedulingFailure:
    return SchedulingFailure(failure(message), nominated_node_name=nominated)


@define(eq=False)
class Failing(ReportingAssembly):
    """The failure handler with its queue, recorder and status writer, an API server and one node."""

    calls: list[float] = field(factory=list)
    handler: FailureHandler = field(init=False)

    def __attrs_post_init__(self) -> None:
        parts = self.assembly
        self.handler = FailureHandler(
            scheduler=parts.scheduler,
            recorder=parts.recorder,
            status_writer=parts.schedule_one.failure_handler.status_writer,
            requeued=lambda: self.calls.append(trio.current_time()),
            metrics=parts.metrics.recorder,
            attempts=parts.attempts,
            remedies=None,
        )

    @property
    def queue(self) -> SchedulingQueue:
        return self.assembly.scheduler.queue

    async def popped(self, made: Pod = HUGE) -> QueuedPodInfo:
        """Create a pod on the server; returns it in flight."""
        created = await self.store.create_pod(made)
        if made.nominated_node_name:  # the status of a created pod is not stored
            status = {"nominatedNodeName": made.nominated_node_name}
            await patch_pod_status(self.store.client, namespace=made.namespace, name=made.name, status=status)
            created = replace(created, status=replace(created.status, nominated_node_name=made.nominated_node_name))
        self.show("ADDED", None, created)
        info = self.queue.pop()
        assert isinstance(info, QueuedPodInfo)
        return info

    def decide(self, info: QueuedPodInfo) -> SchedulingFailure:
        decision = self.assembly.scheduler.decide(info)
        assert isinstance(decision, SchedulingFailure)
        return decision

    def condition(self) -> dict[str, Any]:
        (condition,) = self.store.pod("p")["status"]["conditions"]
        return condition  # type: ignore[no-any-return]


@pytest.fixture
async def failing(assembled: Assemble, store: Store, nursery: trio.Nursery) -> Failing:
    made = Failing(assembled(), store)
    await made.start(nursery)
    return made


# --- back to the queue ----------------------------------------------------------------------------------------------


async def test_an_unschedulable_pod_waits_for_events_of_the_plugins_that_rejected_it(
    failing: Failing, autojump_clock: MockClock
) -> None:
    info = await failing.popped()
    info.gating_plugin = "SchedulingGates"
    failing.handler.handle(info, failing.decide(info))
    assert failing.queue.unschedulable.get(info.key) is info
    assert (info.unschedulable_plugins, info.pending_plugins) == ({"NodeResourcesFit"}, set())
    assert info.gating_plugin == ""
    assert info.uid not in failing.queue.in_flight
    assert info.unschedulable_count == 1


async def test_the_rejectors_of_an_earlier_attempt_are_replaced(failing: Failing, autojump_clock: MockClock) -> None:
    info = await failing.popped()
    info.unschedulable_plugins, info.pending_plugins = {"Earlier"}, {"Earlier"}
    failing.handler.handle(info, failed())
    assert info.rejectors == set()


async def test_pending_plugins_are_recorded_apart_from_unschedulable_ones(
    failing: Failing, autojump_clock: MockClock
) -> None:
    info = await failing.popped()
    outcome = failing.decide(info)
    assert outcome.diagnosis is not None
    diagnosis = evolve(outcome.diagnosis, pending_plugins=frozenset({"Provisioner"}))
    failing.handler.handle(info, evolve(outcome, diagnosis=diagnosis))
    assert (info.unschedulable_plugins, info.pending_plugins) == ({"NodeResourcesFit"}, {"Provisioner"})


async def test_a_pod_whose_attempt_failed_backs_off(failing: Failing, autojump_clock: MockClock) -> None:
    info = await failing.popped()
    failing.handler.handle(info, failed())
    assert [each.pod.name for each in failing.queue.backing_off.pod_error_backoff_q] == ["p"]
    assert (info.consecutive_errors, info.unschedulable_count) == (1, 0)
    assert info.uid not in failing.queue.in_flight


async def test_events_during_the_attempt_are_taken_into_account(failing: Failing, autojump_clock: MockClock) -> None:
    info = await failing.popped()
    outcome = failing.decide(info)
    failing.assembly.delivery.nodes_changed(Changes([Change("ADDED", None, node("large", cpu=128))], "1"))
    failing.handler.handle(info, outcome)
    assert info.key in failing.queue.backing_off
    assert info.key not in failing.queue.unschedulable


async def test_the_version_received_during_the_attempt_is_queued(failing: Failing, autojump_clock: MockClock) -> None:
    info = await failing.popped()
    outcome, old = failing.decide(info), info.pod
    new = replace(old, metadata=replace(old.metadata, resource_version="77", labels={"a": "b"}))
    failing.show("MODIFIED", old, new)
    failing.handler.handle(info, outcome)
    assert info.pod is new
    await failing.reported()
    (event,) = failing.store.events()
    assert event["involvedObject"]["resourceVersion"] == "77"


async def test_a_pod_recreated_during_the_attempt_is_not_queued_by_its_predecessor(
    failing: Failing, autojump_clock: MockClock
) -> None:
    info = await failing.popped(replace(HUGE, metadata=replace(HUGE.metadata, uid="first")))
    outcome = failing.decide(info)
    failing.show("DELETED", info.pod, None)
    again = replace(info.pod, metadata=replace(info.pod.metadata, uid="another"))
    failing.show("ADDED", None, again)
    failing.handler.handle(info, outcome)
    queued = failing.queue.find("default/p")
    assert queued is not None
    assert (queued.uid, queued.unschedulable_plugins) == ("another", set())
    assert info.uid not in failing.queue.in_flight
    assert len(failing.calls) == 1
    await failing.reported()
    assert failing.store.events() == []
    assert "conditions" not in failing.store.pod("p").get("status", {})


async def test_a_deleted_pod_is_not_queued_but_its_failure_is_reported(
    failing: Failing, autojump_clock: MockClock
) -> None:
    info = await failing.popped()
    outcome = failing.decide(info)
    failing.show("DELETED", info.pod, None)
    failing.handler.handle(info, outcome)
    assert failing.queue.find(info.key) is None
    assert info.uid not in failing.queue.in_flight
    assert failing.queue.nominator.node_of(info.uid) is None
    assert len(failing.calls) == 1
    await failing.reported()
    (event,) = failing.store.events()
    assert event["reason"] == "FailedScheduling"


async def test_a_pod_that_is_queued_already_is_logged(
    failing: Failing, caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    info = await failing.popped()
    outcome = failing.decide(info)
    failing.queue.add(info.pod, now=0.0)
    failing.handler.handle(info, outcome)
    assert "Error occurred: Pod default/p is already present in the active queue" in caplog.text
    assert info.uid not in failing.queue.in_flight
    assert len(failing.calls) == 1


async def test_the_scheduler_is_woken_once_the_pod_is_queued(failing: Failing, autojump_clock: MockClock) -> None:
    info = await failing.popped()
    await trio.sleep(5)
    failing.handler.requeued = lambda: failing.calls.append(failing.queue.next_backoff_check())
    failing.handler.handle(info, failed())
    (check,) = failing.calls
    assert check == 7  # one second, in whole seconds, and over when that one is


# --- nominations ----------------------------------------------------------------------------------------------------


async def test_a_nomination_is_added_to_the_nominator_and_written_into_the_status(
    failing: Failing, autojump_clock: MockClock
) -> None:
    info = await failing.popped()
    failing.handler.handle(info, failed(nominated="n"))
    assert failing.queue.nominator.node_of(info.uid) == "n"
    await failing.reported()
    assert failing.store.pod("p")["status"]["nominatedNodeName"] == "n"


@pytest.mark.parametrize(("outcome", "place", "written"), [(None, "n", "n"), ("", "", None), ("m", "m", "m")])
async def test_a_nomination_of_an_earlier_attempt_is_kept_cleared_or_replaced(
    failing: Failing, outcome: str | None, place: str, written: str | None, autojump_clock: MockClock
) -> None:
    info = await failing.popped(pod("p", nominated_node_name="n"))
    assert failing.queue.nominator.node_of(info.uid) == "n"
    failing.handler.handle(info, failed(nominated=outcome))
    assert failing.queue.nominator.node_of(info.uid) == place
    assert bool(failing.queue.nominated_pods("n")) == (place == "n")
    await failing.reported()
    assert failing.store.pod("p")["status"].get("nominatedNodeName") == written


@pytest.mark.parametrize(("outcome", "place"), [(None, "n"), ("", ""), ("m", "m")])
async def test_a_nomination_not_yet_in_the_status_counts_too(
    failing: Failing, outcome: str | None, place: str, autojump_clock: MockClock
) -> None:
    info = await failing.popped()
    failing.queue.nominator.add(info.pod, "n")
    failing.handler.handle(info, failed(nominated=outcome))
    assert (failing.queue.nominator.node_of(info.uid) or "") == place


# --- events, conditions and logs ------------------------------------------------------------------------------------


async def test_an_unschedulable_pod_gets_an_event_and_a_condition(failing: Failing, autojump_clock: MockClock) -> None:
    info = await failing.popped()
    failing.handler.handle(info, failing.decide(info))
    await failing.reported()
    (event,) = failing.store.events()
    assert (event["type"], event["reason"], event["action"]) == ("Warning", "FailedScheduling", "Scheduling")
    assert event["message"] == NO_ROOM
    assert event["involvedObject"]["uid"] == info.uid
    condition = failing.condition()
    assert (condition["type"], condition["status"]) == ("PodScheduled", "False")
    assert (condition["reason"], condition["message"]) == ("Unschedulable", NO_ROOM)


async def test_an_error_is_reported_as_scheduler_error(failing: Failing, autojump_clock: MockClock) -> None:
    info = await failing.popped()
    failing.handler.handle(info, failed())
    await failing.reported()
    assert failing.condition()["reason"] == "SchedulerError"


async def test_a_long_message_is_cut_in_the_event_and_whole_in_the_condition(
    failing: Failing, autojump_clock: MockClock
) -> None:
    info, message = await failing.popped(), "no room on any of them, " * 100
    failing.handler.handle(info, SchedulingFailure(Status(Code.UNSCHEDULABLE, (message,))))
    await failing.reported()
    (event,) = failing.store.events()
    assert event["message"] == message[: MAX_EVENT_NOTE_BYTES - 4] + " ..."
    assert failing.condition()["message"] == message


@pytest.mark.parametrize(
    ("outcome", "level", "words"),
    [
        (
            SchedulingFailure(Status(Code.UNSCHEDULABLE, ("no room",))),
            "V2",
            "Unable to schedule pod; no fit; waiting",
        ),
        (failed("no room"), "ERROR", "Error scheduling pod; retrying"),
    ],
)
async def test_unschedulable_pods_are_logged_as_info_and_failures_as_errors(
    failing: Failing,
    autojump_clock: MockClock,
    caplog: pytest.LogCaptureFixture,
    outcome: SchedulingFailure,
    level: str,
    words: str,
) -> None:
    caplog.set_level(V2)
    failing.handler.handle(await failing.popped(), outcome)
    (record,) = caplog.records
    assert (record.levelname, record.message) == (level, words)
    assert (record.attempts, record.secondsSinceFirstAttempt) == (1, 0.0)  # type: ignore[attr-defined]
    assert (record.pod, record.err) == ("default/p", "no room")  # type: ignore[attr-defined]
