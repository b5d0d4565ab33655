"""Pods that have a node and do not run: what is said besides the scores of the nodes."""

import pytest
from filled_scheduler import scheduler_with
from msgspec import structs

from trio_sched.explanation.explanation import explain
from trio_sched.objects.pod import PodStatus
from trio_sched.testing import node, pod


@pytest.mark.parametrize(
    ("node_name", "phase", "notes"),
    [
        ("n1", "Running", []),
        ("n1", "Pending", ["the kubelet of n1 starts it; kubectl describe pod shows how far that is"]),
        ("gone", "Pending", ["there is no node gone"]),
        ("worker-11", "Pending", ["there is no node worker-11; did you mean worker-1?"]),
    ],
)
def test_what_a_scheduler_cannot_change_is_said(node_name: str, phase: str, notes: list[str]) -> None:
    placed = structs.replace(pod("p", cpu="1", node_name=node_name), status=PodStatus(phase=phase))
    scheduler = scheduler_with([node("n1"), node("worker-1")], [placed])
    assert explain(scheduler, placed).notes == notes
