"""Claims are made from templates, and released when their pods are done."""

from typing import Any

import pytest
import trio
from simulator_api import Api
from trio.testing import MockClock

from trio_sched.documents.json_values import Json
from trio_sched.simulator import ApiServer, trio_clock
from trio_sched.simulator.controllers.devices.claims import FINALIZER, POD_CLAIM_NAME, ClaimController

GROUP = "/apis/resource.k8s.io/v1/namespaces/default"
CLAIMS = f"{GROUP}/resourceclaims"
SPEC = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}}
MERGE = "application/merge-patch+json"


@pytest.fixture
async def api(nursery: trio.Nursery, autojump_clock: MockClock) -> Api:
    api = Api(ApiServer(now=trio_clock()))
    await nursery.start(ClaimController(api.server).run)
    return api


async def make_template(api: Api, name: str = "one-gpu", **metadata: Any) -> None:
    body = {"metadata": {"name": name}, "spec": {"metadata": metadata, "spec": SPEC}}
    await api("POST", f"{GROUP}/resourceclaimtemplates", body)


async def make_pod(api: Api, name: str = "train", template: str = "one-gpu", **spec: Any) -> Json:
    return await api.create_pod(name, resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": template}], **spec)


async def claims(api: Api) -> list[Json]:
    listed: list[Json] = (await api("GET", CLAIMS))["items"]
    return listed


async def allocate(api: Api, claim: Json, *consumers: Json) -> None:
    """As the scheduler does: first the finalizer, then allocation and reservation."""
    path = f"{CLAIMS}/{claim['metadata']['name']}"
    await api("PATCH", path, {"metadata": {"finalizers": [FINALIZER]}}, content_type=MERGE)
    result = {"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}
    reserved = [
        {"resource": "pods", "name": one["metadata"]["name"], "uid": one["metadata"]["uid"]} for one in consumers
    ]
    status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": reserved}
    await api("PATCH", f"{path}/status", {"status": status}, content_type=MERGE)


async def test_a_pod_gets_a_claim_from_its_template(api: Api, autojump_clock: MockClock) -> None:
    await make_template(api, labels={"team": "a"}, annotations={"note": "x"})
    pod = await make_pod(api)
    await trio.sleep(1)
    (claim,) = await claims(api)
    metadata = claim["metadata"]
    assert metadata["name"].startswith("train-gpu-")
    assert metadata["labels"] == {"team": "a"}
    assert metadata["annotations"] == {"note": "x", POD_CLAIM_NAME: "gpu"}
    (owner,) = metadata["ownerReferences"]
    assert (owner["uid"], owner["controller"]) == (pod["metadata"]["uid"], True)
    (request,) = claim["spec"]["devices"]["requests"]
    assert request["exactly"] == {"deviceClassName": "gpu.example.com", "allocationMode": "ExactCount", "count": 1}
    assert (await api.pod("train"))["status"]["resourceClaimStatuses"] == [
        {"name": "gpu", "resourceClaimName": metadata["name"]}
    ]


async def test_a_missing_template_is_reported_and_awaited(api: Api, autojump_clock: MockClock) -> None:
    await make_pod(api)
    await trio.sleep(1)
    assert await claims(api) == []
    (event,) = (await api("GET", "/api/v1/namespaces/default/events"))["items"]
    assert event["reason"] == "FailedResourceClaimCreation"
    assert 'resource claim template "one-gpu"' in event["message"]
    await make_template(api)
    await trio.sleep(1)
    assert len(await claims(api)) == 1


async def test_names_are_cut_in_proportion(api: Api, autojump_clock: MockClock) -> None:
    await make_template(api)
    await make_pod(api, "p" * 60)
    await trio.sleep(1)
    (claim,) = await claims(api)
    name = claim["metadata"]["name"]
    assert len(name) <= 63
    assert name.startswith("ppp")
    assert "-gp" in name


async def test_a_lost_claim_is_made_again(api: Api, autojump_clock: MockClock) -> None:
    await make_template(api)
    await make_pod(api)
    await trio.sleep(1)
    (lost,) = await claims(api)
    await api("DELETE", f"{CLAIMS}/{lost['metadata']['name']}")
    await trio.sleep(1)
    (found,) = await claims(api)
    assert found["metadata"]["uid"] != lost["metadata"]["uid"]
    assert (await api.pod("train"))["status"]["resourceClaimStatuses"][0]["resourceClaimName"] == found["metadata"][
        "name"
    ]


@pytest.mark.parametrize("end", ["deleted", "succeeded"])
async def test_the_claim_of_a_pod_that_is_done_goes(api: Api, autojump_clock: MockClock, end: str) -> None:
    await make_template(api)
    pod = await make_pod(api)
    await trio.sleep(1)
    (claim,) = await claims(api)
    await allocate(api, claim, pod)
    await trio.sleep(1)
    assert (await claims(api))[0]["status"]["reservedFor"]
    if end == "deleted":
        await api("DELETE", "/api/v1/namespaces/default/pods/train")
    else:
        body = {"status": {"phase": "Succeeded"}}
        await api("PATCH", "/api/v1/namespaces/default/pods/train/status", body, content_type=MERGE)
    await trio.sleep(1)
    assert await claims(api) == []
    version = api.server.store.version
    await trio.sleep(10)
    assert api.server.store.version == version  # it is not made again


async def test_a_shared_claim_is_deallocated_when_the_last_pod_is_done_and_stays(
    api: Api, autojump_clock: MockClock
) -> None:
    claim = await api("POST", CLAIMS, {"metadata": {"name": "shared"}, "spec": SPEC})
    pods = [
        await api.create_pod(name, resourceClaims=[{"name": "gpu", "resourceClaimName": "shared"}])
        for name in ("a", "b")
    ]
    await allocate(api, claim, *pods)
    await api("DELETE", "/api/v1/namespaces/default/pods/a")
    await trio.sleep(1)
    (left,) = await claims(api)
    assert [one["name"] for one in left["status"]["reservedFor"]] == ["b"]
    assert "allocation" in left["status"]
    await api("DELETE", "/api/v1/namespaces/default/pods/b")
    await trio.sleep(1)
    (left,) = await claims(api)
    assert not left["status"].get("reservedFor")
    assert "allocation" not in left["status"]
    assert not left["metadata"].get("finalizers")


async def test_a_claim_that_is_deleted_while_it_is_in_use_goes_after_its_pod(
    api: Api, autojump_clock: MockClock
) -> None:
    claim = await api("POST", CLAIMS, {"metadata": {"name": "shared"}, "spec": SPEC})
    pod = await api.create_pod("a", resourceClaims=[{"name": "gpu", "resourceClaimName": "shared"}])
    await allocate(api, claim, pod)
    await api("DELETE", f"{CLAIMS}/shared")
    await trio.sleep(1)
    assert "deletionTimestamp" in (await claims(api))[0]["metadata"]
    await api("DELETE", "/api/v1/namespaces/default/pods/a")
    await trio.sleep(1)
    assert await claims(api) == []


async def test_a_claim_is_reserved_for_a_pod_that_has_a_node_without_a_scheduler(
    api: Api, autojump_clock: MockClock
) -> None:
    claim = await api("POST", CLAIMS, {"metadata": {"name": "shared"}, "spec": SPEC})
    await allocate(api, claim)
    pod = await api.create_pod("a", nodeName="n1", resourceClaims=[{"name": "gpu", "resourceClaimName": "shared"}])
    await trio.sleep(1)
    (found,) = await claims(api)
    assert [one["uid"] for one in found["status"]["reservedFor"]] == [pod["metadata"]["uid"]]


async def test_the_server_guards_the_status_of_claims(api: Api, autojump_clock: MockClock) -> None:
    claim = await api("POST", CLAIMS, {"metadata": {"name": "one"}, "spec": SPEC})
    path = f"{CLAIMS}/one/status"
    consumer = {"resource": "pods", "name": "a", "uid": "u"}
    refused = await api("PATCH", path, {"status": {"reservedFor": [consumer]}}, content_type=MERGE, expect=422)
    assert "may not be specified when `allocated` is not set" in refused["message"]
    await allocate(api, claim)
    other = {"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-1"}
    body = {"status": {"allocation": {"devices": {"results": [other]}}}}
    assert "field is immutable" in (await api("PATCH", path, body, content_type=MERGE, expect=422))["message"]
    body = {"metadata": {"finalizers": []}, "status": {"reservedFor": [consumer]}}
    assert (await api("PATCH", path, body, content_type=MERGE))["metadata"]["finalizers"] == [FINALIZER]


# --- pod groups -------------------------------------------------------------------------------------------------------

GROUPS = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"
ENTRY = {"name": "gpu", "resourceClaimTemplateName": "one-gpu"}


async def make_group(api: Api, name: str = "gang", *entries: Json) -> Json:
    spec = {"schedulingPolicy": {"basic": {}}, "resourceClaims": list(entries or (ENTRY,))}
    return await api("POST", GROUPS, {"metadata": {"name": name}, "spec": spec})


async def test_the_pods_of_a_group_get_the_claim_of_the_group(api: Api, autojump_clock: MockClock) -> None:
    await make_pod(api, "early", schedulingGroup={"podGroupName": "gang"})
    await trio.sleep(1)
    assert await claims(api) == []  # nobody knows yet whether it is the group's
    group = await make_group(api)
    await trio.sleep(1)
    assert await claims(api) == []
    await make_template(api)
    await make_pod(api, "late", schedulingGroup={"podGroupName": "gang"})
    await trio.sleep(1)
    (claim,) = await claims(api)
    name = claim["metadata"]["name"]
    assert name.startswith("gang-gpu-")
    (owner,) = claim["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["apiVersion"]) == ("PodGroup", "scheduling.k8s.io/v1alpha2")
    assert (owner["uid"], owner["controller"]) == (group["metadata"]["uid"], True)
    made = [{"name": "gpu", "resourceClaimName": name}]
    assert (await api("GET", f"{GROUPS}/gang"))["status"]["resourceClaimStatuses"] == made
    for pod in ("early", "late"):
        assert (await api.pod(pod))["status"]["resourceClaimStatuses"] == made


async def test_other_claims_of_a_member_are_its_own(api: Api, autojump_clock: MockClock) -> None:
    await make_template(api)
    await make_group(api, "gang", {**ENTRY, "name": "other"})
    await make_pod(api, schedulingGroup={"podGroupName": "gang"})
    await trio.sleep(1)
    owners = sorted(claim["metadata"]["ownerReferences"][0]["kind"] for claim in await claims(api))
    assert owners == ["Pod", "PodGroup"]


async def test_the_claim_of_a_group_stays_until_the_group_goes(api: Api, autojump_clock: MockClock) -> None:
    await make_template(api)
    group = await make_group(api)
    await make_pod(api, schedulingGroup={"podGroupName": "gang"})
    await trio.sleep(1)
    (claim,) = await claims(api)
    await allocate(api, claim)
    metadata = group["metadata"]
    consumer = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "gang", "uid": metadata["uid"]}
    path = f"{CLAIMS}/{claim['metadata']['name']}"
    await api("PATCH", f"{path}/status", {"status": {"reservedFor": [consumer]}}, content_type=MERGE)
    await api("DELETE", "/api/v1/namespaces/default/pods/train")
    await trio.sleep(1)
    (left,) = await claims(api)
    assert left["status"]["reservedFor"] == [consumer]
    await api("PATCH", f"{GROUPS}/gang", {"metadata": {"finalizers": None}}, content_type=MERGE)
    await api("DELETE", f"{GROUPS}/gang")
    await trio.sleep(1)
    assert await claims(api) == []


async def test_a_named_claim_is_reserved_for_the_group_of_a_pod_with_a_node(
    api: Api, autojump_clock: MockClock
) -> None:
    claim = await api("POST", CLAIMS, {"metadata": {"name": "shared"}, "spec": SPEC})
    await allocate(api, claim)
    entry = {"name": "gpu", "resourceClaimName": "shared"}
    await make_group(api, "gang", entry)
    for name in ("a", "b"):
        await api.create_pod(name, nodeName="n1", resourceClaims=[entry], schedulingGroup={"podGroupName": "gang"})
    await trio.sleep(1)
    (found,) = await claims(api)
    (reference,) = found["status"]["reservedFor"]
    assert (reference["apiGroup"], reference["resource"], reference["name"]) == (
        "scheduling.k8s.io",
        "podgroups",
        "gang",
    )
    await api("PATCH", f"{GROUPS}/gang", {"metadata": {"finalizers": None}}, content_type=MERGE)
    await api("DELETE", f"{GROUPS}/gang")
    await trio.sleep(1)
    (found,) = await claims(api)
    assert "allocation" not in found["status"]
    assert not found["status"].get("reservedFor")


async def test_a_group_whose_claim_cannot_be_made_is_told_so(api: Api, autojump_clock: MockClock) -> None:
    await make_group(api)
    await trio.sleep(1)
    (event,) = (await api("GET", "/api/v1/namespaces/default/events"))["items"]
    assert event["involvedObject"]["kind"] == "PodGroup"
    assert event["message"].startswith("PodGroupResourceClaim gpu: resource claim template")
