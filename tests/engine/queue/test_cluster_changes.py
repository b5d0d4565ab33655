from typing import Any

import msgspec
import pytest

from trio_sched.engine.queue.cluster_changes import SPLIT_POD_EVENTS, node_update_events, pod_update_events
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.testing import node, pod


def labels(events: Any) -> list[str]:
    return [event.label for event in events]


def gated_and_labelled() -> Pod:
    return pod(labels={"a": "b"}, tolerations=["x"])


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (pod(), pod(labels={"a": "b"}), ["UnschedulablePodUpdatePodLabel"]),
        (pod(cpu="2"), pod(cpu="1"), ["UnschedulablePodUpdatePodScaleDown"]),
        (pod(cpu="2"), pod(), ["UnschedulablePodUpdatePodScaleDown"]),
        (pod(cpu="1"), pod(cpu="2"), ["UnschedulablePodUpdate"]),
        (pod(cpu="1000m"), pod(cpu="1"), ["UnschedulablePodUpdate"]),
        (pod(gates=["a", "b"]), pod(gates=["b"]), ["UnschedulablePodUpdate"]),
        (pod(gates=["a"]), pod(), ["UnschedulablePodUpdatePodSchedulingGatesEliminated"]),
        (pod(), pod(tolerations=["x"]), ["UnschedulablePodUpdatePodToleration"]),
        (pod(tolerations=["x"]), pod(tolerations=["y"]), ["UnschedulablePodUpdate"]),
        (pod(), pod(), ["UnschedulablePodUpdate"]),
        (pod(node_name="n"), pod(node_name="n", labels={"a": "b"}), ["AssignedPodUpdatePodLabel"]),
        (
            pod(gates=["a"], cpu="2"),
            gated_and_labelled(),
            [
                "UnschedulablePodUpdatePodLabel",
                "UnschedulablePodUpdatePodScaleDown",
                "UnschedulablePodUpdatePodSchedulingGatesEliminated",
                "UnschedulablePodUpdatePodToleration",
            ],
        ),
    ],
)
def test_an_update_of_a_pod_becomes_one_event_for_each_change(old: Pod, new: Pod, expected: list[str]) -> None:
    assert labels(pod_update_events(old, new)) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (pod(), pod(labels={"a": "b"}), ["TargetPodUpdatePodLabel"]),
        (pod(cpu="1"), pod(cpu="2"), ["TargetPodUpdatePodScaleUp"]),
        (pod(), pod(cpu="1"), ["TargetPodUpdatePodScaleUp"]),
        (
            pod(cpu="1", memory="2Gi"),
            pod(cpu="2", memory="1Gi"),
            ["TargetPodUpdatePodScaleDown", "TargetPodUpdatePodScaleUp"],
        ),
        (pod(), pod(), ["TargetPodUpdate"]),
        (pod(node_name="n", cpu="1"), pod(node_name="n", cpu="2"), ["AssignedPodUpdatePodScaleUp"]),
    ],
)
def test_since_1_37_a_pod_itself_is_told_of_its_changes_and_more_requests_are_an_event(
    old: Pod, new: Pod, expected: list[str]
) -> None:
    assert labels(pod_update_events(old, new, events=SPLIT_POD_EVENTS)) == expected


@pytest.mark.parametrize("since_1_37", [False, True])
def test_another_preemption_policy_of_a_node_is_an_event_since_1_37(since_1_37: bool) -> None:
    new = msgspec.convert({"spec": {"podPreemptionPolicy": {"disableResizePreemption": ["me"]}}}, Node)
    events = node_update_events(Node(), new, preemption_policies=since_1_37)
    assert labels(events) == (["NodeUpdateNodePreemptionPolicy"] if since_1_37 else [])


def test_generated_resource_claims_are_an_event() -> None:
    claimed = msgspec.convert(
        {"spec": {}, "status": {"resourceClaimStatuses": [{"name": "c", "resourceClaimName": "made"}]}}, Pod
    )
    assert labels(pod_update_events(Pod(), claimed)) == ["UnschedulablePodUpdatePodGeneratedResourceClaim"]
    extended = msgspec.convert({"status": {"extendedResourceClaimStatus": {"resourceClaimName": "made"}}}, Pod)
    assert labels(pod_update_events(Pod(), extended)) == ["UnschedulablePodUpdatePodGeneratedResourceClaim"]


def test_a_finished_resize_is_a_scale_down() -> None:
    def running(cpu: str) -> Pod:
        return msgspec.convert(
            {
                "spec": {"nodeName": "n", "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
                "status": {"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]},
            },
            Pod,
        )

    assert labels(pod_update_events(running("3"), running("1"))) == ["AssignedPodUpdatePodScaleDown"]
    assert labels(pod_update_events(running("1"), running("3"))) == ["AssignedPodUpdate"]


def conditions(**status: str) -> Node:
    made = node()
    listed = [{"type": kind, "status": state} for kind, state in status.items()]
    return msgspec.structs.replace(
        made, status=msgspec.convert({"allocatable": made.status.allocatable, "conditions": listed}, type(made.status))
    )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (node(), node(), []),
        (node(unschedulable=True), node(), ["NodeUpdateNodeTaint"]),
        (node(), node(unschedulable=True), []),
        (node(unschedulable=True, taints=["a:NoSchedule"]), node(), ["NodeUpdateNodeTaint", "NodeUpdateNodeTaint"]),
        (node(cpu="1"), node(cpu="1000m"), []),
        (node(cpu="1"), node(cpu="2"), ["NodeUpdateNodeAllocatable"]),
        (node(), node(labels={"a": "b"}), ["NodeUpdateNodeLabel"]),
        (node(), node(annotations={"a": "b"}), ["NodeUpdateNodeAnnotation"]),
        (node(), node(declared_features=["F"]), ["NodeUpdateNodeDeclaredFeature"]),
        (conditions(Ready="False"), conditions(Ready="True"), ["NodeUpdateNodeCondition"]),
        (conditions(Ready="True", Disk="False"), conditions(Disk="False", Ready="True"), []),
    ],
)
def test_an_update_of_a_node_becomes_one_event_for_each_relevant_change(
    old: Node, new: Node, expected: list[str]
) -> None:
    assert labels(node_update_events(old, new)) == expected


def test_declared_features_are_no_event_without_their_gate() -> None:
    assert node_update_events(node(), node(declared_features=["F"]), declared_features=False) == []
