"""The live page of a running scheduler, past the network."""

import gzip
import json
import math
import zlib
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Any

import pytest
import trio
from attrs import define, field
from live_reader import LiveReader
from trio.testing import MockClock

from trio_sched.daemon.serving import limits
from trio_sched.daemon.serving.messages import Request, Response
from trio_sched.daemon.serving.pages.endpoints import build_routes
from trio_sched.daemon.serving.pages.explain_page import ExplainPage
from trio_sched.daemon.serving.pages.live.live_pages import LivePages
from trio_sched.daemon.serving.pages.live.stream_events import StreamEvent
from trio_sched.daemon.serving.pages.liveness import Liveness
from trio_sched.daemon.serving.pages.routes import Routes
from trio_sched.daemon.serving_settings import ServingSettings
from trio_sched.testing import node, pod
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster

HOSTILE = '</script><img src=x onerror="alert(1)">\u202e\n\ndata: {}\n\n'


@define(eq=False)
class Page:
    live: LivePages
    routes: Routes

    async def ask(self, target: str, **headers: str) -> Response:
        path, _, query = target.partition("?")
        named = [(name.replace("_", "-"), value) for name, value in headers.items()]
        return await self.routes(Request(method="GET", path=path, target=target, query=query, headers=named))

    async def json(self, target: str, status: int = 200) -> Any:
        response = await self.ask(target)
        assert response.status == status
        return json.loads(response.body)


@define(eq=False)
class Follower:
    """Reads a stream."""

    stream: AsyncGenerator[bytes, None]
    reader: LiveReader = field(factory=LiveReader)
    comments: int = 0
    _zipped: Any = None
    events: list[str] = field(factory=list)

    async def follow(self) -> None:
        """Read until the end."""
        async with aclosing(self.stream) as stream:
            async for piece in stream:
                self.take((self._zipped.decompress(piece) if self._zipped else piece).decode())

    def take(self, text: str) -> None:
        assert text.endswith("\n\n")
        for block in text[:-2].split("\n\n"):
            if block.startswith(":"):
                self.comments += 1
            if not block.startswith("event: "):
                continue
            event, id_, data = block.split("\n")
            content = json.loads(data.removeprefix("data: "))
            assert id_ == f"id: {content['sequence']}"
            self.events.append(event.removeprefix("event: "))
            (self.reader.take_snapshot if self.events[-1] == "snapshot" else self.reader.take_delta)(content)


@asynccontextmanager
async def page_of(cluster: VirtualCluster) -> AsyncGenerator[Page, None]:
    assembly = cluster.scheduler.assembly
    assert assembly is not None
    liveness = Liveness(assembly)
    live = LivePages(assembly, ExplainPage(assembly, liveness.attempts_per_second))
    routes = build_routes(ServingSettings(), assembly, liveness, live)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(live.run)
        yield Page(live, routes)
        nursery.cancel_scope.cancel()


async def followed(page: Page, nursery: trio.Nursery, *, zipped: bool = False) -> Follower:
    response = await page.ask("/ui/stream", **({"accept_encoding": "gzip"} if zipped else {}))
    assert response.status == 200
    assert response.stream is not None
    headers = dict(response.headers)
    assert headers["content-type"] == "text/event-stream"
    assert headers.get("content-encoding") == ("gzip" if zipped else None)
    follower = Follower(response.stream, zipped=zlib.decompressobj(wbits=31) if zipped else None)
    nursery.start_soon(follower.follow)
    return follower


@pytest.mark.parametrize("zipped", [False, True])
async def test_a_reader_sees_pods_come_and_go(zipped: bool) -> None:
    cluster_of = virtual_cluster(nodes=[node("a", cpu=2)])
    async with cluster_of as cluster, page_of(cluster) as page, trio.open_nursery() as nursery:
        follower = await followed(page, nursery, zipped=zipped)
        await trio.sleep(1)
        assert follower.events == ["snapshot"]
        await cluster.create(pod("small", cpu=1))
        await cluster.create(pod("huge", cpu=4))
        await trio.sleep(2)
        assert follower.reader.nodes()["a"]["cpu"] == 500
        assert follower.reader.pending()["default/huge"]["cause"] == "Insufficient cpu"
        assert set(follower.events[1:]) == {"delta"}
        assert len(follower.events) <= 1 + 3 / limits.LIVE_PERIOD_SECONDS
        nursery.cancel_scope.cancel()


async def test_nothing_is_looked_at_while_nobody_reads() -> None:
    async with virtual_cluster(nodes=1) as cluster, page_of(cluster) as page:
        await cluster.create(pod("p"))
        await trio.sleep(60)
        assert page.live.streams.refreshes == 0
        async with trio.open_nursery() as nursery:
            await followed(page, nursery)
            await trio.sleep(10)
            nursery.cancel_scope.cancel()
        seen = page.live.streams.refreshes
        assert 1 < seen <= 10 / limits.LIVE_PERIOD_SECONDS + 1
        await trio.sleep(60)
        assert (page.live.streams.refreshes - seen, page.live.streams.readers) == (0, 0)


