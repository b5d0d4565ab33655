"""What a simulation shows: utilisation, fragmentation, preemptions, times; as text and by the schema."""

import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from trio_sched.cli.main import main
from trio_sched.cli.process.exit_code import ExitCode
from trio_sched.simulation.explanations import check_explained
from trio_sched.simulator.manifests.manifests import Manifest

Capture = pytest.CaptureFixture[str]
SCHEMA = Path(__file__).parents[2] / "docs" / "reference" / "outcome.schema.json"

TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE},
}


def node(name: str, *, zone: str = "", pool: str = "", gpus: int = 0, cpu: str = "4") -> dict:
    labels = {"topology.kubernetes.io/zone": zone, "trio-sched.dev/pool": pool}
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "10", **({"example.com/gpu": str(gpus)} if gpus else {})}
    metadata = {"name": name, "labels": {key: value for key, value in labels.items() if value}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"allocatable": allocatable}}


def pod(name: str, *, on: str = "", arrives: str = "", runs: str = "", priority: str = "", **requests: str) -> dict:
    annotations = {"trio-sched.dev/arrive-seconds": arrives, "trio-sched.dev/run-seconds": runs}
    metadata = {"name": name, "annotations": {key: value for key, value in annotations.items() if value}}
    requests = {key.replace("gpu", "example.com/gpu"): value for key, value in requests.items()}
    resources = {"requests": requests, "limits": {key: value for key, value in requests.items() if "/" in key}}
    spec = {"containers": [{"name": "c", "image": "x", "resources": resources}]}
    spec |= {"nodeName": on} if on else {}
    spec |= {"priorityClassName": priority} if priority else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def simulated(tmp_path: Path, capsys: Capture, *objects: dict, output: str = "json") -> str:
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    assert main(["simulate", "-f", str(path), "--output", output]) == ExitCode.OK
    return capsys.readouterr().out


def data_of(tmp_path: Path, capsys: Capture, *objects: dict) -> dict:
    found = json.loads(simulated(tmp_path, capsys, *objects))
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(found)
    # Nothing is shown that the schema does not describe.
    jsonschema.Draft202012Validator(closed(schema)).validate(found)
    return found


