import httpx
import pytest
import trio
from trio.testing import MockClock

from trio_sched.daemon.metrics.families.exposed import Value
from trio_sched.daemon.metrics.requests import MAX_METHODS, RequestLog, RequestLogs
from trio_sched.daemon.metrics.series import client_series
from trio_sched.engine.hooks.histogram import Histogram
from trio_sched.kube_client.connection import KubeClient, connect
from trio_sched.kube_client.errors import ApiError
from trio_sched.kube_client.settings import ConnectionSettings
from trio_sched.simulator import ApiServer, InProcessTransport

PODS = b"/api/v1/namespaces/default/pods"


def series(*logs: RequestLog) -> dict[tuple[str, ...], Value]:
    return {(name, *labels): value for name, found in client_series.requests(logs) for labels, value in found}


def histogram(found: dict[tuple[str, ...], Value], *key: str) -> Histogram:
    value = found[key]
    assert isinstance(value, Histogram)
    return value


@pytest.fixture
def log(request_logs: RequestLogs) -> RequestLog:
    return request_logs.of("http://api.test")


async def test_requests_are_counted_by_status_and_measured(
    api: ApiServer, client: KubeClient, log: RequestLog, autojump_clock: MockClock
) -> None:
    api.faults.set_latency(3.0)
    body = await client.call(b"GET", PODS)
    with pytest.raises(ApiError):
        await client.call(b"GET", PODS + b"/nobody")
    with pytest.raises(ApiError):
        await client.call(b"POST", PODS, body=b"nonsense")
    found = series(log)
    assert found["rest_client_requests_total", "200", "api.test", "GET"] == 1
    assert found["rest_client_requests_total", "404", "api.test", "GET"] == 1
    durations = histogram(found, "rest_client_request_duration_seconds", "api.test", "GET")
    assert (durations.count, durations.sum) == (2, pytest.approx(6.0))
    assert histogram(found, "rest_client_request_size_bytes", "api.test", "POST").sum == len(b"nonsense")
    assert histogram(found, "rest_client_response_size_bytes", "api.test", "GET").sum > len(body)


async def test_every_try_of_a_request_that_is_repeated_is_a_request(
    api: ApiServer, client: KubeClient, log: RequestLog, autojump_clock: MockClock
) -> None:
    api.faults.fail_next(2, code=429, reason="TooManyRequests", retry_after_seconds=1)
    await client.call(b"GET", PODS)
    found = series(log)
    assert found["rest_client_requests_total", "429", "api.test", "GET"] == 2
    assert found["rest_client_requests_total", "200", "api.test", "GET"] == 1
    assert found["rest_client_request_retries_total", "429", "api.test", "GET"] == 2


async def test_a_request_without_a_response_is_an_error(
    api: ApiServer, client: KubeClient, log: RequestLog, autojump_clock: MockClock
) -> None:
    api.faults.drop_next(1)
    await client.call(b"GET", PODS)
    found = series(log)
    assert found["rest_client_requests_total", "<error>", "api.test", "GET"] == 1
    assert found["rest_client_request_retries_total", "<error>", "api.test", "GET"] == 1
    assert found["rest_client_requests_total", "200", "api.test", "GET"] == 1


async def test_a_watch_is_measured_to_its_first_byte(
    client: KubeClient, log: RequestLog, autojump_clock: MockClock
) -> None:
    async with client.stream(PODS + b"?watch=true&timeoutSeconds=30"):
        await trio.sleep(10)
    found = series(log)
    assert found["rest_client_requests_total", "200", "api.test", "GET"] == 1
    assert histogram(found, "rest_client_request_duration_seconds", "api.test", "GET").sum < 1


async def test_waiting_for_the_rate_limit_is_measured_apart(api: ApiServer, autojump_clock: MockClock) -> None:
    settings = ConnectionSettings(server="http://api.test")
    log = RequestLog("api.test")
    async with connect(settings, qps=1, burst=1, transport=InProcessTransport(api), observer=log) as client:
        for _ in range(3):
            await client.call(b"GET", PODS)
    found = series(log)
    waited = histogram(found, "rest_client_rate_limiter_duration_seconds", "api.test", "GET")
    assert (waited.count, waited.sum) == (3, pytest.approx(2.0))
    assert waited.counts[0] == 1
    again = histogram(series(log), "rest_client_rate_limiter_duration_seconds", "api.test", "GET")
    assert again.count == 3


async def test_requests_through_httpx_are_requests(api: ApiServer, autojump_clock: MockClock) -> None:
    settings = ConnectionSettings(server="http://api.test")
    log = RequestLog("api.test")
    async with connect(settings, qps=1, burst=1, transport=InProcessTransport(api), observer=log) as client:
        await client.http.get(PODS.decode())
        await client.http.post(PODS.decode(), content=b"nonsense")
        api.stop()
        with pytest.raises(httpx.TransportError):
            await client.http.get(PODS.decode())
    found = series(log)
    assert found["rest_client_requests_total", "200", "api.test", "GET"] == 1
    assert found["rest_client_requests_total", "400", "api.test", "POST"] == 1
    assert found["rest_client_requests_total", "<error>", "api.test", "GET"] == 1
    assert histogram(found, "rest_client_request_size_bytes", "api.test", "POST").sum == len(b"nonsense")
    waited = histogram(found, "rest_client_rate_limiter_duration_seconds", "api.test", "GET")
    assert (waited.count, waited.sum) == (2, pytest.approx(1.0))


def test_ever_new_methods_take_no_more_memory() -> None:
    log = RequestLog("api.test")
    for number in range(1000):
        method = b"METHOD-%d" % number
        log.request_done(method, 200, seconds=0.1, waited_seconds=0.0, sent_bytes=0, received_bytes=0)
        log.request_retried(method, 0)
    assert len(log.methods) == MAX_METHODS + 1
    found = series(log)
    assert found["rest_client_requests_total", "200", "api.test", "OTHER"] == 1000 - MAX_METHODS
    assert found["rest_client_request_retries_total", "<error>", "api.test", "OTHER"] == 1000 - MAX_METHODS


def test_the_requests_of_several_clients_to_one_host_are_added_up() -> None:
    logs = [RequestLog("a"), RequestLog("a"), RequestLog("b")]
    for log in logs:
        log.request_done(b"GET", 200, seconds=0.1, waited_seconds=0.0, sent_bytes=10, received_bytes=20)
    found = series(*logs)
    assert found["rest_client_requests_total", "200", "a", "GET"] == 2
    assert histogram(found, "rest_client_request_size_bytes", "a", "GET").sum == 20
    assert histogram(found, "rest_client_request_size_bytes", "b", "GET").sum == 10
    assert logs[0].methods[b"GET"].sent_bytes.sum == 10  # reading changes nothing
