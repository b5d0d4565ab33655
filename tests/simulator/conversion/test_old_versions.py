import json
from io import StringIO

import pytest

from trio_sched.documents.json_values import Json
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
