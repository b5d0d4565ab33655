import json
from collections.abc import Awaitable, Callable

import pytest
import trio
from attrs import define, field
from raw_server import Exchange, Handler, RawServer, StartServer
from trio.testing import wait_all_tasks_blocked

from trio_sched.kube_client import pipelined_posts
from trio_sched.kube_client.connection import KubeClient, connect
from trio_sched.kube_client.http.http1 import Reply
from trio_sched.kube_client.http.observer import RequestObserver
from trio_sched.kube_client.pipelined_posts import PipelinedPosts, Post

CREATED = b'{"kind":"Event"}'


@define(eq=False)
class Stage:
    """Posts on their way to a server, and what became of them."""

    server: RawServer
    posts: PipelinedPosts
    refused: list[tuple[bytes, int | None]] = field(factory=list)
    too_old: list[bytes] = field(factory=list)

    def submit(self, *numbers: int) -> None:
        for number in numbers:
            self.posts.submit(b"/events", b'{"number":%d}' % number)

    @property
    def arrived(self) -> list[int]:
        return [json.loads(request.body)["number"] for request in self.server.requests]


Start = Callable[..., Awaitable[Stage]]


@pytest.fixture
async def start(start_server: StartServer, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch) -> Start:
    monkeypatch.setattr(pipelined_posts, "COLLECT_SECONDS", 0.02)

    async def begin(
        handler: Handler,
        *,
        tls: bool = True,
        max_age_seconds: float = 60.0,
        qps: float = -1,
        observer: RequestObserver | None = None,
    ) -> Stage:
        server = await start_server(handler, tls=tls)

        async def run(*, task_status: trio.TaskStatus[KubeClient]) -> None:
            opened = connect(server.settings, qps=qps, burst=5, request_seconds=0.5, observer=observer)
            async with opened as client:
                task_status.started(client)
                await trio.sleep_forever()

        client = await nursery.start(run)

        def on_refused(post: Post, reply: Reply | None) -> None:
            stage.refused.append((post.body, None if reply is None else reply.status))

        posts = PipelinedPosts(
            client=client,
            on_refused=on_refused,
            on_too_old=lambda old: stage.too_old.extend(post.body for post in old),
            retry_seconds=lambda: 0.05,
            max_age_seconds=max_age_seconds,
        )
        stage = Stage(server, posts)
        nursery.start_soon(posts.run)
        await wait_all_tasks_blocked()
        return stage

    return begin


async def created(exchange: Exchange) -> None:
    await exchange.answer(CREATED, status=201)


async def drained(stage: Stage) -> None:
    with trio.fail_after(10):
        await stage.posts.drained()
    assert stage.posts.unfinished == 0


@pytest.mark.parametrize("tls", [False, True])
async def test_posts_go_together_in_order_over_one_connection(start: Start, tls: bool) -> None:
    stage = await start(created, tls=tls)
    stage.submit(*range(50))
    await drained(stage)
    stage.submit(*range(50, 100))
    await drained(stage)
    assert stage.arrived == list(range(100))
    assert stage.server.connections == 1
    assert stage.refused == []
    assert stage.server.requests[0].headers["content-type"] == "application/json"


async def test_a_post_is_sent_soon_although_nobody_waits_for_it(start: Start) -> None:
    arrived = trio.Event()

    async def handler(exchange: Exchange) -> None:
        await created(exchange)
        arrived.set()

    stage = await start(handler)
    stage.submit(1)
    with trio.fail_after(5):
        await arrived.wait()
    assert stage.arrived == [1]


async def test_what_is_more_than_may_be_in_flight_follows(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipelined_posts, "MAX_IN_FLIGHT", 7)
    stage = await start(created)
    stage.submit(*range(100))
    await drained(stage)
    assert sorted(stage.arrived) == list(range(100))
    assert stage.server.connections == pipelined_posts.CONNECTIONS


async def test_only_responses_that_are_no_success_are_reported(start: Start) -> None:
    async def handler(exchange: Exchange) -> None:
        status = {2: 409, 4: 403, 6: 500}.get(exchange.number, 201)
        await exchange.answer(CREATED, status=status)

    stage = await start(handler)
    stage.submit(*range(8))
    await drained(stage)
    assert [status for _, status in stage.refused] == [409, 403, 500]
    assert len(stage.arrived) == 8


