"""What a running scheduler says about itself: on the simulated clock, past the network."""

import json
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import trio
from attrs import define, evolve, field
from trio.testing import MockClock

from trio_sched.config.load import load_configuration
from trio_sched.daemon.metrics.pages import MetricsPages
from trio_sched.daemon.plugins.plugin_trace import TraceSelector
from trio_sched.daemon.schedule_one import ScheduleOne
from trio_sched.daemon.serving import limits
from trio_sched.daemon.serving.messages import Request, Response
from trio_sched.daemon.serving.pages.configz import Configz
from trio_sched.daemon.serving.pages.endpoints import build_routes
from trio_sched.daemon.serving.pages.liveness import Liveness
from trio_sched.daemon.serving.pages.pages import MetricsHandler
from trio_sched.daemon.serving.pages.routes import Routes
from trio_sched.daemon.serving_settings import ServingSettings
from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.plugin_api import Wait, hookimpl, unschedulable
from trio_sched.testing import node, pod
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster
from trio_sched.verbosity import V3

Ask = Callable[..., Any]


class Patient:
    """Makes pods wait."""

    name = "Patient"

    def __init__(self, args: object, handle: object) -> None:
        pass

    @hookimpl
    def permit(self, pod: Any, node_name: str) -> Any:
        return Wait(600.0, "for better times") if pod.name == "patient" else None


@define(eq=False)
class Running:
    cluster: VirtualCluster
    liveness: Liveness
    routes: Routes

    async def ask(self, target: str, method: str = "GET", *, body: bytes = b"") -> Response:
        path, _, query = target.partition("?")
        return await self.routes(Request(method=method, path=path, target=target, query=query, body=body))

    async def json(self, target: str) -> Any:
        response = await self.ask(target)
        assert response.status == 200
        return json.loads(response.body)


@pytest.fixture
async def running(autojump_clock: object) -> AsyncIterator[Running]:
    async with virtual_cluster(nodes=[node("a", cpu=2), node("b", cpu=2)], plugins=[Patient]) as cluster:
        assembly = cluster.scheduler.assembly
        liveness = Liveness(assembly)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(liveness.run)
            yield Running(cluster, liveness, build_routes(ServingSettings(), assembly, liveness))
            nursery.cancel_scope.cancel()


async def test_the_queue_is_listed(running: Running, autojump_clock: object) -> None:
    await running.cluster.create(pod("huge", cpu=50))
    await trio.sleep(1)
    queue = await running.json("/debug/scheduler/queue")
    (waiting,) = queue["unschedulable"]["items"]
    assert (waiting["pod"], waiting["attempts"], waiting["rejectedBy"]) == ("default/huge", 1, ["NodeResourcesFit"])


async def test_long_lists_are_cut_and_counted(
    running: Running, monkeypatch: pytest.MonkeyPatch, autojump_clock: object
) -> None:
    monkeypatch.setattr(limits, "MAX_PAGE_ITEMS", 2)
    for number in range(5):
        await running.cluster.create(pod(f"huge-{number}", cpu=50))
    await trio.sleep(1)
    pods = (await running.json("/debug/scheduler/queue"))["unschedulable"]
    assert (pods["count"], len(pods["items"]), pods["leftOut"]) == (5, 2, 3)


async def test_one_pod_of_the_queue_is_shown(running: Running, autojump_clock: object) -> None:
    await running.cluster.create(pod("huge", cpu=50))
    await running.cluster.create(pod("patient"))
    await running.cluster.create(pod("gated", gates=["test/wait"]))
    await trio.sleep(1)
    page = "/debug/scheduler/queue?pod=default/"
    huge = await running.json(f"{page}huge")
    assert (huge["queue"], huge["pod"], huge["rejectedBy"]) == ("unschedulable", "default/huge", ["NodeResourcesFit"])
    assert (await running.json(f"{page}patient"))["queue"] == "waitingOnPermit"
    gated = await running.json(f"{page}gated")
    assert (gated["gatedBy"], gated["gatedBecause"]) == (
        "SchedulingGates",
        "waiting for scheduling gates: [test/wait]",
    )
    assert (await running.ask(f"{page}none")).status == 404


@pytest.mark.parametrize("query", ["pod=", "pod=huge", "pod=/huge", "pod=a/", "pod=a/b/c", "pod=a/b&pod=a/c"])
async def test_what_names_no_pod_is_refused(running: Running, query: str) -> None:
    for response in (
        await running.ask(f"/debug/scheduler/queue?{query}"),
        await running.ask(f"/debug/scheduler/activate?{query}", "POST"),
    ):
        assert (response.status, response.body) == (400, b"name one pod: ?pod=NAMESPACE/NAME\n")


