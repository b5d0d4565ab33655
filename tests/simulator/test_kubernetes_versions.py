"""What API servers of the versions of Kubernetes serve, and in which shapes."""

from functools import partial
from typing import Any

import msgspec
import pytest
from simulator_api import Api

from trio_sched.documents.json_values import Json
from trio_sched.simulator.endpoints.api_server import ApiServer
from trio_sched.simulator.endpoints.negotiation import AGGREGATED_DISCOVERY
from trio_sched.simulator.endpoints.watching import StreamCut, WatchStream
from trio_sched.simulator.storage.kubernetes_versions import UnknownKubernetesVersion, minor_version

SERVED: dict[str, dict[str, list[str]]] = {
    "1.31": {"resource.k8s.io": ["v1alpha3"], "scheduling.k8s.io": ["v1"]},
    "1.32": {"resource.k8s.io": ["v1beta1", "v1alpha3"], "scheduling.k8s.io": ["v1"]},
    "1.33": {"resource.k8s.io": ["v1beta2", "v1beta1", "v1alpha3"], "scheduling.k8s.io": ["v1"]},
    "1.34": {"resource.k8s.io": ["v1", "v1beta2", "v1beta1", "v1alpha3"], "scheduling.k8s.io": ["v1"]},
    "1.36": {"resource.k8s.io": ["v1", "v1beta2", "v1beta1", "v1alpha3"], "scheduling.k8s.io": ["v1", "v1alpha2"]},
    "1.37": {
        "resource.k8s.io": ["v1", "v1beta2", "v1beta1", "v1alpha3"],
        "scheduling.k8s.io": ["v1", "v1beta1", "v1alpha3"],
    },
}
DEVICES = "/apis/resource.k8s.io"
GROUPS = "/apis/scheduling.k8s.io"


def api_of(version: str) -> Api:
    return Api(ApiServer(kubernetes_version=version))


@pytest.mark.parametrize("version", SERVED)
async def test_discovery_says_what_a_version_serves(version: str) -> None:
    api = api_of(version)
    aggregated = await api("GET", "/apis", accept=AGGREGATED_DISCOVERY)
    found = {item["metadata"]["name"]: [one["version"] for one in item["versions"]] for item in aggregated["items"]}
    assert {group: found.get(group, []) for group in SERVED[version]} == SERVED[version]
    about = await api("GET", "/version")
    assert (about["major"], f"1.{about['minor']}") == ("1", version)
    assert about["gitVersion"].startswith(f"v{version}.")


async def test_what_is_not_served_is_not_found_in_plain_text() -> None:
    response = await api_of("1.33").raw("GET", f"{DEVICES}/v1/resourceclaims")
    assert (response.status, response.body) == (404, b"404 page not found\n")
    assert response.headers["content-type"].startswith("text/plain")
    # The version is served, but without the resource: an object of the kind Status.
    status = await api_of("1.36")("GET", f"{DEVICES}/v1/devicetaintrules", expect=404)
    assert status["kind"] == "Status"


def claim(requests: list[Json]) -> Json:
    return {"metadata": {"name": "c"}, "spec": {"devices": {"requests": requests}}}


async def test_claims_are_seen_in_every_version_in_its_shape() -> None:
    api = api_of("1.34")
    own = "namespaces/default/resourceclaims"
    requests = [
        {"name": "one", "deviceClassName": "gpu", "count": 2},
        {"name": "any", "firstAvailable": [{"name": "a", "deviceClassName": "gpu"}]},
    ]
    created = await api("POST", f"{DEVICES}/v1beta1/{own}", claim(requests))
    assert created["apiVersion"] == "resource.k8s.io/v1beta1"
    old = await api("GET", f"{DEVICES}/v1beta1/{own}/c")
    new = await api("GET", f"{DEVICES}/v1/{own}/c")
    first, second = old["spec"]["devices"]["requests"]
    assert (first["deviceClassName"], first["count"], "exactly" in first) == ("gpu", 2, False)
    assert (second["deviceClassName"], second["firstAvailable"][0]["name"]) == ("", "a")
    assert new["spec"]["devices"]["requests"][0]["exactly"]["count"] == 2
    assert new["spec"]["devices"]["requests"][1]["firstAvailable"][0]["deviceClassName"] == "gpu"
    assert old["metadata"]["resourceVersion"] == new["metadata"]["resourceVersion"]
    patch = {"metadata": {"labels": {"a": "b"}}}
    merge = "application/merge-patch+json"
    changed = await api("PATCH", f"{DEVICES}/v1beta1/{own}/c", patch, content_type=merge)
    assert changed["spec"] == old["spec"]
    assert (await api("GET", f"{DEVICES}/v1/{own}/c"))["spec"] == new["spec"]


