"""The commands that ``explain`` shows for a running cluster are of the versions that its API server serves."""

import json
from pathlib import Path

import httpx
import pytest
from simulator_thread import simulator_in_thread

from contrib.scenarios.pending_causes import CAUSES
from trio_sched.cli.main import main
from trio_sched.simulator import ApiServer
from trio_sched.simulator.conversion.other_versions import reshaped


@pytest.mark.parametrize(
    ("version", "named", "has_exactly"),
    [
        ("1.31", "resourceclaims.v1alpha3.resource.k8s.io", False),
        ("1.32", "resourceclaims.v1beta1.resource.k8s.io", False),
        ("1.33", "resourceclaims.v1beta2.resource.k8s.io", True),
        ("1.34", "resourceclaim", True),
    ],
)
def test_a_claim_is_changed_in_the_version_that_is_served(
    version: str,
    named: str,
    has_exactly: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (cause,) = [one for one in CAUSES if one.name == "more devices than a node has"]
    kubeconfig, server = tmp_path / "kubeconfig", ApiServer(kubernetes_version=version)
    types = server.state.types
    with simulator_in_thread(server) as simulator:
        for one in cause.objects:
            written = types.built_in(one["apiVersion"], one["kind"])
            served = types.served(written)
            assert served is not None
            root = f"/apis/{served.api_version}" if served.group else "/api/v1"
            inside = "/namespaces/default" if served.namespaced else ""
            url = f"{simulator.url}{root}{inside}/{served.plural}"
            httpx.post(url, json=reshaped(written, served, one), trust_env=False).raise_for_status()
        kubeconfig.write_text(json.dumps(simulator.kubeconfig()))
        assert main(["explain", cause.pod, "--kubeconfig", str(kubeconfig), "-o", "json"]) == 1
    (command, *_) = json.loads(capsys.readouterr().out)["explanations"][0]["remedies"][0]["commands"]
    assert f" get {named} asked -n default -o json | " in command
    patch = json.loads(command.partition("-p '")[2].partition("'")[0])
    (request,) = patch["spec"]["devices"]["requests"]
    inner = request.get("exactly", request)
    assert inner["count"] == 2
    assert inner["deviceClassName"] == "gpu"
    assert ("exactly" in request) is has_exactly


@pytest.mark.parametrize(("version", "served"), [("1.36", "v1alpha2"), ("1.37", "v1beta1")])
def test_a_gang_is_recreated_where_its_min_count_cannot_be_changed(
    version: str, served: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    groups = f"/apis/scheduling.k8s.io/{served}/namespaces/default/podgroups"
    gang = {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}
    status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}
    objects = [(groups, gang), ("/api/v1/nodes", {"metadata": {"name": "n"}, "status": status})]
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "3"}}}
    for name in ("a", "b"):
        spec = {"schedulingGroup": {"podGroupName": "g"}, "containers": [container]}
        objects.append(("/api/v1/namespaces/default/pods", {"metadata": {"name": name}, "spec": spec}))
    kubeconfig = tmp_path / "kubeconfig"
    gates = "GenericWorkload=true" if version == "1.37" else "GenericWorkload=true,GangScheduling=true"
    with simulator_in_thread(ApiServer(kubernetes_version=version)) as simulator:
        for path, body in objects:
            httpx.post(f"{simulator.url}{path}", json=body, trust_env=False).raise_for_status()
        kubeconfig.write_text(json.dumps(simulator.kubeconfig()))
        arguments = ["explain", "a", "--kubeconfig", str(kubeconfig), "--feature-gates", gates, "-o", "json"]
        assert main(arguments) == 1
        remedies = json.loads(capsys.readouterr().out)["explanations"][0]["remedies"]
        (found,) = [one for one in remedies if "minCount" in one["title"]]
        (command,) = found["commands"]
        merge = {"content-type": "application/merge-patch+json"}
        patch = command.partition("-p '")[2].partition("'")[0]
        patched = httpx.patch(f"{simulator.url}{groups}/g", content=patch, headers=merge, trust_env=False)
    assert patched.is_success is (version == "1.37")
    assert ("replace --force" in command) is (version == "1.36")
    if version == "1.37":
        assert command.startswith(f"kubectl --kubeconfig={kubeconfig} patch podgroups.v1beta1.scheduling.k8s.io g ")