ACTIVATE = "/debug/scheduler/activate?pod=default/"


class Moody:
    """Refuses pods for a reason that no event shows."""

    name = "Moody"

    def __init__(self, args: object, handle: object) -> None:
        self.is_willing = False

    @hookimpl
    def events_to_register(self) -> Any:
        return []

    @hookimpl
    def pre_filter(self, pod: Any) -> Any:
        return None if self.is_willing else unschedulable("not yet")


async def test_a_pod_is_tried_at_once_when_that_is_asked_for(autojump_clock: object) -> None:
    async with virtual_cluster(nodes=1, plugins=[Moody]) as cluster:
        assembly = cluster.scheduler.assembly
        running = Running(cluster, Liveness(assembly), build_routes(ServingSettings(), assembly, Liveness(assembly)))
        await cluster.create(pod("p"))
        await trio.sleep(5)
        response = await running.ask(f"{ACTIVATE}p", "POST")
        assert response.status == 200
        shown = json.loads(response.body)
        assert (shown["pod"], shown["was"], shown["queue"]) == ("default/p", "unschedulable", "active")
        await trio.sleep(0.1)
        assert not cluster.pod("p").node_name
        assert (await running.json("/debug/scheduler/queue?pod=default/p"))["attempts"] == 2
        assembly.scheduler.profiles["default-scheduler"].plugins["Moody"].is_willing = True
        await trio.sleep(30)
        assert not cluster.pod("p").node_name
        assert (await running.ask(f"{ACTIVATE}p", "POST")).status == 200
        await trio.sleep(0.1)
        assert cluster.pod("p").node_name == "node-1"
        assert (await running.ask(f"{ACTIVATE}p", "POST")).status == 404


async def test_a_pod_that_is_kept_back_stays_where_it_is(running: Running, autojump_clock: object) -> None:
    await running.cluster.create(pod("gated", gates=["test/wait"]))
    await trio.sleep(1)
    response = await running.ask(f"{ACTIVATE}gated", "POST")
    assert (response.status, json.loads(response.body)["gatedBy"]) == (409, "SchedulingGates")


async def test_only_post_and_only_the_leader_try_a_pod(running: Running, autojump_clock: object) -> None:
    await running.cluster.create(pod("huge", cpu=50))
    await trio.sleep(1)
    refused = await running.ask(f"{ACTIVATE}huge")
    assert (refused.status, dict(refused.headers)["allow"]) == (405, "POST")
    running.cluster.scheduler.assembly.schedule_one.is_running = False
    follower = await running.ask(f"{ACTIVATE}huge", "POST")
    assert follower.status == 409
    assert b"this replica schedules nothing" in follower.body
    assert (await running.json("/debug/scheduler/queue?pod=default/huge"))["attempts"] == 1


async def test_the_cache_is_listed(running: Running, autojump_clock: object) -> None:
    await running.cluster.create(pod("p", cpu=1))
    await trio.sleep(1)
    cache = await running.json("/debug/scheduler/cache")
    used = {one["name"]: (one["pods"], one["resources"]["cpu"]["requested"]) for one in cache["nodes"]["items"]}
    assert sorted(used.values()) == [(0, 0), (1, 1000)]
    assert (cache["nodes"]["leftOut"], cache["podCount"]) == (0, 1)


async def test_pods_that_wait_on_permit_are_listed(running: Running, autojump_clock: object) -> None:
    await running.cluster.create(pod("patient"))
    await trio.sleep(1)
    (waiting,) = (await running.json("/debug/scheduler/waiting-pods"))["items"]
    assert (waiting["pod"], waiting["plugins"]) == ("default/patient", ["Patient"])
    (queued,) = (await running.json("/debug/scheduler/queue"))["waitingOnPermit"]["items"]
    alone = await running.json("/debug/scheduler/queue?pod=default/patient")
    for shown in (waiting, queued, alone):
        (wait,) = shown["waitsFor"]
        assert (wait["plugin"], wait["message"]) == ("Patient", "for better times")
        assert wait["secondsLeft"] + shown["secondsOnPermit"] == pytest.approx(600, abs=0.01)
    (flying,) = (await running.json("/debug/scheduler/in-flight"))["pods"]["items"]
    assert flying["pod"] == "default/patient"


