import json
from pathlib import Path

import pytest

from trio_sched.cli.main import main
from trio_sched.cli.process.exit_code import ExitCode

Capture = pytest.CaptureFixture[str]

STALE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/9 nodes are available: said by another scheduler",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


def dumped_pod(name: str, *, node: str = "", scheduler: str = "default-scheduler", cpu: str = "1") -> dict:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    spec = {"containers": [container], "schedulerName": scheduler, **({"nodeName": node} if node else {})}
    metadata = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "creationTimestamp": "2026-01-01T00:00:00Z"}
    status = {"phase": "Running"} if node else {"phase": "Pending", "conditions": [STALE]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def dumped_node(name: str, **metadata: object) -> dict:
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name}, "uid": f"uid-{name}", **metadata}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"allocatable": allocatable}}


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """Both pods of the first node would be spread by a scheduler; one pod is another scheduler's."""
    pods = [dumped_pod("a", node="n1"), dumped_pod("b", node="n1"), dumped_pod("c", scheduler="volcano")]
    path = tmp_path / "dump.json"
    items = [dumped_node("n1"), dumped_node("n2"), *pods]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return path


def test_a_dump_keeps_its_nodes_and_says_once_who_waits_for_others(dump: Path, capsys: Capture) -> None:
    assert main(["simulate", "-f", str(dump), "-o", "json"]) == ExitCode.OK
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert {one["pod"]: one["node"] for one in found["placements"]} == {"a": "n1", "b": "n1"}
    (waiting,) = found["pending"]
    assert (waiting["reason"], waiting["pods"]) == ("OtherScheduler", ["shop/c"])
    assert "said by another scheduler" not in printed.out
    assert printed.err == "Not simulated: 1 pod of volcano; --as-scheduler NAME schedules them, too\n"


def test_all_pods_are_placed_anew_and_those_of_other_schedulers_too(dump: Path, capsys: Capture) -> None:
    arguments = ["simulate", "-f", str(dump), "--reschedule", "all", "--as-scheduler", "all", "-o", "json"]
    assert main(arguments) == ExitCode.OK
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    nodes = {one["pod"]: one["node"] for one in found["placements"]}
    assert nodes.keys() == {"a", "b", "c"}
    assert nodes["a"] != nodes["b"]
    assert printed.err == "Placed again: 2 pods\n"
    assert found["pending"] == []


def test_ten_more_nodes_like_this_one(dump: Path, tmp_path: Path, capsys: Capture) -> None:
    more = tmp_path / "more.json"
    more.write_text(json.dumps(dumped_node("extra", annotations={"trio-sched.dev/count": "10"})))
    assert main(["simulate", "-f", str(dump), "-f", str(more), "-o", "json"]) == ExitCode.OK
    names = {one["name"] for one in json.loads(capsys.readouterr().out)["nodes"]}
    assert names == {"n1", "n2", *(f"extra-{number}" for number in range(1, 11))}


@pytest.mark.parametrize("pattern", ["web", "/web", "shop/", "a/b/c", "", "ALL"])
def test_what_selects_no_pods_is_a_usage_error(pattern: str, dump: Path, capsys: Capture) -> None:
    assert main(["simulate", "-f", str(dump), "--reschedule", pattern]) == ExitCode.USAGE
    assert "is none of all, pending and NAMESPACE/NAME" in capsys.readouterr().err


def test_an_option_that_selects_nothing_says_so(dump: Path, capsys: Capture) -> None:
    assert main(["simulate", "-f", str(dump), "--reschedule", "shop/zz*"]) == ExitCode.FAILURE
    assert "no pod matches 'shop/zz*'" in capsys.readouterr().err
    assert main(["simulate", "-f", str(dump), "--as-scheduler", "volcanoes"]) == ExitCode.FAILURE
    assert "no pod has the scheduler 'volcanoes'\ndid you mean 'volcano'?" in capsys.readouterr().err
