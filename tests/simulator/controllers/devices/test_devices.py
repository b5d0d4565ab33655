"""Devices declared on nodes are published, prepared, and fail; pods that do not tolerate that are evicted."""

from typing import Any

import msgspec
import pytest
import trio
from simulator_api import Api
from trio.testing import MockClock

from trio_sched.documents.json_values import Json
from trio_sched.simulator import ApiServer, trio_clock
from trio_sched.simulator.controllers.devices.device_eviction import DeviceTaintEviction
from trio_sched.simulator.controllers.devices.devices import DEVICES, FAILED, DeviceDrivers, read_devices

SLICES = "/apis/resource.k8s.io/v1/resourceslices"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
MERGE = "application/merge-patch+json"
DRIVER = "gpu.example.com"


@pytest.fixture
async def api(nursery: trio.Nursery, autojump_clock: MockClock) -> Api:
    api = Api(ApiServer(now=trio_clock()))
    await nursery.start(DeviceDrivers(api.server).run)
    await nursery.start(DeviceTaintEviction(api.server).run)
    return api


def declared(**fields: Any) -> dict[str, str]:
    return {DEVICES: msgspec.json.encode({DRIVER: fields}).decode()}


async def make_node(api: Api, **fields: Any) -> None:
    await api("POST", "/api/v1/nodes", {"metadata": {"name": "n1", "annotations": declared(**fields)}})
    await trio.sleep(1)


async def annotate(api: Api, **fields: Any) -> None:
    await api("PATCH", "/api/v1/nodes/n1", {"metadata": {"annotations": declared(**fields)}}, content_type=MERGE)
    await trio.sleep(1)


async def slices(api: Api) -> list[Json]:
    listed: list[Json] = (await api("GET", SLICES))["items"]
    return listed


