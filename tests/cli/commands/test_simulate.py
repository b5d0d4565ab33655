import json
import re
from pathlib import Path

import pytest
import yaml

from trio_sched.cli.main import main
from trio_sched.cli.process.exit_code import ExitCode

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

Capture = pytest.CaptureFixture[str]


def simulated(capsys: Capture, *arguments: str) -> dict:
    assert main(["simulate", *arguments, "--output", "json"]) == ExitCode.OK
    return json.loads(capsys.readouterr().out)


def test_pods_are_placed_and_those_that_wait_say_why(small_cluster: Path, capsys: Capture) -> None:
    found = simulated(capsys, "-f", str(small_cluster))
    assert {one["pod"] for one in found["placements"]} == {"web-1", "web-2", "db"}
    assert {one["phase"] for one in found["placements"]} == {"Running"}
    (waiting,) = found["pending"]
    assert waiting["pods"] == ["default/huge"]
    assert waiting["message"].startswith("0/2 nodes are available: 2 Insufficient cpu. no new claims")
    assert found["summary"] | {"simulatedSeconds": 0} == {
        "nodes": 2,
        "placed": 3,
        "pending": 1,
        "notCreated": 0,
        "settled": True,
        "simulatedSeconds": 0,
    }


def test_usage_counts_what_the_placed_pods_request(small_cluster: Path, capsys: Capture) -> None:
    found = simulated(capsys, "-f", str(small_cluster))
    (pool,) = found["pools"]
    assert pool["name"] == "small"
    assert pool["requested"]["cpu"] == 4000
    assert pool["allocatable"] == {"cpu": 8000, "memory": 16 * 1024**3}
    assert sum(node["pods"] for node in found["nodes"]) == pool["pods"] == 3


def test_the_table_tells_the_same_to_people(small_cluster: Path, capsys: Capture) -> None:
    assert main(["simulate", "-f", str(small_cluster)]) == ExitCode.OK
    printed = capsys.readouterr()
    assert re.search(r"default\s+web\s+2\s+1\s+node [ab]", printed.out)
    assert "0/2 nodes are available: 2 Insufficient cpu." in printed.out
    assert "4 pods, 2 nodes: 3 placed, 1 pending" in printed.out
    assert printed.err == ""  # no default plugin is missing


def test_every_pod_is_listed_on_request(small_cluster: Path, capsys: Capture) -> None:
    assert main(["simulate", "-f", str(small_cluster), "--pods"]) == ExitCode.OK
    assert re.search(r"default\s+web-1\s+[ab]\s+Running", capsys.readouterr().out)


def test_yaml_holds_what_json_holds(small_cluster: Path, capsys: Capture) -> None:
    as_json = simulated(capsys, "-f", str(small_cluster))
    assert main(["simulate", "-f", str(small_cluster), "-o", "yaml"]) == ExitCode.OK
    assert yaml.safe_load(capsys.readouterr().out) == as_json


