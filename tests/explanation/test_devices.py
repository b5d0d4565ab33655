"""Which of several requirements for devices is the cause, and how many devices are left to ask for."""

from pathlib import Path

from explained import explained, titles

from contrib.scenarios.manifests import (
    device_claim,
    device_claim_template,
    device_class,
    devices,
    node,
    pod,
    wants_devices,
    wants_template,
)

CARDS = {**device_class("gpu"), "spec": {**device_class("gpu")["spec"], "extendedResourceName": "gpu.test/card"}}


def test_an_extended_resource_is_no_cause_where_a_claim_is(tmp_path: Path) -> None:
    asked = device_claim("asked", selector='device.attributes["gpu.test"].model == "h100"')
    both = pod(requests={"gpu.test/card": "1"}, **wants_devices("asked"))
    data = explained([node("n1"), CARDS, devices("n1", "gpu-0"), asked, both], tmp_path, "asked", gates="")
    assert data["cause"]["clauses"] == ["devices of claim asked"]


def test_of_more_devices_than_there_are_the_most_that_there_are_is_proposed(tmp_path: Path) -> None:
    asked = device_claim("asked", count=32)
    objects = [node("n1"), CARDS, devices("n1", "gpu-0", "gpu-1"), asked, pod(**wants_devices("asked"))]
    data = explained(objects, tmp_path, "asked", gates="")
    assert titles(data) == ["recreate the device claim asked: 2 devices of class gpu"]
    assert data["tried"] == []


def test_of_a_claim_that_was_made_from_a_template_it_is_said_that_others_are_made_from_it(tmp_path: Path) -> None:
    claim = device_claim("asked", count=2)
    made = {**claim, "metadata": {**claim["metadata"], "annotations": {"resource.kubernetes.io/pod-claim-name": "gpu"}}}
    objects = [node("n1"), CARDS, devices("n1", "gpu-0"), made, pod(**wants_devices("asked"))]
    data = explained(objects, tmp_path, "asked", gates="")
    assert data["remedies"][0]["notes"] == ["claims of other pods are made from the template as it is"]


def test_a_template_of_another_namespace_is_copied(tmp_path: Path) -> None:
    template = device_claim_template("one-gpu")
    elsewhere = {**template, "metadata": {"name": "one-gpu", "namespace": "shared"}}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shared"}}
    objects = [node("n1"), CARDS, devices("n1", "gpu-0"), namespace, elsewhere, pod(**wants_template("one-gpu"))]
    data = explained(objects, tmp_path, "asked", gates="")
    assert "namespace shared has one" in data["cause"]["text"]
    assert titles(data) == ["make the device claim template one-gpu as in namespace shared"]
    (command,) = data["remedies"][0]["commands"]
    assert '"kind":"ResourceClaimTemplate","metadata":{"name":"one-gpu","namespace":"default"}' in command
    assert data["remedies"][0]["touches"] == "Object"


def test_a_template_that_exists_is_said_to_be_waited_for(tmp_path: Path) -> None:
    template = device_claim_template("one-gpu")
    objects = [node("n1"), CARDS, devices("n1", "gpu-0"), template, pod(**wants_template("one-gpu"))]
    data = explained(objects, tmp_path, "asked", gates="")
    assert data["cause"]["reasons"] == ["ResourceClaimNotFound"]
    assert data["cause"]["text"].endswith("from the template one-gpu; kube-controller-manager makes it")


def test_another_template_and_a_smaller_request_go_together(tmp_path: Path) -> None:
    asked = pod(requests={"cpu": "2"}, **wants_template("onegpu"))
    objects = [node("n1", cpu="1"), CARDS, devices("n1", "gpu-0"), device_claim_template("one-gpu"), asked]
    data = explained(objects, tmp_path, "asked", gates="")
    assert titles(data)[0] == "use the device claim template one-gpu and request cpu ≤ 1"
    (command,) = data["remedies"][0]["commands"]
    assert '"resourceClaimTemplateName":"one-gpu"' in command
    assert '"requests":{"cpu":"1"}' in command
