"""What kubectl asks for besides objects: usage, fields, tokens, containers."""

from typing import Any

import pytest
from simulator_api import Api

PODS = "/api/v1/namespaces/default/pods"
METRICS = "/apis/metrics.k8s.io/v1beta1"
HPA = "namespaces/default/horizontalpodautoscalers"


async def running_pod(api: Api, name: str, **more: Any) -> None:
    resources = {"requests": {"cpu": "500m", "memory": "1Gi"}}
    body = {
        "metadata": {"name": name, **more},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i", "resources": resources}]},
    }
    await api("POST", PODS, body)
    patch = {"status": {"phase": "Running"}}
    await api("PATCH", f"{PODS}/{name}/status", patch, content_type="application/merge-patch+json")


async def test_pods_use_what_they_request_unless_they_say_otherwise(api: Api) -> None:
    await api("POST", "/api/v1/nodes", {"metadata": {"name": "n"}})
    await running_pod(api, "plain")
    await running_pod(api, "told", annotations={"trio-sched.dev/usage-cpu": "2"})
    await api.create_pod("pending")
    pods = (await api("GET", f"{METRICS}/namespaces/default/pods"))["items"]
    usage = {pod["metadata"]["name"]: pod["containers"][0]["usage"] for pod in pods}
    assert usage == {"plain": {"cpu": "500000000n", "memory": "1048576Ki"}, "told": {"cpu": "2", "memory": "1048576Ki"}}
    (node,) = (await api("GET", f"{METRICS}/nodes"))["items"]
    assert node["usage"] == {"cpu": "2500000000n", "memory": "2097152Ki"}
    assert (await api("GET", f"{METRICS}/nodes/n"))["usage"] == node["usage"]
    await api("GET", f"{METRICS}/nodes/none", expect=404)
    await api("POST", f"{METRICS}/nodes", {}, expect=405)


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "log"), ("GET", "exec"), ("POST", "attach"), ("GET", "portforward"), ("GET", "proxy")]
)
async def test_what_needs_a_container_is_refused_in_words(api: Api, method: str, path: str) -> None:
    await api.create_pod("p")
    status = await api(method, f"{PODS}/p/{path}", {} if method == "POST" else None, expect=400)
    assert "the pods of this cluster are pretended" in status["message"]
    await api("GET", f"{PODS}/none/log", expect=404)


async def test_service_accounts_have_tokens(api: Api) -> None:
    path = "/api/v1/namespaces/default/serviceaccounts"
    request = {"spec": {"expirationSeconds": 600}}
    await api("POST", path, {"metadata": {"name": "default"}})
    answer = await api("POST", f"{path}/default/token", request, expect=201)
    assert answer["status"]["token"]
    assert answer["status"]["expirationTimestamp"] == "2026-01-01T00:10:00Z"
    await api("POST", f"{path}/robot/token", request, expect=404)


async def test_openapi_has_the_fields_of_every_kind(api: Api) -> None:
    schemas = (await api("GET", "/openapi/v3/apis/apps/v1"))["components"]["schemas"]
    deployment = schemas["apps.v1.Deployment"]
    assert deployment["x-kubernetes-group-version-kind"] == [{"group": "apps", "version": "v1", "kind": "Deployment"}]
    containers = schemas["core.v1.PodSpec"]["properties"]["containers"]
    assert containers["items"] == {"allOf": [{"$ref": "#/components/schemas/core.v1.Container"}]}
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    strategy = schemas["apps.v1.DeploymentSpec"]["properties"]["strategy"]
    assert strategy["x-kubernetes-patch-strategy"] == "retainKeys"


async def test_unknown_fields_are_refused_warned_about_or_dropped(api: Api) -> None:
    body = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}], "nodeSelecter": {}}}
    status = await api("POST", f"{PODS}?fieldValidation=Strict", body, expect=400)
    assert status["message"].endswith('strict decoding error: unknown field "spec.nodeSelecter"')
    response = await api.raw("POST", PODS, body)
    assert response.headers["warning"] == '299 - "unknown field \\"spec.nodeSelecter\\""'
    assert "nodeSelecter" not in (await api("GET", f"{PODS}/p"))["spec"]
    await api("DELETE", f"{PODS}/p")
    response = await api.raw("POST", f"{PODS}?fieldValidation=Ignore", body)
    assert "warning" not in response.headers


async def test_autoscalers_are_the_same_in_both_versions(api: Api) -> None:
    spec = {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}
    body = {"metadata": {"name": "a"}, "spec": {**spec, "targetCPUUtilizationPercentage": 50}}
    await api("POST", f"/apis/autoscaling/v1/{HPA}", body)
    (metric,) = (await api("GET", f"/apis/autoscaling/v2/{HPA}/a"))["spec"]["metrics"]
    assert metric["resource"]["target"] == {"type": "Utilization", "averageUtilization": 50}
    assert (await api("GET", f"/apis/autoscaling/v1/{HPA}"))["items"][0]["spec"]["targetCPUUtilizationPercentage"] == 50


@pytest.mark.parametrize("page", ["healthz", "livez", "readyz"])
async def test_health_is_told_in_whole_and_check_by_check(api: Api, page: str) -> None:
    assert (await api.raw("GET", f"/{page}")).body == b"ok"
    assert (await api.raw("GET", f"/{page}/ping")).body == b"ok"
    told = (await api.raw("GET", f"/{page}?verbose")).body
    assert isinstance(told, bytes)
    assert told.decode().splitlines() == ["[+]ping ok", "[+]log ok", "[+]etcd ok", f"{page} check passed"]
    assert (await api.raw("GET", f"/{page}/none")).status == 404


@pytest.mark.parametrize("body", [b"[" * 50_000, b'{"a":' * 120 + b"1" + b"}" * 120])
async def test_bodies_that_are_nested_too_deeply_are_refused(api: Api, body: bytes) -> None:
    status = await api("POST", PODS, body, expect=400)
    assert status["message"] == "the request's body is nested more than 100 levels deep"


@pytest.mark.parametrize(
    ("body", "content_type", "said"),
    [
        (
            b'{"metadata": {"name": "a", "name": "b"}, "data": {"x": "1", "x": "2"}}',
            "application/json",
            ['duplicate field "metadata.name"', 'duplicate field "data.x"'],
        ),
        (b"metadata: {name: a}\ndata:\n  x: a\n  x: b\n", "application/yaml", ['line 4: key "x" already set in map']),
    ],
)
async def test_fields_that_are_there_twice_are_told_or_refused(
    api: Api, body: bytes, content_type: str, said: list[str]
) -> None:
    maps = "/api/v1/namespaces/default/configmaps"
    status = await api("POST", f"{maps}?fieldValidation=Strict", body, content_type=content_type, expect=400)
    assert all(one in status["message"] for one in said)
    told = await api.raw("POST", f"{maps}?fieldValidation=Warn", body, content_type=content_type)
    assert all(one.replace('"', '\\"') in told.headers["warning"] for one in said)