@pytest.mark.parametrize("header", ["", "Connection: close\r\n"])
async def test_posts_without_a_response_are_sent_again_over_another_connection(start: Start, header: str) -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.answer(CREATED, status=201, headers=header if exchange.number % 3 == 2 else "")
        if exchange.number % 3 == 2:
            await exchange.stream.aclose()

    stage = await start(handler)
    stage.submit(*range(30))
    await drained(stage)
    assert set(stage.arrived) == set(range(30))
    assert stage.server.connections >= 10
    assert stage.refused == []


async def test_what_comes_first_on_a_connection_that_breaks_is_reported_and_the_rest_is_sent(start: Start) -> None:
    async def handler(exchange: Exchange) -> None:
        if json.loads(exchange.request.body)["number"] == 1:
            await exchange.stream.aclose()
        else:
            await created(exchange)

    stage = await start(handler)
    stage.submit(*range(5))
    await drained(stage)
    assert stage.refused == [(b'{"number":1}', None)]
    assert set(stage.arrived) == set(range(5))


@pytest.mark.parametrize(
    "response",
    [
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
        b"HTTP/1.1 201 Created\r\nX: " + b"y" * (2 << 20),
    ],
)
async def test_a_response_that_is_none_breaks_the_connection_only(start: Start, response: bytes) -> None:
    async def handler(exchange: Exchange) -> None:
        if exchange.request.body == b'{"number":0}':
            await exchange.raw(response)
        else:
            await created(exchange)

    stage = await start(handler)
    stage.submit(0, 1, 2)
    await drained(stage)
    assert stage.refused == [(b'{"number":0}', None)]
    assert {1, 2} <= set(stage.arrived)


async def test_a_server_that_does_not_respond_is_given_up_after_the_timeout_of_a_request(start: Start) -> None:
    async def handler(exchange: Exchange) -> None:
        if exchange.request.body == b'{"number":0}':
            await trio.sleep_forever()
        await created(exchange)

    stage = await start(handler)
    stage.submit(0, 1)
    await drained(stage)
    assert stage.refused == [(b'{"number":0}', None)]


async def test_what_could_not_be_sent_for_long_is_given_up(start: Start) -> None:
    stage = await start(created, tls=False, max_age_seconds=0.2)
    stage.posts.client.pool.dialer.port = 1  # type: ignore[union-attr]
    stage.submit(1, 2)
    await drained(stage)
    assert stage.too_old == [b'{"number":1}', b'{"number":2}']
    assert stage.arrived == []


async def test_the_rate_limit_holds(start: Start) -> None:
    stage = await start(created, qps=50.0)
    began = trio.current_time()
    stage.submit(*range(20))
    await drained(stage)
    assert trio.current_time() - began > 15 / 50 * 0.9
    assert sorted(stage.arrived) == list(range(20))


async def test_connections_with_replaced_certificates_are_not_used_any_more(start: Start) -> None:
    stage = await start(created)
    stage.submit(1)
    await drained(stage)
    assert stage.posts.client.pool is not None
    stage.posts.client.pool.dialer.tls.generation += 1
    stage.submit(2)
    await drained(stage)
    assert stage.arrived == [1, 2]
    assert stage.server.connections == 2


async def test_a_wait_that_is_cancelled_leaves_the_posts_alone(start: Start) -> None:
    gate = trio.Event()

    async def handler(exchange: Exchange) -> None:
        await gate.wait()
        await created(exchange)

    stage = await start(handler)
    stage.submit(1, 2)
    with trio.move_on_after(0.05):
        await stage.posts.drained()
    assert stage.posts.unfinished == 2
    gate.set()
    await drained(stage)
    assert stage.arrived == [1, 2]


async def test_the_observer_is_told_about_every_post(start: Start) -> None:
    seen: list[tuple[int, int, int]] = []

    class Observer:
        def request_done(self, method: bytes, status: int, *, seconds: float, **sizes: float) -> None:
            assert method == b"POST"
            assert seconds >= 0.0
            seen.append((status, int(sizes["sent_bytes"]), int(sizes["received_bytes"])))

        def request_retried(self, method: bytes, status: int) -> None:
            raise AssertionError

    numbers = iter(range(100))

    async def handler(exchange: Exchange) -> None:
        if next(numbers) == 2:
            await exchange.stream.aclose()
        else:
            await created(exchange)

    stage = await start(handler, observer=Observer())
    stage.submit(1, 2, 3)
    await drained(stage)
    body = len(b'{"number":1}')
    assert seen == [(201, body, len(CREATED))] * 2 + [(0, body, 0)] + [(201, body, len(CREATED))]
