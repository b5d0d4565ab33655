"""Changes of objects: what is left out is filled in as in new objects, and what is changed is checked."""

import json
from typing import Any

import pytest
from manifest_mutations import valid_objects

from trio_sched.simulator import ApiServer
from trio_sched.simulator.storage.resource_types import TypeRegistry

Json = dict[str, Any]
TYPES = TypeRegistry()
WITHOUT_GENERATED_PARTS = [
    fields for fields in valid_objects() if fields["kind"] not in ("Job", "CustomResourceDefinition")
]
"""The selector of a job is generated, and may not be left out; a definition gets its status when it is served."""
PATCH = "application/merge-patch+json"


def path_of(fields: Json) -> str:
    resource = TYPES.of_kind(fields["apiVersion"], fields["kind"])
    assert resource is not None
    root = f"/apis/{resource.api_version}" if resource.group else "/api/v1"
    namespace = "/namespaces/default" if resource.namespaced else ""
    return f"{root}{namespace}/{resource.plural}"


async def send(server: ApiServer, method: str, path: str, fields: Json, kind: str = "application/json") -> Json:
    answer = await server.handle(method, path, "", {"content-type": kind}, json.dumps(fields).encode())
    decoded: Json = json.loads(answer.body)
    return decoded


async def created(server: ApiServer, fields: Json) -> tuple[str, Json]:
    if (fields.get("spec") or {}).get("priorityClassName"):
        fields["spec"].pop("priorityClassName")
    if fields["kind"] == "Pod":
        # As in a cluster, a pod that is put without its account is changed in what may not change.
        fields["spec"]["serviceAccountName"] = "default"
    answer = await send(server, "POST", path_of(fields), fields)
    assert answer["kind"] == fields["kind"], answer
    return f"{path_of(fields)}/{fields['metadata']['name']}", answer


@pytest.mark.parametrize("fields", WITHOUT_GENERATED_PARTS, ids=lambda o: f"{o['kind']} {o['metadata']['name']}")
async def test_a_manifest_may_be_put_in_place_of_what_it_made(fields: Json) -> None:
    server = ApiServer()
    path, before = await created(server, fields)
    metadata = {**fields["metadata"], "resourceVersion": before["metadata"]["resourceVersion"]}
    after = await send(server, "PUT", path, {**fields, "metadata": metadata})
    if fields["kind"] == "ResourceSlice":
        # A taint that is sent without its time starts over.
        before, after = ({"name": answer["metadata"]["name"]} for answer in (before, after))
    assert after == before, after.get("message")


@pytest.mark.parametrize(
    ("kind", "patch", "expected"),
    [
        ("Pod", {"spec": {"schedulingGates": [{}]}}, "spec.schedulingGates[0].name: Forbidden: only deletion is"),
        ("Pod", {"spec": {"tolerations": [{"operator": "Never"}]}}, 'Unsupported value: "Never"'),
        ("PersistentVolumeClaim", {"spec": {"accessModes": []}}, "spec.accessModes: Required value"),
        ("ResourceQuota", {"spec": {"scopes": ["BestEffort"]}}, "spec.scopes: Invalid value"),
        ("CSIDriver", {"spec": {"attachRequired": False}}, "spec.attachRequired: Invalid value"),
        ("CSIStorageCapacity", {"storageClassName": "other"}, "storageClassName: Invalid value"),
        ("VolumeAttachment", {"spec": {"nodeName": "other"}}, "spec: Invalid value"),
        ("CSINode", {"spec": {"drivers": [{"name": "csi.example.com", "nodeID": "other"}]}}, "field is immutable"),
    ],
)
async def test_changes_are_checked(kind: str, patch: Json, expected: str) -> None:
    server = ApiServer()
    fields = next(fields for fields in valid_objects() if fields["kind"] == kind)
    path, before = await created(server, fields)
    answer = await send(server, "PATCH", path, patch, PATCH)
    assert answer["code"] == 422, answer
    assert expected in answer["message"]
    assert json.loads((await server.handle("GET", path, "", {}, b"")).body) == before


@pytest.mark.parametrize(
    ("kind", "spec", "expected"),
    [
        ("Pod", {"ephemeralContainers": [{"name": "debug", "image": "i"}]}, "cannot be set on create"),
        ("Job", {"selector": {"matchLabels": {"job": "j"}}}, "`selector` not auto-generated"),
    ],
)
async def test_what_only_later_requests_may_set_is_refused_in_new_objects(kind: str, spec: Json, expected: str) -> None:
    fields = next(fields for fields in valid_objects() if fields["kind"] == kind)
    fields["spec"].pop("priorityClassName", None)
    answer = await send(ApiServer(), "POST", path_of(fields), {**fields, "spec": {**fields["spec"], **spec}})
    assert answer["code"] == 422, answer
    assert expected in answer["message"]


async def test_the_pod_addresses_of_a_node_may_be_given_in_either_field() -> None:
    server = ApiServer()
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {"podCIDR": "10.0.0.0/24"}}
    path, _ = await created(server, node)
    for spec in ({"podCIDR": "10.0.0.0/24"}, {"podCIDRs": ["10.0.0.0/24"], "podCIDR": None}):
        assert (await send(server, "PATCH", path, {"spec": spec}, PATCH))["kind"] == "Node"
    answer = await send(server, "PATCH", path, {"spec": {"podCIDR": "10.0.1.0/24", "podCIDRs": None}}, PATCH)
    assert "node updates may not change podCIDR" in answer["message"]
