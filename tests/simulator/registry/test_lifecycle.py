from typing import Any

import pytest
from simulator_api import Api

from trio_sched.documents.json_values import Json
from trio_sched.simulator import ApiServer

PODS = "/api/v1/namespaces/default/pods"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"


async def config_map(api: Api, name: str, namespace: str = "default", **metadata: Any) -> Json:
    made: Json = await api(
        "POST", f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": name, **metadata}}
    )
    return made


async def test_an_unbound_pod_is_deleted_at_once(api: Api, server: ApiServer) -> None:
    await api.create_pod("p")
    gone = await api("DELETE", f"{PODS}/p")
    assert gone["kind"] == "Pod"
    assert server.store.get("pods", "default/p") is None


async def test_a_bound_pod_waits_for_its_kubelet(api: Api) -> None:
    await api.create_pod("p")
    await api.bind("p", "n1")
    await api("DELETE", f"{PODS}/p")
    metadata = (await api.pod("p"))["metadata"]
    assert metadata["deletionTimestamp"] == "2026-01-01T00:00:30Z"
    assert metadata["deletionGracePeriodSeconds"] == 30
    assert metadata["generation"] == 2


async def test_a_grace_period_can_be_shortened_but_not_extended(api: Api) -> None:
    await api.create_pod("p")
    await api.bind("p", "n1")
    await api("DELETE", f"{PODS}/p")
    await api("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 5})
    await api("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 50})
    metadata = (await api.pod("p"))["metadata"]
    assert (metadata["deletionTimestamp"], metadata["deletionGracePeriodSeconds"]) == ("2026-01-01T00:00:05Z", 5)


@pytest.mark.parametrize("options", [{"gracePeriodSeconds": 0}, None])
async def test_a_grace_period_of_zero_deletes_at_once(api: Api, server: ApiServer, options: Json | None) -> None:
    await api.create_pod("p")
    await api.bind("p", "n1")
    await api("DELETE", f"{PODS}/p" + ("" if options else "?gracePeriodSeconds=0"), options)
    assert server.store.get("pods", "default/p") is None


async def test_a_finished_pod_is_deleted_at_once(api: Api, server: ApiServer) -> None:
    await api.create_pod("p")
    await api.bind("p", "n1")
    await api("PATCH", f"{PODS}/p/status", {"status": {"phase": "Failed"}}, content_type=MERGE)
    await api("DELETE", f"{PODS}/p")
    assert server.store.get("pods", "default/p") is None


@pytest.mark.parametrize(
    ("preconditions", "words"),
    [
        ({"uid": "other"}, "UID in precondition: other"),
        ({"resourceVersion": "1"}, "ResourceVersion in precondition: 1"),
    ],
)
async def test_preconditions_hold_or_nothing_happens(api: Api, preconditions: Json, words: str) -> None:
    await api.create_pod("p")
    status = await api("DELETE", f"{PODS}/p", {"preconditions": preconditions}, expect=409)
    assert words in status["message"]
    await api.pod("p")


async def test_met_preconditions_let_the_deletion_through(api: Api) -> None:
    metadata = (await api.create_pod("p"))["metadata"]
    conditions = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
    await api("DELETE", f"{PODS}/p", {"preconditions": conditions, "propagationPolicy": "Background"})
    await api("GET", f"{PODS}/p", expect=404)


async def test_other_kinds_answer_with_a_status(api: Api) -> None:
    made = await config_map(api, "c")
    status = await api("DELETE", f"{CONFIG_MAPS}/c")
    assert status["status"] == "Success"
    assert status["details"] == {"name": "c", "kind": "configmaps", "uid": made["metadata"]["uid"]}


async def test_an_object_stays_until_its_finalizers_are_removed(api: Api) -> None:
    await config_map(api, "c", finalizers=["example.com/hold"])
    marked = await api("DELETE", f"{CONFIG_MAPS}/c")
    assert marked["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:00Z"
    await api("PATCH", f"{CONFIG_MAPS}/c", {"metadata": {"finalizers": None}}, content_type=MERGE)
    await api("GET", f"{CONFIG_MAPS}/c", expect=404)


async def test_a_collection_is_deleted_by_selector(api: Api) -> None:
    await config_map(api, "a", labels={"x": "1"})
    await config_map(api, "b")
    await config_map(api, "c", namespace="kube-system", labels={"x": "1"})
    await api("DELETE", f"{CONFIG_MAPS}?labelSelector=x%3D1")
    left = await api("GET", "/api/v1/configmaps")
    assert [item["metadata"]["name"] for item in left["items"]] == ["b", "c"]


async def test_a_namespace_carries_its_own_name_as_a_label(api: Api) -> None:
    made = await api("POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": "shop"}
    assert made["status"] == {"phase": "Active"}


async def test_deleting_a_namespace_deletes_its_content(api: Api, server: ApiServer) -> None:
    await api("POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})
    await config_map(api, "c", namespace="shop")
    await api.create_pod("p", namespace="shop")
    await api("DELETE", "/api/v1/namespaces/shop")
    await api("GET", "/api/v1/namespaces/shop", expect=404)
    assert server.store.get("configmaps", "shop/c") is None
    assert server.store.get("pods", "shop/p") is None


async def test_a_namespace_waits_for_terminating_pods(api: Api) -> None:
    await api("POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})
    await api.create_pod("p", namespace="shop", nodeName="n1")
    await api("DELETE", "/api/v1/namespaces/shop")
    assert (await api("GET", "/api/v1/namespaces/shop"))["status"]["phase"] == "Terminating"
    status = await api("POST", "/api/v1/namespaces/shop/configmaps", {"metadata": {"name": "c"}}, expect=403)
    assert "unable to create new content in namespace shop because it is being terminated" in status["message"]
    assert status["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    await api("DELETE", "/api/v1/namespaces/shop/pods/p", {"gracePeriodSeconds": 0})
    await api("GET", "/api/v1/namespaces/shop", expect=404)


async def test_system_namespaces_cannot_be_deleted(api: Api) -> None:
    status = await api("DELETE", "/api/v1/namespaces/kube-system", expect=403)
    assert status["message"] == 'namespaces "kube-system" is forbidden: this namespace may not be deleted'
