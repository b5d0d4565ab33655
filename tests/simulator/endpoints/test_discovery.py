import pytest
from simulator_api import Api

from trio_sched.simulator.endpoints.negotiation import AGGREGATED_DISCOVERY


async def test_the_groups_and_their_versions_are_listed(api: Api) -> None:
    groups = {group["name"]: group for group in (await api("GET", "/apis"))["groups"]}
    assert groups["apps"]["preferredVersion"] == {"groupVersion": "apps/v1", "version": "v1"}
    assert groups["resource.k8s.io"]["versions"][0]["version"] == "v1"
    assert (await api("GET", "/api"))["versions"] == ["v1"]
    assert (await api("GET", "/apis/policy"))["preferredVersion"]["groupVersion"] == "policy/v1"


async def test_resources_tell_their_names_and_subresources(api: Api) -> None:
    listed = {entry["name"]: entry for entry in (await api("GET", "/api/v1"))["resources"]}
    assert listed["pods"]["shortNames"] == ["po"]
    assert listed["pods"]["namespaced"] is True
    assert listed["nodes"]["namespaced"] is False
    assert listed["pods/eviction"]["group"] == "policy"
    assert listed["pods/binding"]["verbs"] == ["create"]
    assert "pods/status" in listed


async def test_aggregated_discovery_says_the_same_at_once(api: Api) -> None:
    response = await api.raw("GET", "/apis", accept=f"{AGGREGATED_DISCOVERY},application/json")
    assert response.headers["content-type"] == AGGREGATED_DISCOVERY
    whole = await api("GET", "/apis", accept=AGGREGATED_DISCOVERY)
    assert whole["kind"] == "APIGroupDiscoveryList"
    for group in whole["items"]:
        for version in group["versions"]:
            path = f"/apis/{group['metadata']['name']}/{version['version']}"
            plain = await api("GET", path)
            names = {entry["name"] for entry in plain["resources"] if "/" not in entry["name"]}
            assert {entry["resource"] for entry in version["resources"]} == names


@pytest.mark.parametrize(
    "path", ["/nowhere", "/apis/none.example.com", "/apis/apps/v9", "/api/v9", "/openapi/v3/apis/apps/v9"]
)
async def test_what_is_not_served_is_not_found(api: Api, path: str) -> None:
    response = await api.raw("GET", path)
    assert (response.status, response.body) == (404, b"404 page not found\n")


async def test_openapi_tells_kubectl_that_fields_are_validated_here(api: Api) -> None:
    index = (await api("GET", "/openapi/v3"))["paths"]
    url = index["apis/apps/v1"]["serverRelativeURL"]
    document = await api("GET", url)
    patch = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert "fieldValidation" in [parameter["name"] for parameter in patch["parameters"]]
