import base64
import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import trio
import trustme
from raw_server import Exchange, StartServer
from trio.testing import MockClock

from trio_sched.kube_client import json_poster
from trio_sched.kube_client.errors import ConnectionFailed, KubeconfigError
from trio_sched.kube_client.json_poster import JsonPoster
from trio_sched.kube_client.settings import TlsSettings


async def echo(exchange: Exchange) -> None:
    await exchange.answer(exchange.request.body)


@asynccontextmanager
async def poster(url: str, **options: Any) -> AsyncIterator[JsonPoster]:
    made = JsonPoster.for_url(url, **options)
    try:
        yield made
    finally:
        made.close()


async def test_bodies_go_below_the_url_over_one_connection(start_server: StartServer) -> None:
    server = await start_server(echo)
    async with poster(f"{server.url}/sched//") as webhook:
        for body in (b"{}", b"[1]"):
            assert (await webhook.post("filter", body)).body == body
    assert server.connections == 1
    assert [(request.method, request.target) for request in server.requests] == [("POST", "/sched/filter")] * 2
    headers = server.requests[0].headers
    assert headers["content-type"] == "application/json"
    assert headers["host"] == f"127.0.0.1:{server.port}"
    assert "authorization" not in headers


async def test_a_name_and_a_password_in_the_url_are_sent(start_server: StartServer) -> None:
    server = await start_server(echo)
    async with poster(server.url.replace("//", "//me:p%40ss@")) as webhook:
        await webhook.post("filter", b"{}")
    assert server.requests[0].headers["authorization"] == "Basic " + base64.b64encode(b"me:p@ss").decode()
    assert server.requests[0].headers["host"] == f"127.0.0.1:{server.port}"


async def test_any_status_is_returned_to_the_caller(start_server: StartServer) -> None:
    async def refuse(exchange: Exchange) -> None:
        await exchange.answer(b"no", status=503)

    server = await start_server(refuse)
    async with poster(server.url) as webhook:
        reply = await webhook.post("x", b"{}")
    assert (reply.status, reply.body) == (503, b"no")


async def test_tls_needs_a_certificate_of_the_authority(start_server: StartServer, authority: trustme.CA) -> None:
    server = await start_server(echo, tls=True)
    trusted = TlsSettings(ca_data=authority.cert_pem.bytes(), server_name="kubernetes.test")
    for tls in (trusted, TlsSettings(insecure_skip_verify=True)):
        async with poster(server.url, tls=tls) as webhook:
            assert (await webhook.post("x", b"{}")).status == 200
    async with poster(server.url, tls=TlsSettings(ca_data=trustme.CA().cert_pem.bytes())) as webhook:
        with pytest.raises(ConnectionFailed, match="x509: certificate signed by unknown authority"):
            await webhook.post("x", b"{}")


def test_unusable_certificates_are_found_at_once() -> None:
    with pytest.raises(KubeconfigError, match="open /nonexistent: no such file or directory"):
        JsonPoster.for_url("https://x", tls=TlsSettings(ca_file="/nonexistent"))


async def test_the_limit_holds_for_the_whole_call(start_server: StartServer) -> None:
    async def dawdle(exchange: Exchange) -> None:
        await exchange.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
        for _ in range(100):
            await trio.sleep(0.02)
            await exchange.raw(b"x")

    server = await start_server(dawdle)
    async with poster(server.url, timeout_seconds=0.1) as webhook:
        began = trio.current_time()
        with pytest.raises(ConnectionFailed) as caught:
            await webhook.post("x", b"{}")
        assert trio.current_time() - began < 1
    assert caught.value.timed_out
    assert caught.value.problem == "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"


async def test_a_server_in_this_process_has_the_same_limit(autojump_clock: MockClock) -> None:
    async def dawdle(request: httpx.Request) -> httpx.Response:
        await trio.sleep(60)
        return httpx.Response(200)

    async with poster("http://x.test", timeout_seconds=5, transport=httpx.MockTransport(dawdle)) as webhook:
        with pytest.raises(ConnectionFailed, match="context deadline exceeded"):
            await webhook.post("x", b"{}")
        assert trio.current_time() == pytest.approx(5)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("", 'unsupported protocol scheme ""'),
        ("ftp://x", 'unsupported protocol scheme "ftp"'),
        ("http:///x", "http: no Host in request URL"),
        ("http://x:port", 'parse "http://x:port/x": invalid port ":port" after host'),
        ("http://x:70000", 'parse "http://x:70000/x": invalid port ":70000" after host'),
        ("http://a\x00b", 'parse "http://a\\x00b/x": net/url: invalid control character in URL'),
        ("http://[::1", "parse \"http://[::1/x\": missing ']' in host"),
        ("http://a..b", "dial tcp: lookup a..b: no such host"),
        ("http://" + "a" * 64, f"dial tcp: lookup {'a' * 64}: no such host"),
        ("http://b\u00fc..x", "dial tcp: lookup b\u00fc..x: no such host"),
        ("http://127.0.0.1:1", "dial tcp 127.0.0.1:1: connect: connection refused"),
        ("http://nobody.invalid", "dial tcp: lookup nobody.invalid: "),
    ],
)
async def test_invalid_urls_fail_every_call(url: str, problem: str) -> None:
    async with poster(url) as webhook:
        for _ in range(2):
            with pytest.raises(ConnectionFailed) as caught:
                await webhook.post("x", b"{}")
            assert caught.value.problem.startswith(problem)
            assert not caught.value.may_have_reached_server


