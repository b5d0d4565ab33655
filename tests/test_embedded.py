import msgspec
import pytest
import trio

from trio_sched.embedded import EmbeddedCaller
from trio_sched.kube_client.connection import GZIP
from trio_sched.kube_client.errors import ConnectionFailed
from trio_sched.simulator import ApiServer, populate

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
PODS = b"/api/v1/namespaces/default/pods"


@pytest.fixture
def server() -> ApiServer:
    return ApiServer()


@pytest.fixture
def caller(server: ApiServer) -> EmbeddedCaller:
    return EmbeddedCaller(server, "embedded")


async def test_large_lists_are_not_compressed_whatever_the_client_accepts(
    server: ApiServer, caller: EmbeddedCaller
) -> None:
    annotations = {"note": "x" * 10_000}
    populate(server, [{**POD, "metadata": {"name": f"p{i}", "annotations": annotations}} for i in range(20)])
    reply = await caller.request(b"GET", PODS, GZIP)
    assert len(msgspec.json.decode(reply.body)["items"]) == 20
    async with caller.stream(b"GET", PODS, GZIP) as stream:
        whole = b""
        while piece := await stream.receive():
            whole += piece
    assert whole == reply.body


async def test_a_refusal_is_a_reply(caller: EmbeddedCaller) -> None:
    reply = await caller.request(b"POST", PODS, b"Content-Type: application/json\r\n", b"[]")
    assert reply.status == 400
    assert msgspec.json.decode(reply.body)["kind"] == "Status"


async def test_a_watch_is_read_piece_by_piece_and_closed(server: ApiServer, caller: EmbeddedCaller) -> None:
    async with caller.stream(b"GET", PODS + b"?watch=true&resourceVersion=0") as stream:
        populate(server, [POD])
        with trio.fail_after(1):
            assert b'"ADDED"' in await stream.receive()


async def test_a_server_that_is_stopped_gives_no_response(server: ApiServer, caller: EmbeddedCaller) -> None:
    server.stop()
    with pytest.raises(ConnectionFailed, match="embedded"):
        await caller.request(b"GET", PODS)