async def test_plugins_are_timed_on_request(running: Running, autojump_clock: object) -> None:
    plugins = await running.json("/debug/scheduler/plugins")
    assert plugins["profiles"]["default-scheduler"]["Patient"] == ["permit"]
    async with trio.open_nursery() as nursery:
        timed: list[Any] = []

        async def time() -> None:
            timed.append(await running.json("/debug/scheduler/plugins?seconds=5"))

        nursery.start_soon(time)
        await trio.sleep(1)
        await running.cluster.create(pod("p", cpu=1))
    calls = {(row["plugin"], row["hook"]): row["calls"] for row in timed[0]["times"]}
    assert calls["NodeResourcesFit", "filter"] >= 1
    assert calls["Patient", "permit"] == 1
    hooks = running.cluster.scheduler.assembly.loaded.prepared.hooks
    assert not any("HookTimes" in getattr(hook.function, "__qualname__", "") for hook in hooks if hook.built_in)


async def test_the_index_links_to_what_there_is(running: Running) -> None:
    page = (await running.ask("/debug/scheduler")).body.decode()
    for name in ("queue", "cache", "waiting-pods", "in-flight", "plugins"):
        assert f"/debug/scheduler/{name}" in page


# --- profiles --------------------------------------------------------------------------------------------------------


async def test_tasks_are_shown_with_their_stacks(running: Running) -> None:
    text = (await running.ask("/debug/pprof/tasks?debug=1")).body.decode()
    assert "ScheduleOne._run" in text
    assert (await running.ask("/debug/pprof/goroutine")).headers[0] == ("content-type", "application/octet-stream")


async def test_the_heap_is_counted_by_type(running: Running) -> None:
    text = (await running.ask("/debug/pprof/heap?debug=1")).body.decode()
    assert " builtins.dict\n" in text
    assert text.startswith("# maximum resident set size: ")


async def test_threads_are_shown(running: Running) -> None:
    assert b"MainThread;" in (await running.ask("/debug/pprof/threadcreate?debug=1")).body


async def test_stacks_are_sampled(running: Running) -> None:
    counted, listed = "", ""
    with trio.fail_after(600):
        counted = (await running.ask("/debug/pprof/profile?seconds=1")).body.decode()
        listed = (await running.ask("/debug/pprof/trace")).body.decode()
    assert counted.splitlines()[0].rpartition(" ")[2].isdigit()
    assert "MainThread;" in counted
    assert float(listed.splitlines()[0].partition(" ")[0]) >= 0.0


async def test_hooks_that_keep_the_loop_busy_are_listed(running: Running) -> None:
    times = running.cluster.scheduler.assembly.blocking_hooks.hook_times
    times.clock = iter([10.0, 11.5]).__next__
    permit = BoundHook("Patient", "permit", lambda: None)
    times.install([permit])
    times.switch_on()
    permit.function()
    times.switch_off()
    assert b"    1.500000          1 permit of Patient\n" in (await running.ask("/debug/pprof/block?debug=1")).body


@pytest.mark.parametrize(
    ("target", "status"),
    [("heap?seconds=x", 400), ("heap?seconds=0", 400), ("nothing", 404), ("nothing?seconds=0", 404), ("mutex", 200)],
)
async def test_profiles_that_cannot_be_had(running: Running, target: str, status: int) -> None:
    assert (await running.ask(f"/debug/pprof/{target}")).status == status


async def test_without_profiling_there_are_no_profiles(running: Running) -> None:
    assembly = running.cluster.scheduler.assembly
    config = evolve(assembly.settings.config, enable_profiling=False)
    assembly.loaded = evolve(assembly.loaded, settings=evolve(assembly.settings, config=config))
    routes = build_routes(ServingSettings(), assembly, running.liveness)
    assert not [path for path in (*routes.exact, *routes.prefixes) if path.startswith(("/debug/pprof", "/debug/flags"))]


# --- liveness --------------------------------------------------------------------------------------------------------


async def livez(running: Running) -> tuple[int, str]:
    response = await running.ask("/livez?verbose")
    return response.status, response.body.decode()


async def test_a_loop_that_stands_still_although_pods_wait_is_not_alive(
    running: Running, monkeypatch: pytest.MonkeyPatch, autojump_clock: object
) -> None:
    await trio.sleep(1)
    assert await livez(running) == (200, "[+]ping ok\nlivez check passed\n")

    async def hang(_self: ScheduleOne, _nursery: trio.Nursery) -> bool:
        await trio.sleep_forever()
        raise AssertionError

    monkeypatch.setattr(ScheduleOne, "_schedule_slice", hang)
    await running.cluster.create(pod("p"))
    await trio.sleep(100)
    assert (await livez(running))[0] == 200
    await trio.sleep(200)
    status, text = await livez(running)
    assert (status, text) == (
        500,
        "[+]ping ok\n[-]scheduling-loop failed: reason withheld\nlivez check failed\n",
    )
    assert b"although 1 pods are in the active queue" in (await running.ask("/livez/scheduling-loop")).body


