"""A server that accepts connections and never responds, and one that is no API server."""

import logging
from functools import partial
from random import Random
from typing import Any

import httpx
import pytest
import trio
from raw_server import Exchange, StartServer
from recording_transport import RecordingTransport
from trio.testing import MockClock

from trio_sched.kube_client.connection import KubeClient, connect
from trio_sched.kube_client.errors import ApiError, ConnectionFailed, ServerError
from trio_sched.kube_client.http import unacknowledged
from trio_sched.kube_client.http.unacknowledged import UnacknowledgedRequests
from trio_sched.kube_client.kinds import NODE_KIND, POD_KIND
from trio_sched.kube_client.watch import list_and_watch

HTML = b"<!DOCTYPE html>\n<html><title>Sign in</title></html>"


async def test_waiting_requests_are_mentioned_after_ten_seconds_and_then_ever_more_rarely(
    autojump_clock: MockClock, nursery: trio.Nursery, caplog: pytest.LogCaptureFixture
) -> None:
    requests = UnacknowledgedRequests("https://api.test")
    nursery.start_soon(requests.warn)
    for name in (b"nodes", b"pods", b"services"):
        requests.begin(b"GET", b"/api/v1/" + name + b"?limit=500", now=trio.current_time())
    times = []
    for _ in range(200):
        before = len(caplog.records)
        await trio.sleep(1)
        if len(caplog.records) > before:
            times.append(trio.current_time())
    assert [round(time / 10) for time in times] == [1, 3, 7, 15]
    assert caplog.records[0].levelno == logging.WARNING
    assert caplog.messages[0] == (
        "no response for 10 s: GET https://api.test/api/v1/nodes and 2 other requests; "
        "is the server up, and is it an API server?"
    )


async def test_retries_do_not_begin_the_warnings_anew_but_a_response_does(
    autojump_clock: MockClock, nursery: trio.Nursery, caplog: pytest.LogCaptureFixture
) -> None:
    requests = UnacknowledgedRequests("https://api.test")
    nursery.start_soon(requests.warn)

    async def attempt(seconds: float, *, answered: bool) -> int:
        number = requests.begin(b"GET", b"/x", now=trio.current_time())
        await trio.sleep(seconds)
        requests.end(number, answered=answered)
        return len(caplog.records)

    assert [await attempt(12, answered=False) for _ in range(5)] == [1, 1, 2, 2, 2]
    assert await attempt(1, answered=True) == 2
    assert await attempt(14, answered=False) == 3


async def test_a_silent_server_is_mentioned_before_the_request_times_out(
    start_server: StartServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silence(exchange: Exchange) -> None:
        await trio.sleep_forever()

    monkeypatch.setattr(unacknowledged, "FIRST_WARNING_SECONDS", 0.01)
    server = await start_server(silence)
    async with connect(server.settings, request_seconds=0.2) as client:
        with pytest.raises(ConnectionFailed):
            await client.call(b"GET", b"/api/v1/nodes")
    assert f"GET {server.url}/api/v1/nodes; is the server up" in caplog.text


async def test_an_endless_error_in_place_of_a_watch_ends_with_the_timeout(start_server: StartServer) -> None:
    async def trickle(exchange: Exchange) -> None:
        await exchange.raw(b"HTTP/1.1 500 X\r\nContent-Length: 100000\r\n\r\n")
        await trio.sleep_forever()

    server = await start_server(trickle)
    async with connect(server.settings, request_seconds=0.05) as client:
        with pytest.raises(ServerError):
            async with client.stream(b"/x?watch=true"):
                raise AssertionError("must not be reached")


async def test_a_huge_error_in_place_of_a_watch_is_not_read_to_its_end(start_server: StartServer) -> None:
    async def pour(exchange: Exchange) -> None:
        await exchange.raw(b"HTTP/1.1 500 X\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            await exchange.raw(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")

    server = await start_server(pour)
    async with connect(server.settings) as client:
        with pytest.raises(ServerError):
            async with client.stream(b"/x?watch=true"):
                raise AssertionError("must not be reached")


async def test_html_in_place_of_json_is_called_that(server: RecordingTransport, client: KubeClient) -> None:
    server.answer = httpx.Response(200, content=HTML)
    with pytest.raises(ApiError) as caught:
        await client.call(b"GET", b"/api/v1/nodes?limit=500")
    assert str(caught.value) == (
        "GET http://api.test/api/v1/nodes: the server answered with HTML instead of JSON: is it behind a login page?"
    )


async def test_a_web_page_is_reported_once_for_all_kinds_that_are_watched(
    server: RecordingTransport,
    client: KubeClient,
    autojump_clock: MockClock,
    nursery: trio.Nursery,
    caplog: pytest.LogCaptureFixture,
) -> None:
    server.answer = httpx.Response(200, content=HTML)
    for kind in (POD_KIND, NODE_KIND):
        nursery.start_soon(partial(list_and_watch, client, kind, ignore, random=Random(0)))
    await trio.sleep(50)
    assert len(server.asked) > 5
    errors = [record.getMessage() for record in caplog.records if record.levelno > logging.DEBUG]
    assert len(errors) == 1
    assert "the server answered with HTML instead of JSON" in errors[0]
    await trio.sleep(50)
    assert len([record for record in caplog.records if record.levelno > logging.DEBUG]) == 2


def ignore(batch: Any) -> None:
    raise AssertionError("nothing can have been listed")


async def test_html_in_place_of_a_watch_is_called_that(start_server: StartServer) -> None:
    async def login(exchange: Exchange) -> None:
        await exchange.answer(HTML, headers="Content-Type: text/html; charset=utf-8\r\n")

    server = await start_server(login)
    async with connect(server.settings) as client:
        with pytest.raises(ApiError, match="the server answered with HTML instead of JSON: is it behind a login page"):
            async with client.stream(b"/api/v1/nodes?watch=true"):
                raise AssertionError("must not be reached")


async def test_a_redirect_to_a_login_page_is_named_without_what_its_query_contains(start_server: StartServer) -> None:
    async def redirect(exchange: Exchange) -> None:
        await exchange.answer(
            HTML, status=302, headers="Location: https://me:s3cr3t@login.test/auth?state=s3cr3t#s3cr3t\r\n"
        )

    server = await start_server(redirect)
    async with connect(server.settings) as client:
        with pytest.raises(ApiError) as called:
            await client.call(b"GET", b"/api/v1/nodes")
        with pytest.raises(ApiError) as streamed:
            async with client.stream(b"/api/v1/nodes?watch=true"):
                raise AssertionError("must not be reached")
    for caught in (called, streamed):
        assert str(caught.value) == (
            f"GET {server.url}/api/v1/nodes: the server redirects to https://login.test/auth: "
            "is it behind a login page?"
        )