async def test_ten_readers_cost_one_look() -> None:
    async with virtual_cluster(nodes=2) as cluster, page_of(cluster) as page, trio.open_nursery() as nursery:
        followers = [await followed(page, nursery, zipped=number % 2 == 0) for number in range(10)]
        for number in range(20):
            await cluster.create(pod(f"p-{number}", cpu="100m"))
            await trio.sleep(0.25)
        await trio.sleep(1)
        assert page.live.streams.refreshes <= 6 / limits.LIVE_PERIOD_SECONDS + 1
        assert all(one.reader.nodes() == followers[0].reader.nodes() for one in followers)
        assert followers[0].reader.summary["pods"][0] == 20
        nursery.cancel_scope.cancel()


async def test_a_reader_that_was_away_for_long_gets_a_snapshot() -> None:
    async with virtual_cluster(nodes=2) as cluster, page_of(cluster) as page, trio.open_nursery() as nursery:
        keeps_it_going = await followed(page, nursery)
        slow = (await page.ask("/ui/stream")).stream
        assert slow is not None
        follower = Follower(slow)
        for _ in range(2):
            follower.take((await anext(slow)).decode())
        for number in range(20):
            await cluster.create(pod(f"p-{number}", cpu="100m"))
            await trio.sleep(1)
        follower.take((await anext(slow)).decode())
        assert follower.events == ["snapshot", "snapshot"]
        assert follower.reader.nodes() == keeps_it_going.reader.nodes()
        await slow.aclose()
        nursery.cancel_scope.cancel()


async def test_a_quiet_stream_shows_that_it_lives_and_ends_after_a_while() -> None:
    async with virtual_cluster(nodes=1) as cluster, page_of(cluster) as page:
        await trio.sleep(60)
        async with trio.open_nursery() as nursery:
            follower = await followed(page, nursery)
            began = trio.current_time()
        assert trio.current_time() - began == pytest.approx(limits.LIVE_STREAM_SECONDS, abs=1)
        assert follower.events[0] == "snapshot"
        assert follower.comments > 5


async def test_streams_end_with_the_process() -> None:
    async with virtual_cluster(nodes=1) as cluster, page_of(cluster) as page:
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            await followed(page, nursery)
            await trio.sleep(0.7)
            page.live.assembly.ending.set()
        assert trio.current_time() - began < 2
        assert page.live.streams.readers == 0


async def test_more_readers_than_there_is_room_for_are_told_so() -> None:
    async with virtual_cluster(nodes=1) as cluster, page_of(cluster) as page, AsyncExitStack() as open_streams:
        for _ in range(limits.MAX_LIVE_STREAMS):
            response = await page.ask("/ui/stream")
            assert response.stream is not None
            await open_streams.enter_async_context(aclosing(response.stream))
            await anext(response.stream)
        assert await page.json("/ui/stream", 429) == {"error": "32 pages are open already; close one of them"}


async def test_whatever_people_and_plugins_write_arrives_as_text() -> None:
    labels = {"karpenter.sh/nodepool": "pool"}
    async with virtual_cluster(nodes=[node("a", labels=labels)]) as cluster, page_of(cluster) as page:
        assembly = page.live.assembly
        await cluster.create(pod("huge", cpu=100))
        await trio.sleep(20)
        uid = cluster.pod("huge").uid
        assembly.attempts.add(uid, trio.current_time(), "", HOSTILE)
        async with trio.open_nursery() as nursery:
            follower = await followed(page, nursery)
            await trio.sleep(1)
            nursery.cancel_scope.cancel()
        assert follower.reader.pending()["default/huge"]["cause"] == HOSTILE


def test_texts_that_utf_8_cannot_hold_are_escaped() -> None:
    event = StreamEvent.of("delta", {"sequence": 1, "text": "\ud800\n\n"})
    assert event.text == b'event: delta\nid: 1\ndata: {"sequence":1,"text":"\\ud800\\n\\n"}\n\n'


async def test_a_node_is_shown_with_its_pods() -> None:
    async with (
        virtual_cluster(nodes=[node("a", cpu=2, taints=["k=v:NoSchedule"])]) as cluster,
        page_of(cluster) as page,
    ):
        await cluster.create(pod("low", cpu="100m", node_name="a"))
        await cluster.create(pod("high", priority=5, memory="64Mi", node_name="a"))
        await trio.sleep(10)
        found = await page.json("/ui/node?name=a")
        assert (found["taints"], found["allocatable"]["cpu"], found["requested"]["cpu"]) == (
            ["k=v:NoSchedule"],
            "2",
            "100m",
        )
        assert [(one["name"], one["cpu"], one["memory"], one["phase"]) for one in found["pods"]] == [
            ("high", "0m", "64.0Mi", "Running"),
            ("low", "100m", "0", "Running"),
        ]
        assert found["more"] == 0
        assert await page.json("/ui/node?name=b", 404) == {"error": "there is no such node"}


