from typing import Any

import msgspec
import pytest
from call_count import count_calls
from storage import Storage, pod_with

from trio_sched.objects.storage.persistent_volume import PersistentVolumeClaim
from trio_sched.plugin_api import Action, ClusterEvent, Code, CycleState, Hint, Resource
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing import ask_hint, make_plugin, node, schedule
from trio_sched.testing.plugin_harness import make_table

NAME = "VolumeRestrictions"

GCE = {"name": "d", "gcePersistentDisk": {"pdName": "disk"}}
GCE_READ_ONLY = {"name": "d", "gcePersistentDisk": {"pdName": "disk", "readOnly": True}}
EBS = {"name": "d", "awsElasticBlockStore": {"volumeID": "vol-1", "readOnly": True}}
ISCSI = {"name": "d", "iscsi": {"iqn": "iqn.1", "lun": 1, "targetPortal": "a"}}
ISCSI_ELSEWHERE = {"name": "d", "iscsi": {"iqn": "iqn.1", "lun": 2, "targetPortal": "b"}}
RBD = {"name": "d", "rbd": {"monitors": ["a", "b"], "pool": "p", "image": "i"}}
RBD_OTHER_MONITOR = {"name": "d", "rbd": {"monitors": ["c"], "pool": "p", "image": "i"}}
RBD_OTHER_IMAGE = {"name": "d", "rbd": {"monitors": ["b"], "pool": "p", "image": "j"}}


@pytest.mark.parametrize(
    ("there", "wanted", "conflict"),
    [
        (GCE, GCE, True),
        (GCE_READ_ONLY, GCE, True),
        (GCE_READ_ONLY, GCE_READ_ONLY, False),
        (EBS, EBS, True),
        (ISCSI, ISCSI_ELSEWHERE, True),
        (RBD, RBD, True),
        (RBD, RBD_OTHER_MONITOR, False),
        (RBD, RBD_OTHER_IMAGE, False),
        (GCE, ISCSI, False),
    ],
)
def test_a_node_takes_a_disk_once(there: Any, wanted: Any, conflict: bool) -> None:
    running = [pod_with(there, name="r", node_name="n")]
    outcome = schedule(pod_with(wanted), on=[node("n"), node("m")], plugins=[NAME], pods=running)
    assert outcome.reasons == ({"n": ["node(s) had no available disk"]} if conflict else {})
    if conflict:
        assert outcome.statuses["n"].code == Code.UNSCHEDULABLE


def test_a_read_write_once_pod_claim_is_not_used_by_a_second_pod(storage: Storage) -> None:
    storage.claim(spec={"accessModes": ["ReadWriteOncePod"]})
    running = [pod_with("data", name="r", node_name="n")]
    outcome = schedule(pod_with("data"), on=[node("n"), node("m")], plugins=[NAME], pods=running, handle=storage)
    assert outcome.node_name is None
    assert outcome.message.startswith(
        "0/2 nodes are available: 2 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
        "already in-use by another pod."
    )
    elsewhere = [pod_with("data", name="r", namespace="other", node_name="n")]
    assert schedule(pod_with("data"), on=[node("n")], plugins=[NAME], pods=elsewhere, handle=storage).node_name == "n"


def test_users_of_the_claim_are_counted_in_dry_runs(storage: Storage) -> None:
    storage.claim(spec={"accessModes": ["ReadWriteOncePod"]})
    user = pod_with("data", name="r", node_name="n")
    table, state, wanting = make_table([node("n")], [user]), CycleState(), pod_with("data")
    plugin = make_plugin(NAME, handle=storage)
    assert plugin.pre_filter(wanting, NodeColumns(table), state) is None
    tried = state.clone()
    plugin.remove_pod(wanting, user, NodeColumns(table).node(0), tried)
    assert plugin.filter(wanting, NodeColumns(table), tried).passes.tolist() == [True]
    plugin.add_pod(wanting, user, NodeColumns(table).node(0), tried)
    assert plugin.filter(wanting, NodeColumns(table), tried).passes.tolist() == [False]
    assert plugin.filter(wanting, NodeColumns(table), state).passes.tolist() == [False]


def test_a_claim_that_is_missing_ends_the_cycle(storage: Storage) -> None:
    outcome = schedule(pod_with("data"), on=[node("n")], plugins=[NAME], handle=storage)
    assert outcome.statuses["n"].code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert 'persistentvolumeclaim "data" not found' in outcome.message


def test_pods_without_disks_and_claims_have_one_signature() -> None:
    plugin = make_plugin(NAME)
    assert plugin.sign(pod_with()) == plugin.sign(pod_with({"name": "d", "emptyDir": {}})) is not None
    assert plugin.sign(pod_with("data")) is plugin.sign(pod_with(GCE)) is None


@pytest.mark.parametrize(
    ("deleted", "namespace", "hint"),
    [
        (GCE, "default", Hint.QUEUE),
        (GCE, "other", Hint.SKIP),
        (EBS, "default", Hint.SKIP),
        ("data", "default", Hint.QUEUE),
        ("else", "default", Hint.SKIP),
    ],
)
def test_hints_for_deleted_pods(deleted: Any, namespace: str, hint: Hint) -> None:
    gone = pod_with(deleted, name="gone", namespace=namespace)
    event = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE)
    assert ask_hint(NAME, event, pod_with(GCE, "data"), old=gone) == hint


@pytest.mark.parametrize(("name", "hint"), [("data", Hint.QUEUE), ("other", Hint.SKIP)])
def test_hints_for_new_claims(name: str, hint: Hint) -> None:
    new = msgspec.convert({"metadata": {"name": name, "namespace": "default"}}, PersistentVolumeClaim)
    event = ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD)
    assert ask_hint(NAME, event, pod_with("data"), new=new) == hint


@pytest.mark.parametrize("source", ["gcePersistentDisk", "rbd"])
def test_twice_the_disks_are_twice_the_work_and_not_four_times(source: str) -> None:
    def work(count: int) -> int:
        def disks(owner: str) -> list[dict[str, Any]]:
            if source == "rbd":
                return [{"name": "d", "rbd": {"monitors": [f"{owner}-{i}"], "pool": "p"}} for i in range(count)]
            return [{"name": "d", "gcePersistentDisk": {"pdName": f"{owner}-{i}"}} for i in range(count)]

        running, wanted = pod_with(*disks("a"), name="r", node_name="n"), pod_with(*disks("b"))
        deleted = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE)
        assert ask_hint(NAME, deleted, wanted, old=running) == Hint.SKIP
        return count_calls(lambda: schedule(wanted, on=[node("n")], plugins=[NAME], pods=[running])) + count_calls(
            lambda: ask_hint(NAME, deleted, wanted, old=running)
        )

    assert work(400) < 2.5 * work(200)
