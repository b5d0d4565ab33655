"""Pods that could not be created are in the outcome of a simulation, with the reason."""

import json
from pathlib import Path

import pytest

from trio_sched.cli.main import main
from trio_sched.documents.json_values import Json

NAMESPACE = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "secure", "labels": {"pod-security.kubernetes.io/enforce": "baseline"}},
}
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
}
TEMPLATE = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"hostPID": True, "restartPolicy": "Always", "containers": [{"name": "c", "image": "i"}]},
}


def workload(kind: str, api_version: str = "apps/v1", **spec: object) -> Json:
    metadata = {"name": kind.lower(), "namespace": "secure"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": {"template": TEMPLATE, **spec}}


SELECTOR = {"selector": {"matchLabels": {"a": "b"}}}
JOB = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}  # type: ignore[dict-item]
MANIFESTS = [
    NAMESPACE,
    NODE,
    workload("Deployment", replicas=3, **SELECTOR),
    workload("StatefulSet", replicas=2, serviceName="s", **SELECTOR),
    workload("DaemonSet", **SELECTOR),
    workload("Job", "batch/v1", parallelism=2, completions=5, template=JOB),
]


def simulate(tmp_path: Path, manifests: list[Json], *flags: str) -> int:
    (tmp_path / "cluster.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}))
    return int(main(["simulate", "-f", str(tmp_path / "cluster.json"), *flags]))


def test_what_workloads_lack_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(tmp_path, MANIFESTS) == 0
    shown = capsys.readouterr().out
    assert "Could not be created" in shown
    assert "Deployment deployment" in shown
    assert 'violates PodSecurity "baseline:latest"' in " ".join(shown.split())
    assert "0 placed, 0 pending, " in shown
    assert "could not be created, after" in shown


def test_the_data_has_the_number_and_the_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(tmp_path, MANIFESTS, "--output=json") == 0
    found = json.loads(capsys.readouterr().out)
    lacking = {(one["namespace"], one["kind"], one["workload"]): one["pods"] for one in found["notCreated"]}
    assert lacking["secure", "Deployment", "deployment"] == 3
    assert lacking["secure", "DaemonSet", "daemonset"] == 1
    assert lacking["secure", "StatefulSet", "statefulset"] == 2
    assert lacking["secure", "Job", "job"] == 2
    assert found["summary"]["notCreated"] == 8
    assert all("host namespaces (hostPID=true)" in one["message"] for one in found["notCreated"])


def test_what_came_into_being_later_is_not_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "secure"}}
    assert simulate(tmp_path, [namespace, *MANIFESTS[1:3]], "--output=json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["notCreated"] == []
    assert found["summary"]["placed"] == 3


def test_the_page_has_it_as_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(tmp_path, MANIFESTS, "--output=html") == 0
    assert "Could not be created" in capsys.readouterr().out


def test_explaining_a_workload_without_pods_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(tmp_path, MANIFESTS[:3], "--explain=secure/deployment") == 1
    error = capsys.readouterr().err
    assert error.startswith("Error: Deployment secure/deployment has no pods, for they could not be created: pods")
