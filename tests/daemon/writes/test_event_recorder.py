from random import Random

import httpx
import pytest
import trio
from holders import reachable
from msgspec.structs import replace
from stored_objects import Store
from trio.testing import MockClock, wait_all_tasks_blocked

from trio_sched.daemon.writes import event_recorder, event_series
from trio_sched.daemon.writes.cut_text import cut_text
from trio_sched.daemon.writes.event_recorder import EventRecorder
from trio_sched.daemon.writes.scheduler_events import became_leader, failed_scheduling, preempted, scheduled
from trio_sched.kube_client.connection import KubeClient, connect
from trio_sched.kube_client.settings import ConnectionSettings
from trio_sched.objects.event import Event
from trio_sched.objects.lease import Lease
from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.pod import Pod
from trio_sched.simulator import ApiServer, InProcessTransport
from trio_sched.simulator.storage.object_store import Change as StoreChange
from trio_sched.testing import pod

LEASE = Lease(ObjectMeta("kube-scheduler", namespace="kube-system", uid="u-9", resource_version="7"))


@pytest.fixture
async def recorder(api: ApiServer, client: KubeClient, nursery: trio.Nursery) -> EventRecorder:
    recorder = EventRecorder(client=client, hostname="host", wall_clock=api.now, random=Random(1))
    await nursery.start(recorder.run)
    return recorder


def at_version(version: str, name: str = "p") -> Pod:
    p = pod(name)
    return replace(p, metadata=replace(p.metadata, resource_version=version))


def fail(recorder: EventRecorder, p: Pod, note: str = "no room") -> None:
    recorder.record(failed_scheduling(p, note))


async def test_an_event_names_pod_action_reason_and_message(
    recorder: EventRecorder, store: Store, autojump_clock: MockClock
) -> None:
    fail(recorder, at_version("7"))
    await recorder.pool.drained()
    (event,) = store.events()
    assert event["metadata"]["name"].startswith("p.")
    int(event["metadata"]["name"].removeprefix("p."), 16)
    assert event["involvedObject"] == {
        "kind": "Pod",
        "namespace": "default",
        "name": "p",
        "uid": "uid-of-default/p",
        "apiVersion": "v1",
        "resourceVersion": "7",
    }
    described = {name: event[name] for name in ("type", "reason", "action", "message", "reportingComponent")}
    assert described == {
        "type": "Warning",
        "reason": "FailedScheduling",
        "action": "Scheduling",
        "message": "no room",
        "reportingComponent": "default-scheduler",
    }
    assert event["reportingInstance"] == "default-scheduler-host"
    assert event["eventTime"] == "2026-01-01T00:00:00.000000Z"


async def test_events_of_the_same_moment_have_different_names(
    recorder: EventRecorder, store: Store, autojump_clock: MockClock
) -> None:
    for version in range(50):
        fail(recorder, at_version(str(version)))
    await recorder.pool.drained()
    assert len(store.events()) == 50


async def test_a_repeated_event_becomes_a_series_and_is_then_only_counted(
    recorder: EventRecorder, store: Store, autojump_clock: MockClock
) -> None:
    for note in ("one", "two", "three", "four"):
        fail(recorder, at_version("1"), note)
        await recorder.pool.drained()
        await trio.sleep(10)
    (event,) = store.events()
    assert (event["message"], event["series"]["count"]) == ("one", 2)
    assert event["series"]["lastObservedTime"] == "2026-01-01T00:00:10.000000Z"


async def test_the_last_count_of_a_series_is_sent_when_it_ends(
    recorder: EventRecorder, store: Store, autojump_clock: MockClock
) -> None:
    for _ in range(5):
        fail(recorder, at_version("1"))
    await trio.sleep(800)
    (event,) = store.events()
    assert event["series"]["count"] == 5
    fail(recorder, at_version("1"))
    await recorder.pool.drained()
    assert len(store.events()) == 2


async def test_a_continuing_series_is_sent_every_half_hour(
    recorder: EventRecorder, store: Store, api: ApiServer, autojump_clock: MockClock
) -> None:
    counts: list[tuple[float, int]] = []
    began = trio.current_time()

    def see(change: StoreChange) -> None:
        count = (change.current.fields.get("series") or {}).get("count", 1)
        counts.append((round(trio.current_time() - began), count))

    api.store.collection("events").listen(see)
    for _ in range(75):
        fail(recorder, at_version("1"))
        await trio.sleep(60)
    assert counts[:2] == [(0, 1), (60, 2)]
    later = [moment for moment, _count in counts[2:]]
    assert len(later) == 2
    assert all(1800 <= after - before <= 2220 for before, after in zip([60, *later], later, strict=False))


