"""Pods that have a node and do not run: what is said besides the scores of the nodes."""

import pytest
from filled_scheduler import scheduler_with
from msgspec import structs

from trio_sched.explanation.data import explanation_as_data
from trio_sched.explanation.explanation import explain
from trio_sched.objects.pod import PodStatus
from trio_sched.testing import node, pod


@pytest.mark.parametrize(
    ("node_name", "phase", "notes"),
    [
        ("n1", "Running", []),
        ("n1", "Pending", ["the kubelet of n1 starts it; kubectl describe pod shows how far that is"]),
        ("gone", "Running", ["there is no node gone"]),
    ],
)
def test_what_a_scheduler_cannot_change_is_said(node_name: str, phase: str, notes: list[str]) -> None:
    placed = structs.replace(pod("p", cpu="1", node_name=node_name), status=PodStatus(phase=phase))
    scheduler = scheduler_with([node("n1"), node("worker-1")], [placed])
    assert explain(scheduler, placed).notes == notes


@pytest.mark.parametrize(
    ("node_name", "cause", "changes"),
    [
        ("gone", "there is no node of that name", ["no nodeName gone"]),
        ("worker-11", "did you mean worker-1?", ["nodeName worker-1", "no nodeName worker-11"]),
    ],
)
def test_a_pod_whose_node_does_not_exist_is_pending(node_name: str, cause: str, changes: list[str]) -> None:
    placed = structs.replace(pod("p", cpu="1", node_name=node_name), status=PodStatus(phase="Pending"))
    scheduler = scheduler_with([node("n1", cpu="500m"), node("worker-1")], [placed])
    data = explanation_as_data(explain(scheduler, placed))
    assert data["node"] is None
    assert data["cause"]["reasons"] == ["NodeNotFound"]
    assert data["cause"]["text"].endswith(cause)
    assert [one["title"] for one in data["remedies"]][: len(changes)] == changes
    assert {one["node"] for one in data["remedies"][: len(changes)]} == {"worker-1"}
    (command,) = data["remedies"][len(changes) - 1]["commands"]
    assert (
        """-p '{"spec":{"nodeName":null}}') && kubectl delete pod p -n default --force --grace-period=0 &&""" in command
    )
