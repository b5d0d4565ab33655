from typing import Any

import pytest
from storage import Storage, pod_with

from trio_sched.config.feature_gates import resolve_feature_gates
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api import Action, ClusterEvent, Code, Hint, Resource
from trio_sched.testing import ask_hint, make_plugin, node, schedule

NAME = "NodeVolumeLimits"
REASON = "node(s) exceed max volume count"

EBS = {"name": "d", "awsElasticBlockStore": {"volumeID": "aws://zone/vol-1"}}


def bound(storage: Storage, name: str, *, handle: str = "", driver: str = "csi.test", **more: Any) -> str:
    """The name of a claim that has a volume of a CSI driver."""
    storage.claim(name, volume=f"pv-{name}", **more)
    storage.volume(f"pv-{name}", spec={"csi": {"driver": driver, "volumeHandle": handle or name}})
    return name


def refused(storage: Storage, pod: Pod, *running: Pod, nodes: Any = None) -> dict[str, list[str]]:
    outcome = schedule(pod, on=nodes or [node("n")], plugins=[NAME], pods=running, handle=storage)
    assert outcome.error is None
    return outcome.reasons


@pytest.mark.parametrize(("limit", "fits"), [(0, False), (2, False), (3, True), (None, True)])
def test_a_node_takes_so_many_volumes_of_a_driver(storage: Storage, limit: Any, fits: bool) -> None:
    storage.csi_node("n", csi_test=limit)
    running = [pod_with(bound(storage, f"r{i}"), name=f"r{i}", node_name="n") for i in range(2)]
    assert refused(storage, pod_with(bound(storage, "mine")), *running) == ({} if fits else {"n": [REASON]})


def test_a_volume_counts_once_however_many_use_it(storage: Storage) -> None:
    storage.csi_node("n", csi_test=1)
    running = pod_with(bound(storage, "r"), name="r", node_name="n")
    assert refused(storage, pod_with("r"), running) == {}
    assert refused(storage, pod_with(bound(storage, "same", handle="r")), running) == {}
    assert refused(storage, pod_with(bound(storage, "other")), running) == {"n": [REASON]}


def test_drivers_are_counted_apart_and_nodes_without_limits_take_anything(storage: Storage) -> None:
    storage.csi_node("n", csi_test=1)
    running = pod_with(bound(storage, "r", driver="csi.other"), name="r", node_name="n")
    assert refused(storage, pod_with(bound(storage, "a")), running) == {}
    two = pod_with(bound(storage, "a"), bound(storage, "b"))
    assert refused(storage, two, running, nodes=[node("n"), node("m")]) == {"n": [REASON]}


def test_claims_without_a_volume_count_for_the_driver_of_their_class(storage: Storage) -> None:
    storage.csi_node("n", csi_test=1)
    storage.storage_class()
    storage.claim("a")
    storage.claim("b")
    assert refused(storage, pod_with("a")) == {}
    assert refused(storage, pod_with("a", "b")) == {"n": [REASON]}
    storage.claim("b", of="unknown")
    assert refused(storage, pod_with("a", "b")) == {}


def test_what_is_attached_counts_too(storage: Storage) -> None:
    storage.csi_node("n", csi_test=1)
    attachment = {"attacher": "csi.test", "nodeName": "n", "source": {"persistentVolumeName": "pv-left"}}
    storage.put("VolumeAttachment", {"metadata": {"name": "va"}, "spec": attachment})
    new = pod_with(bound(storage, "new"))
    assert refused(storage, new) == {}  # the volume of the attachment is unknown
    bound(storage, "left")
    assert refused(storage, new) == {"n": [REASON]}
    assert refused(storage, new, pod_with("left", name="r", node_name="n")) == {"n": [REASON]}


def test_disks_of_in_tree_drivers_count_where_a_csi_node_is(storage: Storage) -> None:
    storage.csi_node("n", ebs_csi_aws_com=1)
    same = bound(storage, "same", handle="vol-1", driver="ebs.csi.aws.com")
    running = pod_with(same, name="r", node_name="n")
    assert refused(storage, pod_with(EBS), running) == {}
    other = {"name": "d", "awsElasticBlockStore": {"volumeID": "vol-2"}}
    assert refused(storage, pod_with(other), running, nodes=[node("n"), node("m")]) == {"n": [REASON]}
    storage.claim("translated", volume="pv-old")
    storage.volume("pv-old", spec={"awsElasticBlockStore": {"volumeID": "vol-3"}})
    assert refused(storage, pod_with("translated"), running) == {"n": [REASON]}


