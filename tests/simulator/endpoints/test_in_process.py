import httpx
import pytest
import trio
from trio.testing import MockClock

from trio_sched.simulator import ApiServer, InProcessTransport

POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
PODS = "/api/v1/namespaces/default/pods"


def client(server: ApiServer) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=InProcessTransport(server), base_url="http://cluster")


async def test_requests_and_queries_arrive_as_sent(server: ApiServer) -> None:
    async with client(server) as http:
        made = await http.post(PODS, json=POD)
        assert made.status_code == 201
        assert made.headers["content-type"] == "application/json"
        found = await http.get("/api/v1/pods", params={"fieldSelector": "metadata.name=p"})
        assert [item["metadata"]["name"] for item in found.json()["items"]] == ["p"]


async def test_a_compressed_list_is_decompressed_by_httpx(server: ApiServer) -> None:
    async with client(server) as http:
        for number in range(200):
            await http.post(PODS, json={**POD, "metadata": {"name": f"p{number}"}})
        response = await http.get("/api/v1/pods")
        assert response.headers["content-encoding"] == "gzip"
        assert len(response.json()["items"]) == 200


async def test_a_watch_streams_as_things_happen(server: ApiServer, nursery: trio.Nursery) -> None:
    async with client(server) as http, http.stream("GET", "/api/v1/pods?watch=true") as response:
        nursery.start_soon(lambda: http.post(PODS, json=POD))
        with trio.CancelScope() as scope:
            async for chunk in response.aiter_raw():
                assert b'"ADDED"' in chunk
                scope.cancel()
    assert server.open_watches == 0


async def test_a_stopped_server_cannot_be_reached_until_it_resumes(server: ApiServer) -> None:
    async with client(server) as http:
        server.stop()
        with pytest.raises(httpx.ConnectError):
            await http.get("/version")
        server.resume()
        assert (await http.get("/version")).status_code == 200


async def test_stopping_breaks_a_watch_as_a_lost_connection_does(server: ApiServer, autojump_clock: MockClock) -> None:
    async with client(server) as http, http.stream("GET", "/api/v1/pods?watch=true", timeout=None) as response:
        server.stop()
        with pytest.raises(httpx.RemoteProtocolError):
            await anext(response.aiter_bytes())


async def test_after_a_restart_that_loses_history_old_versions_are_expired(server: ApiServer) -> None:
    async with client(server) as http:
        version = (await http.post(PODS, json=POD)).json()["metadata"]["resourceVersion"]
        await http.delete(f"{PODS}/p")
        server.restart(lose_history=True)
        async with http.stream("GET", f"/api/v1/pods?watch=true&resourceVersion={version}") as response:
            assert b'"code":410' in await response.aread()


async def test_a_dropped_reply_looks_like_a_closed_connection(server: ApiServer) -> None:
    server.faults.drop_next(verb="create")
    async with client(server) as http:
        with pytest.raises(httpx.RemoteProtocolError, match="Server disconnected"):
            await http.post(PODS, json=POD)
    assert server.store.get("pods", "default/p") is not None


async def test_read_timeouts_count_on_the_clusters_clock(server: ApiServer, autojump_clock: MockClock) -> None:
    server.faults.set_latency(60, verb="list")
    async with client(server) as http:
        began = trio.current_time()
        with pytest.raises(httpx.ReadTimeout):
            await http.get("/api/v1/pods", timeout=2)
        assert trio.current_time() - began == pytest.approx(2)
        async with http.stream("GET", "/api/v1/nodes?watch=true&resourceVersion=1", timeout=3) as response:
            with pytest.raises(httpx.ReadTimeout):
                await anext(response.aiter_bytes())
