"""The event recorder in front of a server on a socket, where `Scheduled` events go together."""

import json
from datetime import UTC, datetime
from random import Random

import pytest
import trio
import trustme
from raw_server import Exchange, RawServer
from trio.testing import wait_all_tasks_blocked

from trio_sched.daemon.writes import event_recorder
from trio_sched.daemon.writes.event_recorder import EventRecorder
from trio_sched.daemon.writes.scheduler_events import failed_scheduling, scheduled
from trio_sched.kube_client.connection import connect
from trio_sched.testing import pod

STATUS = '{{"kind":"Status","code":{code},"reason":"{reason}","message":"about {reason}"}}'


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_recorder, "EVENT_RETRY_SECONDS", 0.01)


async def started_recorder(recorder: EventRecorder, server: RawServer, nursery: trio.Nursery) -> None:
    """Run *recorder* until it knows which events the server takes."""
    await nursery.start(recorder.run)
    recorder.record(failed_scheduling(pod("first"), "no room"))
    await recorder.drained()
    server.requests.clear()
    await wait_all_tasks_blocked()


async def recorded(server: RawServer, *names: str, fail: bool = False, unfinished: int | None = None) -> None:
    """Record an event about each of these pods and wait until all are sent."""
    async with connect(server.settings, qps=-1) as client, trio.open_nursery() as nursery:
        recorder = EventRecorder(client=client, hostname="h", wall_clock=lambda: datetime.now(UTC), random=Random(1))
        await started_recorder(recorder, server, nursery)
        for name in names:
            recorder.record(failed_scheduling(pod(name), "no room") if fail else scheduled(pod(name), "n"))
        assert recorder.unfinished == (len(names) if unfinished is None else unfinished)
        assert recorder.unfinished_bytes > 400 * recorder.unfinished
        with trio.fail_after(10):
            await recorder.drained()
        assert (recorder.unfinished, recorder.unfinished_bytes) == (0, 0)
        nursery.cancel_scope.cancel()


class Server:
    """Answers events with the statuses that it was given for a pod, one after the other, then with success."""

    def __init__(self, statuses: dict[str, list[tuple[int, str]]] | None = None) -> None:
        self.statuses = statuses or {}
        self.got: list[str] = []

    async def __call__(self, exchange: Exchange) -> None:
        if exchange.request.method == "GET":
            await exchange.answer()
            return
        if exchange.request.method == "PATCH":
            await exchange.answer(exchange.request.body)
            return
        event = json.loads(exchange.request.body)
        name = event["regarding"]["name"]
        if name != "first":
            self.got.append(name)
        left = self.statuses.get(name)
        if left:
            code, reason = left.pop(0)
            headers = "Retry-After: 0\r\n" if code == 429 else ""
            await exchange.answer(STATUS.format(code=code, reason=reason).encode(), status=code, headers=headers)
        else:
            await exchange.answer(exchange.request.body, status=201)


async def started(handler: Server, nursery: trio.Nursery) -> RawServer:
    server = RawServer(handler, trustme.CA(), False)
    await nursery.start(server.serve)
    return server


async def test_scheduled_events_go_together_and_are_whole(nursery: trio.Nursery) -> None:
    handler = Server()
    server = await started(handler, nursery)
    await recorded(server, *(f"p{number}" for number in range(20)))
    assert handler.got == [f"p{number}" for number in range(20)]
    last = server.requests[-1]
    assert last.target == "/apis/events.k8s.io/v1/namespaces/default/events"
    event = json.loads(last.body)
    assert event["note"] == "Successfully assigned default/p19 to n"
    assert event["metadata"]["name"].startswith("p19.")
    assert event["reportingInstance"] == "default-scheduler-h"
    names = {json.loads(request.body)["metadata"]["name"] for request in server.requests if request.body}
    assert len(names) == 20


@pytest.mark.parametrize("code", [401, 429, 500, 503])
async def test_what_the_server_may_take_later_is_sent_again_alone(nursery: trio.Nursery, code: int) -> None:
    handler = Server({"p1": [(code, "Later")]})
    await recorded(await started(handler, nursery), "p0", "p1", "p2")
    assert handler.got == ["p0", "p1", "p2", "p1"]


async def test_what_the_server_refuses_is_logged_and_not_sent_again(
    nursery: trio.Nursery, caplog: pytest.LogCaptureFixture
) -> None:
    handler = Server({"p0": [(403, "Forbidden")], "p1": [(409, "AlreadyExists")]})
    await recorded(await started(handler, nursery), "p0", "p1", "p2")
    assert handler.got == ["p0", "p1", "p2"]
    assert caplog.text.count("Server rejected event (will not retry!)") == 1
    assert "about Forbidden" in caplog.text


@pytest.mark.parametrize("statuses", [{}, {"p0": [(500, "Later")]}, {"p0": [(409, "AlreadyExists")]}])
async def test_the_count_of_a_series_follows_its_first_event(
    nursery: trio.Nursery, statuses: dict[str, list[tuple[int, str]]]
) -> None:
    handler = Server(statuses)
    server = await started(handler, nursery)
    await recorded(server, "p0", "p1", "p0", "p0", fail=True, unfinished=2)
    created = [json.loads(request.body) for request in server.requests if request.method == "POST"]
    (patch,) = [request for request in server.requests if request.method == "PATCH"]
    first = next(event for event in created if event["regarding"]["name"] == "p0")
    assert patch.target.endswith(f"/events/{first['metadata']['name']}")
    assert json.loads(patch.body)["series"]["count"] in (2, 3)


async def test_events_that_cannot_be_sent_for_long_are_given_up_and_counted(
    nursery: trio.Nursery, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_recorder, "EVENT_TRIES", 3)
    handler = Server()
    server = await started(handler, nursery)
    async with connect(server.settings, qps=-1) as client:
        recorder = EventRecorder(client=client, hostname="h", wall_clock=lambda: datetime.now(UTC), random=Random(1))
        await started_recorder(recorder, server, nursery)
        assert client.pool is not None
        client.pool.dialer.port = 1
        for number in range(3):
            recorder.record(scheduled(pod(f"p{number}"), "n"))
        with trio.fail_after(10):
            await recorder.drained()
        nursery.cancel_scope.cancel()
    assert handler.got == []
    assert "gave up sending 3 events" in caplog.text
