from typing import Any

import pytest
from msgspec.structs import replace

from trio_sched.engine.filtering import run_pre_filters
from trio_sched.objects.device_class import DeviceClass, DeviceClassSpec
from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.pod import Pod, PodResourceClaim
from trio_sched.plugin_api import (
    Action,
    ClusterEvent,
    Code,
    CycleState,
    Diagnosis,
    Hint,
    NodeStatuses,
    Resource,
    unresolvable,
    unschedulable,
)
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing import FakeHandle, ask_hint, make_plugin, make_profile, make_table, node, pod, schedule

DRA = "DynamicResources"
CLAIMS = "resource claims are not supported by this version of trio-sched"
NODES = [node("n", allocatable={"example.com/gpu": 2})]
NOWHERE = Diagnosis(NodeStatuses((), (), unresolvable("no")))


def claiming(name: str = "p") -> Pod:
    made = pod(name)
    return replace(made, spec=replace(made.spec, resource_claims=(PodResourceClaim(name="gpu"),)))


def with_class(name: str = "gpus", extended: str | None = "example.com/gpu", **gates: bool) -> FakeHandle:
    made = DeviceClass(ObjectMeta(name), DeviceClassSpec(extended_resource_name=extended))
    return FakeHandle(known_objects={"DeviceClass": [made]}, gates={"DRAExtendedResource": True, **gates})


@pytest.mark.parametrize("one", [pod(), pod(cpu=1), pod(requests={"example.com/gpu": 1})])
def test_pods_without_claims_are_skipped(one: Pod) -> None:
    outcome = schedule(one, on=NODES, plugins=[DRA])
    assert outcome.feasible == ("n",)
    assert DRA in outcome.state.skip_filter


def test_a_pod_with_a_claim_is_unresolvable() -> None:
    outcome = schedule(claiming(), on=NODES, plugins=[DRA])
    assert outcome.message == f"0/1 nodes are available: {CLAIMS}."
    assert outcome.statuses["n"].code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert outcome.rejected_by == {DRA}


def test_an_extended_resource_backed_by_a_device_class_is_unresolvable_too() -> None:
    asking = pod(requests={"example.com/gpu": 1})
    outcome = schedule(asking, on=NODES, plugins=[DRA], handle=with_class())
    assert outcome.message == (f"0/1 nodes are available: {CLAIMS}, and a DeviceClass stands behind example.com/gpu.")
    implicit = pod(requests={"deviceclass.resource.kubernetes.io/gpus": 1})
    assert schedule(implicit, on=NODES, plugins=[DRA], handle=with_class(extended=None)).feasible == ()


@pytest.mark.parametrize(
    ("requests", "handle"),
    [
        ({"example.com/gpu": 0}, with_class()),
        ({"example.com/other": 1}, with_class()),
        ({"example.com/gpu": 1}, with_class(DRAExtendedResource=False)),
        ({"cpu": 1}, with_class()),
    ],
    ids=["none of it", "another resource", "gate off", "common resources"],
)
def test_other_resources_are_left_to_the_nodes(requests: Any, handle: FakeHandle) -> None:
    outcome = schedule(pod(requests=requests), on=NODES, plugins=[DRA], handle=handle)
    assert outcome.feasible == ("n",)


def test_there_is_never_a_claim_to_deallocate() -> None:
    nothing = unschedulable("no new claims to deallocate")
    skipped, rejected = CycleState(), CycleState()
    profile = make_profile([DRA])
    for incoming, state in ((pod(), skipped), (claiming(), rejected)):
        run_pre_filters(profile.pre_filter, incoming, NodeColumns(make_table([])), state)
        assert profile.plugins["DynamicResources"].post_filter(incoming, NOWHERE, state).status == nothing


def test_post_filter_without_the_state_of_pre_filter_is_an_error() -> None:
    status = make_plugin(DRA).post_filter(pod(), NOWHERE, CycleState()).status
    assert (status.code, status.message) == (Code.ERROR, "not found")


def test_only_pods_without_claims_have_a_signature() -> None:
    plugin = make_plugin(DRA, None, with_class())
    assert plugin.sign(pod("a")) == plugin.sign(pod("b", cpu=3)) is not None
    assert plugin.sign(claiming()) is None
    assert plugin.sign(pod(requests={"example.com/gpu": 1})) is None


def test_pre_bind_is_skipped_and_reserve_does_nothing() -> None:
    plugin = make_plugin(DRA)
    assert plugin.pre_bind_pre_flight(pod(), "n", CycleState()).code == Code.SKIP
    assert plugin.reserve(pod(), "n", CycleState()) is None
    assert plugin.pre_enqueue(claiming()) is None


@pytest.mark.parametrize(
    ("resource", "action", "expected"),
    [
        (Resource.NODE, Action.ADD, Hint.QUEUE),
        (Resource.DEVICE_CLASS, Action.ADD, Hint.QUEUE),
        (Resource.RESOURCE_SLICE, Action.UPDATE, Hint.QUEUE),
        (Resource.RESOURCE_CLAIM, Action.ADD, Hint.SKIP),
        (Resource.ASSIGNED_POD, Action.DELETE, None),
    ],
)
def test_events_and_hints(resource: Resource, action: Action, expected: Hint | None) -> None:
    changed = node("n") if resource == Resource.NODE else DeviceClass()
    assert ask_hint(DRA, ClusterEvent(resource, action), claiming(), new=changed) is expected
