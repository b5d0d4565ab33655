"""What plugins do in a simulation: real requests while the simulated time stands still."""

import re
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
import trio
from attrs import evolve
from plans import plan_with
from plugin_base import PluginBase
from trio.testing import MockClock

from trio_sched.daemon.limits import BLOCKING_SECONDS
from trio_sched.plugin_api import Pod, Status, Wait, hookimpl, unschedulable
from trio_sched.simulation.simulated_run import run_plan, run_simulation
from trio_sched.verbosity import V2


class Respond(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        time.sleep(1.5 * BLOCKING_SECONDS)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"5")

    def log_message(self, *_args: Any) -> None: ...


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name in ("HTTP_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    server = HTTPServer(("127.0.0.1", 0), Respond)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


async def test_it_waits_for_the_time_at_which_a_plugin_wants_a_gated_pod_to_be_tried(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    class AtNoon(PluginBase):
        @hookimpl
        def pre_enqueue(self, pod: Pod) -> Status | None:
            left = datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp() - self.handle.wall_seconds()
            if left <= 0:
                return None
            self.handle.retry_after(pod, left)
            return unschedulable("until noon")

    plan = plan_with(AtNoon, begins=datetime(2026, 3, 1, 3, tzinfo=UTC))
    outcome = await run_simulation(plan, lambda _decided, _all: None)
    assert [one.node for one in outcome.placements] == ["n"]
    assert 9 * 3600 <= outcome.simulated_seconds < 9 * 3600 + 5
    assert outcome.settled
    assert "only after a flush" not in caplog.text


async def test_a_pod_that_waits_on_permit_is_shown_with_plugin_time_and_message(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(V2)

    class Doorman(PluginBase):
        @hookimpl
        def permit(self, pod: Pod, node_name: str) -> Wait:
            return Wait(300.0, "no one has rung")

    plan = evolve(plan_with(Doorman), for_seconds=200.0)
    outcome = await run_simulation(plan, lambda _decided, _all: None)
    ((why, message),) = [(one.reason, one.message) for one in outcome.waiting]
    assert why == "WaitingOnPermit"
    assert re.fullmatch(
        r"Doorman lets it wait on permit since \S+( s)? after the beginning, until 5 m: no one has rung", message
    )
    (line,) = [record.__dict__ for record in caplog.records if record.message == "Pod has to wait on permit"]
    assert (line["pod"], line["plugin"], line["why"]) == ("default/p", "Doorman", "no one has rung")


async def test_a_pod_that_waits_on_permit_again_is_not_shown_as_it_was_rejected(autojump_clock: MockClock) -> None:
    class Doorman(PluginBase):
        @hookimpl
        def permit(self, pod: Pod, node_name: str) -> Wait:
            return Wait(100.0)

    plan = evolve(plan_with(Doorman), for_seconds=450.0)
    outcome = await run_simulation(plan, lambda _decided, _all: None)
    assert [one.reason for one in outcome.waiting] == ["WaitingOnPermit"]


async def test_pods_that_are_kept_moving_at_one_instant_are_told(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trio_sched.simulation.stall_detector.LIMIT_SECONDS", 0.2)

    class Restless(PluginBase):
        @hookimpl
        def pre_filter(self, pod: Pod) -> Status | None:
            if "stands still" in caplog.text:
                return None
            self.handle.activate([pod])
            return unschedulable("not yet")

    outcome = await run_simulation(plan_with(Restless), lambda _decided, _all: None)
    assert [one.node for one in outcome.placements] == ["n"]
    (warning,) = [record for record in caplog.records if "stands still" in record.message]
    assert re.search(r"pods were tried \d+ times at one instant", warning.message)


async def test_plugins_make_real_requests_in_no_simulated_time(
    url: str, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    class Asking(PluginBase):
        load: int | None = None

        @hookimpl
        async def run(self) -> None:
            began = trio.current_time()
            self.load = int((await self.handle.http.get(url)).text)
            type(self).log.append(trio.current_time() - began)

        @hookimpl
        def pre_filter(self, pod: Pod) -> Status | None:
            if self.load is None:
                self.handle.retry_after(pod, 5)
                return unschedulable("no data yet")
            type(self).log.append(self.load)
            return None

    await run_simulation(plan_with(Asking), lambda _decided, _all: None)
    assert Asking.log[0] == 0
    assert Asking.log[-1] == 5
    assert "blocks the scheduler" not in caplog.text


def test_equal_seeds_run_tasks_in_the_same_order() -> None:
    class Racing(PluginBase):
        @hookimpl
        async def run(self) -> None:
            async def note(number: int) -> None:
                for _ in range(30):
                    type(self).log.append(number)
                    await trio.lowlevel.checkpoint()

            async with trio.open_nursery() as nursery:
                for number in range(3):
                    nursery.start_soon(note, number)

    orders: list[list[Any]] = []
    for seed in (0, 0, 1):
        Racing.log.clear()
        run_plan(evolve(plan_with(Racing), seed=seed), lambda _decided, _all: None)
        orders.append(list(Racing.log))
    assert len(orders[0]) == 90
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]
