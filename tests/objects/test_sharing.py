from typing import Any

import msgspec
import pytest

from trio_sched.kube_client.kinds import NODE_KIND, POD_KIND
from trio_sched.objects import sharing
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.objects.sharing import SharedValues, share_node, share_pod

MOMENTS = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z")


def pod(i: int = 0, version: int = 1, **changes: Any) -> Pod:
    """One of many pods of a template, freshly decoded."""
    made: dict[str, Any] = {
        "metadata": {
            "name": f"p-{i}",
            "namespace": "shop",
            "uid": f"u-{i}",
            "resourceVersion": str(version),
            "labels": {"app": "shop"},
            "annotations": {"checksum": "1f"},
            "ownerReferences": [{"kind": "ReplicaSet", "name": "shop-5d", "uid": "r", "controller": True}],
        },
        "spec": {
            "nodeName": f"n-{i}",
            "schedulerName": "default-scheduler",
            "containers": [{"name": "main", "image": "shop:1", "resources": {"requests": {"cpu": "1"}}}],
            "tolerations": [{"key": "spot", "operator": "Exists"}],
            "volumes": [{"name": "cache"}],
            "affinity": {"nodeAffinity": {}},
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": MOMENTS[0]}],
            "containerStatuses": [{"name": "main"}],
        },
    }
    for path, value in changes.items():
        part, _, name = path.partition("_")
        made[part][name] = value
    return msgspec.json.decode(msgspec.json.encode(made), type=Pod)


def node(i: int = 0, version: int = 1, images: int = 2) -> Node:
    made = {
        "metadata": {"name": f"n-{i}", "uid": f"u-{i}", "resourceVersion": str(version), "labels": {"host": f"n-{i}"}},
        "spec": {"taints": [{"key": "spot", "effect": "NoSchedule"}]},
        "status": {
            "allocatable": {"cpu": "4"},
            "conditions": [{"type": "Ready", "status": "True"}],
            "images": [{"names": [f"shop:{image}"], "sizeBytes": 100} for image in range(images)],
        },
    }
    return msgspec.json.decode(msgspec.json.encode(made), type=Node)


def test_pods_of_one_template_share_what_is_equal() -> None:
    a, b = share_pod(pod(1), None), share_pod(pod(2), None)
    assert (a, b) == (pod(1), pod(2))
    for part, names in (
        ("metadata", ("namespace", "labels", "annotations", "owner_references")),
        ("spec", ("scheduler_name", "containers", "tolerations", "volumes", "affinity")),
        ("status", ("phase", "conditions", "container_statuses")),
    ):
        for name in names:
            assert getattr(getattr(a, part), name) is getattr(getattr(b, part), name), name


def test_conditions_that_differ_in_their_timestamps_share_their_texts() -> None:
    conditions = [[{"type": "Ready", "status": "True", "lastTransitionTime": moment}] for moment in MOMENTS]
    a, b = (share_pod(pod(i, status_conditions=one), None).status.conditions for i, one in enumerate(conditions))
    assert a is not None
    assert b is not None
    assert a[0].type is b[0].type
    assert a[0].status is b[0].status
    assert (a[0].last_transition_time, b[0].last_transition_time) == MOMENTS


def test_a_new_version_keeps_the_parts_that_did_not_change() -> None:
    old = share_pod(pod(version=1, spec_hostNetwork=True, status_startTime=MOMENTS[0]), None)
    same = share_pod(pod(version=2, spec_hostNetwork=True, status_startTime=MOMENTS[0]), old)
    assert same.metadata.resource_version == "2"
    assert same.spec is old.spec
    assert same.status is old.status
    for name in ("name", "namespace", "uid", "labels", "annotations", "owner_references"):
        assert getattr(same.metadata, name) is getattr(old.metadata, name), name


def test_a_new_version_has_its_changes() -> None:
    old = share_pod(pod(version=1), None)
    labels, moment = {"app": "other"}, "2026-01-02T00:00:00Z"
    changes = {"metadata_labels": labels, "metadata_deletionTimestamp": moment, "status_phase": "Failed"}
    new = share_pod(pod(version=2, **changes), old)
    assert new == pod(version=2, **changes)
    assert (old.labels, old.status.phase) == ({"app": "shop"}, "Running")
    moved = share_pod(pod(version=3, spec_nodeName="elsewhere"), new)
    assert moved.node_name == "elsewhere"
    assert moved.spec.containers is old.spec.containers