async def test_a_watch_that_stays_broken_is_not_alive(running: Running, autojump_clock: object) -> None:
    running.cluster.api.faults.fail_next(10_000, verb="watch", resource="pods")
    running.cluster.api.faults.fail_next(10_000, verb="list", resource="pods")
    running.cluster.api.restart()
    await trio.sleep(200)
    assert (await livez(running))[0] == 200
    await trio.sleep(250)
    assert (await livez(running))[0] == 500
    assert b"the watch of pods has been broken for" in (await running.ask("/livez/watches")).body


async def test_an_api_server_that_is_away_is_no_reason_to_restart(running: Running, autojump_clock: object) -> None:
    running.cluster.api.stop()
    await trio.sleep(1000)
    assert (await livez(running))[0] == 200
    running.cluster.api.resume()
    await trio.sleep(100)


async def test_an_event_loop_that_is_blocked_half_of_the_time_is_not_alive(running: Running) -> None:
    for number in range(10):
        running.liveness._look_at_event_loop(float(number), late=4.0)
    assert (await livez(running))[0] == 500
    assert b"blocked for 40.0 of the last 60 s; the log names" in (await running.ask("/livez/event-loop")).body
    running.liveness.assembly.blocking_hooks.last = "Slow", "filter"
    body = (await running.ask("/livez/event-loop")).body
    assert b"of the last 60 s, last by filter of plugin Slow; the log has its place" in body
    running.liveness._look_at_event_loop(200.0, late=0.0)
    assert (await livez(running))[0] == 200


# --- metrics and configuration ---------------------------------------------------------------------------------------


@define(eq=False)
class Page:
    pieces: list[bytes] = field(factory=lambda: [b"x" * 2500, b"x" * 2500])
    resets: int = 0

    async def render(self, accept: str) -> tuple[str, list[bytes]]:
        return f"for {accept}", self.pieces

    def reset(self) -> None:
        self.resets += 1


def request(method: str = "GET", *headers: tuple[str, str]) -> Request:
    return Request(method=method, path="/metrics", target="/metrics", headers=headers)


async def test_metrics_are_compressed_for_those_who_take_that() -> None:
    import gzip

    handler = MetricsHandler(Page())
    got = await handler(request("GET", ("accept", "a"), ("accept-encoding", "br, gzip;q=0.5")))
    assert gzip.decompress(got.body) == b"x" * 5000
    assert ("content-encoding", "gzip") in got.headers
    assert got.headers[0] == ("content-type", "for a")
    assert (await handler(request("GET", ("accept-encoding", "gzip;q=0")))).body == b"x" * 5000
    assert (await handler(request("POST"))).body == b"x" * 5000


@define(eq=False)
class SlowPage(Page):
    """Takes a second to make."""

    renderings: int = 0

    async def render(self, accept: str) -> tuple[str, list[bytes]]:
        self.renderings += 1
        await trio.sleep(1)
        return f"for {accept}", [b"%d" % self.renderings]


async def test_many_readers_at_once_get_the_same_page_never_an_older_one_than_they_asked_for(
    autojump_clock: MockClock,
) -> None:
    page = SlowPage()
    handler = MetricsHandler(page)
    got: list[tuple[float, bytes, str]] = []
    began = trio.current_time()

    async def read(after: float, accept: str) -> None:
        await trio.sleep(after)
        response = await handler(request("GET", ("accept", accept)))
        response.headers.append(("x", "added"))
        assert len(response.headers) == 3
        got.append((trio.current_time() - began, response.body, response.headers[0][1]))

    async with trio.open_nursery() as nursery:
        for i in range(20):
            nursery.start_soon(read, i / 100, "a")
        nursery.start_soon(read, 0.5, "b")
        nursery.start_soon(read, 1.5, "a")
    assert sorted(got) == sorted(
        [(1.0, b"1", "for a"), *[(2.0, b"2", "for a")] * 19, (3.0, b"3", "for b"), (4.0, b"4", "for a")]
    )


