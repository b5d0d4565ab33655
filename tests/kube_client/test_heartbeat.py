import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from itertools import pairwise
from random import Random
from typing import Any

import pytest
import trio
from attrs import define, field
from memory_network import MemoryNetwork
from raw_server import Exchange
from trio.testing import MockClock

from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.credentials.credentials import Credentials
from trio_sched.kube_client.errors import ConnectionFailed, KubeClientError
from trio_sched.kube_client.heartbeat import Heartbeat
from trio_sched.kube_client.http.pool import Pool
from trio_sched.kube_client.http.rate_limit import TokenBucket
from trio_sched.kube_client.http.tls import TlsSource
from trio_sched.kube_client.http.unacknowledged import UnacknowledgedRequests
from trio_sched.kube_client.kinds import NODE_KIND, POD_KIND, Kind
from trio_sched.kube_client.reachability import Reachability
from trio_sched.kube_client.settings import ConnectionSettings, TlsSettings
from trio_sched.kube_client.watch import Reflector

SETTINGS = ConnectionSettings(server="http://api.test")


@define(eq=False)
class Api:
    """Answers lists, watches and requests for the version; says when it was asked what."""

    asked: list[tuple[str, float]] = field(factory=list)
    refusal: int = 0
    is_slow: bool = False

    async def answer(self, exchange: Exchange) -> None:
        target = exchange.request.target
        what = "watch" if "watch=true" in target else target.partition("?")[0].rpartition("/")[2]
        self.asked.append((what, trio.current_time()))
        if self.is_slow and what != "version":
            await trio.sleep(30)
        if self.refusal:
            await exchange.answer(b"{}", status=self.refusal)
        elif what == "watch":
            await exchange.raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            await trio.sleep_forever()
        elif what == "version":
            await exchange.answer(b'{"major":"1"}')
        else:
            await exchange.answer(json.dumps({"metadata": {"resourceVersion": "7"}, "items": []}).encode())

    def count(self, what: str, since: float = 0.0) -> int:
        return sum(1 for name, at in self.asked if name == what and at >= since)

    def first(self, what: str, since: float) -> float:
        return next(at for name, at in self.asked if name == what and at >= since)


@define(eq=False)
class Process:
    """The clients of one process: two watches and a heartbeat over a network in memory."""

    api: Api
    network: MemoryNetwork
    client: KubeClient
    reflectors: list[Reflector[Any]]
    trouble: list[tuple[str, float]]

    @property
    def are_connected(self) -> bool:
        return all(reflector.connected.is_set() for reflector in self.reflectors)

    async def connected(self) -> None:
        while not self.are_connected:
            for reflector in self.reflectors:
                await reflector.connected.wait()


@asynccontextmanager
async def process(api: Api | None = None, *, seed: int = 1) -> AsyncIterator[Process]:
    api = api or Api()
    trouble: list[tuple[str, float]] = []

    def note(plural: str, _problem: KubeClientError) -> None:
        trouble.append((plural, trio.current_time()))

    async with trio.open_nursery() as nursery:
        network = MemoryNetwork(SETTINGS, TlsSource(TlsSettings()), handler=api.answer, nursery=nursery)
        pool = Pool(network, fixed_headers=b"Host: api.test\r\n")
        reachability = Reachability()
        client = KubeClient(
            SETTINGS,
            pool,
            pool,
            Credentials(SETTINGS),
            TokenBucket(-1, 1),
            b"",
            UnacknowledgedRequests("http://api.test"),
            65.0,
            reachability,
        )
        reachability.clients.append(client)
        nursery.start_soon(pool.watchdog)
        nursery.start_soon(Heartbeat(reachability, Random(seed)).run)

        def follow(kind: Kind[Any]) -> Reflector[Any]:
            return Reflector(client, kind, lambda _batch: None, Random(seed), on_error=note)

        reflectors = [follow(kind) for kind in (NODE_KIND, POD_KIND)]
        for reflector in reflectors:
            nursery.start_soon(partial(reflector.run))
        running = Process(api, network, client, reflectors, trouble)
        await running.connected()
        yield running
        nursery.cancel_scope.cancel()


async def test_a_quiet_server_is_asked_four_times_a_minute_over_one_connection(autojump_clock: MockClock) -> None:
    async with process() as running:
        await trio.sleep(295)
        asked = [at for what, at in running.api.asked if what == "version"]
        assert 18 <= len(asked) <= 20
        assert all(later - earlier >= 14.9 for earlier, later in pairwise(asked[1:]))
        assert running.api.count("watch") == 2
        assert len(running.network.dialled_at) == 3  # a watch each, and the heartbeat


async def test_a_server_that_is_heard_is_asked_less(autojump_clock: MockClock) -> None:
    async with process() as running:
        for _ in range(60):
            await trio.sleep(5)
            await running.client.call(b"GET", b"/api/v1/namespaces/x")
        assert running.api.count("version") <= 8


@pytest.mark.parametrize("moment", [1.5, 5.0, 14.0, 29.9, 101.3])
async def test_watches_over_connections_that_died_in_silence_are_begun_again_within_15_seconds(
    autojump_clock: MockClock, moment: float
) -> None:
    async with process() as running:
        await trio.sleep(moment)
        died_at = trio.current_time()
        running.network.silence()
        await trio.sleep(17)
        assert running.api.count("watch") == 4
        begun = running.api.first("watch", died_at)
        assert begun - died_at <= 15.6
        last_asked = max(at for what, at in running.api.asked if what == "version" and at <= begun)
        assert begun - last_asked <= 0.1, "there is no reason to wait once another connection is known to work"
        assert running.are_connected
        assert running.api.count("pods") == running.api.count("nodes") == 1, "nothing was listed again"


