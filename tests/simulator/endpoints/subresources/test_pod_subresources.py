from typing import Any

import pytest
from simulator_api import Api

from trio_sched.documents.json_values import Json
from trio_sched.simulator import ApiServer

PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
MERGE = "application/merge-patch+json"


async def refused(api: Api, pod: str, body: Json, code: int) -> Json:
    status: Json = await api("POST", f"{PODS}/{pod}/binding", body, expect=code)
    return status


async def test_binding_sets_the_node_and_the_condition_and_clears_the_nomination(api: Api) -> None:
    await api.create_pod("p")
    await api("PATCH", f"{PODS}/p/status", {"status": {"nominatedNodeName": "n0"}}, content_type=MERGE)
    answer = await api.bind("p", "n1", annotations={"by": "me"}, labels={"topology": "here"})
    assert (answer["kind"], answer["status"], answer["code"]) == ("Status", "Success", 201)
    pod = await api.pod("p")
    assert pod["spec"]["nodeName"] == "n1"
    assert "nominatedNodeName" not in pod["status"]
    (condition,) = pod["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
    assert pod["metadata"]["annotations"]["by"] == "me"
    assert pod["metadata"]["labels"]["topology"] == "here"


async def test_the_node_need_not_exist(api: Api) -> None:
    await api.create_pod("p")
    await api.bind("p", "nowhere")
    assert (await api.pod("p"))["spec"]["nodeName"] == "nowhere"


async def test_a_bound_pod_cannot_be_bound_again(api: Api) -> None:
    await api.create_pod("hi")
    await api.bind("hi", "n2")
    status = await refused(api, "hi", {"target": {"name": "n2"}}, 409)
    assert status["message"] == (
        'Operation cannot be fulfilled on pods/binding "hi": pod hi is already assigned to node "n2"'
    )
    assert status["details"] == {"name": "hi", "kind": "pods/binding"}


async def test_a_binding_for_another_uid_is_refused(api: Api) -> None:
    pod = await api.create_pod("ext")
    status = await refused(api, "ext", {"metadata": {"name": "ext", "uid": "abc"}, "target": {"name": "n"}}, 409)
    assert status["message"] == (
        'Operation cannot be fulfilled on pods "ext": StorageError: invalid object, Code: 4, '
        "Key: /registry/pods/default/ext, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
        f"UID in precondition: abc, UID in object meta: {pod['metadata']['uid']}"
    )


async def test_a_binding_for_another_version_is_refused(api: Api) -> None:
    pod = await api.create_pod("ext")
    version = pod["metadata"]["resourceVersion"]
    body = {"metadata": {"name": "ext", "resourceVersion": "1"}, "target": {"name": "n"}}
    status = await refused(api, "ext", body, 409)
    assert status["message"].endswith(
        f"Precondition failed: ResourceVersion in precondition: 1, ResourceVersion in object meta: {version}"
    )
    body["metadata"] = {"name": "ext", "resourceVersion": version}
    await api("POST", f"{PODS}/ext/binding", body, expect=201)
    assert (await api.pod("ext"))["spec"]["nodeName"] == "n"


async def test_a_gated_pod_cannot_be_bound(api: Api) -> None:
    await api.create_pod("gated", schedulingGates=[{"name": "g"}])
    status = await refused(api, "gated", {"target": {"name": "n"}}, 409)
    assert status["message"] == (
        'Operation cannot be fulfilled on pods/binding "gated": pod gated has non-empty .spec.schedulingGates'
    )


async def test_a_terminating_pod_cannot_be_bound(api: Api) -> None:
    body = {
        "metadata": {"name": "x", "finalizers": ["example.com/hold"]},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    await api("POST", PODS, body)
    await api("DELETE", f"{PODS}/x")
    status = await refused(api, "x", {"target": {"name": "n"}}, 409)
    assert status["message"].endswith("pod x is being deleted, cannot be assigned to a host")


async def test_a_binding_without_a_target_is_an_error_without_a_reason(api: Api) -> None:
    await api.create_pod("p")
    status = await refused(api, "p", {"target": {}}, 500)
    assert status["message"] == "target.name: Required value"
    assert "reason" not in status


async def test_binding_an_unknown_pod_is_not_found(api: Api) -> None:
    assert (await refused(api, "nope", {"target": {"name": "n"}}, 404))["message"] == 'pods "nope" not found'


async def test_a_binding_can_be_posted_to_its_own_collection(api: Api) -> None:
    await api.create_pod("p")
    body = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
    await api("POST", "/api/v1/namespaces/default/bindings", body)
    assert (await api.pod("p"))["spec"]["nodeName"] == "n1"


async def run_pod(api: Api, name: str) -> None:
    await api.create_pod(name, labels={"app": "x"})
    await api.bind(name, "n1")
    status = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    await api("PATCH", f"{PODS}/{name}/status", status, content_type=MERGE)


async def budget(api: Api, name: str = "b", **spec: Any) -> None:
    spec = {"selector": {"matchLabels": {"app": "x"}}, **spec}
    await api("POST", BUDGETS, {"metadata": {"name": name}, "spec": spec})


async def evict(api: Api, pod: str, expect: int = 201) -> Json:
    status: Json = await api("POST", f"{PODS}/{pod}/eviction", {"metadata": {"name": pod}}, expect=expect)
    return status


async def test_an_unprotected_pod_is_evicted_gracefully_and_gets_a_condition(api: Api) -> None:
    await run_pod(api, "p")
    await evict(api, "p")
    pod = await api.pod("p")
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
    reasons = {condition["type"]: condition.get("reason") for condition in pod["status"]["conditions"]}
    assert reasons["DisruptionTarget"] == "EvictionByEvictionAPI"


@pytest.mark.parametrize("spec", [{"minAvailable": 2}, {"minAvailable": "60%"}, {"maxUnavailable": 0}])
async def test_a_budget_protects_its_pods(api: Api, spec: Json) -> None:
    await run_pod(api, "p")
    await run_pod(api, "q")
    await budget(api, **spec)
    status = await evict(api, "p", expect=429)
    assert status["reason"] == "TooManyRequests"
    assert status["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    assert status["details"]["causes"] == [
        {"reason": "DisruptionBudget", "message": "The disruption budget b needs 2 healthy pods and has 2 currently"}
    ]


async def test_a_budget_allows_as_many_disruptions_as_it_states(api: Api) -> None:
    for name in "pqr":
        await run_pod(api, name)
    await budget(api, maxUnavailable=1)
    await evict(api, "p")
    await evict(api, "q", expect=429)


async def test_a_stored_budget_status_is_used_and_counted_down(api: Api) -> None:
    await run_pod(api, "p")
    await run_pod(api, "q")
    await budget(api, minAvailable=2)
    status = {"observedGeneration": 1, "disruptionsAllowed": 1, "desiredHealthy": 2, "currentHealthy": 3}
    await api("PATCH", f"{BUDGETS}/b/status", {"status": status}, content_type=MERGE)
    await evict(api, "p")
    after = (await api("GET", f"{BUDGETS}/b"))["status"]
    assert after["disruptionsAllowed"] == 0
    assert list(after["disruptedPods"]) == ["p"]
    await evict(api, "q", expect=429)


async def test_pending_pods_are_evicted_despite_a_budget(api: Api, server: ApiServer) -> None:
    await api.create_pod("p", labels={"app": "x"})
    await budget(api, minAvailable=9)
    await evict(api, "p")
    assert server.store.get("pods", "default/p") is None


async def test_two_budgets_over_one_pod_are_an_error(api: Api) -> None:
    await run_pod(api, "p")
    await budget(api, "b1", maxUnavailable=1)
    await budget(api, "b2", maxUnavailable=1)
    assert "more than one PodDisruptionBudget" in (await evict(api, "p", expect=500))["message"]