async def test_slices_have_their_devices_under_basic_in_v1beta1() -> None:
    api = api_of("1.33")
    device = {"name": "gpu-0", "basic": {"attributes": {"model": {"string": "a"}}}}
    spec = {"driver": "d.test", "pool": {"name": "p", "resourceSliceCount": 1}, "nodeName": "n", "devices": [device]}
    await api("POST", f"{DEVICES}/v1beta1/resourceslices", {"metadata": {"name": "s"}, "spec": spec})
    assert (await api("GET", f"{DEVICES}/v1beta1/resourceslices/s"))["spec"]["devices"] == [device]
    (listed,) = (await api("GET", f"{DEVICES}/v1beta2/resourceslices"))["items"]
    assert listed["spec"]["devices"] == [{"name": "gpu-0", **device["basic"]}]


async def test_capacities_are_amounts_in_v1alpha3() -> None:
    api = api_of("1.32")
    device = {"name": "gpu-0", "basic": {"capacity": {"memory": "40Gi"}}}
    spec = {"driver": "d.test", "pool": {"name": "p", "resourceSliceCount": 1}, "nodeName": "n", "devices": [device]}
    await api("POST", f"{DEVICES}/v1alpha3/resourceslices", {"metadata": {"name": "s"}, "spec": spec})
    assert (await api("GET", f"{DEVICES}/v1alpha3/resourceslices/s"))["spec"]["devices"] == [device]
    (listed,) = (await api("GET", f"{DEVICES}/v1beta1/resourceslices"))["items"]
    assert listed["spec"]["devices"] == [{"name": "gpu-0", "basic": {"capacity": {"memory": {"value": "40Gi"}}}}]


@pytest.mark.parametrize("spec", [5, [], {"devices": 5}, {"devices": {"requests": 5}}, {"devices": [5]}])
@pytest.mark.parametrize("plural", ["namespaces/default/resourceclaims", "resourceslices"])
@pytest.mark.parametrize("version", ["v1beta1", "v1alpha3"])
async def test_old_shapes_of_another_type_are_refused(version: str, plural: str, spec: Any) -> None:
    wrong = {"metadata": {"name": "x"}, "spec": spec}
    response = await api_of("1.33").raw("POST", f"{DEVICES}/{version}/{plural}", wrong)
    assert response.status in (400, 422)


async def test_pod_groups_have_the_shapes_of_their_versions() -> None:
    server = ApiServer(kubernetes_version="1.37")
    api, own = Api(server), "namespaces/default/podgroups"
    spec = {
        "workloadRef": {"workloadName": "w", "templateName": "t"},
        "schedulingPolicy": {"gang": {"minCount": 3}},
        "disruptionMode": {"all": {}},
    }
    await api("POST", f"{GROUPS}/v1beta1/{own}", {"metadata": {"name": "g"}, "spec": spec})
    for version in ("v1beta1", "v1alpha3"):
        shown = (await api("GET", f"{GROUPS}/{version}/{own}/g"))["spec"]
        assert {name: shown[name] for name in spec} == spec
    server.change_version("1.36")
    shown = (await api("GET", f"{GROUPS}/v1alpha2/{own}/g"))["spec"]
    assert shown["podGroupTemplateRef"] == {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}}
    assert shown["disruptionMode"] == "PodGroup"
    both = {**spec, "disruptionMode": {"all": {}, "single": {}}}
    server.change_version("1.37")
    await api("POST", f"{GROUPS}/v1beta1/{own}", {"metadata": {"name": "h"}, "spec": both}, expect=422)


async def test_min_count_may_be_changed_from_1_37_on() -> None:
    server = ApiServer(kubernetes_version="1.36")
    api, own = Api(server), "namespaces/default/podgroups"
    spec = {"schedulingPolicy": {"gang": {"minCount": 3}}}
    await api("POST", f"{GROUPS}/v1alpha2/{own}", {"metadata": {"name": "g"}, "spec": spec})
    merge = partial(api, "PATCH", content_type="application/merge-patch+json")
    fewer = {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}
    await merge(f"{GROUPS}/v1alpha2/{own}/g", fewer, expect=422)
    server.change_version("1.37")
    changed = await merge(f"{GROUPS}/v1beta1/{own}/g", fewer)
    assert changed["spec"]["schedulingPolicy"] == {"gang": {"minCount": 2}}
    await merge(f"{GROUPS}/v1beta1/{own}/g", {"spec": {"schedulingPolicy": {"gang": {"minCount": 0}}}}, expect=422)