async def test_devices_are_published_and_withdrawn_with_their_node(api: Api, autojump_clock: MockClock) -> None:
    await make_node(api, count=2, device={"attributes": {"model": {"string": "a100"}}})
    (found,) = await slices(api)
    spec = found["spec"]
    assert (spec["driver"], spec["nodeName"]) == (DRIVER, "n1")
    assert spec["pool"] == {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    assert spec["devices"] == [
        {"name": name, "attributes": {"model": {"string": "a100"}}} for name in ("gpu-0", "gpu-1")
    ]
    await annotate(api, count=3)
    (found,) = await slices(api)
    assert (found["spec"]["pool"]["generation"], len(found["spec"]["devices"])) == (2, 3)
    await annotate(api, count=3)
    assert (await slices(api))[0]["spec"]["pool"]["generation"] == 2
    await api("DELETE", "/api/v1/nodes/n1")
    await trio.sleep(1)
    assert await slices(api) == []


async def test_devices_fail_at_once_or_later(api: Api, autojump_clock: MockClock) -> None:
    await make_node(api, count=3, failed=["gpu-1"], failAfterSeconds={"gpu-2": 60})

    async def failed() -> list[str]:
        devices = (await slices(api))[0]["spec"]["devices"]
        return [one["name"] for one in devices if any(t["key"] == FAILED for t in one.get("taints") or ())]

    assert await failed() == ["gpu-1"]
    await trio.sleep(60)
    assert await failed() == ["gpu-1", "gpu-2"]
    await annotate(api, count=3)
    assert await failed() == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("7", "no mapping"),
        ("a: 7", "count is expected"),
        ("a: {}", "count must be a whole number"),
        ("a: {count: 1000}", "from 0 to 128"),
        ("a: {count: true}", "whole number"),
        ("a: {count: 1, cuont: 2}", "unknown field cuont"),
        ("a: {count: 1, device: 7}", "device must be a mapping"),
        ("a: {count: 1, failed: gpu-0}", "must be a list"),
        ("a: {count: 1, failAfterSeconds: {gpu-0: soon}}", "to seconds"),
        ("a: [", "line 1"),
    ],
)
def test_wrong_declarations_say_what_is_wrong(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_devices(text)


async def test_a_wrong_annotation_costs_its_own_devices_only(
    api: Api, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    body = {"metadata": {"name": "n0", "annotations": {DEVICES: "7"}}}
    await api("POST", "/api/v1/nodes", body)
    await make_node(api, count=1)
    assert [one["spec"]["nodeName"] for one in await slices(api)] == ["n1"]
    assert "node n0: annotation trio-sched.dev/devices is ignored" in caplog.text


async def use(api: Api, name: str, device: str, **result: Any) -> None:
    """A pod on the node, with a claim of one device."""
    requests = [{"name": "gpu", "exactly": {"deviceClassName": DRIVER}}]
    await api("POST", CLAIMS, {"metadata": {"name": name}, "spec": {"devices": {"requests": requests}}})
    pod = await api.create_pod(name, nodeName="n1", resourceClaims=[{"name": "gpu", "resourceClaimName": name}])
    allocated = {"request": "gpu", "driver": DRIVER, "pool": "n1", "device": device, **result}
    consumer = {"resource": "pods", "name": name, "uid": pod["metadata"]["uid"]}
    status = {"allocation": {"devices": {"results": [allocated]}}, "reservedFor": [consumer]}
    await api("PATCH", f"{CLAIMS}/{name}/status", {"status": status}, content_type=MERGE)
    await trio.sleep(1)


async def conditions(api: Api, name: str) -> dict[str, str]:
    (device,) = (await api("GET", f"{CLAIMS}/{name}"))["status"]["devices"]
    return {one["type"]: one["status"] for one in device["conditions"]}


async def test_allocated_devices_are_prepared(api: Api, autojump_clock: MockClock) -> None:
    await make_node(api, count=2, failed=["gpu-1"])
    binding = {"bindingConditions": ["Attached"], "bindingFailureConditions": ["Broken"]}
    await use(api, "good", "gpu-0", **binding)
    assert await conditions(api, "good") == {"Attached": "True", "Ready": "True"}
    await use(api, "bad", "gpu-1", **binding)
    assert await conditions(api, "bad") == {"Broken": "True", "Ready": "False"}


async def test_pods_of_failed_devices_are_evicted_unless_they_tolerate_it(api: Api, autojump_clock: MockClock) -> None:
    await make_node(api, count=4)
    await use(api, "other", "gpu-0")
    await use(api, "lost", "gpu-1")
    await use(api, "patient", "gpu-2", tolerations=[{"operator": "Exists"}])
    await use(api, "for-a-while", "gpu-3", tolerations=[{"operator": "Exists", "tolerationSeconds": 30}])
    await annotate(api, count=4, failed=["gpu-1", "gpu-2", "gpu-3"])

    async def terminating() -> set[str]:
        pods = (await api("GET", "/api/v1/namespaces/default/pods"))["items"]
        return {one["metadata"]["name"] for one in pods if "deletionTimestamp" in one["metadata"]}

    assert await terminating() == {"lost"}
    pod = await api.pod("lost")
    assert [c["reason"] for c in pod["status"]["conditions"]] == ["DeletionByDeviceTaintManager"]
    await trio.sleep(30)
    assert await terminating() == {"lost", "for-a-while"}


async def test_pods_that_share_a_failed_device_as_a_group_are_evicted(api: Api, autojump_clock: MockClock) -> None:
    await make_node(api, count=1)
    await use(api, "first", "gpu-0")
    path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/first/status"
    group = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "gang", "uid": "g"}
    await api("PATCH", path, {"status": {"reservedFor": [group]}}, content_type=MERGE)
    entry, gang = {"name": "gpu", "resourceClaimName": "first"}, {"podGroupName": "gang"}
    await api.create_pod("member", resourceClaims=[entry], schedulingGroup=gang, nodeName="n1")
    await api.create_pod("without", schedulingGroup=gang, nodeName="n1")
    await api.create_pod("elsewhere", resourceClaims=[entry], schedulingGroup={"podGroupName": "x"}, nodeName="n1")
    await annotate(api, count=1, failed=["gpu-0"])
    pods = (await api("GET", "/api/v1/namespaces/default/pods"))["items"]
    assert {one["metadata"]["name"] for one in pods if "deletionTimestamp" in one["metadata"]} == {"member"}
