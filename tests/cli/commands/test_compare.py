import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml
from referencing import Registry, Resource

from trio_sched.cli.main import main
from trio_sched.cli.process.exit_code import ExitCode

REFERENCE = Path(__file__).parents[3] / "docs" / "reference"
OUTCOME = "outcome.schema.json"
Capture = pytest.CaptureFixture[str]
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
MOST_ALLOCATED = (
    f"{HEAD}profiles:\n- schedulerName: default-scheduler\n  pluginConfig:\n  - name: NodeResourcesFit\n"
    "    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}\n"
)


def node(name: str, cpu: str = "4") -> dict:
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "10"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": allocatable}}


def pod(name: str, cpu: str = "1", on: str = "") -> dict:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    spec = {"containers": [container], **({"nodeName": on} if on else {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def write(tmp_path: Path):
    def written(name: str, *objects: dict) -> str:
        (tmp_path / name).write_text(yaml.safe_dump_all(objects))
        return str(tmp_path / name)

    return written


def compared(capsys: Capture, *arguments: str) -> tuple[int, dict]:
    code = main(["compare", *arguments, "-o", "json"])
    data = json.loads(capsys.readouterr().out)
    check_schema(data)
    return code, data


def check_schema(data: dict) -> None:
    schemas = {name: json.loads((REFERENCE / name).read_text()) for name in ("comparison.schema.json", OUTCOME)}
    resources = [(OUTCOME, Resource.from_contents(schemas[OUTCOME]))]
    registry = Registry().with_resources(resources)
    jsonschema.Draft202012Validator(schemas["comparison.schema.json"], registry=registry).validate(data)
    listed = schemas["comparison.schema.json"]["properties"]
    assert data.keys() == listed.keys()
    for move in data["moved"]:
        assert move.keys() == listed["moved"]["items"]["properties"].keys()


def test_the_same_placements_are_no_difference(write, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "plain.yaml").write_text(HEAD)
    cluster = write("cluster.yaml", node("a"), node("b"), pod("p"), pod("q"))
    code, found = compared(capsys, "-f", cluster, "--config", str(tmp_path / "plain.yaml"))
    assert (code, found["verdict"], found["moved"]) == (0, "same", [])


def test_another_configuration_moves_pods_and_says_which_scores_did(write, tmp_path: Path, capsys: Capture) -> None:
    config = tmp_path / "pack.yaml"
    config.write_text(MOST_ALLOCATED)
    # The node of the other pod is the worst for the defaults, and the best for packing.
    cluster = write("cluster.yaml", node("full"), node("empty"), pod("there", on="full"), pod("p"))
    code, found = compared(capsys, "-f", cluster, "--config", str(config))
    assert (code, found["verdict"]) == (1, "different")
    (move,) = found["moved"]
    assert (move["pod"], move["first"], move["second"]) == ("default/p", "empty", "full")
    assert re.match(r"full scores \d+, empty \d+: NodeResourcesFit \+\d+", move["why"])
    swapped = compared(capsys, "-f", cluster, "--config", str(config), "--config", str(config))
    assert swapped[0] == 0


def test_fewer_placed_pods_are_worse(write, capsys: Capture) -> None:
    files = [write("pods.yaml", pod("p", "3"), pod("q", "3")), write("two.yaml", node("a"), node("b"))]
    one = write("one.yaml", node("a"))
    code, found = compared(capsys, "-f", files[0], "--with", files[1], "--with", one)
    assert (code, found["verdict"]) == (2, "worse")
    lost = [move for move in found["moved"] if move["second"] is None]
    assert len(lost) == 1
    assert re.search(r"there is no node b|Insufficient cpu", lost[0]["why"])
    code, found = compared(capsys, "-f", files[0], "--with", one, "--with", files[1])
    assert (code, found["verdict"]) == (1, "different")
    assert "was pending: 0/1 nodes are available: 1 Insufficient cpu." in str(found["moved"])


def test_more_nodes_are_those_of_the_second_side(write, capsys: Capture) -> None:
    cluster = write("cluster.yaml", node("a", "1"), pod("p", "3"))
    code, found = compared(capsys, "-f", cluster, "--with", write("more.yaml", node("b")))
    assert code == 1
    assert [len(found[side]["nodes"]) for side in ("first", "second")] == [1, 2]
    assert found["moved"][0]["second"] == "b"


def test_a_node_that_has_become_too_small_is_named_with_the_plugin(write, capsys: Capture) -> None:
    pods = write("pods.yaml", pod("p", "3"))
    sides = write("first.yaml", node("a")), write("second.yaml", node("a", "1"), node("b"))
    _code, found = compared(capsys, "-f", pods, "--with", sides[0], "--with", sides[1])
    assert [move["why"] for move in found["moved"]] == ["a: NodeResourcesFit: Insufficient cpu"]


def test_pods_of_one_side_only_are_a_difference(write, capsys: Capture) -> None:
    code, found = compared(capsys, "-f", write("n.yaml", node("a")), "--with", write("p.yaml", pod("p")))
    assert (code, found["onlyFirst"], found["onlySecond"]) == (1, [], ["default/p"])


def test_both_sides_stand_beside_each_other(write, tmp_path: Path, capsys: Capture) -> None:
    config = tmp_path / "pack.yaml"
    config.write_text(MOST_ALLOCATED)
    cluster = write("cluster.yaml", node("full"), node("empty"), pod("there", on="full"), pod("p"))
    assert main(["compare", "-f", cluster, "--config", str(config)]) == 1
    printed = capsys.readouterr().out
    assert re.search(r"pods placed\s+2\s+2", printed)
    assert re.search(r"default/p\s+empty\s+full\s+full scores", printed)
    assert "Pods are elsewhere; no fewer are placed." in printed
    assert "the defaults" in printed


def test_what_is_left_out_is_said_once(write, capsys: Capture) -> None:
    foreign = pod("foreign")
    foreign["spec"]["schedulerName"] = "volcano"
    cluster = write("cluster.yaml", node("a"), foreign)
    assert main(["compare", "-f", cluster, "--with", write("b.yaml", node("b"))]) == 0
    assert capsys.readouterr().err.count("Not simulated: 1 pod of volcano") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--with", "CLUSTER"], "there is no cluster to simulate"),
        (["-f", "CLUSTER"], "there is nothing to compare"),
        (["-f", "CLUSTER", "--config", "a", "--config", "b", "--config", "c"], "two are compared"),
        (["-f", "-", "--with", "CLUSTER"], "which standard input cannot be"),
        (["-f", "nowhere.yaml", "--with", "CLUSTER"], "nowhere.yaml: cannot be read"),
        (["-f", "CLUSTER", "--config", "no.yaml"], "open no.yaml: no such file or directory"),
        (["-f", "CLUSTER", "--with", "CLUSTER"], "the same object is in"),
    ],
)
def test_an_error_is_none_of_the_answers(arguments: list[str], said: str, small_cluster: Path, capsys: Capture) -> None:
    code = main(["compare", *(str(small_cluster) if one == "CLUSTER" else one for one in arguments)])
    printed = capsys.readouterr()
    assert code == ExitCode.NO_ANSWER == 3
    assert said in printed.err
    assert printed.out == ""


def zoned(name: str, cpu: str, used: str = "") -> list[dict]:
    """A node in a zone of its own, with a pod that takes *used* of its cpu."""
    one = node(name, cpu)
    one["metadata"]["labels"] = {"topology.kubernetes.io/zone": name, "kubernetes.io/hostname": name}
    return [one, *([pod(f"on-{name}", used, on=name)] if used else [])]


def storage(provisioner: str = "disk.test") -> dict:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "late"},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


