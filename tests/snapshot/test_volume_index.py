from typing import Any

import msgspec
import numpy as np
import pytest
from pod_infos import pod_info

from trio_sched.objects.pod import Pod
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.node_table import NodeTable
from trio_sched.snapshot.volume_index import VolumeIndex
from trio_sched.testing import make_table, node

CLAIM = {"name": "a", "persistentVolumeClaim": {"claimName": "data"}}
EPHEMERAL = {"name": "b", "ephemeral": {}}
DISK = {"name": "c", "gcePersistentDisk": {"pdName": "d"}}
NO_DISK = {"name": "d", "configMap": {"name": "c"}}


def using(name: str, on: str, *volumes: Any, namespace: str = "default") -> Pod:
    fields = {
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}"},
        "spec": {"nodeName": on, "volumes": list(volumes)},
    }
    return msgspec.convert(fields, Pod)


@pytest.fixture
def table() -> NodeTable:
    pods = [
        using("p", "a", CLAIM, EPHEMERAL, NO_DISK),
        using("q", "b", CLAIM, DISK),
        using("r", "b", NO_DISK),
        using("s", "c", CLAIM, CLAIM, namespace="other"),
    ]
    return make_table([node("a"), node("b"), node("c")], pods)


def there(table: NodeTable) -> dict[str, list[str]]:
    return {
        NodeColumns(table).name(position): [pod.name for pod in pods]
        for position, pods in NodeColumns(table).pods_with_disks()
    }


def test_users_of_claims_are_counted_per_namespace(table: NodeTable) -> None:
    assert NodeColumns(table).claim_users("default", "data") == 2
    assert NodeColumns(table).claim_users("other", "data") == 2
    assert NodeColumns(table).claim_users("default", "p-b") == 0


def test_pods_with_disks_are_found_on_all_nodes_and_on_some(table: NodeTable) -> None:
    assert there(table) == {"a": ["p"], "b": ["q"], "c": ["s"]}
    some = NodeColumns(table).take(np.array([2, 1]))
    assert [(position, pods[0].name) for position, pods in some.pods_with_disks()] == [(0, "s"), (1, "q")]
    (found,) = NodeColumns(table).take(slice(1, 2)).pods_with_disks()
    assert (found[0], found[1][0].name) == (0, "q")


def test_disks_are_counted(table: NodeTable) -> None:
    assert NodeColumns(table).disk_counts().tolist() == [2, 2, 2]
    assert NodeColumns(table).ephemeral_volume_counts().tolist() == [1, 0, 0]


def test_pods_that_go_are_forgotten(table: NodeTable) -> None:
    table.remove_pod(0, "uid-default-p")
    table.remove_pod(1, "uid-default-r")
    assert there(table) == {"b": ["q"], "c": ["s"]}
    assert NodeColumns(table).claim_users("default", "data") == 1
    assert NodeColumns(table).disk_counts().tolist() == [0, 2, 2]
    assert NodeColumns(table).ephemeral_volume_counts().tolist() == [0, 0, 0]


def test_a_node_that_goes_takes_its_pods_with_it_and_another_gets_its_row(table: NodeTable) -> None:
    gone = table.remove_node("a")
    assert there(table) == {"c": ["s"], "b": ["q"]}
    assert NodeColumns(table).names == ["c", "b"]
    assert NodeColumns(table).disk_counts().tolist() == [2, 2]
    assert NodeColumns(table).claim_users("default", "data") == 1
    table.add_node(node("a"), gone)
    assert there(table) == {"c": ["s"], "b": ["q"], "a": ["p"]}
    assert NodeColumns(table).ephemeral_volume_counts().tolist() == [0, 0, 1]


def test_a_pod_can_come_and_go_again_and_again(table: NodeTable) -> None:
    pod = using("t", "a", CLAIM)
    for _ in range(3):
        table.add_pod(0, pod_info(pod))
        assert NodeColumns(table).claim_users("default", "data") == 3
        table.remove_pod(0, pod.uid)
    assert NodeColumns(table).claim_users("default", "data") == 2


def test_rows_can_be_copied_and_go_their_own_way(table: NodeTable) -> None:
    copy, original = VolumeIndex(), table.volumes
    copy.copy_row(original, 1, 0)
    copy.copy_row(original, 0, 1)
    assert [list(copy.rows[row]) for row in (0, 1)] == [["uid-default-q"], ["uid-default-p"]]
    assert (copy.disks, copy.ephemeral) == ({0: 2, 1: 2}, {1: 1})
    copy.remove(1, using("p", "a", CLAIM, EPHEMERAL, NO_DISK))
    assert (copy.disks, copy.ephemeral, copy.users("default", "data")) == ({0: 2}, {}, -1)
    assert there(table) == {"a": ["p"], "b": ["q"], "c": ["s"]}
    copy.copy_row(original, 9, 0)
    assert not copy.rows
    assert not copy.disks
