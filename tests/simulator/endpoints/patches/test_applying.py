from collections.abc import Callable
from typing import Any

import pytest
from simulator_api import Api

from trio_sched.documents.json_values import Json
from trio_sched.simulator import ApiServer

Applier = Callable[..., Any]

PATH = "/api/v1/namespaces/default/configmaps/c"


@pytest.fixture
def apply(api: Api) -> Applier:
    async def apply(data: Json, *, by: str, force: bool = False, expect: int = 200) -> Json:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}
        query = f"fieldManager={by}" + ("&force=true" if force else "")
        answer: Json = await api(
            "PATCH", f"{PATH}?{query}", body, content_type="application/apply-patch+yaml", expect=expect
        )
        return answer

    return apply


async def test_applying_creates_and_then_changes(apply: Applier) -> None:
    made = await apply({"a": "1"}, by="me", expect=201)
    (entry,) = made["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"], entry["fieldsV1"]) == ("me", "Apply", {"f:data": {"f:a": {}}})
    assert (await apply({"a": "2"}, by="me"))["data"] == {"a": "2"}


async def test_fields_no_longer_applied_are_removed(apply: Applier) -> None:
    await apply({"a": "1", "b": "1"}, by="me", expect=201)
    assert (await apply({"a": "1"}, by="me"))["data"] == {"a": "1"}


async def test_managers_do_not_change_fields_of_other_managers(apply: Applier) -> None:
    await apply({"a": "1"}, by="me", expect=201)
    both = await apply({"b": "2"}, by="you")
    assert both["data"] == {"a": "1", "b": "2"}
    assert [entry["manager"] for entry in both["metadata"]["managedFields"]] == ["me", "you"]
    assert (await apply({}, by="you"))["data"] == {"a": "1"}


async def test_different_values_of_two_managers_conflict_unless_forced(apply: Applier) -> None:
    await apply({"a": "1"}, by="me", expect=201)
    status = await apply({"a": "2"}, by="you", expect=409)
    assert status["message"] == 'Apply failed with 1 conflict: conflict with "me": .data.a'
    assert status["details"]["causes"][0]["reason"] == "FieldManagerConflict"
    forced = await apply({"a": "2"}, by="you", force=True)
    assert forced["data"] == {"a": "2"}
    assert [entry["manager"] for entry in forced["metadata"]["managedFields"]] == ["you"]


async def test_equal_values_of_two_managers_are_shared(apply: Applier) -> None:
    await apply({"a": "1"}, by="me", expect=201)
    await apply({"a": "1"}, by="you")
    assert (await apply({}, by="me"))["data"] == {"a": "1"}


async def test_applying_the_same_again_makes_no_version(apply: Applier, server: ApiServer) -> None:
    await apply({"a": "1"}, by="me", expect=201)
    version = server.store.version
    await apply({"a": "1"}, by="me")
    assert server.store.version == version


async def test_applying_needs_a_field_manager(api: Api) -> None:
    status = await api("PATCH", PATH, {}, content_type="application/apply-patch+yaml", expect=422)
    assert "fieldManager: Required value" in status["message"]


DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments/d"


@pytest.fixture
def deploy(api: Api) -> Applier:
    async def deploy(pod: Json, *, by: str, force: bool = False, expect: int = 200, **spec: Any) -> Json:
        template = {"metadata": {"labels": {"app": "d"}}, "spec": pod}
        spec = {"selector": {"matchLabels": {"app": "d"}}, "template": template, **spec}
        body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}
        query = f"fieldManager={by}" + ("&force=true" if force else "")
        answer: Json = await api(
            "PATCH", f"{DEPLOYMENT}?{query}", body, content_type="application/apply-patch+yaml", expect=expect
        )
        return answer

    return deploy


def container(name: str, **fields: Any) -> Json:
    return {"name": name, "image": f"{name}:1", **fields}


async def test_containers_are_owned_one_by_one(deploy: Applier) -> None:
    await deploy({"containers": [container("app", env=[{"name": "A", "value": "1"}])]}, by="me", expect=201)
    made = await deploy({"containers": [container("proxy")]}, by="you")
    spec = made["spec"]["template"]["spec"]
    assert [one["name"] for one in spec["containers"]] == ["app", "proxy"]
    entry = next(one for one in made["metadata"]["managedFields"] if one["manager"] == "me")
    assert entry["fieldsV1"]["f:spec"]["f:template"]["f:spec"] == {
        "f:containers": {
            'k:{"name":"app"}': {
                ".": {},
                "f:env": {'k:{"name":"A"}': {".": {}, "f:name": {}, "f:value": {}}},
                "f:image": {},
                "f:name": {},
            }
        }
    }
    left = await deploy({"containers": [container("proxy")]}, by="me")
    assert [one["name"] for one in left["spec"]["template"]["spec"]["containers"]] == ["proxy"]


