"""``simulate`` and ``explain`` of clusters of 1.35, whose workloads contain their pod groups."""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from simulator_thread import simulator_in_thread
from workloads_of_1_35 import member_of_workload, workload

from trio_sched.cli.main import main
from trio_sched.objects.pod_groups.workload_groups import PLURAL, with_groups_of_workloads
from trio_sched.simulator import ApiServer
from trio_sched.testing import pod

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
    refused = "kind: Kubernetes 1.36 has no Workload in scheduling.k8s.io/v1alpha1; that of --kubernetes-version 1.35"
    assert refused in capsys.readouterr().err
    pods = written(tmp_path, [one for one in OBJECTS if one["kind"] != "Workload"])
    assert main(["simulate", "-f", pods, GATES]) == 1
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


def running(folder: Path, server: ApiServer | None = None, *, has_workload: bool = True) -> AbstractContextManager[str]:
    """The kubeconfig of a running cluster of 1.35 with `OBJECTS`; without the workload, if so."""

    @contextmanager
    def run() -> Iterator[str]:
        kubeconfig = folder / "kubeconfig"
        with simulator_in_thread(server or ApiServer(kubernetes_version="1.35")) as simulator:
            for one in OBJECTS:
                if one["kind"] == "Workload" and not has_workload:
                    continue
                root = f"/apis/{one['apiVersion']}" if "/" in one["apiVersion"] else "/api/v1"
                inside = "/namespaces/default" if "namespace" in one["metadata"] else ""
                url = f"{simulator.url}{root}{inside}/{one['kind'].lower()}s"
                httpx.post(url, json=one, trust_env=False).raise_for_status()
            kubeconfig.write_text(json.dumps(simulator.kubeconfig()))
            yield str(kubeconfig)

    return run()


@pytest.mark.parametrize("has_workload", [True, False])
def test_a_gang_of_a_running_cluster_is_explained(has_workload: bool, tmp_path: Path, capsys: Capture) -> None:
    with running(tmp_path, has_workload=has_workload) as kubeconfig:
        assert main(["explain", "part", "--kubeconfig", kubeconfig, GATES, "-o", "json"]) == 1
    (one,) = json.loads(capsys.readouterr().out)["explanations"]
    if has_workload:
        assert one["cause"]["reasons"] == ["GangIncomplete"]
        return
    assert one["cause"]["reasons"] == ["WorkloadNotFound"]
    assert "there is no workload training with a pod group workers in namespace default" in json.dumps(one)


def test_a_gang_whose_workloads_the_cluster_does_not_serve_is_explained_as_single_pods(
    tmp_path: Path, capsys: Capture
) -> None:
    server = ApiServer(kubernetes_version="1.35")
    server.faults.fail_next(99, verb="list", resource=PLURAL, code=404, reason="NotFound", message="not served")
    with running(tmp_path, server) as kubeconfig:
        assert main(["explain", "part", "--kubeconfig", kubeconfig, GATES, "-o", "json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["explanations"]
    assert one["cause"]["fitsNow"] == "node"


def test_a_running_cluster_of_1_35_is_simulated_with_its_gangs(tmp_path: Path, capsys: Capture) -> None:
    with running(tmp_path) as kubeconfig:
        assert main(["simulate", "--kubeconfig", kubeconfig, GATES, "-o", "json"]) == 0
    printed = capsys.readouterr()
    data = json.loads(printed.out)
    assert (data["summary"]["placed"], [one["pods"] for one in data["pending"]]) == (2, [["default/part"]])
    assert printed.err == ""


def test_where_no_workloads_are_served_pods_that_name_one_are_not_held_back() -> None:
    part = pod("part", group="training:workers")
    assert with_groups_of_workloads([], [part]) == []
    (made,) = with_groups_of_workloads([], [part, pod("alone"), pod("other", group="g")], are_served=False)
    assert (made.name, made.min_count) == ("training:workers", None)
