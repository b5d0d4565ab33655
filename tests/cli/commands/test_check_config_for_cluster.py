"""``check-config --kubeconfig``: what a running cluster lacks of what a configuration needs."""

import json
from pathlib import Path
from typing import Any

import pytest
from simulator_thread import simulator_in_thread

from trio_sched.cli.main import main
from trio_sched.cli.process.exit_code import ExitCode
from trio_sched.simulator import ApiServer

Capture = pytest.CaptureFixture[str]
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
OF_1_37 = """\
profiles:
- pluginConfig:
  - name: VolumeBinding
    args: {shape: [{utilization: 0, score: 10}, {utilization: 100, score: 0}]}
"""


def checked(
    capsys: Capture, folder: Path, server: ApiServer, *arguments: str, body: str = ""
) -> tuple[ExitCode, dict[str, Any]]:
    """The exit code, and what was found for the one file."""
    file, kubeconfig = folder / "scheduler.yaml", folder / "kubeconfig"
    file.write_text(HEAD + body)
    with simulator_in_thread(server) as simulator:
        kubeconfig.write_text(json.dumps(simulator.kubeconfig()))
        code = main(["check-config", str(file), "--kubeconfig", str(kubeconfig), "-o", "json", *arguments])
    (found,) = json.loads(capsys.readouterr().out)["files"]
    return code, found


def kinds(found: dict[str, Any], state: str) -> dict[str, str | None]:
    return {one["resource"]: one["version"] for one in found["cluster"]["kinds"] if one["state"] == state}


def test_the_versions_are_told_in_which_kinds_are_served(capsys: Capture, tmp_path: Path) -> None:
    code, found = checked(capsys, tmp_path, ApiServer(kubernetes_version="1.33"))
    assert (code, found["problems"], found["cluster"]["version"]) == (ExitCode.OK, [], "1.33")
    served = kinds(found, "served")
    assert served["resourceclaims.resource.k8s.io"] == "v1beta2"
    assert served["pods"] == served["csinodes.storage.k8s.io"] == "v1"
    assert found["cluster"]["lacking"] == []


def test_a_kind_that_is_not_served_is_a_warning_with_its_cost_and_the_mend(capsys: Capture, tmp_path: Path) -> None:
    gates = "--feature-gates=GenericWorkload=true,GangScheduling=true"
    code, found = checked(capsys, tmp_path, ApiServer(kubernetes_version="1.34"), gates)
    assert code == ExitCode.OK
    assert kinds(found, "missing") == {"podgroups.scheduling.k8s.io": None}
    (problem,) = found["problems"]
    assert problem["severity"] == "warning"
    assert "pods of pod groups stay pending" in problem["message"]
    assert "--runtime-config" in problem["message"]


def test_a_right_that_lacks_is_an_error(capsys: Capture, tmp_path: Path) -> None:
    asked: list[dict[str, Any]] = []

    def allows(spec: dict[str, Any]) -> bool:
        asked.append(spec)
        attributes = spec["resourceAttributes"]
        is_watch = (attributes["verb"], attributes["resource"]) == ("watch", "csinodes")
        return not is_watch and attributes["subresource"] != "binding" and attributes["resource"] != "leases"

    user = "system:serviceaccount:kube-system:trio-sched"
    code, found = checked(capsys, tmp_path, ApiServer(allows=allows), "--as", user)
    assert code == ExitCode.FAILURE
    assert kinds(found, "forbidden") == {"csinodes.storage.k8s.io": "v1"}
    lacking = {one["resource"]: one["verbs"] for one in found["cluster"]["lacking"]}
    assert lacking["pods/binding"] == ["create"]
    assert "pods" not in lacking
    assert lacking["leases.coordination.k8s.io"] == ["create", "get", "list", "update", "watch"]
    assert {one["severity"] for one in found["problems"]} == {"error"}
    assert any("no pod is bound" in one["message"] and "trio-sched rbac" in one["message"] for one in found["problems"])
    assert {one["user"] for one in asked} == {user}
    assert "system:serviceaccounts:kube-system" in asked[0]["groups"]
    lease = next(one["resourceAttributes"] for one in asked if one["resourceAttributes"]["verb"] == "update")
    assert (lease["namespace"], lease["name"]) == ("kube-system", "kube-scheduler")


@pytest.mark.parametrize(("version", "code"), [("1.37", ExitCode.OK), ("1.36", ExitCode.FAILURE)])
def test_the_configuration_is_read_as_a_scheduler_reads_it_there(
    version: str, code: ExitCode, capsys: Capture, tmp_path: Path
) -> None:
    found_code, found = checked(capsys, tmp_path, ApiServer(kubernetes_version=version), body=OF_1_37)
    assert found_code == code
    assert ("cluster" in found) is (code == ExitCode.OK)


def test_text_ends_with_the_versions(capsys: Capture, tmp_path: Path) -> None:
    file, kubeconfig = tmp_path / "scheduler.yaml", tmp_path / "kubeconfig"
    file.write_text(HEAD)
    with simulator_in_thread(ApiServer(kubernetes_version="1.31")) as simulator:
        kubeconfig.write_text(json.dumps(simulator.kubeconfig()))
        assert main(["check-config", str(file), "--kubeconfig", str(kubeconfig)]) == ExitCode.OK
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"{file}: ok"
    assert second.startswith(f"{file}: Kubernetes 1.31: deviceclasses.resource.k8s.io v1alpha3, ")


def test_a_cluster_that_cannot_be_reached_is_an_error(capsys: Capture, tmp_path: Path) -> None:
    file, kubeconfig = tmp_path / "scheduler.yaml", tmp_path / "kubeconfig"
    file.write_text(HEAD)
    with simulator_in_thread() as simulator:
        kubeconfig.write_text(json.dumps(simulator.kubeconfig()))
    assert main(["check-config", str(file), "--kubeconfig", str(kubeconfig)]) == ExitCode.FAILURE
    assert "the cluster could not be looked at" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["scheduler.yaml", "--as", "me"], "--as is about"), (["-", "--context", "c"], "as a file")],
)
def test_options_that_do_not_fit_together_are_refused(
    arguments: list[str], words: str, capsys: Capture, tmp_path: Path
) -> None:
    assert main(["check-config", *arguments]) == ExitCode.USAGE
    assert words in capsys.readouterr().err
