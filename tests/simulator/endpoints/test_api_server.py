import gzip
from typing import Any

import msgspec
import pytest
import yaml
from simulator_api import Api

from trio_sched.simulator import ApiServer

PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"


async def test_a_created_pod_is_what_a_real_server_would_store(api: Api) -> None:
    pod = await api.create_pod("p")
    assert pod["kind"] == "Pod"
    assert pod["apiVersion"] == "v1"
    assert pod["metadata"]["namespace"] == "default"
    assert pod["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert pod["metadata"]["generation"] == 1
    assert pod["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert pod["spec"]["priority"] == 0
    assert pod["spec"]["preemptionPolicy"] == "PreemptLowerPriority"
    assert await api("GET", f"{PODS}/p") == pod


async def test_items_of_typed_lists_do_not_repeat_kind_and_version(api: Api, server: ApiServer) -> None:
    await api.create_pod("p")
    listing = await api("GET", "/api/v1/pods")
    assert (listing["kind"], listing["apiVersion"]) == ("PodList", "v1")
    assert listing["metadata"] == {"resourceVersion": str(server.store.version)}
    assert "kind" not in listing["items"][0]


async def test_equal_seeds_give_equal_uids() -> None:
    pods = [await Api(ApiServer(seed=seed)).create_pod("p") for seed in (1, 1, 2)]
    uids = [pod["metadata"]["uid"] for pod in pods]
    assert uids[0] == uids[1] != uids[2]


async def test_generated_names_begin_with_their_stem(api: Api) -> None:
    body = {"metadata": {"generateName": "web-"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    names = {(await api("POST", PODS, body))["metadata"]["name"] for _ in range(3)}
    assert len(names) == 3
    assert all(name.startswith("web-") and len(name) == 9 for name in names)


@pytest.mark.parametrize(
    ("method", "path", "body", "code", "reason", "message"),
    [
        ("GET", f"{PODS}/nope", None, 404, "NotFound", 'pods "nope" not found'),
        (
            "GET",
            "/apis/apps/v1/namespaces/default/deployments/d",
            None,
            404,
            "NotFound",
            'deployments.apps "d" not found',
        ),
        ("GET", "/api/v1/unicorns", None, 404, "NotFound", "the server could not find the requested resource"),
        ("PUT", PODS, {}, 405, "MethodNotAllowed", "the server does not allow this method on the requested resource"),
        ("POST", "/api/v1/pods", {}, 405, "MethodNotAllowed", "the server does not allow this method"),
        ("POST", PODS, {"kind": "ConfigMap", "apiVersion": "v1"}, 400, "BadRequest", "cannot be handled as a Pod"),
        ("POST", PODS, {"metadata": {"name": "p"}, "spec": []}, 400, "BadRequest", "cannot unmarshal array into Go"),
        (
            "POST",
            PODS,
            {"metadata": {"labels": "x"}},
            400,
            "BadRequest",
            "struct field ObjectMeta.metadata.labels of type",
        ),
        ("POST", PODS, b"{", 400, "BadRequest", "error decoding request body"),
        ("POST", PODS, [], 400, "BadRequest", "no object"),
        (
            "POST",
            PODS,
            {"metadata": {"name": "p", "namespace": "kube-system"}},
            400,
            "BadRequest",
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            "POST",
            "/api/v1/namespaces/nope/configmaps",
            {"metadata": {"name": "c"}},
            404,
            "NotFound",
            'namespaces "nope" not found',
        ),
        (
            "POST",
            "/api/v1/namespaces/default/configmaps",
            {"metadata": {"name": "Bad"}},
            422,
            "Invalid",
            'ConfigMap "Bad" is invalid: metadata.name: Invalid value: "Bad": a lowercase RFC 1123 subdomain',
        ),
        (
            "POST",
            "/api/v1/namespaces/default/configmaps",
            {"metadata": {}},
            422,
            "Invalid",
            'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required',
        ),
        (
            "POST",
            "/api/v1/nodes",
            {"metadata": {"name": "n", "labels": {"a b": "c"}}},
            422,
            "Invalid",
            'metadata.labels: Invalid value: "a b": name part must consist of',
        ),
        (
            "POST",
            PODS,
            {"metadata": {"name": "p"}, "spec": {"priorityClassName": "x", "containers": []}},
            403,
            "Forbidden",
            'pods "p" is forbidden: no PriorityClass with name x was found',
        ),
        (
            "POST",
            PODS,
            {
                "metadata": {"name": "p"},
                "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "lots"}}}]},
            },
            400,
            "BadRequest",
            'Pod in version "v1" cannot be handled as a Pod: quantities must match the regular expression',
        ),
        ("GET", "/api/v1/pods?fieldSelector=a%3Db", None, 400, "BadRequest", "field label not supported: a"),
        ("GET", "/api/v1/pods?resourceVersion=99999", None, 504, "Timeout", "Too large resource version: 99999"),
        ("GET", "/api/v1/pods?limit=many", None, 400, "BadRequest", "invalid syntax"),
        ("GET", "/api/v1/pods?continue=nonsense", None, 400, "BadRequest", "continue key is not valid"),
    ],
)
async def test_refusals_have_the_shape_and_text_of_kube_apiserver(
    api: Api, method: str, path: str, body: Any, code: int, reason: str, message: str
) -> None:
    status = await api(method, path, body, expect=code)
    assert (status["kind"], status["apiVersion"], status["status"]) == ("Status", "v1", "Failure")
    assert (status["code"], status["reason"]) == (code, reason)
    assert message in status["message"]


async def test_the_details_name_what_the_refusal_is_about(api: Api) -> None:
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/b"
    status = await api("GET", path, expect=404)
    assert status["details"] == {"name": "b", "group": "policy", "kind": "poddisruptionbudgets"}


async def test_creating_twice_is_refused(api: Api) -> None:
    await api.create_pod("p")
    body = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    status = await api("POST", PODS, body, expect=409)
    assert status["reason"] == "AlreadyExists"
    assert status["message"] == 'pods "p" already exists'


async def test_an_update_from_an_old_version_is_a_conflict(api: Api) -> None:
    pod = await api.create_pod("p")
    await api("PUT", f"{PODS}/p", {**pod, "metadata": {**pod["metadata"], "labels": {"a": "1"}}})
    status = await api("PUT", f"{PODS}/p", pod, expect=409)
    assert status["reason"] == "Conflict"
    assert status["message"] == (
        'Operation cannot be fulfilled on pods "p": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )


async def test_leases_must_be_updated_with_their_version(api: Api) -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    lease = await api("POST", path, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}})
    body = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "b"}}
    status = await api("PUT", f"{path}/l", body, expect=422)
    assert "metadata.resourceVersion: Invalid value: 0: must be specified for an update" in status["message"]
    body["metadata"]["resourceVersion"] = lease["metadata"]["resourceVersion"]
    assert (await api("PUT", f"{path}/l", body))["spec"]["holderIdentity"] == "b"


async def test_an_update_that_changes_nothing_makes_no_version(api: Api, server: ApiServer) -> None:
    pod = await api.create_pod("p")
    version = server.store.version
    assert await api("PUT", f"{PODS}/p", pod) == pod
    assert server.store.version == version


async def test_status_is_written_only_through_its_subresource(api: Api) -> None:
    pod = await api.create_pod("p")
    changed = {**pod, "status": {"phase": "Running"}, "metadata": {**pod["metadata"], "labels": {"a": "1"}}}
    assert (await api("PUT", f"{PODS}/p", changed))["status"] == pod["status"]
    patch = {"status": {"phase": "Running"}, "spec": {"nodeName": "n"}}
    after = await api("PATCH", f"{PODS}/p/status", patch, content_type=MERGE)
    assert after["status"]["phase"] == "Running"
    assert after["spec"] == pod["spec"]


async def test_the_generation_counts_changes_of_the_spec_alone(api: Api) -> None:
    await api.create_pod("p")
    labelled = await api("PATCH", f"{PODS}/p", {"metadata": {"labels": {"a": "1"}}}, content_type=MERGE)
    assert labelled["metadata"]["generation"] == 1
    changed = await api("PATCH", f"{PODS}/p", {"spec": {"activeDeadlineSeconds": 5}}, content_type=MERGE)
    assert changed["metadata"]["generation"] == 2


async def test_fields_owned_by_the_server_cannot_be_changed(api: Api) -> None:
    pod = await api.create_pod("p")
    patch = {"metadata": {"creationTimestamp": "1999-01-01T00:00:00Z", "generation": 99}}
    assert await api("PATCH", f"{PODS}/p", patch, content_type=MERGE) == pod


@pytest.mark.parametrize(
    ("content_type", "patch", "code"),
    [
        ("application/json-patch+json", [{"op": "remove", "path": "/metadata/labels/x"}], 422),
        ("application/json-patch+json", [{"op": "test", "path": "/metadata/name", "value": "q"}], 422),
        ("application/json-patch+json", [{"op": "replace", "path": "/metadata/name", "value": "q"}], 400),
        ("application/strategic-merge-patch+json", {"spec": {"containers": [{"image": "x"}]}}, 500),
        ("application/merge-patch+json", [], 400),
        ("application/json", {}, 415),
        ("application/apply-patch+yaml", {}, 422),
    ],
)
async def test_patches_that_do_not_apply_are_refused(api: Api, content_type: str, patch: Any, code: int) -> None:
    await api.create_pod("p")
    await api("PATCH", f"{PODS}/p", patch, content_type=content_type, expect=code)


async def test_bodies_may_be_yaml(api: Api) -> None:
    body = b"metadata: {name: c}\ndata: {when: 2026-01-01T00:00:00Z}"
    made = await api("POST", "/api/v1/namespaces/default/configmaps", body, content_type="application/yaml")
    assert made["data"] == {"when": "2026-01-01T00:00:00Z"}


async def test_answers_may_be_yaml(api: Api) -> None:
    pod = await api.create_pod("p")
    response = await api.raw("GET", f"{PODS}/p", accept="application/yaml")
    assert response.headers["content-type"] == "application/yaml"
    assert yaml.safe_load(response.body)["metadata"]["uid"] == pod["metadata"]["uid"]


async def test_protobuf_answers_are_not_supported(api: Api) -> None:
    protobuf = "application/vnd.kubernetes.protobuf"
    assert (await api("GET", "/api/v1/pods", accept=protobuf, expect=406))["reason"] == "NotAcceptable"
    assert (await api("POST", PODS, b"k8s\0", content_type=protobuf, expect=415))["reason"] == "UnsupportedMediaType"
    both = await api.raw("GET", "/api/v1/pods", accept=f"{protobuf},application/json")
    assert both.headers["content-type"] == "application/json"


async def test_large_lists_are_compressed_if_the_client_accepts_gzip(api: Api, server: ApiServer) -> None:
    for number in range(200):
        await api.create_pod(f"p{number}")
    plain = await server.handle("GET", "/api/v1/pods")
    packed = await server.handle("GET", "/api/v1/pods", "", {"accept-encoding": "gzip, br"})
    assert packed.headers["content-encoding"] == "gzip"
    assert isinstance(packed.body, bytes)
    assert gzip.decompress(packed.body) == plain.body


async def test_dry_runs_store_nothing(api: Api, server: ApiServer) -> None:
    pod = await api.create_pod("p")
    version = server.store.version
    fresh = {"metadata": {"name": "q"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    assert (await api("POST", f"{PODS}?dryRun=All", fresh))["spec"]["schedulerName"] == "default-scheduler"
    await api("POST", f"{PODS}?dryRun=All", {**fresh, "metadata": {"name": "p"}}, expect=409)
    patch = {"metadata": {"labels": {"a": "1"}}}
    shown = await api("PATCH", f"{PODS}/p?dryRun=All", patch, content_type=MERGE)
    assert shown["metadata"]["labels"] == {"a": "1"}
    await api("DELETE", f"{PODS}/p?dryRun=All")
    await api("POST", f"{PODS}/p/binding?dryRun=All", {"target": {"name": "n"}})
    await api("POST", f"{PODS}/p/eviction?dryRun=All", {"metadata": {"name": "p"}})
    assert server.store.version == version
    assert await api.pod("p") == pod


async def test_a_priority_class_becomes_a_number(api: Api) -> None:
    body = {"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"}
    await api("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body)
    pod = await api.create_pod("p", priorityClassName="high")
    assert (pod["spec"]["priority"], pod["spec"]["preemptionPolicy"]) == (1000, "Never")
    assert (await api.create_pod("q", priorityClassName="system-node-critical"))["spec"]["priority"] == 2_000_001_000


async def test_pods_without_a_priority_class_get_the_default_one(api: Api) -> None:
    body = {"metadata": {"name": "usual"}, "value": 5, "globalDefault": True}
    await api("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body)
    pod = await api.create_pod("p")
    assert (pod["spec"]["priority"], pod["spec"]["priorityClassName"]) == (5, "usual")


async def test_a_gated_pod_has_the_condition_scheduling_gated(api: Api) -> None:
    pod = await api.create_pod("p", schedulingGates=[{"name": "g"}])
    (condition,) = pod["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "SchedulingGated")


async def test_new_claims_and_volumes_are_pending(api: Api) -> None:
    path = "/api/v1/namespaces/default/persistentvolumeclaims"
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = await api("POST", path, {"metadata": {"name": "c"}, "spec": spec, "status": {"phase": "Bound"}})
    assert claim["status"] == {"phase": "Pending"}
    assert claim["spec"]["volumeMode"] == "Filesystem"


THING = {
    "type": "object",
    "properties": {"size": {"type": "integer", "minimum": 1}, "colour": {"type": "string", "default": "red"}},
}


async def test_custom_resources_are_served_once_defined(api: Api) -> None:
    definition = {
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "things", "kind": "Thing", "shortNames": ["th"]},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": THING}}},
                }
            ],
        },
    }
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    things = "/apis/example.com/v1/namespaces/default/things"
    assert (await api.raw("GET", things)).status == 404
    await api("POST", path, definition)
    stored = await api("GET", f"{path}/things.example.com")
    assert {c["type"]: c["status"] for c in stored["status"]["conditions"]}["Established"] == "True"
    thing = await api("POST", things, {"metadata": {"name": "t"}, "spec": {"size": 1}, "status": {"x": 1}})
    assert "status" not in thing
    assert (await api("GET", things))["items"][0]["kind"] == "Thing"
    await api("PATCH", f"{things}/t", {}, content_type="application/strategic-merge-patch+json", expect=415)
    assert thing["spec"] == {"size": 1, "colour": "red"}
    odd = {"metadata": {"name": "odd"}, "spec": {"size": 0, "colour": None, "wieght": 1}}
    refused = await api("POST", things, odd, expect=422)
    assert refused["details"]["causes"][0]["field"] == "spec.size"
    await api("PATCH", f"{things}/t", {"spec": {"size": "x"}}, content_type=MERGE, expect=422)
    stored["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = {
        "wieght": {"type": "integer"}
    }
    await api("PUT", f"{path}/things.example.com", stored)
    assert (await api("POST", things, odd))["spec"] == {"wieght": 1}
    await api("DELETE", f"{path}/things.example.com")
    assert (await api.raw("GET", things)).status == 404


async def test_scale_shows_and_sets_replicas(api: Api) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    of_pod = {"containers": [{"name": "c", "image": "i"}]}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": of_pod}
    spec = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    await api("POST", path, {"metadata": {"name": "d"}, "spec": spec})
    scale = await api("GET", f"{path}/d/scale")
    assert (scale["kind"], scale["spec"], scale["status"]["selector"]) == ("Scale", {"replicas": 2}, "a=b")
    scale["spec"]["replicas"] = 5
    assert (await api("PUT", f"{path}/d/scale", scale))["spec"]["replicas"] == 5
    await api("PUT", f"{path}/d/scale", scale, expect=409)
    await api("PATCH", f"{path}/d/scale", {"spec": {"replicas": -1}}, content_type=MERGE, expect=422)
    assert (await api("GET", f"{path}/d"))["metadata"]["generation"] == 2
    patch = [{"op": "replace", "path": "/spec/replicas", "value": 6}]
    patched = await api("PATCH", f"{path}/d/scale", patch, content_type="application/json-patch+json")
    assert patched["spec"]["replicas"] == 6
    table = await api("GET", f"{path}/d/scale", accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    assert [one["name"] for one in table["columnDefinitions"]] == ["Name", "Desired", "Available", "Age"]
    assert [one["cells"] for one in table["rows"]] == [["d", 6, 0, "0s"]]
    await api("PATCH", f"{path}/d/scale", {"spec": {"replicas": "many"}}, content_type=MERGE, expect=400)
    await api("PATCH", f"{path}/d/scale", {}, content_type="application/json", expect=415)


async def test_access_reviews_allow_everything_by_default(api: Api) -> None:
    review = {"spec": {"resourceAttributes": {"verb": "get"}}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    assert (await api("POST", path, review))["status"] == {"allowed": True}
    strict = Api(ApiServer(users={"t": ("ann", ["staff"])}, allows=lambda spec: False))
    assert (await strict("POST", path, review))["status"] == {"allowed": False}
    tokens = "/apis/authentication.k8s.io/v1/tokenreviews"
    known = (await strict("POST", tokens, {"spec": {"token": "t"}}))["status"]
    assert known == {"authenticated": True, "user": {"username": "ann", "groups": ["staff"]}}
    assert "authenticated" not in (await strict("POST", tokens, {"spec": {"token": "x"}}))["status"]


async def test_health_and_version_are_served(api: Api, server: ApiServer) -> None:
    assert (await server.handle("GET", "/readyz")).body == b"ok"
    assert (await api("GET", "/version"))["gitVersion"] == "v1.36.2"


async def test_a_pod_may_be_asked_for_as_metadata_alone(api: Api) -> None:
    await api.create_pod("p")
    accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    listing = await api("GET", "/api/v1/pods", accept=accept)
    assert listing["kind"] == "PartialObjectMetadataList"
    assert set(listing["items"][0]) == {"kind", "apiVersion", "metadata"}
    assert msgspec.json.encode(listing).find(b"containers") == -1