def closed(schema: object) -> object:
    """*schema*, with no room for properties that it does not name."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: closed(value) for key, value in schema.items()}
    if "required" in found:
        found.setdefault("additionalProperties", False)
    return found


def test_zones_and_pools_say_what_is_requested(tmp_path: Path, capsys: Capture) -> None:
    nodes = [node("a", zone="z1", pool="p"), node("b", zone="z1", pool="p"), node("c", zone="z2", pool="q")]
    found = data_of(tmp_path, capsys, *nodes, pod("one", on="a", cpu="1"), pod("two", on="c", cpu="3"))
    zones = {one["name"]: (one["nodes"], one["requested"]["cpu"], one["allocatable"]["cpu"]) for one in found["zones"]}
    assert zones == {"z1": (2, 1000, 8000), "z2": (1, 3000, 4000)}
    assert [(one["name"], one["nodes"]) for one in found["pools"]] == [("p", 2), ("q", 1)]


def test_fragmentation_is_the_share_that_a_typical_pod_cannot_use(tmp_path: Path, capsys: Capture) -> None:
    # Two cores are typical; node a has one left, b has four: a fifth lies where none fits.
    pods = [pod("one", on="a", cpu="2"), pod("two", on="a", cpu="1"), pod("big", cpu="100")]
    found = data_of(tmp_path, capsys, node("a"), node("b"), *pods)
    assert found["pools"][0]["fragmentation"] == {"cpu": 0.2, "memory": None}


def test_devices_are_stranded_where_the_cores_are_used_up(tmp_path: Path, capsys: Capture) -> None:
    nodes = [node("a", gpus=4), node("b", gpus=4)]
    pods = [pod("trains", on="a", cpu="2", gpu="1"), pod("serves", on="a", cpu="2"), pod("web", on="b", cpu="1")]
    found = data_of(tmp_path, capsys, *nodes, *pods)
    assert found["pools"][0]["fragmentation"]["example.com/gpu"] == pytest.approx(3 / 7, abs=1e-4)


def test_times_to_schedule_are_those_of_pods_that_were_bound(tmp_path: Path, capsys: Capture) -> None:
    # The second waits until the first has ended; the third had its node from the beginning.
    pods = [
        pod("first", cpu="3", runs="60", priority="system-node-critical"),
        pod("second", cpu="3"),
        pod("third", on="a", cpu="1"),
    ]
    found = data_of(tmp_path, capsys, node("a"), *pods)
    seconds = {one["pod"]: one["secondsToSchedule"] for one in found["placements"]}
    assert seconds["third"] is None
    assert seconds["first"] < 1
    assert 60 < seconds["second"] < 75
    time = found["timeToSchedule"]
    assert (time["pods"], time["p50"], time["p99"], time["max"]) == (
        2,
        seconds["first"],
        seconds["second"],
        seconds["second"],
    )


def test_preemptions_say_who_made_room_for_whom_where_and_when(tmp_path: Path, capsys: Capture) -> None:
    objects = [node("a"), pod("low", cpu="3"), pod("high", cpu="3", arrives="100", priority="system-node-critical")]
    found = data_of(tmp_path, capsys, *objects)
    (one,) = found["preempted"]
    assert (one["pod"], one["by"], one["node"]) == ("default/low", "default/high", "a")
    assert 100 <= one["atSeconds"] < 102
    assert [placed["pod"] for placed in found["placements"]] == ["high"]
    assert re.search(r"default/low\s+default/high\s+a", simulated(tmp_path, capsys, *objects, output="table"))


def test_events_of_a_dump_are_no_preemptions_of_the_simulation(tmp_path: Path, capsys: Capture) -> None:
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "default", "uid": "e"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "old"},
        "reason": "Preempted",
        "message": "Preempted by pod 1234 on node a",
    }
    assert data_of(tmp_path, capsys, node("a"), event)["preempted"] == []


def test_an_empty_simulation_is_described_by_the_schema(tmp_path: Path, capsys: Capture) -> None:
    found = data_of(tmp_path, capsys, node("a"))
    assert found["timeToSchedule"] is None
    assert found["version"] == 1


def test_large_clusters_are_summarised_and_shown_on_request(tmp_path: Path, capsys: Capture) -> None:
    nodes = [node(f"n{number:03}", zone=f"z{number % 2}") for number in range(101)]
    objects = [*nodes, pod("p", on="n077", cpu="1")]
    printed = simulated(tmp_path, capsys, *objects, output="table")
    assert "The 20 most used of 101 nodes" in printed
    assert printed.index("n077") < printed.index("n000")
    assert "n050" not in printed
    assert "--nodes shows all of them" in printed
    assert re.search(r"\n\s*z1\s+50\s", printed)
    assert main(["simulate", "-f", str(tmp_path / "cluster.yaml"), "--nodes"]) == ExitCode.OK
    printed = capsys.readouterr().out
    assert "n050" in printed
    assert "most used" not in printed


def test_many_workloads_are_cut_short(tmp_path: Path, capsys: Capture) -> None:
    pods = [pod(f"p{number}", on="a") for number in range(60)]
    printed = simulated(tmp_path, capsys, node("a"), *pods, output="table")
    assert "and 10 smaller workloads; --pods shows every pod" in printed


# --- explanations ---


def explained(tmp_path: Path, capsys: Capture, name: str, *objects: dict) -> dict:
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    assert main(["simulate", "-f", str(path), "-o", "json", "--explain", name]) == ExitCode.OK
    found = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator(closed(json.loads(SCHEMA.read_text()))).validate(found)
    (one,) = found["explanations"]
    return one


def tainted(name: str) -> dict:
    found = node(name)
    found["spec"] = {"taints": [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}]}
    return found


def rejections(explanation: dict) -> dict[str, dict[str, list[str]]]:
    """Plugin → reason → nodes."""
    return {
        one["plugin"]: {", ".join(group["reasons"]): sorted(group["nodes"]) for group in one["rejected"]}
        for one in explanation["filters"]
        if one["rejected"]
    }


def test_every_filter_says_what_it_thinks_of_every_node(tmp_path: Path, capsys: Capture) -> None:
    # The scheduler stops at the first reason of a node; here b has both of its own.
    one = explained(tmp_path, capsys, "default/p", node("a", cpu="1"), tainted("b"), pod("p", cpu="5"))
    assert one["node"] is None
    found = rejections(one)
    assert list(found["TaintToleration"].values()) == [["b"]]
    assert found["NodeResourcesFit"] == {"Insufficient cpu": ["a", "b"]}
    assert (one["feasible"], one["best"]) == (0, [])


def test_a_placed_pod_is_explained_on_the_nodes_without_it(tmp_path: Path, capsys: Capture) -> None:
    # It takes all of its node, where there would be no room for it a second time.
    one = explained(tmp_path, capsys, "p", node("a"), node("b", cpu="1"), pod("p", cpu="4"))
    assert one["node"] == "a"
    assert rejections(one) == {"NodeResourcesFit": {"Insufficient cpu": ["b"]}}
    (best,) = one["best"]
    assert best["node"] == "a"
    assert best["total"] == sum(part["score"] * part["weight"] for part in best["scores"])
    assert {part["plugin"]: part["weight"] for part in best["scores"]}["TaintToleration"] == 3


def test_the_best_of_many_nodes_are_shown_in_order(tmp_path: Path, capsys: Capture) -> None:
    nodes = [node(f"n{number}", cpu=str(number)) for number in range(2, 32)]
    one = explained(tmp_path, capsys, "p", *nodes, pod("p", cpu="1"))
    totals = [best["total"] for best in one["best"]]
    assert (one["feasible"], len(totals)) == (30, 20)
    assert totals == sorted(totals, reverse=True)
    assert one["node"] in [best["node"] for best in one["best"] if best["total"] == totals[0]]


def test_a_gated_pod_is_rejected_before_any_node(tmp_path: Path, capsys: Capture) -> None:
    gated = pod("p")
    gated["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    one = explained(tmp_path, capsys, "p", node("a"), gated)
    assert (one["rejected"]["plugin"], one["rejected"]["extensionPoint"]) == ("SchedulingGates", "PreEnqueue")
    assert one["filters"] == []


def test_a_pre_filter_leaves_nodes_out(tmp_path: Path, capsys: Capture) -> None:
    pinned = pod("p")
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    pinned["spec"]["affinity"] = {"nodeAffinity": required}
    one = explained(tmp_path, capsys, "p", node("a"), node("b"), pinned)
    assert one["leftOut"] == {"plugins": ["NodeAffinity"], "nodes": ["b"]}
    assert [best["node"] for best in one["best"]] == ["a"]


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet"])
@pytest.mark.parametrize("replicas", [1, 2])
def test_of_a_workload_a_pending_pod_is_explained(kind: str, replicas: int, tmp_path: Path, capsys: Capture) -> None:
    cpu = {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "3"}}}]}
    spec = {**DEPLOYMENT["spec"], "replicas": replicas, "template": {**TEMPLATE, "spec": cpu}}
    labels = {"app": "other"}
    template = {**TEMPLATE, "metadata": {"labels": labels}}
    small = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    other = {**DEPLOYMENT, "metadata": {"name": "web-a"}, "spec": small}
    one = explained(tmp_path, capsys, "web", node("a"), other, {**DEPLOYMENT, "kind": kind, "spec": spec})
    assert one["pod"].startswith("default/web-")
    assert not one["pod"].startswith("default/web-a-")
    assert one["node"] == ("a" if replicas == 1 else None)


def test_explanations_are_tables_for_people(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump_all([node("a"), tainted("b"), pod("p", cpu="1")]))
    assert main(["simulate", "-f", str(path), "--explain", "p"]) == ExitCode.OK
    printed = capsys.readouterr().out
    assert "default/p  is on a" in printed
    assert "Filters (1 of 2 nodes pass all)" in printed
    assert re.search(r"TaintToleration\s+1\s+1 node\(s\) had untolerated taint", printed)
    assert re.search(r"a\*\s+\d+\s", printed)


def test_patterns_and_the_pending_pods_are_explained(tmp_path: Path, capsys: Capture) -> None:
    big = [pod(name, cpu="9") for name in ("big-1", "big-2", "other")]
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod("x", cpu="9")["spec"]}
    spec = {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump_all([node("a"), pod("small"), *big, {**DEPLOYMENT, "spec": spec}]))

    def names(*explained: str) -> list[str]:
        options = [f"--explain={name}" for name in explained]
        assert main(["simulate", "-f", str(path), "-o", "json", *options]) == ExitCode.OK
        return [one["pod"] for one in json.loads(capsys.readouterr().out)["explanations"]]

    assert names("default/big-*") == ["default/big-1", "default/big-2"]
    assert names("[so]*", "default/small") == ["default/other", "default/small"]
    *single, of_deployment = names("pending")
    assert single == ["default/big-1", "default/big-2", "default/other"]
    assert of_deployment.startswith("default/web-")
    assert main(["simulate", "-f", str(path), "--explain", "x*"]) == ExitCode.FAILURE
    assert "no pod matches 'default/x*'; write NAMESPACE/NAME" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("foreign", "is of the scheduler 'volcano', which is"),
        ("web-zz", "there is no pod 'default/web-zz' to explain\n"),
    ],
)
def test_what_cannot_be_explained_is_said(name: str, said: str, tmp_path: Path, capsys: Capture) -> None:
    foreign = pod("foreign")
    foreign["spec"]["schedulerName"] = "volcano"
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump_all([node("a"), pod("p"), foreign, DEPLOYMENT]))
    assert main(["simulate", "-f", str(path), "--explain", name]) == ExitCode.FAILURE
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("default/q", ""),
        ("other/web-1", ""),
        ("other/web", "; did you mean 'default/web'?"),
        ("other/pod", "; did you mean 'default/pod'?"),
        ("default/wob-1", "; did you mean 'default/wob-12'?"),
        ("default/webb-5", "; did you mean 'default/web'?"),
        ("x" * 1000, ""),
    ],
)
def test_pods_that_cannot_come_into_being_are_a_mistake_in_the_command(
    name: str, hint: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("trio_sched.cli.commands.simulate.run_plan")  # it is said before anything is simulated
    pods = [pod("pod"), pod("wob-12")] if "wob" in name else [pod("pod")]
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump_all([node("a"), *pods, DEPLOYMENT]))
    assert main(["simulate", "-f", str(path), "--explain", name]) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert "there is no pod or workload" in said
    assert said.endswith(f"to explain{hint}\n")


@pytest.mark.parametrize(
    ("kind", "name"), [("Deployment", "web"), ("Job", "web"), ("StatefulSet", "web"), ("CronJob", "w" * 52)]
)
def test_pods_of_workloads_may_come_into_being(kind: str, name: str) -> None:
    workload = Manifest({"kind": kind, "metadata": {"name": name, "namespace": "shop"}})
    check_explained([f"shop/{name}-1", f"shop/{name[:45]}-7cf2"], [workload])
    drawn = Manifest({"kind": kind, "metadata": {"generateName": "drawn-"}})
    check_explained(["drawn-abcde-1"], [drawn])
    single = Manifest({"kind": "Pod", "metadata": {"generateName": "single-"}})
    check_explained(["default/single-x"], [single])
