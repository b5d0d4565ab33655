import gzip
import logging
import re
import tracemalloc
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.lowlevel
from plugin_base import PluginBase
from trio.testing import MockClock

from trio_sched.daemon.plugins import plugin_http
from trio_sched.daemon.plugins.plugin_http import BlockingTransport, HttpTransport, NetworkTransport, PluginHttp
from trio_sched.plugin_api import HttpFailed, HttpRequest, HttpResponse, Pod, Status, hookimpl
from trio_sched.testing import FakeHandle, pod
from trio_sched.testing.cluster import virtual_cluster

Respond = Callable[[bytes], bytes]
PROMETHEUS = "http://prometheus.example:9090"


async def listen(nursery: trio.Nursery, respond: Respond | None, *, at_once: bool = False) -> str:
    """Serve HTTP/1.1 on a port; without *respond* connections are accepted and nothing is said.

    With *at_once* it responds to the first bytes, whatever they are, and that is all.
    """

    async def serve(stream: trio.SocketStream) -> None:
        async with stream:
            received = b""
            while piece := await stream.receive_some():
                received += piece
                head, end, body = received.partition(b"\r\n\r\n")
                length = re.search(rb"content-length: (\d+)", head.lower())
                if not at_once and (not end or len(body) < int(length[1] if length else 0)):
                    continue
                if respond is None:
                    await trio.sleep_forever()
                else:
                    await stream.send_all(respond(received))
                    received = b""
                    if at_once:
                        return

    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")

    async def quietly(stream: trio.SocketStream) -> None:
        try:
            await serve(stream)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return

    nursery.start_soon(trio.serve_listeners, quietly, listeners)
    return f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}"


