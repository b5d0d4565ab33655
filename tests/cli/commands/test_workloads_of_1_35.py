"""``simulate`` and ``explain`` of clusters of 1.35, whose workloads contain their pod groups."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from simulator_thread import simulator_in_thread
from workloads_of_1_35 import member_of_workload, workload

from trio_sched.cli.main import main
from trio_sched.simulator import ApiServer

Capture = pytest.CaptureFixture[str]
GATES = "--feature-gates=GenericWorkload=true,GangScheduling=true"
OBJECTS: list[dict[str, Any]] = [
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "node"},
        "status": {"allocatable": {"cpu": "3", "memory": "4Gi", "pods": "10"}},
    },
    workload("training", workers=2),
    member_of_workload("whole-0", "training", "workers", "0"),
    member_of_workload("whole-1", "training", "workers", "0"),
    member_of_workload("part", "training", "workers"),
]


def written(folder: Path, objects: list[dict[str, Any]]) -> str:
    file = folder / "objects.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return str(file)


def seen(number: int) -> dict[str, str]:
    """What a server adds to metadata."""
    return {"uid": f"u-{number}", "resourceVersion": str(number + 1), "creationTimestamp": "2026-01-01T00:00:00Z"}


def test_gangs_in_files_are_simulated_by_the_version_that_has_them(tmp_path: Path, capsys: Capture) -> None:
    file = written(tmp_path, OBJECTS)
    assert main(["simulate", "-f", file, GATES, "--kubernetes-version=1.35", "-o", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["summary"]["placed"], [one["pods"] for one in data["pending"]]) == (2, [["default/part"]])
    assert main(["simulate", "-f", file, GATES]) == 1
    assert "Pod default/part: spec.workloadRef: Kubernetes 1.35 alone has it" in capsys.readouterr().err


def test_a_gang_in_a_dump_is_explained(tmp_path: Path, capsys: Capture) -> None:
    dumped = [{**one, "metadata": {**one["metadata"], **seen(number)}} for number, one in enumerate(OBJECTS)]
    for one in dumped:
        if one["kind"] == "Pod":
            one |= {"spec": {**one["spec"], "schedulerName": "default-scheduler"}, "status": {"phase": "Pending"}}
    assert main(["explain", "part", "-f", written(tmp_path, dumped), GATES, "-o", "json"]) == 1
    (one,) = json.loads(capsys.readouterr().out)["explanations"]
    assert one["cause"]["reasons"] == ["GangIncomplete"]
    assert one["remedies"][0]["commands"] == ["# create the workload training again: its pod groups cannot be changed"]


@pytest.mark.parametrize("has_workload", [True, False])
def test_a_gang_of_a_running_cluster_is_explained(has_workload: bool, tmp_path: Path, capsys: Capture) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    with simulator_in_thread(ApiServer(kubernetes_version="1.35")) as simulator:
        for one in OBJECTS:
            if one["kind"] == "Workload" and not has_workload:
                continue
            root = f"/apis/{one['apiVersion']}" if "/" in one["apiVersion"] else "/api/v1"
            inside = "/namespaces/default" if "namespace" in one["metadata"] else ""
            url = f"{simulator.url}{root}{inside}/{one['kind'].lower()}s"
            httpx.post(url, json=one, trust_env=False).raise_for_status()
        kubeconfig.write_text(json.dumps(simulator.kubeconfig()))
        assert main(["explain", "part", "--kubeconfig", str(kubeconfig), GATES, "-o", "json"]) == 1
    (one,) = json.loads(capsys.readouterr().out)["explanations"]
    assert one["cause"]["reasons"] == ["GangIncomplete" if has_workload else "PodGroupNotFound"]
