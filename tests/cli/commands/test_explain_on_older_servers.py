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
