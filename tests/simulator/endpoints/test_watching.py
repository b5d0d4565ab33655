import msgspec
import pytest
import trio
from simulator_api import Api
from trio.testing import MockClock

from trio_sched.documents.json_values import Json
from trio_sched.simulator import ApiServer
from trio_sched.simulator.endpoints.watching import StreamCut, WatchStream


async def open_watch(api: Api, path: str) -> WatchStream:
    response = await api.raw("GET", path)
    assert response.status == 200, response.body
    assert isinstance(response.body, WatchStream)
    return response.body


async def batch(stream: WatchStream) -> list[Json]:
    return [msgspec.json.decode(line) for line in (await anext(stream)).splitlines()]


def seen(events: list[Json]) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


async def test_a_watch_from_a_version_sends_only_later_changes(api: Api) -> None:
    before = await api.create_pod("before")
    await api.create_pod("after")
    stream = await open_watch(api, f"/api/v1/pods?watch=true&resourceVersion={before['metadata']['resourceVersion']}")
    assert seen(await batch(stream)) == [("ADDED", "after")]
    await api("DELETE", "/api/v1/namespaces/default/pods/after")
    assert seen(await batch(stream)) == [("DELETED", "after")]


async def test_a_watch_without_a_version_starts_with_all_objects(api: Api) -> None:
    await api.create_pod("old")
    stream = await open_watch(api, "/api/v1/pods?watch=true")
    assert seen(await batch(stream)) == [("ADDED", "old")]


async def test_a_streaming_list_ends_with_a_marked_bookmark(api: Api, server: ApiServer) -> None:
    await api.create_pod("a")
    await api.create_pod("b")
    version = server.store.version
    query = "watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    events = await batch(await open_watch(api, f"/api/v1/pods?{query}"))
    assert seen(events) == [("ADDED", "a"), ("ADDED", "b"), ("BOOKMARK", "")]
    assert events[-1]["object"]["metadata"] == {
        "resourceVersion": str(version),
        "annotations": {"k8s.io/initial-events-end": "true"},
    }


async def test_leaving_the_selection_looks_like_a_deletion_of_the_former_state(api: Api) -> None:
    pod = await api.create_pod("p")
    version = pod["metadata"]["resourceVersion"]
    path = f"/api/v1/pods?watch=true&resourceVersion={version}&fieldSelector=status.phase!%3DSucceeded"
    stream = await open_watch(api, path)
    status = {"status": {"phase": "Succeeded"}}
    done = await api(
        "PATCH", "/api/v1/namespaces/default/pods/p/status", status, content_type="application/merge-patch+json"
    )
    (event,) = await batch(stream)
    assert event["type"] == "DELETED"
    assert event["object"]["status"]["phase"] == "Pending"
    assert event["object"]["metadata"]["resourceVersion"] == done["metadata"]["resourceVersion"]


async def test_entering_the_selection_looks_like_an_addition(api: Api, server: ApiServer) -> None:
    await api.create_pod("p")
    stream = await open_watch(
        api, f"/api/v1/pods?watch=true&resourceVersion={server.store.version}&labelSelector=a%3D1"
    )
    for labels in ({"a": "0"}, {"a": "1"}, {"a": "1", "b": "2"}, {"a": "0"}):
        patch = {"metadata": {"labels": labels}}
        await api("PATCH", "/api/v1/namespaces/default/pods/p", patch, content_type="application/merge-patch+json")
    assert [event["type"] for event in await batch(stream)] == ["ADDED", "MODIFIED", "DELETED"]


async def test_changes_in_other_namespaces_are_not_sent(api: Api, server: ApiServer) -> None:
    stream = await open_watch(api, f"/api/v1/namespaces/default/pods?watch=true&resourceVersion={server.store.version}")
    await api.create_pod("elsewhere", namespace="kube-system")
    await api.create_pod("here")
    assert seen(await batch(stream)) == [("ADDED", "here")]


