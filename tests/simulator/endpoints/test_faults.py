import pytest
import trio
from simulator_api import Api
from trio.testing import MockClock

from trio_sched.simulator import ApiServer
from trio_sched.simulator.endpoints.faults import ReplyDropped

PODS = "/api/v1/namespaces/default/pods"


async def test_the_next_requests_of_a_kind_fail_and_then_no_more(api: Api, server: ApiServer) -> None:
    server.faults.fail_next(2, verb="get", resource="pods", code=503, reason="ServiceUnavailable", message="busy")
    await api.create_pod("p")
    for _ in range(2):
        status = await api("GET", f"{PODS}/p", expect=503)
        assert (status["reason"], status["message"]) == ("ServiceUnavailable", "busy")
    await api("GET", f"{PODS}/p")


async def test_a_failed_request_changes_nothing_and_may_have_retry_after(api: Api, server: ApiServer) -> None:
    server.faults.fail_next(verb="create", code=429, reason="TooManyRequests", retry_after_seconds=3)
    body = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    response = await api.raw("POST", PODS, body)
    assert (response.status, response.headers["retry-after"]) == (429, "3")
    assert server.store.get("pods", "default/p") is None


async def test_a_request_whose_reply_is_dropped_takes_effect(api: Api, server: ApiServer) -> None:
    await api.create_pod("p")
    server.faults.drop_next(verb="bind")
    with pytest.raises(ReplyDropped):
        await api.bind("p", "n1")
    assert (await api.pod("p"))["spec"]["nodeName"] == "n1"


async def test_latency_delays_only_what_it_is_set_for(api: Api, server: ApiServer, autojump_clock: MockClock) -> None:
    server.faults.set_latency(5, verb="bind")
    began = trio.current_time()
    await api.create_pod("p")
    assert trio.current_time() == began
    await api.bind("p", "n1")
    assert trio.current_time() - began == pytest.approx(5)
    server.faults.set_latency(0, verb="bind")
    assert not server.faults


async def test_watches_and_lists_are_told_apart(api: Api, server: ApiServer) -> None:
    server.faults.fail_next(verb="watch")
    await api("GET", "/api/v1/pods")
    await api("GET", "/api/v1/pods?watch=true", expect=500)


async def test_clearing_removes_all_faults(api: Api, server: ApiServer) -> None:
    server.faults.fail_next(100)
    server.faults.clear()
    assert (await api("GET", "/api/v1/pods"))["items"] == []


async def test_discovery_and_access_reviews_have_no_faults(api: Api, server: ApiServer) -> None:
    server.faults.fail_next(100)
    assert (await api("GET", "/apis"))["kind"] == "APIGroupList"
    review = await api("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {}})
    assert review["status"]["allowed"] is True


async def test_reviews_that_servers_ask_for_can_fail(server: ApiServer, api: Api) -> None:
    server.faults.fail_next(resource="tokenreviews")
    review = {"spec": {"token": "t"}}
    await api("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review, expect=500)
    await api("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