def test_a_pod_of_the_same_name_keeps_its_own_uid() -> None:
    old = share_pod(pod(), None)
    assert share_pod(pod(metadata_uid="another"), old).uid == "another"


def test_parts_of_different_types_with_the_same_json_are_not_mixed_up() -> None:
    named = [{"name": "same"}]
    shared = share_pod(pod(spec_containers=named, spec_volumes=named, status_containerStatuses=named), None)
    assert shared == pod(spec_containers=named, spec_volumes=named, status_containerStatuses=named)
    numbers = {"requests": {"cpu": 1}}, {"requests": {"cpu": "1"}}, {"requests": {"cpu": 10**30}}
    for resources in numbers:
        one = pod(spec_containers=[{"name": "c", "resources": resources}])
        assert repr(share_pod(one, None)) == repr(pod(spec_containers=[{"name": "c", "resources": resources}]))


def test_nodes_share_images_and_amounts() -> None:
    a, b = share_node(node(1), None), share_node(node(2, images=3), None)
    assert (a, b) == (node(1), node(2, images=3))
    assert a.spec.taints is b.spec.taints
    assert a.status.allocatable is b.status.allocatable
    assert a.status.conditions is b.status.conditions
    assert a.status.images is not None
    assert b.status.images is not None
    assert [one is other for one, other in zip(a.status.images, b.status.images, strict=False)] == [True, True]


def test_a_heartbeat_keeps_spec_and_status_of_a_node() -> None:
    old = share_node(node(version=1), None)
    new = share_node(node(version=2), old)
    assert new.metadata.resource_version == "2"
    assert new.spec is old.spec
    assert new.status is old.status
    assert share_node(node(images=1), old) == node(images=1)


@pytest.mark.parametrize("decoded", [pod(spec_volumes=[{"name": "v" * 5000}]), pod(spec_volumes=None)])
def test_what_is_large_or_missing_is_left_as_it_is(decoded: Pod) -> None:
    volumes = decoded.spec.volumes
    assert share_pod(decoded, None).spec.volumes is volumes


def test_what_nobody_asks_for_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "_MAX_VALUES", 4)
    values: SharedValues[list[int]] = SharedValues()
    seldom, often = [0], [1]
    for i in range(100):
        assert values.first(b"often", [1] if i else often) is often
        if not i:
            assert values.first(b"seldom", seldom) is seldom
        values.first(b"%d" % i, [])
    assert values.first(b"seldom", [0]) is not seldom


def test_the_daemon_shares_what_it_watches() -> None:
    assert POD_KIND.transform is share_pod
    assert NODE_KIND.transform is share_node


def parts_of(p: Pod) -> list[int]:
    labels, containers, condition = p.metadata.labels, p.spec.containers, (p.status.conditions or ())[0]
    return list(map(id, (p.namespace, labels, containers, p.spec.affinity, p.status.conditions, condition.type)))


def test_parts_that_are_in_use_stay_shared_when_the_unused_ones_are_forgotten() -> None:
    first = share_pod(pod(1), None)
    sharing.forget_unused()
    assert parts_of(share_pod(pod(2), None)) == parts_of(first)


def test_parts_of_objects_that_are_gone_are_forgotten() -> None:
    kept = share_pod(pod(0, metadata_namespace="in-use", metadata_labels={"in": "use"}), None)
    for i in range(50):
        share_pod(pod(i, metadata_namespace=f"gone-{i}", metadata_labels={"gone": f"{i}"}), None)
        share_node(node(i, images=i), None)
    sharing.forget_unused()
    assert "in-use" in sharing._texts.newer
    left = [*sharing._texts.newer, *map(str, sharing._text_maps.newer), *map(str, sharing._images.newer)]
    assert not [key for key in left if "gone" in key or "shop:49" in key]
    assert kept.labels == {"in": "use"}


def test_a_table_is_limited_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "_MAX_BYTES", 10_000)
    values: SharedValues[list[int]] = SharedValues()
    for i in range(100):
        values.first(f"{i:>1000}", [i])
    assert 10 <= len(values.newer) + len(values._older) <= 24
    values.forget_unused()
    assert not values.newer
    assert not values._older


def test_a_value_in_both_generations_is_forgotten_too() -> None:
    values: SharedValues[list[int]] = SharedValues()
    values.first("a", [1])
    values._older, values.newer = values.newer, {}
    assert values.first("a", [2]) == [1]
    values.forget_unused()
    assert values.first("a", [3]) == [3]