async def test_pods_are_found_by_name_namespace_and_label() -> None:
    async with virtual_cluster(nodes=[node("a", cpu=2)]) as cluster, page_of(cluster) as page:
        await cluster.create(pod("web-1", cpu=1, labels={"app": "web"}))
        await cluster.create(pod("web-2", cpu=5, labels={"app": "web"}))
        await cluster.create(pod("job", cpu=5))
        await trio.sleep(10)
        found = await page.json("/ui/pods?query=app%3Dweb+default")
        assert [(one["name"], one["node"], one["queue"]) for one in found["pods"]] == [
            ("web-2", "", "unschedulable"),
            ("web-1", "a", ""),
        ]
        assert (await page.json("/ui/pods?query=&limit=1"))["more"] == 2
        assert (await page.json("/ui/pods?query=nothing&limit=x")) == {"pods": [], "more": 0}


async def test_a_pod_is_explained_as_elsewhere(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("a", cpu=2)]) as cluster, page_of(cluster) as page:
        await cluster.create(pod("huge", cpu=4))
        await trio.sleep(5)
        autojump_clock.autojump_threshold = math.inf
        try:
            explained = await page.json("/ui/pod?namespace=default&name=huge")
            there = json.loads((await page.ask("/debug/scheduler/explain?pod=default/huge")).body)
        finally:
            autojump_clock.autojump_threshold = 0
        assert explained["cause"] == there["cause"]
        assert "no pod" in (await page.json("/ui/pod?namespace=default&name=nobody", 404))["error"]


async def test_the_last_hour_is_kept_in_steps_of_ten_seconds() -> None:
    async with virtual_cluster(nodes=[node("a", cpu=2)]) as cluster, page_of(cluster) as page:
        await cluster.create(pod("huge", cpu=4))
        for number in range(10):
            await cluster.create(pod(f"p-{number}", cpu="10m"))
        await trio.sleep(35)
        found = await page.json("/ui/history")
        assert len(found["seconds"]) == 3
        assert {len(values) for values in found["series"].values()} == {3}
        assert found["series"]["binds"] == [1.0, 0.0, 0.0]
        assert found["series"]["unschedulable"] == [1, 1, 1]
        assert found["series"]["bind_p99"][0] > 0
        assert found["series"]["bind_p99"][1] is None
        await trio.sleep(3 * 3600)
        assert len((await page.json("/ui/history"))["seconds"]) == 360


async def test_the_times_and_failures_of_plugins_are_shown() -> None:
    async with virtual_cluster(nodes=[node("a", cpu=2)]) as cluster, page_of(cluster) as page:
        scheduler = page.live.assembly.scheduler
        for number in range(30):
            await cluster.create(pod(f"p-{number}", cpu=f"{number + 1}m"))
        scheduler.plugin_failures.totals["NodePorts", "filter"] += 2
        await trio.sleep(5)
        plugins = {(one["name"], one["point"]): one for one in (await page.json("/ui/history"))["plugins"]}
        assert plugins["NodePorts", "Filter"]["failures"] == 2
        assert 0 < plugins["NodeResourcesFit", "Score"]["p50"] <= plugins["NodeResourcesFit", "Score"]["p99"]


async def test_reloads_are_shown_with_what_they_have_changed() -> None:
    changed = """
        apiVersion: kubescheduler.config.k8s.io/v1
        kind: KubeSchedulerConfiguration
        podMaxBackoffSeconds: 33
    """
    async with virtual_cluster(nodes=1) as cluster, page_of(cluster) as page:
        await cluster.reload(changed)
        with pytest.raises(Exception, match="podInitialBackoffSeconds"):
            await cluster.reload(changed.replace("podMaxBackoffSeconds: 33", "podInitialBackoffSeconds: -1"))
        (reload,) = (await page.json("/ui/history"))["reloads"]
        assert (reload["worked"], reload["changed"]) == (
            True,
            ["-podMaxBackoffSeconds: 10", "+podMaxBackoffSeconds: 33"],
        )


async def test_files_are_served_as_they_are_and_only_if_they_have_changed() -> None:
    async with virtual_cluster(nodes=1) as cluster, page_of(cluster) as page:
        html = await page.ask("/ui")
        headers = dict(html.headers)
        assert (html.status, headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        script = await page.ask("/ui/app.js", accept_encoding="gzip, br")
        assert dict(script.headers)["content-encoding"] == "gzip"
        assert gzip.decompress(script.body) == (await page.ask("/ui/app.js")).body
        again = await page.ask("/ui/app.js", if_none_match=f'W/"x", {dict(script.headers)["etag"]}')
        assert (again.status, again.body) == (304, b"")
        moved = await page.ask("/ui/")
        assert (moved.status, dict(moved.headers)["location"]) == (301, "../ui")
        for path in ("/ui/../ui/app.js", "/ui/page", "/ui/__init__.py", "/ui/static/app.js", "/ui/."):
            assert (await page.ask(path)).status == 404


async def test_without_the_page_there_is_none_of_its_paths() -> None:
    async with virtual_cluster(nodes=1) as cluster:
        assembly = cluster.scheduler.assembly
        assert assembly is not None
        routes = build_routes(ServingSettings(), assembly, Liveness(assembly))
        for path in ("/ui", "/ui/", "/ui/stream", "/ui/page.html"):
            assert (await routes(Request(method="GET", path=path, target=path))).status == 404
