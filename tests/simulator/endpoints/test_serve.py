import ssl
from functools import partial
from pathlib import Path

import httpx
import pytest
import trio
import trustme
from certificate_files import write_certificate

from trio_sched.simulator import ApiServer, serve

PODS = "/api/v1/namespaces/default/pods"
POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


async def test_requests_are_answered_over_a_socket(server: ApiServer, nursery: trio.Nursery) -> None:
    address = await nursery.start(serve, server)
    async with httpx.AsyncClient(base_url=address) as http:
        assert (await http.post(PODS, json=POD)).status_code == 201
        assert (await http.get("/api/v1/pods?limit=1")).json()["items"][0]["metadata"]["name"] == "p"
        assert (await http.get(f"{PODS}/nope")).status_code == 404


async def test_https_is_spoken_with_a_certificate_given(
    server: ApiServer, nursery: trio.Nursery, tmp_path: Path
) -> None:
    authority = trustme.CA()
    certificate, key = write_certificate(authority, "127.0.0.1", tmp_path)
    address = await nursery.start(partial(serve, server, certificate=certificate, private_key=key))
    assert address.startswith("https://127.0.0.1:")
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    async with httpx.AsyncClient(base_url=address, verify=trusting) as http:
        assert (await http.get("/version")).json()["major"] == "1"


async def test_a_watch_is_streamed_and_ends_when_its_client_leaves(server: ApiServer, nursery: trio.Nursery) -> None:
    address = await nursery.start(serve, server)
    async with httpx.AsyncClient(base_url=address) as http:
        async with http.stream("GET", "/api/v1/pods?watch=true") as response:
            await http.post(PODS, json=POD)
            with trio.CancelScope() as scope:
                async for chunk in response.aiter_raw():
                    assert b'"ADDED"' in chunk
                    scope.cancel()
        with trio.fail_after(5):
            while server.open_watches:
                await http.get("/readyz")


async def test_a_stopped_server_refuses_connections_until_it_resumes(server: ApiServer, nursery: trio.Nursery) -> None:
    address = await nursery.start(serve, server)
    async with httpx.AsyncClient(base_url=address) as http:
        await http.post(PODS, json=POD)
        async with http.stream("GET", "/api/v1/pods?watch=true") as response:
            server.stop()
            with pytest.raises(httpx.RemoteProtocolError):
                async for _ in response.aiter_raw():
                    pass
    async with httpx.AsyncClient(base_url=address) as http:
        with pytest.raises(httpx.ConnectError):
            await http.get("/version")
        server.resume()
        with trio.fail_after(5):
            while True:
                try:
                    found = await http.get(f"{PODS}/p")
                    break
                except httpx.ConnectError:
                    await trio.lowlevel.checkpoint()
        assert found.status_code == 200


async def test_a_dropped_reply_breaks_the_connection(server: ApiServer, nursery: trio.Nursery) -> None:
    address = await nursery.start(serve, server)
    server.faults.drop_next(verb="create")
    async with httpx.AsyncClient(base_url=address) as http:
        with pytest.raises(httpx.RemoteProtocolError):
            await http.post(PODS, json=POD)
        assert (await http.get(f"{PODS}/p")).status_code == 200


async def test_bodies_that_are_too_long_are_refused(server: ApiServer, nursery: trio.Nursery) -> None:
    address = await nursery.start(serve, server)
    stream = await trio.open_tcp_stream("127.0.0.1", int(address.rpartition(":")[2]))
    async with stream:
        await stream.send_all(b"POST /api/v1/nodes HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999\r\n\r\n")
        await stream.send_all(b" " * ((3 << 20) + 1))
        with trio.fail_after(10):
            answer = await stream.receive_some(1 << 16)
    assert answer.startswith(b"HTTP/1.1 413")
