"""Groups that are made of the workloads of 1.35."""

from typing import Any

import msgspec
import pytest

from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_groups.workload_groups import (
    Workload,
    group_in,
    is_of_workload,
    with_groups_of_workloads,
    workload_and_group,
    workload_of,
)
from trio_sched.objects.sharing import share_pod
from trio_sched.testing import pod_group


def watched(spec: dict[str, Any], known: Pod | None = None, *, uid: str = "u") -> Pod:
    """A pod as a watch gives it that has seen it as *known* before."""
    metadata = {"name": "pod", "namespace": "shop", "uid": uid}
    return share_pod(msgspec.convert({"metadata": metadata, "spec": spec}, Pod), known)


def of_workload(**reference: str) -> Pod:
    return watched({"workloadRef": {"name": "training", "podGroup": "workers", **reference}})


WORKLOAD = msgspec.convert(
    {
        "metadata": {"name": "training", "namespace": "shop", "uid": "w"},
        "spec": {"podGroups": [{"name": "workers", "policy": {"gang": {"minCount": 3}}}]},
    },
    Workload,
)


@pytest.mark.parametrize(
    ("reference", "key"),
    [
        ({}, "shop/training:workers"),
        ({"podGroupReplicaKey": ""}, "shop/training:workers"),
        ({"podGroupReplicaKey": "0"}, "shop/training:workers:0"),
        ({"name": "a.b", "podGroup": "c"}, "shop/a.b:c"),
    ],
)
def test_a_reference_becomes_a_group_that_no_other_reference_becomes(reference: dict[str, str], key: str) -> None:
    pod = of_workload(**reference)
    assert pod.group_key == key
    assert pod.spec.workload_ref is None
    assert is_of_workload(key)
    assert workload_and_group(key.partition("/")[2])[0] == reference.get("name", "training")


def test_a_pod_keeps_its_group_if_the_server_does_not_know_the_reference_any_more() -> None:
    before = of_workload(podGroupReplicaKey="0")
    again = watched({"nodeName": "node"}, before)
    assert again.group_key == "shop/training:workers:0"
    assert watched({"nodeName": "node"}, again).group_key == "shop/training:workers:0"
    assert watched({}, before, uid="another").group_key is None
    in_pod_group = watched({"schedulingGroup": {"podGroupName": "gang"}})
    assert watched({}, in_pod_group).group_key is None


def test_a_group_of_a_workload_is_as_a_pod_group_and_knows_its_workload() -> None:
    group = group_in(WORKLOAD, "training:workers:0", 7)
    assert group is not None
    assert (group.name, group.namespace, group.min_count, group.spec.priority) == ("training:workers:0", "shop", 3, 7)
    other = group_in(WORKLOAD, "training:workers", None)
    assert other is not None
    assert other.metadata.uid != group.metadata.uid
    about = workload_of(group)
    assert (about.name, about.namespace, about.uid) == ("training", "shop", "w")
    assert group_in(WORKLOAD, "training:others", None) is None


def test_listed_workloads_are_replaced_by_the_groups_that_have_pods() -> None:
    own = pod_group("gang", min_count=1)
    pods = [of_workload(), of_workload(podGroupReplicaKey="0"), of_workload(), of_workload(name="other"), watched({})]
    found = with_groups_of_workloads([own, WORKLOAD], pods)
    assert [one.name for one in found] == ["gang", "training:workers", "training:workers:0"]
    assert with_groups_of_workloads([own], pods) == [own]
