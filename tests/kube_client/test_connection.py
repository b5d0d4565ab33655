import logging

import httpx
import pytest
import trio
from attrs import evolve
from raw_server import Exchange, StartServer
from trio.testing import MockClock

import trio_sched
from trio_sched.kube_client.connection import connect, user_agent
from trio_sched.kube_client.errors import (
    ApiError,
    ConnectionFailed,
    KubeconfigError,
    NotFound,
    ServerError,
    WriteNotPermitted,
)
from trio_sched.kube_client.settings import ConnectionSettings, Impersonation, TlsSettings

SETTINGS = ConnectionSettings(server="http://api.test/prefix")


class Scripted(httpx.AsyncBaseTransport):
    """Answers in the order given, the last one forever."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[httpx.Request, float]] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await trio.lowlevel.checkpoint()
        self.asked.append((request, trio.current_time()))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)


OK = httpx.Response(200, content=b"{}")


def busy(seconds: str, status: int = 429) -> httpx.Response:
    return httpx.Response(status, headers={"Retry-After": seconds}, content=b"busy")


async def test_requests_have_a_user_agent_and_accept_json() -> None:
    server = Scripted(OK)
    async with connect(SETTINGS, transport=server) as client:
        await client.call(b"GET", b"/api/v1/nodes?limit=1")
    request, _ = server.asked[0]
    assert str(request.url) == "http://api.test/prefix/api/v1/nodes?limit=1"
    assert request.headers["accept"] == "application/json"
    assert request.headers["user-agent"] == user_agent("scheduler")
    assert user_agent("scheduler").startswith(f"trio-sched/v{trio_sched.__version__} (linux/")
    assert user_agent("leader-election").endswith("/leader-election")


async def test_retry_after_decides_the_pause_before_a_retry(autojump_clock: MockClock) -> None:
    server = Scripted(busy("2"), busy("3", 503), OK)
    async with connect(SETTINGS, transport=server) as client:
        assert await client.call(b"POST", b"/x", body=b"payload") == b"{}"
    assert [round(time - server.asked[0][1], 3) for _, time in server.asked] == [0, 2, 5]
    assert {request.content for request, _ in server.asked} == {b"payload"}


async def test_after_ten_retries_the_error_is_raised(autojump_clock: MockClock) -> None:
    server = Scripted(busy("1", 503))
    async with connect(SETTINGS, transport=server) as client:
        with pytest.raises(ServerError, match=r"currently unable to handle the request \(POST /x\): busy"):
            await client.call(b"POST", b"/x")
    assert len(server.asked) == 11


async def test_without_retry_after_nothing_is_repeated() -> None:
    server = Scripted(httpx.Response(500, content=b""))
    async with connect(SETTINGS, transport=server) as client:
        with pytest.raises(ServerError):
            await client.call(b"GET", b"/x")
    assert len(server.asked) == 1


async def test_a_read_whose_connection_broke_is_repeated_and_a_write_is_not(autojump_clock: MockClock) -> None:
    server = Scripted(httpx.ReadError("reset"), OK)
    async with connect(SETTINGS, transport=server) as client:
        assert await client.call(b"GET", b"/x") == b"{}"
    assert server.asked[1][1] - server.asked[0][1] == pytest.approx(1)
    server = Scripted(httpx.ReadError("reset"), OK)
    async with connect(SETTINGS, transport=server) as client:
        with pytest.raises(ConnectionFailed, match="reset") as caught:
            await client.call(b"POST", b"/x")
    assert caught.value.may_have_reached_server


async def test_a_refused_connection_is_not_retried() -> None:
    server = Scripted(httpx.ConnectError("refused"))
    async with connect(SETTINGS, transport=server) as client:
        with pytest.raises(ConnectionFailed) as caught:
            await client.call(b"GET", b"/x")
    assert not caught.value.may_have_reached_server
    assert len(server.asked) == 1


async def test_requests_keep_to_the_rate_and_long_waits_are_logged_once(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "trio_sched.kube_client.connection")
    server = Scripted(OK)
    async with connect(SETTINGS, qps=1, burst=1, transport=server) as client, trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(client.call, b"GET", b"/x")
    times = sorted(time for _, time in server.asked)
    assert [round(time - times[0], 3) for time in times] == [0, 1, 2, 3]
    assert len([text for text in caplog.messages if text.startswith("Waited before sending request")]) == 1


async def test_the_status_of_an_error_is_unchanged() -> None:
    body = {
        "kind": "Status",
        "status": "Failure",
        "message": 'pods "nope" not found',
        "reason": "NotFound",
        "details": {"name": "nope", "kind": "pods"},
        "code": 404,
    }
    async with connect(SETTINGS, transport=Scripted(httpx.Response(404, json=body))) as client:
        with pytest.raises(NotFound) as caught:
            await client.call(b"GET", b"/x")
    error = caught.value
    assert (error.code, error.reason, str(error)) == (404, "NotFound", 'pods "nope" not found')
    assert error.details is not None
    assert (error.details.kind, error.details.name) == ("pods", "nope")


async def test_httpx_requests_carry_the_same_identity_and_pace(autojump_clock: MockClock) -> None:
    who = Impersonation(user="jane", groups=("a", "b"))
    settings = ConnectionSettings(server="https://api.test", token="t", impersonation=who)
    server = Scripted(OK)
    async with connect(settings, qps=1, burst=1, transport=server) as client:
        for _ in range(2):
            response = await client.http.get("/version")
            assert response.json() == {}
        await client.http.get("/version", headers={"Authorization": "Bearer other"}, params={"watch": "1"})
    first, second, third = server.asked
    assert second[1] - first[1] == pytest.approx(1)
    assert third[1] == pytest.approx(second[1]), "watches are not throttled"
    assert first[0].headers["authorization"] == "Bearer t"
    assert first[0].headers.get_list("impersonate-group") == ["a", "b"]
    assert third[0].headers.get_list("authorization") == ["Bearer other"]


async def test_httpx_works_over_the_pool(start_server: StartServer) -> None:
    async def answer(exchange: Exchange) -> None:
        if "watch=1" in exchange.request.target:
            await exchange.raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\none\n\r\n")
            await exchange.raw(b"4\r\ntwo\n\r\n0\r\n\r\n")
        else:
            await exchange.answer(exchange.request.body or b"none", status=404)

    server = await start_server(answer, tls=True)
    async with connect(server.settings) as client:
        response = await client.http.post("/x", content=b"abc")
        assert (response.status_code, response.text) == (404, "abc")
        async with client.http.stream("GET", "/y", params={"watch": "1"}) as stream:
            assert [line async for line in stream.aiter_lines()] == ["one", "two"]
        assert (await client.http.get("/x")).text == "none"
    assert server.connections == 2
    assert server.requests[0].headers["host"] == server.url.removeprefix("https://")


async def test_broken_connections_are_httpx_errors_for_httpx(start_server: StartServer) -> None:
    async def drop(exchange: Exchange) -> None:
        await exchange.stream.aclose()

    server = await start_server(drop)
    async with connect(server.settings) as client:
        with pytest.raises(httpx.ReadError) as caught:
            await client.http.post("/x")
    assert isinstance(caught.value.__cause__, ConnectionFailed)


async def test_what_is_raised_inside_comes_out_without_a_group(start_server: StartServer) -> None:
    async def refuse(exchange: Exchange) -> None:
        await exchange.answer(b"", status=418)

    server = await start_server(refuse)
    with pytest.raises(ApiError, match="status code 418"):
        async with connect(server.settings) as client:
            await client.call(b"GET", b"/x")


async def test_an_unusable_certificate_is_reported_before_the_first_request() -> None:
    settings = ConnectionSettings(server="https://127.0.0.1:1", tls=TlsSettings(ca_data=b"junk"))
    with pytest.raises(KubeconfigError, match="unable to parse bytes as PEM block"):
        async with connect(settings):
            raise AssertionError("must not be reached")


async def test_refused_streams_raise_the_status_of_the_server() -> None:
    server = Scripted(httpx.Response(403, json={"kind": "Status", "message": "no", "reason": "Forbidden", "code": 403}))
    async with connect(evolve(SETTINGS, server="http://api.test"), transport=server) as client:
        with pytest.raises(ApiError, match=r"^no$"):
            async with client.stream(b"/x?watch=true"):
                raise AssertionError("must not be reached")


async def test_what_must_not_be_written_is_not_sent(autojump_clock: MockClock) -> None:
    server = Scripted(busy("2"), OK)
    allowed = True

    def check_write() -> None:
        if not allowed:
            raise WriteNotPermitted("not now")

    connected = connect(SETTINGS, transport=server, check_write=check_write)
    async with connected as client, trio.open_nursery() as nursery:

        async def write() -> None:
            with pytest.raises(WriteNotPermitted, match="not now"):
                await client.call(b"POST", b"/x")

        nursery.start_soon(write)
        await trio.sleep(1)
        allowed = False  # between the first try and the one that the server asked for
        await trio.sleep(2)
        assert len(server.asked) == 1
        assert await client.call(b"GET", b"/x") == b"{}"
