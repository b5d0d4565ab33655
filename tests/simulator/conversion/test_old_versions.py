import json
from io import StringIO

import pytest
from simulator_api import Json

from trio_sched.simulator.conversion.old_versions import in_current_version
from trio_sched.simulator.manifests.manifest_checks import CheckedManifests
from trio_sched.simulator.manifests.scenario import load_manifests


def load(*objects: Json) -> CheckedManifests:
    return load_manifests([StringIO(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))])


def dumped(api_version: str, kind: str, name: str = "x", version: str = "1", **fields: object) -> Json:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": version}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


TEMPLATE: Json = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
SELECTOR: Json = {"matchLabels": {"app": "x"}}


@pytest.mark.parametrize("version", ["extensions/v1beta1", "apps/v1beta1", "apps/v1beta2"])
def test_workloads_of_old_dumps_are_those_of_today(version: str) -> None:
    (one,) = load(dumped(version, "Deployment", spec={"selector": SELECTOR, "template": TEMPLATE})).manifests
    assert one.fields["apiVersion"] == "apps/v1"


def test_an_empty_selector_of_an_old_budget_selects_nothing() -> None:
    old = dumped("policy/v1beta1", "PodDisruptionBudget", spec={"selector": {}, "minAvailable": 1})
    assert load(old).manifests[0].fields["spec"] == {"minAvailable": 1}
    old["spec"]["selector"] = SELECTOR
    assert load(old).manifests[0].fields["spec"]["selector"] == SELECTOR


def test_devices_and_claims_get_the_shape_of_today() -> None:
    request = {"name": "r", "deviceClassName": "gpu", "count": 2}
    either = {"name": "e", "deviceClassName": "", "firstAvailable": [{"name": "a", "deviceClassName": "gpu"}]}
    claim = dumped("resource.k8s.io/v1beta1", "ResourceClaim", spec={"devices": {"requests": [request, either]}})
    device = {"name": "gpu-0", "basic": {"attributes": {"model": {"string": "a"}}}}
    spec = {"driver": "d.test", "pool": {"name": "p", "resourceSliceCount": 1}, "nodeName": "n", "devices": [device]}
    found = {
        one.fields["kind"]: one.fields
        for one in load(claim, dumped("resource.k8s.io/v1beta1", "ResourceSlice", spec=spec)).manifests
    }
    exact, first = found["ResourceClaim"]["spec"]["devices"]["requests"]
    assert exact["exactly"]["deviceClassName"] == "gpu"
    assert exact["exactly"]["count"] == 2
    assert first["firstAvailable"][0]["deviceClassName"] == "gpu"
    assert found["ResourceSlice"]["spec"]["devices"] == [{"name": "gpu-0", "attributes": {"model": {"string": "a"}}}]


@pytest.mark.parametrize("spec", [None, 5, [], {"devices": 5}, {"devices": {"requests": 5}}, {"devices": [5]}])
def test_whatever_has_another_type_is_left_to_the_checks(spec: object) -> None:
    for kind in ("ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"):
        old = {"apiVersion": "resource.k8s.io/v1beta1", "kind": kind, "spec": spec}
        assert in_current_version(old) == {**old, "apiVersion": "resource.k8s.io/v1"}


def test_kinds_that_are_gone_are_counted() -> None:
    policy = dumped("policy/v1beta1", "PodSecurityPolicy", spec={"privileged": True})
    loaded = load(policy, dumped("extensions/v1beta1", "Ingress"), dumped("v1", "Node"))
    assert loaded.skipped == {"policy/v1beta1 PodSecurityPolicy": 1, "extensions/v1beta1 Ingress": 1}


def test_of_an_object_that_was_read_twice_the_newer_one_counts() -> None:
    for versions in (("9", "10"), ("10", "9")):
        nodes = (dumped("v1", "Node", version=one, spec={"unschedulable": one == "10"}) for one in versions)
        (node,) = load(*nodes).manifests
        assert node.fields["spec"]["unschedulable"]


def test_a_pod_may_have_been_replaced_by_one_of_its_name() -> None:
    pods = [dumped("v1", "Pod", version=str(number), spec=TEMPLATE["spec"]) for number in (1, 2)]
    pods[1]["metadata"]["uid"] = "other"
    (pod,) = load(*pods).manifests
    assert pod.fields["metadata"]["uid"] == "other"