TREE: Json = {
    "workloadRef": {"workloadName": "w", "templateName": "t"},
    "schedulingPolicy": {"gang": {"minGroupCount": 2}},
}
COMPOSITES = f"{GROUPS}/v1alpha3/namespaces/default/compositepodgroups"


async def test_composite_pod_groups_are_served_from_1_37_on() -> None:
    server = ApiServer(kubernetes_version="1.37")
    api, own = Api(server), {"metadata": {"name": "top"}, "spec": TREE}
    made = await api("POST", COMPOSITES, own)
    shown = {**TREE, "disruptionMode": {"single": {}}, "preemptionPolicy": "PreemptLowerPriority"}
    assert made["spec"] == shown
    condition = {"type": "Ready", "status": "True", "reason": "R", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    merge = partial(api, "PATCH", content_type="application/merge-patch+json")
    await merge(f"{COMPOSITES}/top/status", {"status": {"conditions": [{**condition, "message": ""}]}})
    read = await api("GET", f"{COMPOSITES}/top")
    assert (read["spec"], len(read["status"]["conditions"])) == (shown, 1)
    await api("GET", COMPOSITES.replace("v1alpha3", "v1beta1"), expect=404)
    assert (await api_of("1.36").raw("GET", COMPOSITES)).status == 404


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"workloadRef": None}, "spec.workloadRef"),
        ({"schedulingPolicy": {}}, "spec.schedulingPolicy"),
        ({"schedulingPolicy": {"basic": {}, "gang": {"minGroupCount": 1}}}, "spec.schedulingPolicy"),
        ({"schedulingPolicy": {"gang": {"minGroupCount": 0}}}, "spec.schedulingPolicy.gang.minGroupCount"),
        ({"schedulingPolicy": {"gang": {}}}, "spec.schedulingPolicy.gang.minGroupCount"),
        ({"disruptionMode": {"single": {}, "all": {}}}, "spec.disruptionMode"),
        ({"schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]}}, "spec.schedulingConstraints.topology"),
        ({"preemptionPolicy": "Sometimes"}, "spec.preemptionPolicy"),
    ],
)
async def test_wrong_composite_pod_groups_are_refused(change: Json, field: str) -> None:
    api = api_of("1.37")
    refused = await api("POST", COMPOSITES, {"metadata": {"name": "top"}, "spec": {**TREE, **change}}, expect=422)
    assert field in refused["message"]


async def test_what_is_above_a_group_never_changes() -> None:
    api, groups = api_of("1.37"), f"{GROUPS}/v1beta1/namespaces/default/podgroups"
    await api("POST", COMPOSITES, {"metadata": {"name": "low"}, "spec": {**TREE, "parentCompositePodGroupName": "top"}})
    leaf = {"schedulingPolicy": {"gang": {"minCount": 2}}, "parentCompositePodGroupName": "low"}
    made = await api("POST", groups, {"metadata": {"name": "leaf"}, "spec": leaf})
    assert made["spec"]["parentCompositePodGroupName"] == "low"
    merge = partial(api, "PATCH", content_type="application/merge-patch+json", expect=422)
    for path in (f"{COMPOSITES}/low", f"{groups}/leaf"):
        for parent in ("other", None):
            refused = await merge(path, {"spec": {"parentCompositePodGroupName": parent}})
            assert "spec.parentCompositePodGroupName" in refused["message"]
    policy = {"spec": {"schedulingPolicy": {"gang": {"minGroupCount": 1}}}}
    assert "field is immutable" in (await merge(f"{COMPOSITES}/low", policy))["message"]