def reply(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def transport() -> HttpTransport:
    return NetworkTransport()


async def test_a_get_has_query_and_headers_and_the_response_is_read(
    transport: HttpTransport, nursery: trio.Nursery
) -> None:
    asked: list[bytes] = []

    def respond(request: bytes) -> bytes:
        asked.append(request)
        return reply(b'{"status": "success"}', "200 OK", "X-One: 1", "X-One: 2")

    url = await listen(nursery, respond)
    http = PluginHttp(transport)
    response = await http.get(f"{url}/api/v1/query?a=1", params={"query": "up{x='y'}"}, headers={"X-Scope": "me"})
    assert asked[0].startswith(b"GET /api/v1/query?a=1&query=up%7Bx%3D%27y%27%7D HTTP/1.1\r\n")
    assert b"x-scope: me\r\n" in asked[0].lower()
    assert (response.status, response.json(), response.is_success) == (200, {"status": "success"}, True)
    assert response.check() is response
    assert response.headers["x-one"] == "1, 2"
    assert response.url == f"{url}/api/v1/query"
    await http.get(url)  # on the same connection
    await transport.close()


async def test_a_post_sends_json_or_content(transport: HttpTransport, nursery: trio.Nursery) -> None:
    asked: list[bytes] = []

    def respond(request: bytes) -> bytes:
        asked.append(request)
        return reply(b"made", "201 Created")

    http = PluginHttp(transport)
    url = await listen(nursery, respond)
    assert (await http.post(url, json={"a": [1]})).text == "made"
    assert (await http.post(url, content="as it is", headers={"Content-Type": "text/plain"})).status == 201
    assert b"content-type: application/json" in asked[0].lower()
    assert asked[0].endswith(b'{"a": [1]}')
    assert b"content-type: text/plain" in asked[1].lower()
    assert asked[1].endswith(b"as it is")
    with pytest.raises(ValueError, match="takes json or content, not both"):
        await http.post(url, json=1, content="x")
    with pytest.raises(ValueError, match="json cannot be encoded"):
        await http.post(url, json=object())
    await transport.close()


async def test_redirects_are_followed_to_a_limit(transport: HttpTransport, nursery: trio.Nursery) -> None:
    def respond(request: bytes) -> bytes:
        if b"GET /end " in request:
            return reply(b"there")
        where = "/loop" if b"GET /loop " in request else "/end"
        return reply(b"", "302 Found", f"Location: {where}")

    http = PluginHttp(transport)
    url = await listen(nursery, respond)
    response = await http.get(f"{url}/begin")
    assert (response.text, response.url) == ("there", f"{url}/end")
    with pytest.raises(HttpFailed, match=r"GET .*/loop: more than 10 redirects"):
        await http.get(f"{url}/loop")
    await transport.close()


async def test_silence_ends_in_time(transport: HttpTransport, nursery: trio.Nursery) -> None:
    http = PluginHttp(transport)
    url = await listen(nursery, None)
    with pytest.raises(HttpFailed, match=r"GET .*: no response within 0\.05 s"):
        await http.get(f"{url}/x?token=secret", timeout_seconds=0.05)
    await transport.close()


async def test_nobody_listens(transport: HttpTransport) -> None:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    url = f"http://127.0.0.1:{listener.socket.getsockname()[1]}"
    await listener.aclose()
    with pytest.raises(HttpFailed, match=f"GET {re.escape(url)}/x: ") as caught:
        await PluginHttp(transport).get(f"{url}/x?token=secret")
    assert "secret" not in str(caught.value)
    await transport.close()


async def test_a_body_without_an_end_is_not_read_to_it(
    transport: HttpTransport, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin_http, "MAX_HTTP_BODY_BYTES", 1 << 20)
    url = await listen(nursery, lambda _request: reply(b"x" * (2 << 20)))
    with pytest.raises(HttpFailed, match="the body of the response has more than 1 MiB"):
        await PluginHttp(transport).get(url)
    await transport.close()


async def test_a_server_that_drips_holds_no_thread_longer_than_the_timeout(nursery: trio.Nursery) -> None:
    """With heads in pieces, or responses before the response, for ever: each single wait would be short."""

    async def drip(stream: trio.SocketStream) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            async with stream:
                while True:
                    await stream.send_all(b"HTTP/1.1 100 Continue\r\n\r\n")
                    await trio.sleep(0.01)

    (listener,) = listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    nursery.start_soon(trio.serve_listeners, drip, listeners)
    transport = NetworkTransport()
    url = f"http://127.0.0.1:{listener.socket.getsockname()[1]}"
    with pytest.raises(HttpFailed, match=r"no response within 0\.1 s"):
        await PluginHttp(transport).get(url, timeout_seconds=0.1)
    for _ in range(500):
        if transport._limiter.borrowed_tokens:
            await trio.sleep(0.01)
    assert not transport._limiter.borrowed_tokens
    await transport.close()


PACKED = {
    "gzip": gzip.compress(b"found"),
    "x-gzip": gzip.compress(b"found"),
    "deflate": zlib.compress(b"found"),
    "Deflate ": zlib.compress(b"found")[2:-4],
    "identity": b"found",
}


async def test_bodies_are_decompressed(transport: HttpTransport, nursery: trio.Nursery) -> None:
    replies = [reply(body, "200 OK", f"Content-Encoding: {kind}") for kind, body in PACKED.items()]
    packed = PACKED["gzip"]
    for wrong in (packed[:-9], b"found", packed[:10]):
        replies.append(reply(wrong, "200 OK", "Content-Encoding: gzip"))
    url = await listen(nursery, lambda _request: replies.pop(0))
    for _ in PACKED:
        assert (await PluginHttp(transport).get(url)).text == "found"
    while replies:
        with pytest.raises(HttpFailed, match=r"its compressed body ends too early|its body cannot be decompressed"):
            await PluginHttp(transport).get(url)
    await transport.close()


async def test_what_is_compressed_twice_or_too_well_takes_no_memory(
    transport: HttpTransport, nursery: trio.Nursery
) -> None:
    once = gzip.compress(bytes(64 << 20))
    body, kind = once, "gzip"
    url = await listen(nursery, lambda _request: reply(body, "200 OK", f"Content-Encoding: {kind}"))
    with pytest.raises(HttpFailed, match="more than 16 MiB"):
        await PluginHttp(transport).get(url)
    body, kind = gzip.compress(once), "gzip, gzip"
    tracemalloc.start()
    with pytest.raises(HttpFailed, match="its content-encoding is 'gzip, gzip', and gzip, deflate are supported"):
        await PluginHttp(transport).get(url)
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()
    await transport.close()


async def test_what_is_no_http_and_certificates_that_are_none(
    transport: HttpTransport, nursery: trio.Nursery, tmp_path: Path
) -> None:
    http = PluginHttp(transport)
    url = await listen(nursery, lambda _request: b"220 smtp ready\r\n", at_once=True)
    with pytest.raises(HttpFailed):
        await http.get(url)
    with pytest.raises(HttpFailed, match=r"TLS|SSL|ssl"):
        await http.get(url.replace("http:", "https:"))
    with pytest.raises(HttpFailed, match="No such file"):
        await http.get(url, ca_file=str(tmp_path / "none.pem"))
    (tmp_path / "bad.pem").write_text("no certificate")
    with pytest.raises(HttpFailed):
        await http.get(url, ca_file=str(tmp_path / "bad.pem"))
    await transport.close()


async def test_a_blocking_transport_makes_real_requests_while_a_simulated_clock_stands_still(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    import http.server
    import threading

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"real")

        def log_message(self, *_args: Any) -> None: ...

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    transport = BlockingTransport()
    began = trio.current_time()
    response = await PluginHttp(transport).get(f"http://127.0.0.1:{server.server_port}/")
    assert response.text == "real"
    assert trio.current_time() == began
    await transport.close()
    await trio.to_thread.run_sync(server.shutdown)
    thread.join()
    server.server_close()
    with pytest.raises(HttpFailed):
        await PluginHttp(transport).get(f"http://127.0.0.1:{server.server_port}/", ca_file=str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("url", "more", "problem"),
    [
        ("prometheus:9090", {}, "is no URL"),
        ("ftp://prometheus", {}, "is no URL"),
        ("http://", {}, "is no URL"),
        ("http://host/a b", {}, "is no URL"),
        ("http://host/\r\nX: y", {}, "is no URL"),
        ("http://host:99999/", {}, "is no URL"),
        ("http://[::1/", {}, "is no URL"),
        (None, {}, "must be a text"),
        ("http://host", {"timeout_seconds": 0}, "must be a positive number of seconds: 0"),
        ("http://host", {"timeout_seconds": "1"}, "must be a positive number"),
        ("http://host", {"headers": {"A": "b\r\nC: d"}}, "header 'A' must be a printable text"),
        ("http://host", {"headers": {"A": 1}}, "header 'A'"),
        ("http://host", {"params": "a=b"}, "params must be a dict"),
        ("http://host", {"ca_file": 7}, "ca_file must be the path"),
        ("http://host", {"timeout_seconds": 10**400}, "must be a positive number"),
        ("http://host", {"timeout_seconds": True}, "must be a positive number"),
        ("http://host", {"headers": ["A"]}, "headers must be a dict of texts"),
        ("http://host", {"params": 0}, "params must be a dict"),
    ],
)
async def test_what_cannot_be_meant_is_said(url: Any, more: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        await FakeHandle().http.get(url, **more)


# --- pretend endpoints ----------------------------------------------------------------------------------------------


async def test_a_fake_handle_has_pretend_endpoints() -> None:
    def respond(request: HttpRequest) -> Any:
        return {"path": request.path, "params": dict(request.params), "method": request.method}

    def echo(request: HttpRequest) -> Any:
        return HttpResponse(status=202, body=request.json()["a"].encode())

    async def text(_request: HttpRequest) -> str:
        await trio.lowlevel.checkpoint()
        return "text"

    handle = FakeHandle(endpoints={PROMETHEUS: respond, f"{PROMETHEUS}/echo": echo, "https://text": text})
    response = await handle.http.get(f"{PROMETHEUS}/api", params={"q": 1})
    assert response.json() == {"path": "/api", "params": {"q": "1"}, "method": "GET"}
    assert response.url == f"{PROMETHEUS}/api"
    response = await handle.http.post(f"{PROMETHEUS}/echo/x", json={"a": "b"})
    assert (response.status, response.text) == (202, "b")
    assert (await handle.http.get("https://text")).text == "text"
    with pytest.raises(HttpFailed, match=r"no pretend endpoint at this URL \(there are: http://prom"):
        await handle.http.get("http://prometheus.example:9091")
    with pytest.raises(HttpFailed, match="add it to FakeHandle"):
        await FakeHandle().http.get("http://x.example")


async def test_pretend_endpoints_may_fail_be_late_or_return_nonsense(autojump_clock: MockClock) -> None:
    def crash(_request: HttpRequest) -> None:
        raise KeyError("oops")

    async def hang(_request: HttpRequest) -> None:
        await trio.sleep_forever()

    def fail(request: HttpRequest) -> None:
        raise HttpFailed(request.method, request.url, "connection refused")

    endpoints: dict[str, Any] = {
        "http://crash": crash,
        "http://hang": hang,
        "http://fail": fail,
        "http://nonsense": lambda _request: 7,
        "http://page": lambda _request: HttpResponse(status=503, body=b"<html>"),
    }
    http = FakeHandle(endpoints=endpoints).http
    with pytest.raises(HttpFailed, match=r"the pretend endpoint failed: KeyError\('oops'\)"):
        await http.get("http://crash")
    with pytest.raises(HttpFailed, match="connection refused"):
        await http.get("http://fail")
    with pytest.raises(HttpFailed, match="the pretend endpoint returned int"):
        await http.get("http://nonsense")
    with pytest.raises(HttpFailed, match="no response within 10 s"):
        await http.get("http://hang")
    assert trio.current_time() == 10
    page = await http.get("http://page")
    with pytest.raises(HttpFailed, match="response of http://page: status 503: '<html>'"):
        page.check()
    with pytest.raises(HttpFailed, match="status 503, no JSON"):
        page.json()


class LoadAware(PluginBase):
    """Asks for data every minute, and binds only once it has some."""

    data: Any = None

    @hookimpl
    async def run(self) -> None:
        while True:
            try:
                response = await self.handle.http.get(f"{PROMETHEUS}/api/v1/query", params={"query": "load"})
                type(self).log.append(response.check().json())
            except HttpFailed as problem:
                self.handle.log.warning("no data: %s", problem)
            await trio.sleep(60)


async def test_a_background_task_asks_an_endpoint_in_virtual_time(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[HttpRequest] = []

    async def respond(request: HttpRequest) -> dict[str, Any]:
        asked.append(request)
        await trio.sleep(1)
        return {"at": trio.current_time()}

    LoadAware.log.clear()
    async with virtual_cluster(nodes=1, plugins=[LoadAware], endpoints={PROMETHEUS: respond}) as cluster:
        await trio.sleep(200)
        assert [request.params for request in asked] == [{"query": "load"}] * 4
        assert [round(found["at"]) for found in LoadAware.log] == [1, 62, 123, 184]
        del cluster.endpoints[PROMETHEUS]
        await trio.sleep(60)
        assert "there is no pretend endpoint at this URL (there are: none); add it to virtual_cluster" in caplog.text


async def test_a_hook_that_cannot_wait_is_told_so(autojump_clock: MockClock) -> None:
    class Hasty(PluginBase):
        @hookimpl
        def pre_filter(self, pod: Pod) -> Status | None:
            return self.handle.http.get(PROMETHEUS)  # type: ignore[return-value]  # that is the mistake

    async with virtual_cluster(nodes=1, plugins=[Hasty]) as cluster:
        await cluster.create(pod("p"))
        await trio.sleep(2)
        (event, *_) = cluster.events("FailedScheduling")
        assert "Hasty" in event.message
        assert "a coroutine, which cannot be awaited here" in event.message


async def test_lines_of_a_plugin_name_it_and_its_profile(caplog: pytest.LogCaptureFixture) -> None:
    handle = FakeHandle().for_plugin("Mine")
    with caplog.at_level(logging.INFO):
        handle.log.info("data is %d s old", 7, extra={"source": "x", "name": "y"})
    (record,) = caplog.records
    assert (record.name, record.getMessage()) == ("trio_sched.plugins.Mine", "data is 7 s old")
    fields = vars(record)
    assert (fields["plugin"], fields["profile"], fields["source"]) == ("Mine", "default-scheduler", "x")
    assert fields["name_"] == "y"