def test_an_unreadable_disk_is_an_error_only_where_it_would_be_translated(storage: Storage) -> None:
    bad = pod_with({"name": "d", "awsElasticBlockStore": {"volumeID": "aws://zone/nonsense"}})
    assert schedule(bad, on=[node("n")], plugins=[NAME], handle=storage).node_name == "n"
    storage.csi_node("n", ebs_csi_aws_com=1)
    outcome = schedule(bad, on=[node("n")], plugins=[NAME], handle=storage)
    assert outcome.error is not None
    assert "converting volume(d) from inline to csi" in outcome.message


def test_a_claim_that_is_missing(storage: Storage) -> None:
    storage.csi_node("n", csi_test=1)
    running = pod_with("gone", name="r", node_name="n")
    outcome = schedule(pod_with("data"), on=[node("n")], plugins=[NAME], pods=[running], handle=storage)
    text = 'looking up PVC default/data: persistentvolumeclaim "data" not found'
    assert outcome.reasons == {"n": [text]}
    assert outcome.statuses["n"].code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert refused(storage, pod_with(bound(storage, "data")), running) == {}


def test_an_ephemeral_claim_of_another_owner_is_an_error(storage: Storage) -> None:
    storage.csi_node("n", csi_test=100)
    bound(storage, "pod-scratch")
    bound(storage, "data")
    wrong = pod_with({"name": "scratch", "ephemeral": {}})
    text = "PVC default/pod-scratch was not created for pod default/pod (pod is not owner)"
    assert text in schedule(wrong, on=[node("n")], plugins=[NAME], handle=storage).message
    running = pod_with({"name": "scratch", "ephemeral": {}}, node_name="n", uid="other")
    outcome = schedule(pod_with("data"), on=[node("n")], plugins=[NAME], pods=[running], handle=storage)
    assert outcome.error is not None
    owner = {"metadata": {"ownerReferences": [{"kind": "Pod", "uid": wrong.uid, "controller": True}]}}
    bound(storage, "pod-scratch", **owner)
    assert refused(storage, wrong) == {}


def test_a_driver_may_have_to_run_on_the_node(storage: Storage) -> None:
    storage.put("CSIDriver", {"metadata": {"name": "csi.test"}, "spec": {"preventPodSchedulingIfMissing": True}})
    storage.csi_node("n", csi_test=None)
    wanting = pod_with(bound(storage, "data"))
    storage.gates["VolumeLimitScaling"] = resolve_feature_gates(emulated=["1.36"]).enabled("VolumeLimitScaling")
    assert refused(storage, wanting, nodes=[node("n"), node("m")]) == {}
    storage.gates["VolumeLimitScaling"] = resolve_feature_gates(emulated=["1.37"]).enabled("VolumeLimitScaling")
    text = "csi.test CSI driver is not installed on the node"
    assert refused(storage, wanting, nodes=[node("n"), node("m")]) == {"m": [text]}


def test_pods_without_csi_volumes_have_one_signature(storage: Storage) -> None:
    plugin = make_plugin(NAME, handle=storage)
    csi = {"name": "d", "csi": {"driver": "csi.test"}}
    assert plugin.sign(pod_with()) == plugin.sign(pod_with(csi)) is not None
    assert plugin.sign(pod_with("data")) is plugin.sign(pod_with(EBS)) is None


def test_events_and_hints(storage: Storage) -> None:
    waiting = pod_with("data")

    def asked(resource: str, action: Action, old: Any, new: Any) -> Hint | None:
        return ask_hint(NAME, ClusterEvent(resource, action), waiting, old=old, new=new, handle=storage)

    few, more = storage.csi_node("n", a=1), storage.csi_node("n", a=2)
    assert asked(Resource.CSI_NODE, Action.UPDATE, few, more) == Hint.QUEUE
    assert asked(Resource.CSI_NODE, Action.UPDATE, more, few) == Hint.SKIP
    assert asked(Resource.ASSIGNED_POD, Action.DELETE, pod_with("x", node_name="n"), None) == Hint.QUEUE
    assert asked(Resource.ASSIGNED_POD, Action.DELETE, pod_with("x"), None) == Hint.SKIP
    assert asked(Resource.ASSIGNED_POD, Action.DELETE, pod_with(node_name="n"), None) == Hint.SKIP
    assert asked(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, None, storage.claim("other")) == Hint.SKIP
    attachment = storage.put("VolumeAttachment", {"metadata": {"name": "va"}, "spec": {"attacher": "x"}})
    assert asked(Resource.VOLUME_ATTACHMENT, Action.DELETE, attachment, None) == Hint.QUEUE