async def test_an_upgrade_keeps_objects_and_ends_watches() -> None:
    server = ApiServer(kubernetes_version="1.33")
    api, old = Api(server), "v1beta1/namespaces/default/resourceclaims"
    await api("POST", f"{DEVICES}/{old}", claim([{"name": "r", "deviceClassName": "gpu"}]))
    stream = (await server.handle("GET", f"{DEVICES}/{old}", "watch=true")).body
    assert isinstance(stream, WatchStream)
    server.change_version("1.34")
    with pytest.raises(StreamCut):
        await anext(stream)
    (listed,) = (await api("GET", f"{DEVICES}/v1/resourceclaims"))["items"]
    assert listed["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] == "gpu"
    server.change_version("1.31")
    assert (await api.raw("GET", f"{DEVICES}/v1/resourceclaims")).status == 404
    server.change_version("1.36")
    assert len((await api("GET", f"{DEVICES}/v1/resourceclaims"))["items"]) == 1


async def test_tables_carry_whole_objects_in_the_version_that_is_asked() -> None:
    api = api_of("1.34")
    await api(
        "POST",
        f"{DEVICES}/v1/namespaces/default/resourceclaims",
        claim([{"name": "r", "exactly": {"deviceClassName": "gpu"}}]),
    )
    table = await api(
        "GET",
        f"{DEVICES}/v1beta1/resourceclaims?includeObject=Object",
        accept="application/json;as=Table;v=v1;g=meta.k8s.io",
    )
    shown = table["rows"][0]["object"]
    assert shown["apiVersion"] == "resource.k8s.io/v1beta1"
    assert shown["spec"]["devices"]["requests"][0]["deviceClassName"] == "gpu"


@pytest.mark.parametrize(("text", "minor"), [("1.33", 33), ("v1.36", 36), ("1.34.9", 34)])
def test_versions_are_read(text: str, minor: int) -> None:
    assert minor_version(text) == minor


@pytest.mark.parametrize("text", ["", "1", "1.30", "1.38", "2.33", "33", "1.33.", "1.33-rc.0", "1.3３", "1.333"])
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(UnknownKubernetesVersion, match=r"it is one of 1\.31 to 1\.37"):
        minor_version(text)


def test_the_openapi_document_has_another_hash_in_every_version() -> None:
    from trio_sched.simulator.endpoints.openapi import openapi_index
    from trio_sched.simulator.storage.resource_types import TypeRegistry

    urls = {msgspec.json.encode(openapi_index(TypeRegistry(minor=minor))["paths"]["api/v1"]) for minor in range(31, 38)}
    assert len(urls) == 7


async def test_a_field_is_unknown_to_servers_that_are_older_than_it() -> None:
    mount = {"name": "v", "mountPath": "/v", "bindMountOptions": ["noexec"]}
    container = {"name": "c", "image": "x", "volumeMounts": [mount]}
    pod = {"metadata": {"name": "p"}, "spec": {"volumes": [{"name": "v", "emptyDir": {}}], "containers": [container]}}
    strict = "/api/v1/namespaces/default/pods?fieldValidation=Strict"
    refused = await api_of("1.36")("POST", strict, pod, expect=400)
    assert 'unknown field "spec.containers[0].volumeMounts[0].bindMountOptions"' in refused["message"]
    for version, kept in (("1.36", False), ("1.37", True)):
        api = api_of(version)
        created = await api("POST", "/api/v1/namespaces/default/pods", pod)
        assert ("bindMountOptions" in created["spec"]["containers"][0]["volumeMounts"][0]) is kept
        patch = {"status": {"volumeHealth": [{"name": "v"}]}}
        path, merge = "/api/v1/namespaces/default/pods/p/status", "application/merge-patch+json"
        patched = await api("PATCH", path, patch, content_type=merge)
        assert ("volumeHealth" in patched["status"]) is kept


WORKLOADS = "namespaces/default/workloads"
LEAF: Json = {"name": "leaf", "schedulingPolicy": {"gang": {"minCount": 2}}, "disruptionMode": {"all": {}}}


def template(name: str, **fields: Any) -> Json:
    """A template of a composite pod group."""
    return {"name": name, "schedulingPolicy": {"gang": {"minGroupCount": 1}}, **fields}


def levels(count: int) -> Json:
    """A template with templates of composite pod groups on so many levels, and one of a pod group below them."""
    made = template(f"level-{count}", podGroupTemplates=[LEAF])
    for level in range(count - 1, 0, -1):
        made = template(f"level-{level}", compositePodGroupTemplates=[made])
    return made


async def test_templates_of_trees_have_the_shapes_of_their_versions() -> None:
    server = ApiServer(kubernetes_version="1.37")
    api, spec = Api(server), {"compositePodGroupTemplates": [levels(3)]}
    for name, version in (("a", "v1beta1"), ("b", "v1alpha3")):
        made = await api("POST", f"{GROUPS}/{version}/{WORKLOADS}", {"metadata": {"name": name}, "spec": spec})
        assert made["spec"] == spec
    merge = partial(api, "PATCH", content_type="application/merge-patch+json", expect=422)
    refused = await merge(f"{GROUPS}/v1beta1/{WORKLOADS}/a", {"spec": {"compositePodGroupTemplates": [levels(1)]}})
    assert "spec.compositePodGroupTemplates: Invalid value" in refused["message"]
    older = {"metadata": {"name": "w"}, "spec": spec}
    stored = await api_of("1.36")("POST", f"{GROUPS}/v1alpha2/{WORKLOADS}", older)
    assert "compositePodGroupTemplates" not in stored["spec"]


async def test_the_size_of_a_gang_is_all_that_changes_in_templates() -> None:
    api = api_of("1.37")
    path = f"{GROUPS}/v1beta1/{WORKLOADS}"
    await api("POST", path, {"metadata": {"name": "w"}, "spec": {"podGroupTemplates": [LEAF]}})
    merge = partial(api, "PATCH", f"{path}/w", content_type="application/merge-patch+json")
    larger = {**LEAF, "schedulingPolicy": {"gang": {"minCount": 9}}}
    changed = await merge({"spec": {"podGroupTemplates": [larger]}})
    assert changed["spec"]["podGroupTemplates"] == [larger]
    for templates in ([], [LEAF, {**LEAF, "name": "more"}], [{**LEAF, "disruptionMode": {"single": {}}}]):
        refused = await merge({"spec": {"podGroupTemplates": templates}}, expect=422)
        assert "spec" in refused["message"]


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({}, "spec: Invalid value: null: must specify one of: `compositePodGroupTemplates`, `podGroupTemplates`"),
        (
            {"podGroupTemplates": [LEAF], "compositePodGroupTemplates": [levels(1)]},
            "spec: Invalid value: null: must specify exactly one of",
        ),
        ({"compositePodGroupTemplates": [levels(4)]}, "maximum template hierarchy depth is 4"),
        ({"compositePodGroupTemplates": [levels(20)]}, "maximum template hierarchy depth is 4"),
        (
            {"compositePodGroupTemplates": [template("a")]},
            'spec.compositePodGroupTemplates[0]: Invalid value: "a": must have at least one child',
        ),
        (
            {"compositePodGroupTemplates": [template("leaf", podGroupTemplates=[LEAF])]},
            'spec.compositePodGroupTemplates[0].podGroupTemplates[0].name: Duplicate value: "leaf"',
        ),
        ({"podGroupTemplates": [LEAF, LEAF]}, 'spec.podGroupTemplates[1].name: Duplicate value: "leaf"'),
        ({"podGroupTemplates": [{**LEAF, "name": ""}]}, "spec.podGroupTemplates[0].name: Required value"),
        ({"podGroupTemplates": [{**LEAF, "name": "A.b"}]}, "spec.podGroupTemplates[0].name: Invalid value"),
        (
            {"podGroupTemplates": [{**LEAF, "name": f"l{number}"} for number in range(9)]},
            "spec.podGroupTemplates: Too many: 9: must have at most 8 items",
        ),
        (
            {"podGroupTemplates": [{**LEAF, "schedulingPolicy": {"gang": {"minCount": 0}}}]},
            "spec.podGroupTemplates[0].schedulingPolicy.gang.minCount: Invalid value: 0",
        ),
        (
            {"podGroupTemplates": [{**LEAF, "disruptionMode": {"all": {}, "single": {}}}]},
            "spec.podGroupTemplates[0].disruptionMode",
        ),
        (
            {"podGroupTemplates": [LEAF, {**LEAF, "name": "other", "priorityClassName": "high"}]},
            "spec: Invalid value: null: detected multiple priority configurations",
        ),
        (
            {"compositePodGroupTemplates": [template("a", priority=1, podGroupTemplates=[LEAF])]},
            "all priority and priorityClassName values must be identical, detected multiple values",
        ),
        (
            {"compositePodGroupTemplates": [template("a", preemptionPolicy="No", podGroupTemplates=[LEAF])]},
            "spec.compositePodGroupTemplates[0].preemptionPolicy: Unsupported value",
        ),
    ],
)
async def test_wrong_templates_of_workloads_are_refused(spec: Json, text: str) -> None:
    made = {"metadata": {"name": "w"}, "spec": spec}
    refused = await api_of("1.37")("POST", f"{GROUPS}/v1beta1/{WORKLOADS}", made, expect=422)
    assert text in refused["message"]