async def test_connections_that_die_right_after_the_start_are_noticed_by_one_that_was_used(
    autojump_clock: MockClock,
) -> None:
    async with process() as running:
        await running.client.call(b"GET", b"/api/v1/namespaces/x")
        running.network.silence()
        await trio.sleep(3)
        assert running.api.count("watch") == 4
        assert running.are_connected


async def test_a_request_over_a_dead_connection_leads_to_a_check_at_once(autojump_clock: MockClock) -> None:
    async with process() as running:
        await trio.sleep(21)
        await running.client.call(b"GET", b"/api/v1/namespaces/x")
        died_at = trio.current_time()
        running.network.silence()
        with pytest.raises(ConnectionFailed, match="client connection lost") as failed:
            await running.client.call(b"POST", b"/api/v1/namespaces/x/pods/y/binding", body=b"{}")
        assert failed.value.may_have_reached_server
        assert trio.current_time() - died_at <= 6.0
        await trio.sleep(1)
        assert running.are_connected
        assert running.api.first("watch", died_at) - died_at <= 6.5


async def test_a_slow_request_costs_no_connection(autojump_clock: MockClock) -> None:
    async with process() as running:
        running.api.is_slow = True
        assert await running.client.call(b"GET", b"/api/v1/slow")
        assert running.api.count("watch") == 2
        assert running.trouble == []


async def test_a_server_that_hangs_and_goes_on_costs_no_connection(autojump_clock: MockClock) -> None:
    async with process() as running:
        await trio.sleep(7)
        waiting = trio.Event()
        answer = running.api.answer

        async def hang(exchange: Exchange) -> None:
            await waiting.wait()
            await answer(exchange)

        running.network.server.handler = hang
        await trio.sleep(40)
        waiting.set()
        running.network.server.handler = answer
        await trio.sleep(3)
        assert running.api.count("watch") == 2
        assert running.are_connected


@pytest.mark.parametrize("seconds", [3.0, 30.0, 300.0])
async def test_watches_go_on_within_a_second_after_an_outage_however_long(
    autojump_clock: MockClock, seconds: float
) -> None:
    async with process() as running:
        await trio.sleep(10)
        for _ in range(4):
            running.network.is_refusing = True
            running.network.reset()
            await trio.sleep(seconds)
            over_at = trio.current_time()
            running.network.is_refusing = False
            await running.connected()
            assert trio.current_time() - over_at <= 0.7
            await trio.sleep(2)


async def test_while_the_server_is_away_one_connection_is_tried_for_all(autojump_clock: MockClock) -> None:
    async with process() as running:
        await trio.sleep(10)
        running.network.is_refusing = True
        running.network.reset()
        await trio.sleep(60)
        tried = [at for at in running.network.dialled_at if at >= 11]
        assert 60 <= len(tried) <= 300
        assert len(running.trouble) <= 4, "what is known to fail is not tried again"


async def test_an_outage_that_goes_on_is_logged_every_half_minute_and_so_is_its_end(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    async with process() as running:
        await trio.sleep(10)
        running.network.is_refusing = True
        running.network.reset()
        await trio.sleep(100)
        running.network.is_refusing = False
        await running.connected()
    texts = [text for text in caplog.messages if text.startswith("The API server")]
    assert texts[0] == "The API server has not answered for 30 s: http://api.test: connection refused"
    assert len(texts) == 4
    assert texts[3:] == ["The API server answers again, after 100 s"]


async def test_a_server_that_refuses_everything_is_asked_ever_less(autojump_clock: MockClock) -> None:
    async with process() as running:
        await trio.sleep(10)
        running.api.refusal = 503
        running.network.reset()
        await trio.sleep(600)
        late = [at for _what, at in running.api.asked if at >= 510]
        assert len(late) <= 60
        running.api.refusal = 0
        over_at = trio.current_time()
        await running.connected()
        assert trio.current_time() - over_at <= 10.5


async def test_new_connections_that_hang_hold_up_nothing_once_newer_ones_work(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    async with process() as running:
        await trio.sleep(10)
        running.network.new_are_silent = True
        running.network.silence()
        await trio.sleep(15)
        failures: list[str] = []

        async def bind() -> None:
            try:
                await running.client.call(b"POST", b"/api/v1/namespaces/x/pods/y/binding", body=b"{}")
            except ConnectionFailed as problem:
                failures.append(str(problem))

        nursery.start_soon(bind)
        await trio.sleep(5)
        over_at = trio.current_time()
        running.network.new_are_silent = False
        await running.connected()
        await trio.sleep(1.4)
        assert running.api.count("watch", over_at) == 2
        assert failures == ["http://api.test: http2: client connection lost"]


async def test_a_thousand_clients_do_not_come_back_in_the_same_moment(autojump_clock: MockClock) -> None:
    api = Api()
    processes = 100
    async with trio.open_nursery() as nursery:
        running: list[Process] = []

        async def run(seed: int) -> None:
            async with process(api, seed=seed) as one:
                running.append(one)
                await trio.sleep_forever()

        for seed in range(processes):
            nursery.start_soon(run, seed)
        await trio.sleep(23)
        broken_at = trio.current_time()
        for one in running:
            one.network.reset()
        await trio.sleep(2)
        asked = sorted(at - broken_at for what, at in api.asked if what == "version" and at >= broken_at)
        assert len(asked) == processes
        assert asked[-1] <= 1.0
        crowded = max(sum(1 for at in asked if begin <= at < begin + 0.05) for begin in asked)
        assert crowded <= processes / 4
        assert api.count("watch", broken_at) == 2 * processes
        nursery.cancel_scope.cancel()