CLAIM_SPEC = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1Gi"}},
    "storageClassName": "late",
}


def claim(name: str) -> dict:
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": CLAIM_SPEC}


def local_volume(on: str) -> dict:
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [on]}]}
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "late"}
    spec |= {"local": {"path": "/d"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"disk-{on}"}, "spec": spec}


def device_slice(on: str) -> dict:
    pool = {"name": on, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.test", "nodeName": on, "pool": pool, "devices": [{"name": "gpu-0"}]}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": on}, "spec": spec}


DEVICE_SPEC = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
DEVICES = [
    {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}},
    {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "g"}, "spec": DEVICE_SPEC},
    device_slice("empty"),
    device_slice("full"),
]


def using(name: str, **spec) -> dict:
    found = pod(name)
    found["spec"] |= spec
    return found


def stateful_set() -> dict:
    spec = {
        "selector": {"matchLabels": {"app": "db"}},
        "serviceName": "db",
        "template": {"metadata": {"labels": {"app": "db"}}, "spec": pod("p")["spec"]},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": CLAIM_SPEC}],
    }
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": spec}


VOLUME = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
EPHEMERAL = {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM_SPEC}}}]}
DEVICE = {"resourceClaims": [{"name": "g", "resourceClaimName": "g"}]}


@pytest.mark.parametrize(
    "objects",
    [
        [storage(), stateful_set()],
        [storage(), claim("data"), using("p", **VOLUME)],
        [storage(), using("p", **EPHEMERAL)],
        [
            storage("kubernetes.io/no-provisioner"),
            claim("data"),
            local_volume("empty"),
            local_volume("full"),
            using("p", **VOLUME),
        ],
        [*DEVICES, using("p", **DEVICE)],
    ],
    ids=["statefulset", "claim", "ephemeral", "local", "devices"],
)
def test_what_a_pod_got_where_it_went_is_no_reason_why_it_went_there(
    objects: list[dict], write, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "pack.yaml").write_text(MOST_ALLOCATED)
    cluster = write("cluster.yaml", *zoned("empty", "4"), *zoned("full", "4", used="2"), *objects)
    code, found = compared(capsys, "-f", cluster, "--config", str(tmp_path / "pack.yaml"))
    (move,) = found["moved"]
    assert (code, move["first"], move["second"]) == (1, "empty", "full")
    assert re.match(r"full scores \d+, empty \d+: NodeResourcesFit \+\d+", move["why"]), move["why"]