async def test_an_expired_version_is_an_error_in_the_stream(api: Api, server: ApiServer) -> None:
    pod = await api.create_pod("p")
    version = int(pod["metadata"]["resourceVersion"])
    await api.create_pod("q")
    server.compact()
    stream = await open_watch(api, f"/api/v1/pods?watch=true&resourceVersion={version}")
    (event,) = await batch(stream)
    assert event["type"] == "ERROR"
    assert event["object"]["code"] == 410
    assert event["object"]["reason"] == "Expired"
    assert event["object"]["message"] == f"too old resource version: {version} ({version + 1})"
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def test_bookmarks_come_every_minute_and_shortly_before_the_end(
    api: Api, server: ApiServer, autojump_clock: MockClock
) -> None:
    path = f"/api/v1/pods?watch=true&resourceVersion={server.store.version}&allowWatchBookmarks=true&timeoutSeconds=130"
    stream = await open_watch(api, path)
    began, moments = trio.current_time(), []
    async for lines in stream:
        assert msgspec.json.decode(lines)["type"] == "BOOKMARK"
        moments.append(round(trio.current_time() - began))
    assert moments == [60, 120, 128]
    assert round(trio.current_time() - began) == 130


async def test_a_watch_ends_cleanly_at_its_timeout_and_is_forgotten(
    api: Api, server: ApiServer, autojump_clock: MockClock
) -> None:
    stream = await open_watch(api, f"/api/v1/pods?watch=1&resourceVersion={server.store.version}&timeoutSeconds=7")
    assert server.open_watches == 1
    began = trio.current_time()
    assert [lines async for lines in stream] == []
    assert trio.current_time() - began == pytest.approx(7)
    assert server.open_watches == 0


async def test_stopping_the_server_breaks_its_watches(
    api: Api, server: ApiServer, autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    stream = await open_watch(api, f"/api/v1/pods?watch=1&resourceVersion={server.store.version}")

    async def stop_later() -> None:
        await trio.sleep(1)
        server.stop()

    nursery.start_soon(stop_later)
    with pytest.raises(StreamCut):
        await anext(stream)
    assert server.open_watches == 0


async def test_a_closed_watch_gets_no_more_events(api: Api, server: ApiServer) -> None:
    stream = await open_watch(api, f"/api/v1/pods?watch=1&resourceVersion={server.store.version}")
    stream.close()
    await api.create_pod("p")
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
    assert server.store.collection("pods").listeners == {}


async def test_a_reader_that_falls_too_far_behind_gets_expired() -> None:
    server = ApiServer(watch_backlog_limit=3)
    api = Api(server)
    stream = await open_watch(api, f"/api/v1/pods?watch=1&resourceVersion={server.store.version}")
    for number in range(5):
        await api.create_pod(f"p{number}")
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
    assert server.open_watches == 0


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("watch=1&resourceVersionMatch=NotOlderThan", "forbidden for watch unless sendInitialEvents is provided"),
        ("watch=1&sendInitialEvents=true", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
        ("sendInitialEvents=true", "sendInitialEvents is forbidden for list"),
    ],
)
async def test_contradicting_options_are_refused(api: Api, query: str, problem: str) -> None:
    status = await api("GET", f"/api/v1/pods?{query}", expect=422)
    assert problem in status["message"]


async def test_a_single_object_can_be_watched_by_name(api: Api) -> None:
    await api.create_pod("p")
    stream = await open_watch(api, "/api/v1/namespaces/default/pods/p?watch=true")
    await api.create_pod("other")
    assert seen(await batch(stream)) == [("ADDED", "p")]


async def test_a_watch_can_be_a_table(api: Api) -> None:
    await api.create_pod("p")
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    response = await api.raw("GET", "/api/v1/pods?watch=true", accept=accept)
    assert isinstance(response.body, WatchStream)
    (event,) = await batch(response.body)
    assert event["object"]["kind"] == "Table"
    assert event["object"]["rows"][0]["cells"][:3] == ["p", "0/1", "Pending"]