async def test_items_with_several_keys_and_keys_with_defaults(deploy: Applier) -> None:
    def with_ports(*ports: Json) -> Json:
        return {"containers": [container("app", ports=list(ports))]}

    await deploy(with_ports({"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}), by="me", expect=201)
    status = await deploy(with_ports({"containerPort": 53, "name": "dns"}), by="you", expect=200)
    (app,) = status["spec"]["template"]["spec"]["containers"]
    assert [(one["protocol"], one.get("name")) for one in app["ports"]] == [("TCP", "dns"), ("UDP", None)]
    status = await deploy(with_ports({"containerPort": 53, "name": "other"}), by="me", expect=409)
    path = '.spec.template.spec.containers[name="app"].ports[containerPort=53,protocol="TCP"].name'
    assert status["message"] == f'Apply failed with 1 conflict: conflict with "you": {path}'


async def test_lists_without_keys_are_owned_as_a_whole(deploy: Applier) -> None:
    def with_toleration(key: str) -> Json:
        return {"containers": [container("app")], "tolerations": [{"key": key, "operator": "Exists"}]}

    await deploy(with_toleration("a"), by="me", expect=201)
    status = await deploy(with_toleration("b"), by="you", expect=409)
    assert [cause["field"] for cause in status["details"]["causes"]] == [".spec.template.spec.tolerations"]
    forced = await deploy(with_toleration("b"), by="you", force=True)
    assert [one["key"] for one in forced["spec"]["template"]["spec"]["tolerations"]] == ["b"]


async def test_other_writers_own_what_they_change(deploy: Applier, api: Api) -> None:
    pod = {"containers": [container("app")]}
    await deploy(pod, by="me", replicas=2, expect=201)
    scale = {"spec": {"replicas": 5}}
    await api("PATCH", f"{DEPLOYMENT}/scale?fieldManager=scaler", scale, content_type="application/merge-patch+json")
    status = await deploy(pod, by="me", replicas=2, expect=409)
    assert status["message"] == (
        'Apply failed with 1 conflict: conflict with "scaler" with subresource "scale" using apps/v1: .spec.replicas'
    )
    assert (await deploy(pod, by="me"))["spec"]["replicas"] == 5
    found = await api("GET", DEPLOYMENT)
    del found["metadata"]["managedFields"]
    found["spec"]["replicas"] = 7
    await api("PUT", DEPLOYMENT, found)
    assert (await deploy(pod, by="me", replicas=7))["spec"]["replicas"] == 7


async def test_what_was_there_before_belongs_to_nobody_known(deploy: Applier, api: Api) -> None:
    await api("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "c"}, "data": {"a": "1"}})
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "2", "b": "2"}}
    status = await api(
        "PATCH", f"{PATH}?fieldManager=me", body, content_type="application/apply-patch+yaml", expect=409
    )
    assert 'conflict with "before-first-apply" using v1' in status["message"]
    forced = await api("PATCH", f"{PATH}?fieldManager=me&force=true", body, content_type="application/apply-patch+yaml")
    assert forced["data"] == {"a": "2", "b": "2"}
    former, _ = forced["metadata"]["managedFields"]
    assert (former["manager"], former["fieldsV1"]) == ("before-first-apply", {"f:data": {}})


async def test_several_conflicts_are_listed_by_manager(apply: Applier) -> None:
    await apply({"a": "1", "b": "1"}, by="me", expect=201)
    status = await apply({"a": "2", "b": "2"}, by="you", expect=409)
    assert status["message"] == 'Apply failed with 2 conflicts: conflicts with "me":\n- .data.a\n- .data.b'


async def test_fields_that_are_not_known_are_refused(deploy: Applier) -> None:
    body = {"containers": [container("app", imagee="x")]}
    status = await deploy(body, by="me", expect=500)
    assert ".spec.template.spec.containers[0].imagee: field not declared in schema" in status["message"]
    twice = {"containers": [container("app"), container("app")]}
    status = await deploy(twice, by="me", expect=500)
    assert '.spec.template.spec.containers: duplicate entries for key [name="app"]' in status["message"]
    await deploy({"containers": "app"}, by="me", expect=500)


WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
PORTS: Json = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "port": {"type": "integer"}},
    },
}
TEXTS: Json = {"type": "array", "items": {"type": "string"}}
SPEC: Json = {
    "type": "object",
    "properties": {
        "ports": PORTS,
        "set": {**TEXTS, "x-kubernetes-list-type": "set"},
        "list": TEXTS,
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
    },
}


@pytest.fixture
async def widget(api: Api) -> Applier:
    versions = [
        {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC}}},
        }
    ]
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions}
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await api("POST", definitions, {"metadata": {"name": "widgets.example.com"}, "spec": spec})

    async def send(spec: Json, *, by: str, expect: int = 200) -> Json:
        body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec}
        path = f"{WIDGETS}/w?fieldManager={by}"
        return await api("PATCH", path, body, content_type="application/apply-patch+yaml", expect=expect)

    return send


async def test_lists_of_custom_resources_are_merged_as_their_definition_says(widget: Applier) -> None:
    mine = {"ports": [{"name": "a", "port": 1}], "set": ["x"], "map": {"p": "1"}}
    await widget(mine, by="me", expect=201)
    spec = (await widget({"ports": [{"name": "b", "port": 2}], "set": ["y"], "map": {"q": "2"}}, by="you"))["spec"]
    assert sorted(port["name"] for port in spec["ports"]) == ["a", "b"]
    assert (sorted(spec["set"]), spec["map"]) == (["x", "y"], {"p": "1", "q": "2"})
    conflict = await widget({"ports": [{"name": "b", "port": 3}]}, by="me", expect=409)
    assert conflict["details"]["causes"][0]["field"] == '.spec.ports[name="b"].port'
    spec = (await widget({}, by="me"))["spec"]
    assert spec == {"ports": [{"name": "b", "port": 2}], "set": ["y"], "map": {"q": "2"}}


@pytest.mark.parametrize(("name", "mine", "other"), [("list", ["x"], ["y"]), ("whole", {"p": "1"}, {"q": "2"})])
async def test_atomic_parts_of_custom_resources_have_one_owner(
    widget: Applier, name: str, mine: Any, other: Any
) -> None:
    await widget({name: mine}, by="me", expect=201)
    conflict = await widget({name: other}, by="you", expect=409)
    assert conflict["details"]["causes"][0]["field"] == f".spec.{name}"