async def test_a_reader_who_gives_up_leaves_the_page_to_the_others(autojump_clock: MockClock) -> None:
    page = SlowPage()
    handler = MetricsHandler(page)
    got: list[bytes] = []

    async def read(seconds: float) -> None:
        with trio.move_on_after(seconds):
            got.append((await handler(request())).body)

    async with trio.open_nursery() as nursery:
        for seconds in (60.0, 0.5, 1.5, 60.0, 60.0):
            nursery.start_soon(read, seconds)
            await trio.sleep(0.01)
    assert got == [b"1", *[got[-1]] * 2]
    assert page.renderings <= 3
    assert (await handler(request())).body == b"%d" % page.renderings


async def test_a_long_page_is_sent_in_its_pieces() -> None:
    import gzip

    pieces = [bytes([number]) * 50_000 for number in range(5)]
    handler = MetricsHandler(Page(pieces))
    got = await handler(request())
    assert [got.body, *got.rest] == pieces
    got = await handler(request("GET", ("accept-encoding", "gzip")))
    assert gzip.decompress(b"".join([got.body, *got.rest])) == b"".join(pieces)


async def test_delete_resets_metrics() -> None:
    page = Page()
    got = await MetricsHandler(page)(request("DELETE"))
    assert (got.body, page.resets) == (b"metrics reset\n", 1)


async def test_what_is_not_shown_is_empty_and_not_reset() -> None:
    page = Page()
    handler = MetricsHandler(page, lambda: False)
    for method in ("GET", "DELETE"):
        got = await handler(request(method))
        assert (got.status, got.headers, got.body, page.resets) == (200, [], b"", 0)


async def test_checks_are_counted(running: Running) -> None:
    seen: list[tuple[str, str, str]] = []
    page = Page()
    assembly = running.cluster.scheduler.assembly
    assembly.metrics._pages = MetricsPages(page, page, page, lambda *one: seen.append(one))
    routes = build_routes(ServingSettings(), assembly, running.liveness)
    await routes(Request(method="GET", path="/livez", target="/livez"))
    await routes(Request(method="GET", path="/readyz", target="/readyz"))
    assert seen == [
        ("livez", "ping", "success"),
        ("readyz", "shutdown", "success"),
        ("readyz", "sched-handler-sync", "success"),
    ]


async def test_the_configuration_shows_no_private_key() -> None:
    text = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders:
- urlPrefix: https://x.test
  filterVerb: f
  enableHTTPS: true
  tlsConfig: {certData: Y2VydA==, keyData: c2VjcmV0}
"""
    body = (await Configz(lambda: load_configuration(text))(request())).body
    assert b"c2VjcmV0" not in body
    assert b"REDACTED" in body
    assert b'"certData":"Y2VydA=="' in body


async def test_the_verbosity_can_be_changed(running: Running) -> None:
    from restored_logging import restored_logging

    with restored_logging():
        assert (await running.ask("/debug/flags/v", "PUT", body=b"5")).status == 200
        for bad in (b"-1", b"", b"99999999999999999999", b"9" * 5000, b"\xff", "٣".encode()):
            assert (await running.ask("/debug/flags/v", "PUT", body=bad)).status == 400


async def test_the_pods_whose_plugins_are_traced_can_be_changed(running: Running) -> None:
    page, trace = "/debug/flags/trace-plugins", running.cluster.scheduler.assembly.plugin_trace
    assert (await running.ask(page, "PUT", body=b"app=web\n")).status == 200
    assert trace.selector == TraceSelector.read("app=web")
    for bad in (b"app=web,x", b"=x", b","):
        assert (await running.ask(page, "PUT", body=bad)).status == 400
    assert trace.selector is not None
    assert (await running.ask(page, "PUT", body=b"")).status == 200
    assert trace.selector is None
    assert (await running.ask(page)).status == 406


async def test_the_verbosity_of_files_can_be_changed(running: Running) -> None:
    from restored_logging import restored_logging

    log = logging.getLogger("trio_sched.daemon.supervisor")
    with restored_logging():
        assert (await running.ask("/debug/flags/v", "PUT", body=b"0")).status == 200
        assert not log.isEnabledFor(V3)
        assert (await running.ask("/debug/flags/vmodule", "PUT", body=b"superv*=3")).status == 200
        assert log.isEnabledFor(V3)
        for bad in (b"superv*", b"=3", b"superv*=", b"superv*=x", b"a=1,b=-1", b"\xff"):
            assert (await running.ask("/debug/flags/vmodule", "PUT", body=bad)).status == 400
        assert log.isEnabledFor(V3)
        assert (await running.ask("/debug/flags/vmodule", "PUT", body=b"")).status == 200
        assert not log.isEnabledFor(V3)
        assert (await running.ask("/debug/flags/vmodule")).status == 406