async def test_series_that_are_too_many_end_with_their_count(
    recorder: EventRecorder, store: Store, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_series, "MAX_EVENT_SERIES", 2)
    for name in ("a", "b", "c", "d"):
        for _ in range(5):
            fail(recorder, at_version("1", name))
    await recorder.pool.drained()
    counts = {event["involvedObject"]["name"]: event["series"]["count"] for event in store.events()}
    assert (counts["a"], counts["b"]) == (5, 5)
    fail(recorder, at_version("1", "a"))
    await recorder.pool.drained()
    assert [event["involvedObject"]["name"] for event in store.events()].count("a") == 2


@pytest.mark.parametrize("seconds", [0.0, 100.0], ids=["sent", "not sent yet"])
async def test_nothing_of_a_pod_is_kept_but_what_its_event_says(
    seconds: float, recorder: EventRecorder, api: ApiServer, autojump_clock: MockClock
) -> None:
    api.faults.set_latency(seconds, verb="create", resource="events")
    failed, victim = (pod(name, annotations={"large": f"{name} " * 1000}) for name in ("failed", "victim"))
    for _ in range(3):
        fail(recorder, failed, "y" * 100_000)
        recorder.record(preempted(victim, "n", kind="pod", uid="u-1", profile="mine"))
    await wait_all_tasks_blocked()
    found = [held.value for held in reachable({"recorder": recorder})]
    assert sum(isinstance(one, Event) for one in found) >= 2
    assert not any(isinstance(one, Pod) for one in found)
    assert max(len(one) for one in found if isinstance(one, str | bytes)) < 2000


async def test_another_version_of_the_pod_is_another_event(
    recorder: EventRecorder, store: Store, autojump_clock: MockClock
) -> None:
    fail(recorder, at_version("1"))
    fail(recorder, at_version("2"))
    await recorder.pool.drained()
    assert len(store.events()) == 2


async def test_events_that_cannot_repeat_form_no_series(
    recorder: EventRecorder, store: Store, autojump_clock: MockClock
) -> None:
    for _ in range(2):
        recorder.record(scheduled(pod("p"), "n"))
    await recorder.pool.drained()
    assert [event.get("series") for event in store.events()] == [None, None]


async def test_a_series_whose_event_has_expired_starts_again(
    recorder: EventRecorder, store: Store, api: ApiServer, autojump_clock: MockClock
) -> None:
    fail(recorder, at_version("1"))
    await recorder.pool.drained()
    (stored,) = api.store.collection("events").objects.values()
    api.store.delete("events", stored)
    fail(recorder, at_version("1"))
    await recorder.pool.drained()
    (event,) = store.events()
    assert event["series"]["count"] == 2


@pytest.mark.parametrize("seconds", [0.0, 1.0])
async def test_a_repetition_may_arrive_before_the_event_itself(
    seconds: float, recorder: EventRecorder, store: Store, api: ApiServer, autojump_clock: MockClock
) -> None:
    api.faults.set_latency(seconds, verb="create", resource="events")
    fail(recorder, at_version("1"))
    await wait_all_tasks_blocked()
    fail(recorder, at_version("1"))
    await recorder.pool.drained()
    (event,) = store.events()
    assert event["series"]["count"] == 2


async def test_events_are_sent_after_an_outage(
    recorder: EventRecorder, store: Store, api: ApiServer, autojump_clock: MockClock
) -> None:
    api.stop()
    fail(recorder, at_version("1"))
    await trio.sleep(60)
    assert store.events() == []
    api.resume()
    await recorder.pool.drained()
    assert len(store.events()) == 1


