"""Workloads whose pods stand in their own way get fewer of them."""

import pytest
from filled_scheduler import scheduler_with

from trio_sched.explanation.commands import commands
from trio_sched.explanation.explanation import explain
from trio_sched.explanation.owners import workload_behind
from trio_sched.explanation.remedies import Remedy
from trio_sched.explanation.touches import Touch
from trio_sched.objects.pod import Pod
from trio_sched.testing import node, owner_reference, pod, pod_anti_affinity, pod_term

APP = {"app": "web"}
APART = pod_anti_affinity(pod_term("app=web"))
"""One of them on each node."""


def fewer(*pods: Pod, asked: Pod) -> list[Remedy]:
    """The changes with fewer pods, on a single node."""
    found = explain(
        scheduler_with([node("a", labels={"kubernetes.io/hostname": "a"})], [*pods, asked]), asked
    ).remedies.found
    return [one for one in found if one.touches == Touch.POD_GIVEN_UP]


@pytest.mark.parametrize(
    ("kind", "owner", "labels", "patched"),
    [
        ("ReplicaSet", "web-7f", {"pod-template-hash": "7f"}, "deployment web"),
        ("ReplicaSet", "web-7f", {}, "replicaset web-7f"),
        ("ReplicationController", "web", {}, "replicationcontroller web"),
        ("StatefulSet", "web", {}, "statefulset web"),
    ],
)
def test_a_workload_keeps_the_pods_that_run(kind: str, owner: str, labels: dict[str, str], patched: str) -> None:
    reference = owner_reference(kind, owner)
    running, asked = (
        pod(f"web-{number}", node_name=name, affinity=APART, owner=reference, labels={**labels, **APP})
        for number, name in enumerate(("a", ""))
    )
    (remedy,) = fewer(running, asked=asked)
    assert remedy.notes == ("the pod without a node will be deleted, not default/web-0",)
    (command,) = commands(remedy.edited, asked, workload_behind(asked))
    assert command == f"""kubectl patch {patched} -n default --type=merge -p '{{"spec":{{"replicas":1}}}}'"""


def test_a_stateful_set_deletes_the_pods_with_the_highest_numbers() -> None:
    owner = owner_reference("StatefulSet", "web")
    running = pod("web-1", node_name="a", affinity=APART, labels=APP, owner=owner)
    assert fewer(running, asked=pod("web-0", affinity=APART, labels=APP, owner=owner)) == []


def test_of_a_job_fewer_pods_run_at_a_time() -> None:
    owner = owner_reference("Job", "web")
    running = pod("web-x", node_name="a", affinity=APART, labels=APP, owner=owner)
    asked = pod("web-y", affinity=APART, labels=APP, owner=owner)
    (remedy,) = fewer(running, asked=asked)
    assert remedy.change.title == "scale Job web to 1 at a time"
    (command,) = commands(remedy.edited, asked, workload_behind(asked))
    assert command == """kubectl patch job web -n default --type=merge -p '{"spec":{"parallelism":1}}'"""