def test_a_pod_that_ends_makes_room_before_the_cluster_counts_as_settled(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(
        """
apiVersion: v1
kind: Node
metadata: {name: a}
status: {allocatable: {cpu: "1", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: Pod
metadata: {name: first, annotations: {trio-sched.dev/run-seconds: "7200"}}
spec: {priorityClassName: system-node-critical, containers: [{name: c, image: x, resources: {requests: {cpu: "1"}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: second}
spec: {containers: [{name: c, image: x, resources: {requests: {cpu: "1"}}}]}
"""
    )
    found = simulated(capsys, "-f", str(path))
    assert [(one["pod"], one["phase"]) for one in found["placements"]] == [
        ("first", "Succeeded"),
        ("second", "Running"),
    ]
    assert found["summary"]["simulatedSeconds"] > 7200
    found = simulated(capsys, "-f", str(path), "--for", "1h")
    assert [one["pod"] for one in found["placements"]] == ["first"]
    assert found["summary"]["settled"] is False


def test_nobody_waits_for_the_end_of_a_pod_on_an_unreachable_node(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(
        """
apiVersion: v1
kind: Node
metadata: {name: a}
status: {allocatable: {cpu: "1", pods: "10"}, conditions: [{type: Ready, status: Unknown}]}
---
apiVersion: v1
kind: Pod
metadata: {name: p, annotations: {trio-sched.dev/run-seconds: "7200"}}
spec: {nodeName: a, containers: [{name: c, image: x}]}
status: {phase: Running}
"""
    )
    found = simulated(capsys, "-f", str(path))
    assert [(one["pod"], one["phase"]) for one in found["placements"]] == [("p", "Running")]
    assert found["summary"]["settled"]
    assert found["summary"]["simulatedSeconds"] < 7200


def test_the_configuration_decides_whose_pods_are_scheduled(
    small_cluster: Path, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "config.yaml").write_text(f"{HEAD}profiles: [{{schedulerName: other}}]\n")
    found = simulated(capsys, "-f", str(small_cluster), "--config", str(tmp_path / "config.yaml"))
    (waiting,) = found["pending"]
    assert (waiting["reason"], len(waiting["pods"])) == ("OtherScheduler", 4)
    assert "'default-scheduler'" in waiting["message"]


def test_the_same_seed_gives_the_same_placements_and_another_seed_another_draw(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "cluster.yaml"
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"n{number}"},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
        }
        for number in range(20)
    ]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "x"}]},
    }
    path.write_text(yaml.safe_dump_all([*nodes, pod]))
    drawn = [
        simulated(capsys, "-f", str(path), "--seed", seed)["placements"][0]["node"]
        for seed in ("1", "1", "2", "3", "4")
    ]
    assert drawn[0] == drawn[1]
    assert len(set(drawn)) > 1


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], ExitCode.USAGE, "there is no cluster to simulate; give -f FILE"),
        (["-f", "nowhere.yaml"], ExitCode.FAILURE, "nowhere.yaml: cannot be read: "),
        (["-f", "CLUSTER", "--begin", "tomorrow"], ExitCode.USAGE, "'tomorrow' is no time from 1970 to 9000"),
        (["-f", "CLUSTER", "--begin", "9999-01-01T00:00:00Z"], ExitCode.USAGE, "is no time from 1970 to 9000"),
        (["-f", "CLUSTER", "--for", "5"], ExitCode.USAGE, "'5' is no duration; write for example 90s"),
        (["-f", "CLUSTER", "--for", "0s"], ExitCode.USAGE, "must be longer than nothing"),
        (["-f", "CLUSTER", "--serve", "localhost"], ExitCode.USAGE, "'localhost' is no HOST:PORT"),
        (["-f", "CLUSTER", "--serve", ":1", "--pods"], ExitCode.USAGE, "--serve shows nothing by itself"),
        (["-f", "CLUSTER", "--output", "xml"], ExitCode.USAGE, "'xml' is not one of"),
        (["-f", "CLUSTER", "--config", "no.yaml"], ExitCode.FAILURE, "open no.yaml: no such file or directory"),
        (["-f", "CLUSTER", "--feature-gates", "Foo=true"], ExitCode.FAILURE, "unrecognized feature gate: Foo"),
        (["-f", "CLUSTER", "--feature-gates", "SchedulerAsyncAPICalls=true"], ExitCode.FAILURE, "not supported yet"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(
    arguments: list[str], code: ExitCode, said: str, small_cluster: Path, capsys: Capture
) -> None:
    assert main(["simulate", *(str(small_cluster) if one == "CLUSTER" else one for one in arguments)]) == code
    printed = capsys.readouterr()
    assert said in printed.err
    assert "Traceback" not in printed.err
    assert printed.out == ""


def test_a_mistake_in_a_manifest_is_named_with_its_place(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\nkind: Pod\n")
    assert main(["simulate", "-f", str(path)]) == ExitCode.FAILURE
    assert f"Error: {path}, line 5 (document 2): apiVersion is missing\n" in capsys.readouterr().err


def test_a_mistake_in_the_configuration_is_named_with_its_file(
    small_cluster: Path, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(f"{HEAD}parallelism: -1\n")
    assert main(["simulate", "-f", str(small_cluster), "--config", str(path)]) == ExitCode.FAILURE
    assert f"{path}: parallelism: Invalid value: -1" in capsys.readouterr().err


def test_extenders_are_refused_in_simulated_time(small_cluster: Path, tmp_path: Path, capsys: Capture) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(f"{HEAD}extenders: [{{urlPrefix: http://127.0.0.1:1, filterVerb: filter}}]\n")
    assert main(["simulate", "-f", str(small_cluster), "--config", str(config)]) != ExitCode.OK
    assert "extenders cannot be asked in simulated time; add --serve" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["-f", "--config"])
def test_an_empty_file_name_is_not_the_current_folder(option: str, small_cluster: Path, capsys: Capture) -> None:
    assert main(["simulate", "-f", str(small_cluster), option, ""]) == ExitCode.USAGE
    assert "the name of a file is empty" in capsys.readouterr().err


@pytest.mark.parametrize("port", ["9" * 5000, "²", "65536", "-1"])
def test_what_is_no_port_is_a_usage_error(port: str, small_cluster: Path, capsys: Capture) -> None:
    assert main(["simulate", "-f", str(small_cluster), "--serve", f"127.0.0.1:{port}"]) == ExitCode.USAGE
    assert "is no HOST:PORT" in capsys.readouterr().err


def test_a_run_time_that_is_no_number_does_not_keep_the_simulation_going(small_cluster: Path, capsys: Capture) -> None:
    annotated = "metadata: {name: db, annotations: {trio-sched.dev/run-seconds: nan},"
    small_cluster.write_text(small_cluster.read_text().replace("metadata: {name: db,", annotated))
    assert main(["simulate", "-f", str(small_cluster)]) == ExitCode.OK
    printed = capsys.readouterr()
    assert "run-seconds is no number and is ignored: 'nan'" in printed.err
    assert "had not come to rest" not in printed.out


def test_devices_and_pod_groups_are_reported(tmp_path: Path, capsys: Capture) -> None:
    manifests = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": "n1",
                "labels": {"trio-sched.dev/pool": "gpu"},
                "annotations": {"trio-sched.dev/devices": "gpu.example.com: {count: 3, failed: [gpu-2]}"},
            },
            "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
        },
        {
            "apiVersion": "scheduling.k8s.io/v1alpha2",
            "kind": "PodGroup",
            "metadata": {"name": "gang"},
            "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
        },
    ]
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}), encoding="utf-8")
    found = simulated(capsys, "-f", str(file))
    assert found["devices"] == [{"driver": "gpu.example.com", "pool": "gpu", "count": 3, "allocated": 0, "tainted": 1}]
    assert found["podGroups"] == [
        {"namespace": "default", "name": "gang", "minCount": 2, "placed": 0, "pending": 0, "message": ""}
    ]
    assert main(["simulate", "-f", str(file)]) == ExitCode.OK
    tables = capsys.readouterr().out
    assert "Devices" in tables
    assert "Pod groups" in tables