async def test_an_event_is_dropped_after_twelve_tries(
    recorder: EventRecorder, store: Store, api: ApiServer, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    began = trio.current_time()
    api.stop()
    fail(recorder, at_version("1"))
    await recorder.pool.drained()
    assert 120 <= trio.current_time() - began <= 150
    assert "gave up sending an event after 12 tries" in caplog.text


async def test_a_lost_reply_creates_no_second_event(
    recorder: EventRecorder, store: Store, api: ApiServer, autojump_clock: MockClock
) -> None:
    api.faults.drop_next(1, verb="create", resource="events")
    fail(recorder, at_version("1"))
    await recorder.pool.drained()
    assert len(store.events()) == 1


async def test_a_rejected_event_is_not_sent_again(
    recorder: EventRecorder, store: Store, api: ApiServer, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    api.faults.fail_next(1, verb="create", resource="events", code=403, reason="Forbidden", message="quota")
    fail(recorder, at_version("1"))
    await recorder.pool.drained()
    assert store.events() == []
    assert "Server rejected event (will not retry!)" in caplog.text


async def test_dropped_events_are_logged(
    recorder: EventRecorder,
    autojump_clock: MockClock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(event_recorder, "MAX_UNSENT_EVENTS", 10)
    for version in range(15):
        fail(recorder, at_version(str(version)))
    assert (recorder.dropped, recorder.pool.unfinished) == (5, 10)
    assert caplog.text.count("too many events wait to be sent") == 1


async def test_events_that_wait_are_limited_in_bytes_as_well(
    recorder: EventRecorder, store: Store, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_recorder, "MAX_UNSENT_EVENT_BYTES", 50_000)
    for version in range(100):
        fail(recorder, at_version(str(version)), "x" * 1000)
    assert 20 < recorder.pool.unfinished < 40
    assert recorder.dropped == 100 - recorder.pool.unfinished
    assert recorder.unfinished_bytes < 55_000
    await recorder.pool.drained()
    assert recorder.unfinished_bytes == 0
    assert len(store.events()) == 100 - recorder.dropped


async def test_events_of_plugins_leave_room_for_those_of_the_scheduler(
    recorder: EventRecorder, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_recorder, "MAX_UNSENT_EVENTS", 10)
    monkeypatch.setattr(event_recorder, "MAX_UNSENT_PLUGIN_EVENTS", 4)
    for version in range(9):
        recorder.record_of_plugin(failed_scheduling(at_version(f"plugin-{version}"), "no room"))
    for version in range(8):
        fail(recorder, at_version(str(version)))
    assert (recorder.dropped, recorder.pool.unfinished) == (5 + 2, 4 + 6)


async def test_becoming_leader_is_an_event_about_the_lease(
    recorder: EventRecorder, store: Store, autojump_clock: MockClock
) -> None:
    event = became_leader(LEASE, identity="me", component="default-scheduler")
    recorder.record_on_lease(event)
    await recorder.pool.drained()
    (event,) = store.events()
    assert (event["reason"], event["message"]) == ("LeaderElection", "me became leader")
    assert event["metadata"]["namespace"] == "kube-system"
    assert event["involvedObject"] == {
        "kind": "Lease",
        "namespace": "kube-system",
        "name": "kube-scheduler",
        "uid": "u-9",
        "apiVersion": "coordination.k8s.io/v1",
        "resourceVersion": "7",
    }


@pytest.mark.parametrize("name", ["x" * 253, "y" * 235 + "." + "z" * 17, "short"])
async def test_a_name_of_any_length_has_events(
    name: str, recorder: EventRecorder, store: Store, autojump_clock: MockClock
) -> None:
    recorder.record(scheduled(pod(name), "n"))
    await recorder.pool.drained()
    (event,) = store.events()
    assert event["involvedObject"]["name"] == name
    assert len(event["metadata"]["name"]) <= 253


@pytest.mark.parametrize(
    ("note", "expected"),
    [
        ("short", "short"),
        ("x" * 1024, "x" * 1024),
        ("x" * 1025, "x" * 1020 + " ..."),
        ("é" * 512, "é" * 512),
        ("x" + "é" * 600, "x" + "é" * 509 + " ..."),
    ],
    ids=["short", "just fits", "a byte too long", "two bytes each", "cut inside a character"],
)
def test_messages_are_cut_to_a_kilobyte(note: str, expected: str) -> None:
    assert cut_text(note, 1024) == expected
    assert len(expected.encode()) <= 1024


async def test_a_server_without_events_k8s_io_gets_core_events(
    api: ApiServer, client: KubeClient, store: Store, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    """The paths of the newer shape are hidden by a transport that knows nothing of them."""

    class Older(httpx.AsyncBaseTransport):
        inner = InProcessTransport(api)

        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            if request.url.path.startswith("/apis/events.k8s.io"):
                await trio.lowlevel.checkpoint()
                return httpx.Response(404, content=b"404 page not found")
            return await self.inner.handle_async_request(request)

    async with connect(ConnectionSettings(server="http://api.test"), qps=-1, transport=Older()) as older:
        recorder = EventRecorder(client=older, hostname="host", wall_clock=api.now, random=Random(1))
        fail(recorder, at_version("1"))
        async with trio.open_nursery() as running:
            await running.start(recorder.run)
            await recorder.pool.drained()
            fail(recorder, at_version("2"))
            fail(recorder, at_version("2"))
            await recorder.pool.drained()
            running.cancel_scope.cancel()
    assert [(event["message"], (event.get("series") or {}).get("count")) for event in store.events()] == [
        ("no room", None),
        ("no room", 2),
    ]
