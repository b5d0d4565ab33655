import json
import logging
from collections.abc import Iterator

import httpx
import pytest
from restored_logging import restored_logging
from trio.testing import MockClock

from trio_sched.kube_client.connection import connect
from trio_sched.kube_client.errors import ConnectionFailed
from trio_sched.kube_client.http import request_log
from trio_sched.kube_client.http.request_log import shown_body, shown_headers
from trio_sched.kube_client.settings import ConnectionSettings
from trio_sched.verbosity import level_of

SETTINGS = ConnectionSettings(server="https://user:pass@cluster.test/prefix", token="abc")


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    with restored_logging():
        yield


class Replying(httpx.AsyncBaseTransport):
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/broken"):
            raise httpx.ConnectError("refused")
        return httpx.Response(201, json={"kind": "Pod", "spec": {"env": [{"name": "A", "value": "hidden"}]}})


async def logged(caplog: pytest.LogCaptureFixture, verbosity: int) -> list[logging.LogRecord]:
    caplog.clear()
    caplog.set_level(level_of(verbosity), request_log.log.name)
    async with connect(SETTINGS, transport=Replying()) as client:
        await client.call(b"POST", b"/x", body=b'{"a":1}')
    return [record for record in caplog.records if record.name == request_log.log.name]


async def test_each_level_says_more_of_a_request(caplog: pytest.LogCaptureFixture, autojump_clock: MockClock) -> None:
    assert await logged(caplog, 5) == []
    (response,) = map(vars, await logged(caplog, 6))
    url = "https://<masked>@cluster.test/prefix/x"
    expected = {"levelname": "V6", "msg": "Response", "verb": "POST", "url": url, "status": "201 Created"}
    assert expected.items() <= response.items()
    assert response["milliseconds"] == 0
    assert "headers" not in response
    request, response = map(vars, await logged(caplog, 7))
    assert request["headers"]["Authorization"] == "Bearer <masked>"
    assert (request["verb"], request["url"], response["status"]) == ("POST", url, "201 Created")
    request, body, response, reply = map(vars, await logged(caplog, 8))
    assert response["headers"]["content-type"] == "application/json"
    assert (body["msg"], body["body"]) == ("Request Body", '{"a":1}')
    assert json.loads(reply["body"])["spec"]["env"] == [{"name": "A", "value": "<masked>"}]
    request, _body, response, _reply = map(vars, await logged(caplog, 9))
    assert request["curlCommand"].startswith('curl -v -XPOST -H "')
    assert "abc" not in request["curlCommand"]
    assert response["url"] == url


async def test_a_request_without_a_response_is_logged_too(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(level_of(6), request_log.log.name)
    async with connect(SETTINGS, transport=Replying()) as client:
        with pytest.raises(ConnectionFailed):
            await client.call(b"GET", b"/broken")
        with pytest.raises(ConnectionFailed):
            async with client.stream(b"/broken"):
                pass
    errors = [vars(record)["err"] for record in caplog.records if record.name == request_log.log.name]
    assert len(errors) == 2
    assert all("refused" in error for error in errors)


async def test_requests_through_httpx_are_logged_as_well(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(level_of(7), request_log.log.name)
    async with connect(SETTINGS, transport=Replying()) as client:
        await client.http.get("/y")
    request, response = (vars(record) for record in caplog.records if record.name == request_log.log.name)
    assert request["headers"]["Authorization"] == "Bearer <masked>"
    assert response["status"] == "201 Created"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("Bearer abc", "Bearer <masked>"),
        ("Basic abc", "Basic <masked>"),
        ("abc", "<masked>"),
        ("Custom abc", "<masked>"),
    ],
)
def test_of_an_authorization_only_its_type_is_shown(value: str, shown: str) -> None:
    assert shown_headers([(b"authorization", value.encode())]) == {"authorization": shown}


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b'{"kind":"Secret","data":{"a":"b"},"type":"x"}', '{"kind":"Secret","data":"<masked>","type":"x"}'),
        (b'{"items":[{"kind":"Secret","stringData":{}}]}', '{"items":[{"kind":"Secret","stringData":"<masked>"}]}'),
        (b'{"spec":{"token":"abc"}}', '{"spec":{"token":"<masked>"}}'),
        (b'{"client-key-data":"abc","password":""}', '{"client-key-data":"<masked>","password":""}'),
        (b'{"secretName":"name","tokenReview":{"a":1}}', '{"secretName":"name","tokenReview":{"a":1}}'),
        (b'{"env":[{"name":"A","value":"v"}]}', '{"env":[{"name":"A","value":"<masked>"}]}'),
        (b"[1,null,true]", "[1,null,true]"),
        (b"\xff\xfe", "<2 bytes, no JSON>"),
        (b"[" * 100_000, "<100000 bytes, no JSON>"),
        (b'"' + b"x" * 300_000 + b'"', "<300002 bytes>"),
    ],
)
def test_bodies_are_shown_without_secrets(body: bytes, shown: str) -> None:
    assert shown_body(body) == shown
