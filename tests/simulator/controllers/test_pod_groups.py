"""What the API server and the controller do with pod groups."""

from typing import Any

import pytest
import trio
from simulator_api import Api
from trio.testing import MockClock

from trio_sched.documents.json_values import Json
from trio_sched.simulator import ApiServer, trio_clock
from trio_sched.simulator.admission.admission import POD_GROUP_FINALIZER
from trio_sched.simulator.controllers.pod_groups import PodGroupController

GROUPS = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"


@pytest.fixture
async def api(nursery: trio.Nursery, autojump_clock: MockClock) -> Api:
    api = Api(ApiServer(now=trio_clock()))
    await nursery.start(PodGroupController(api.server).run)
    return api


async def make_group(api: Api, expect: int = 201, **spec: Any) -> Json:
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}} | spec
    return await api("POST", GROUPS, {"metadata": {"name": "gang"}, "spec": spec}, expect=expect)


async def test_a_group_is_completed(api: Api, autojump_clock: MockClock) -> None:
    body = {"metadata": {"name": "high"}, "value": 1000}
    await api("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body)
    made = await make_group(api, priorityClassName="high")
    assert made["metadata"]["finalizers"] == [POD_GROUP_FINALIZER]
    assert (made["spec"]["disruptionMode"], made["spec"]["priority"]) == ("Pod", 1000)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"schedulingPolicy": {}}, "must specify one of"),
        ({"schedulingPolicy": {"basic": {}, "gang": {"minCount": 1}}}, "exactly one of"),
        ({"schedulingPolicy": {"gang": {}}}, "minCount: Required value"),
        ({"schedulingPolicy": {"gang": {"minCount": 0}}}, "greater than or equal to 1"),
        ({"disruptionMode": "Group"}, "supported values"),
    ],
)
async def test_wrong_groups_are_refused(api: Api, autojump_clock: MockClock, spec: Json, problem: str) -> None:
    assert problem in (await make_group(api, expect=422, **spec))["message"]


async def test_a_group_of_an_unknown_priority_class_is_refused(api: Api, autojump_clock: MockClock) -> None:
    assert "no PriorityClass with name low" in (await make_group(api, expect=403, priorityClassName="low"))["message"]


async def test_the_policy_is_immutable(api: Api, autojump_clock: MockClock) -> None:
    await make_group(api)
    body = {"spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}}
    refused = await api("PATCH", f"{GROUPS}/gang", body, content_type="application/merge-patch+json", expect=422)
    assert "field is immutable" in refused["message"]


async def test_a_deleted_group_stays_until_its_pods_are_done(api: Api, autojump_clock: MockClock) -> None:
    await make_group(api)
    for name in ("a", "b"):
        await api.create_pod(name, schedulingGroup={"podGroupName": "gang"})
    await api("DELETE", f"{GROUPS}/gang")
    await trio.sleep(1)
    await api("DELETE", "/api/v1/namespaces/default/pods/a")
    await trio.sleep(1)
    assert "deletionTimestamp" in (await api("GET", f"{GROUPS}/gang"))["metadata"]
    await api("DELETE", "/api/v1/namespaces/default/pods/b")
    await trio.sleep(1)
    await api("GET", f"{GROUPS}/gang", expect=404)


async def test_a_group_without_pods_goes_at_once(api: Api, autojump_clock: MockClock) -> None:
    await make_group(api)
    await api("DELETE", f"{GROUPS}/gang")
    await trio.sleep(1)
    await api("GET", f"{GROUPS}/gang", expect=404)