def test_pods_that_are_not_tried_say_what_they_wait_for(tmp_path: Path, capsys: Capture) -> None:
    claims = [{"name": "gpu", "resourceClaimTemplateName": "misspelt"}]
    spec = {"containers": [{"name": "main", "image": "app"}], "resourceClaims": claims}
    file = tmp_path / "cluster.json"
    file.write_text(
        json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "train"}, "spec": spec}), encoding="utf-8"
    )
    found = simulated(capsys, "-f", str(file))
    assert found["summary"]["settled"]
    (waiting,) = found["pending"]
    assert waiting == {
        "reason": "Gated",
        "message": 'DynamicResources: pod "default/train": ResourceClaim not created yet',
        "note": "",
        "pods": ["default/train"],
    }


def test_a_gang_that_does_not_fit_says_how_much_it_lacks(tmp_path: Path, capsys: Capture) -> None:
    group = {"metadata": {"name": "gang"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}
    manifests = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n1"},
            "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
        },
        {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", **group},
    ]
    for name in ("p1", "p2"):
        container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": "3"}}}
        spec = {"containers": [container], "schedulingGroup": {"podGroupName": "gang"}}
        manifests.append({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}), encoding="utf-8")
    gates = "GenericWorkload=true,GangScheduling=true"
    (found,) = simulated(capsys, "-f", str(file), "--feature-gates", gates)["podGroups"]
    assert (found["placed"], found["pending"]) == (0, 2)
    assert found["message"].startswith("1 of 2 pods fit; pod default/p2 lacks 2 cpu")


def test_a_cluster_without_nodes_is_told_how_to_get_some(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pods = tmp_path / "pods.yaml"
    pods.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n")
    assert main(["simulate", "-f", str(pods)]) == ExitCode.OK
    said = capsys.readouterr().err
    assert "Note: there are no nodes, so no pod can be placed." in said
    nodes = tmp_path / "nodes.yaml"
    nodes.write_text("\n".join(line for line in said.splitlines() if line.startswith("  ")))
    assert main(["simulate", "-f", str(pods), "-f", str(nodes)]) == ExitCode.OK
    shown = capsys.readouterr()
    assert "1 pods, 3 nodes: 1 placed" in shown.out
    assert "no nodes" not in shown.err
