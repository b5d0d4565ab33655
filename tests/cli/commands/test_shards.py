"""``trio-sched shards``."""

import json
from pathlib import Path
from typing import Any

import pytest
from simulator_thread import Simulator, simulator_in_thread

from trio_sched.cli.main import main
from trio_sched.cli.process.exit_code import ExitCode
from trio_sched.documents.json_values import encode
from trio_sched.engine.sharding.ownership import shard_of
from trio_sched.simulator import ApiServer
from trio_sched.testing import node, pod

Capture = pytest.CaptureFixture[str]
NODES = [f"n{number}" for number in range(6)]


def store(server: ApiServer, plural: str, key: str, fields: dict[str, Any]) -> None:
    server.store.create(plural, key, fields)


def lease(name: str, holder: str, annotations: dict[str, str] | None = None) -> dict[str, Any]:
    return {
        "kind": "Lease",
        "apiVersion": "coordination.k8s.io/v1",
        "metadata": {"name": name, "namespace": "kube-system", "annotations": annotations or {}},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"},
    }


def shown(capsys: Capture, folder: Path, server: ApiServer, *arguments: str) -> tuple[ExitCode, str, str]:
    kubeconfig = folder / "kubeconfig"
    with simulator_in_thread(server) as simulator:
        assert isinstance(simulator, Simulator)
        kubeconfig.write_text(json.dumps(simulator.kubeconfig()))
        code = main(["shards", "--kubeconfig", str(kubeconfig), *arguments])
    answer = capsys.readouterr()
    return code, answer.out, answer.err


@pytest.fixture
def server() -> ApiServer:
    return ApiServer()


def fill(server: ApiServer, holder: str = "shards-of-2") -> None:
    replicas = {"trio-sched.dev/replicas": '{"a": 3, "b": 9}'}
    leases = "leases.coordination.k8s.io"
    store(server, leases, "kube-system/kube-scheduler", lease("kube-scheduler", holder, replicas))
    store(server, leases, "kube-system/kube-scheduler-shard-0-of-2", lease("kube-scheduler-shard-0-of-2", "a"))
    for name in NODES:
        store(server, "nodes", name, json.loads(encode(node(name))))
    waiting = pod("p", uid="u", nominated_node_name=next(n for n in NODES if shard_of(n, 2) != shard_of("u", 2)))
    store(server, "pods", "default/p", json.loads(encode(waiting)))


def test_holders_nodes_and_pods_are_shown(server: ApiServer, capsys: Capture, tmp_path: Path) -> None:
    fill(server)
    code, out, _err = shown(capsys, tmp_path, server, "-o", "json")
    found = json.loads(out)
    assert code == ExitCode.OK
    assert found["replicas"] == ["a", "b"]
    assert [one["holder"] for one in found["shards"]] == ["a", ""]
    assert [one["nodes"] for one in found["shards"]] == [sum(shard_of(n, 2) == s for n in NODES) for s in (0, 1)]
    decider = shard_of("u", 2)
    assert found["shards"][decider]["pending"] == 1
    assert found["shards"][1 - decider]["nominated"] == ["default/p"]
    assert found["shards"][0]["renewedSeconds"] is not None
    assert found["shards"][1]["renewedSeconds"] is None


def test_nodes_are_counted_by_the_label_that_the_replicas_go_by(
    server: ApiServer, capsys: Capture, tmp_path: Path
) -> None:
    fill(server, "shards-of-2-with-groups-by-example.com/pool")
    for name in ("x", "y", "z"):
        store(server, "nodes", name, json.loads(encode(node(name, labels={"example.com/pool": "1"}))))
    _code, out, _err = shown(capsys, tmp_path, server, "-o", "json")
    by_name = [sum(shard_of(n, 2) == s for n in NODES) for s in (0, 1)]
    found = json.loads(out)
    assert [one["nodes"] for one in found["shards"]] == [by_name[0], by_name[1] + 3]
    assert (found["nodeLabel"], found["nodesWithoutLabel"]) == ("example.com/pool", len(NODES))
    _code, out, _err = shown(capsys, tmp_path, server)
    assert f"nodes are shared by the label example.com/pool; {len(NODES)} nodes without it by the name" in out


def test_the_table_has_a_line_for_each_shard_and_replica(server: ApiServer, capsys: Capture, tmp_path: Path) -> None:
    fill(server)
    code, out, _err = shown(capsys, tmp_path, server)
    assert code == ExitCode.OK
    assert "2 shards of 2 replicas, by the leases of kube-system/kube-scheduler" in out
    assert "nobody" in out
    assert "a: shards 0" in out
    assert "b: no shard, it waits" in out


def test_it_is_said_if_nothing_is_shared(server: ApiServer, capsys: Capture, tmp_path: Path) -> None:
    code, _out, err = shown(capsys, tmp_path, server)
    assert code == ExitCode.FAILURE
    assert "nobody holds the lease kube-system/kube-scheduler" in err
    store(server, "leases.coordination.k8s.io", "kube-system/kube-scheduler", lease("kube-scheduler", "somebody"))
    code, _out, err = shown(capsys, tmp_path, server)
    assert code == ExitCode.FAILURE
    assert "is held by somebody, which shares no work" in err


def test_a_pod_that_the_same_replica_decides_on_and_evicts_others_for_waits_for_nobody_else(
    server: ApiServer, capsys: Capture, tmp_path: Path
) -> None:
    fill(server)
    leases = "leases.coordination.k8s.io"
    store(server, leases, "kube-system/kube-scheduler-shard-1-of-2", lease("kube-scheduler-shard-1-of-2", "a"))
    _code, out, _err = shown(capsys, tmp_path, server, "-o", "json")
    assert [one["nominated"] for one in json.loads(out)["shards"]] == [[], []]


@pytest.mark.parametrize("suffix", ["", "-with-groups"])
def test_pods_of_groups_are_those_of_shard_0_if_the_replicas_know_of_groups(
    suffix: str, server: ApiServer, capsys: Capture, tmp_path: Path
) -> None:
    fill(server, f"shards-of-2{suffix}")
    uid = next(uid for uid in "abcdef" if shard_of(uid, 2) == 1)
    store(server, "pods", "default/g", json.loads(encode(pod("g", uid=uid, group="gang"))))
    _code, out, _err = shown(capsys, tmp_path, server, "-o", "json")
    pending = [one["pending"] for one in json.loads(out)["shards"]]
    decider = shard_of("u", 2)
    of_group = 0 if suffix else 1
    assert pending == [(decider == shard) + (of_group == shard) for shard in (0, 1)]