def test_a_volume_that_was_there_before_is_a_reason(write, capsys: Capture) -> None:
    bound = local_volume("old")
    bound["spec"] |= {"claimRef": {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data", "uid": "u"}}
    wanted = claim("data")
    wanted["metadata"] |= {"uid": "u", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    wanted = {**wanted, "spec": {**CLAIM_SPEC, "volumeName": "disk-old"}, "status": {"phase": "Bound"}}
    bound["status"] = {"phase": "Bound"}
    cluster = write("cluster.yaml", storage(), wanted, bound, *zoned("old", "4"), *zoned("new", "4"))
    first = write("free.yaml", using("p", nodeSelector={"kubernetes.io/hostname": "new"}))
    _code, found = compared(capsys, "-f", cluster, "--with", first, "--with", write("p.yaml", using("p", **VOLUME)))
    (move,) = found["moved"]
    assert (move["first"], move["second"]) == ("new", "old")
    assert move["why"] == "new: VolumeBinding: node(s) didn't match PersistentVolume's node affinity"


def test_a_volume_that_another_pod_brought_is_a_reason(write, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "pack.yaml").write_text(MOST_ALLOCATED)
    first, second = using("first", **VOLUME), using("second", **VOLUME)
    cluster = write(
        "cluster.yaml", storage(), claim("data"), *zoned("empty", "4"), *zoned("full", "4", "2"), first, second
    )
    _code, found = compared(capsys, "-f", cluster, "--config", str(tmp_path / "pack.yaml"))
    why = {move["pod"]: move["why"] for move in found["moved"]}
    assert why["default/second"] == "empty: VolumeBinding: node(s) didn't match PersistentVolume's node affinity"