async def test_a_response_that_is_huge_when_decompressed_is_an_error(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_poster, "MAX_REPLY_BYTES", 2_000_000)

    async def bomb(exchange: Exchange) -> None:
        await exchange.answer(gzip.compress(bytes(int(exchange.request.body))), headers="Content-Encoding: gzip\r\n")

    server = await start_server(bomb)
    async with poster(server.url) as webhook:
        assert len((await webhook.post("filter", b"2000000")).body) == 2_000_000
        with pytest.raises(ConnectionFailed) as caught:
            await webhook.post("filter", b"2000001")
    assert caught.value.problem == "the response is larger than 2000000 bytes"
    assert len(server.requests) == 2


# --- redirects ------------------------------------------------------------------------------------------------------


def redirect(status: int, location: str) -> Any:
    """Sends every request but those to ``/end`` elsewhere; there it tells method, body and credentials."""

    async def handle(exchange: Exchange) -> None:
        request = exchange.request
        if request.target != "/end":
            await exchange.answer(b"moved", status=status, headers=f"Location: {location}\r\n")
            return
        seen = [request.method, request.body.decode(), request.headers.get("authorization", "-")]
        await exchange.answer(" ".join([*seen, request.headers.get("content-type", "-")]).encode())

    return handle


ME = "Basic " + base64.b64encode(b"me:secret").decode()


@pytest.mark.parametrize(
    ("status", "seen"),
    [
        (307, f"POST {{}} {ME} application/json"),
        (308, f"POST {{}} {ME} application/json"),
        (301, f"GET  {ME} -"),
        (302, f"GET  {ME} -"),
        (303, f"GET  {ME} -"),
    ],
)
async def test_redirects_are_followed_as_by_go(start_server: StartServer, status: int, seen: str) -> None:
    server = await start_server(redirect(status, "../end"))
    async with poster(server.url.replace("//", "//me:secret@")) as webhook:
        reply = await webhook.post("filter", b"{}")
    assert (reply.status, reply.body.decode()) == (200, seen)


async def test_credentials_are_not_sent_to_another_host(start_server: StartServer) -> None:
    other = await start_server(redirect(500, "/"))
    server = await start_server(redirect(307, f"{other.url}/end"))
    async with poster(server.url.replace("//", "//me:secret@")) as webhook:
        for _ in range(2):
            assert (await webhook.post("filter", b"{}")).body == b"POST {} - application/json"
    assert len(server.requests) == len(other.requests) == 2


async def test_the_tenth_redirect_is_the_last(start_server: StartServer) -> None:
    server = await start_server(redirect(307, "/again"))
    async with poster(server.url) as webhook:
        with pytest.raises(ConnectionFailed) as caught:
            await webhook.post("filter", b"{}")
    assert caught.value.problem == "stopped after 10 redirects"
    assert len(server.requests) == 10


@pytest.mark.parametrize(
    ("location", "problem"),
    [
        ("ftp://x/y", 'unsupported protocol scheme "ftp"'),
        ("http:///y", "http: no Host in request URL"),
        ("http://x:port", 'failed to parse Location header "http://x:port": parse "http://x:port": invalid port'),
        ("http://127.0.0.1:1/y", "dial tcp 127.0.0.1:1: connect: connection refused"),
    ],
)
async def test_a_redirect_that_leads_nowhere_is_an_error(
    start_server: StartServer, location: str, problem: str
) -> None:
    server = await start_server(redirect(307, location))
    async with poster(server.url) as webhook:
        with pytest.raises(ConnectionFailed) as caught:
            await webhook.post("filter", b"{}")
    assert caught.value.problem.startswith(problem)


async def test_a_redirect_without_a_location_is_an_answer(start_server: StartServer) -> None:
    async def nowhere(exchange: Exchange) -> None:
        await exchange.answer(b"moved", status=307)

    server = await start_server(nowhere)
    async with poster(server.url) as webhook:
        assert (await webhook.post("filter", b"{}")).status == 307


async def test_a_redirect_in_this_process_is_followed() -> None:
    async def respond(request: httpx.Request) -> httpx.Response:
        if request.url.host == "a.test":
            return httpx.Response(307, headers={"Location": "http://b.test/end"})
        return httpx.Response(200, content=str(request.url).encode() + request.content)

    async with poster("http://a.test", transport=httpx.MockTransport(respond)) as webhook:
        assert (await webhook.post("filter", b"{}")).body == b"http://b.test/end{}"


async def test_a_query_in_the_url_takes_the_path_as_by_go(start_server: StartServer) -> None:
    server = await start_server(echo)
    async with poster(f"{server.url}/x?a=b") as webhook:
        await webhook.post("filter", b"{}")
    assert server.requests[0].target == "/x?a=b/filter"
