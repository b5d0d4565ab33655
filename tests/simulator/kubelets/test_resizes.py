import pytest
import trio
from simulator_api import Api
from trio.testing import MockClock

from trio_sched.documents.json_values import Json
from trio_sched.simulator import ApiServer, run_kubelets, trio_clock

PODS = "/api/v1/namespaces/default/pods"
STRATEGIC = "application/strategic-merge-patch+json"


def resources(cpu: str, **more: str) -> Json:
    return {"requests": {"cpu": cpu, "memory": "64Mi", **more}}


async def resize(api: Api, name: str, wanted: Json, expect: int = 200) -> Json:
    body = {"spec": {"containers": [{"name": "main", "resources": wanted}]}}
    return await api("PATCH", f"{PODS}/{name}/resize", body, content_type=STRATEGIC, expect=expect)


async def running(api: Api, name: str, wanted: Json) -> None:
    await api.create_pod(name, containers=[{"name": "main", "image": "app:1", "resources": wanted}])
    await api.bind(name, "n")
    await trio.sleep(2)


@pytest.fixture
async def cluster(nursery: trio.Nursery, autojump_clock: MockClock) -> Api:
    api = Api(ApiServer(now=trio_clock()))
    await nursery.start(run_kubelets, api.server)
    capacity = {"cpu": "2", "memory": "1Gi", "pods": "10"}
    await api("POST", "/api/v1/nodes", {"metadata": {"name": "n"}, "status": {"capacity": capacity}})
    return api


def pending(pod: Json) -> list[Json]:
    return [one for one in pod["status"]["conditions"] if one["type"] == "PodResizePending"]


async def test_a_running_pod_is_resized_in_place(cluster: Api, autojump_clock: MockClock) -> None:
    await running(cluster, "p", resources("500m"))
    changed = await resize(cluster, "p", resources("1500m"))
    assert changed["spec"]["containers"][0]["resources"] == resources("1500m")
    assert changed["spec"]["containers"][0]["image"] == "app:1"
    assert changed["metadata"]["generation"] == 2
    await trio.sleep(2)
    pod = await cluster.pod("p")
    (status,) = pod["status"]["containerStatuses"]
    assert (status["resources"], status["allocatedResources"]) == (resources("1500m"), resources("1500m")["requests"])
    assert pod["status"]["phase"] == "Running"
    assert pending(pod) == []


async def test_without_room_containers_keep_what_they_have(cluster: Api, autojump_clock: MockClock) -> None:
    await running(cluster, "p", resources("500m"))
    await running(cluster, "other", resources("1"))
    await resize(cluster, "p", resources("1500m"))
    await trio.sleep(2)
    pod = await cluster.pod("p")
    (condition,) = pending(pod)
    assert (condition["status"], condition["reason"], condition["message"]) == (
        "True",
        "Deferred",
        "Node didn't have enough resource: cpu, requested: 1500, used: 1000, capacity: 2000",
    )
    assert pod["status"]["containerStatuses"][0]["allocatedResources"]["cpu"] == "500m"
    await resize(cluster, "other", resources("400m"))
    await trio.sleep(4)
    pod = await cluster.pod("p")
    assert pending(pod) == []
    assert pod["status"]["containerStatuses"][0]["allocatedResources"]["cpu"] == "1500m"


async def test_room_comes_from_pods_that_go_and_from_nodes_that_grow(cluster: Api, autojump_clock: MockClock) -> None:
    await running(cluster, "p", resources("500m"))
    await running(cluster, "other", resources("1"))
    await resize(cluster, "p", resources("1900m"))
    await trio.sleep(2)
    assert pending(await cluster.pod("p"))
    await cluster("DELETE", f"{PODS}/other")
    await trio.sleep(40)
    assert not pending(await cluster.pod("p"))
    await resize(cluster, "p", resources("3"))
    await trio.sleep(2)
    assert pending(await cluster.pod("p"))
    status = {"status": {"allocatable": {"cpu": "4"}, "capacity": {"cpu": "4"}}}
    await cluster("PATCH", "/api/v1/nodes/n/status", status, content_type=STRATEGIC)
    await trio.sleep(2)
    assert not pending(await cluster.pod("p"))


async def test_a_pod_that_waits_for_room_may_shrink_again(cluster: Api, autojump_clock: MockClock) -> None:
    await running(cluster, "p", resources("500m"))
    await resize(cluster, "p", resources("5"))
    await trio.sleep(2)
    await resize(cluster, "p", resources("300m"))
    await trio.sleep(2)
    pod = await cluster.pod("p")
    assert pending(pod) == []
    assert pod["status"]["containerStatuses"][0]["allocatedResources"]["cpu"] == "300m"


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        ({"requests": {"cpu": None}}, "spec.containers[0].resources.requests: Forbidden: resource requests cannot be"),
        (resources("1", **{"example.com/gpu": "1"}), "spec: Forbidden: only cpu and memory resources are mutable"),
        ({"requests": {"cpu": "500m", "memory": "64Mi"}, "limits": {"cpu": "500m", "memory": "64Mi"}}, "QOS Class"),
        ({"requests": {"cpu": "x"}}, "quantities must match"),
        ({"requests": {"cpu": "-1"}}, "must be greater than or equal to 0"),
    ],
)
async def test_what_is_no_resize_is_refused(api: Api, wanted: Json, problem: str) -> None:
    await api.create_pod("p", containers=[{"name": "main", "image": "app:1", "resources": resources("500m")}])
    body = {"spec": {"containers": [{"name": "main", "resources": wanted}]}}
    answer = await api.raw("PATCH", f"{PODS}/p/resize", body, content_type=STRATEGIC)
    assert answer.status in (400, 422)
    assert isinstance(answer.body, bytes)
    assert problem.encode() in answer.body


async def test_other_fields_are_left_as_they_are_and_other_containers_are_refused(api: Api) -> None:
    await api.create_pod("p", containers=[{"name": "main", "image": "app:1", "resources": resources("500m")}])
    pod = await api.pod("p")
    pod["spec"]["containers"][0] |= {"image": "other:2", "resources": resources("1")}
    pod["spec"]["priority"] = 7
    changed = await api("PUT", f"{PODS}/p/resize", pod)
    assert changed["spec"]["containers"][0]["image"] == "app:1"
    assert changed["spec"]["priority"] == 0
    changed["spec"]["containers"].append({"name": "more", "image": "app:1"})
    refused = await api("PUT", f"{PODS}/p/resize", changed, expect=422)
    assert "spec.containers: Forbidden: containers may not be added or removed on resize" in refused["message"]


async def test_a_resize_keeps_to_quotas(api: Api) -> None:
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"requests.cpu": "1"}}}
    await api("POST", "/api/v1/namespaces/default/resourcequotas", quota)
    await api.create_pod("p", containers=[{"name": "main", "image": "app:1", "resources": resources("500m")}])
    assert "exceeded quota: q" in (await resize(api, "p", resources("2"), expect=403))["message"]
    await resize(api, "p", resources("900m"))
