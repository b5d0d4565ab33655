from typing import Any

import pytest
from gangs import member
from msgspec import convert

from trio_sched.plugin_api import (
    Action,
    ClusterEvent,
    Code,
    CycleState,
    Hint,
    PlacementProgress,
    Pod,
    PodGroup,
    PodGroupInfo,
    Resource,
    Wait,
    not_yet,
    unschedulable,
)
from trio_sched.testing import FakeHandle, ask_hint, composite_pod_group, make_plugin, pod, pod_group

GANG = "GangScheduling"
STATE = CycleState()


def group(name: str = "g", min_count: int | None = 2) -> PodGroup:
    policy: dict[str, Any] = {"basic": {}} if min_count is None else {"gang": {"minCount": min_count}}
    spec = {"schedulingPolicy": policy}
    return convert({"metadata": {"name": name, "namespace": "default"}, "spec": spec}, PodGroup)


def handle(*pods: Pod, groups: tuple[PodGroup, ...] = (group(),), assumed: tuple[Pod, ...] = ()) -> FakeHandle:
    return FakeHandle(
        known_objects={"PodGroup": list(groups)},
        grouped=list(pods),
        assumed=[(one, "n") for one in assumed],
    )


def test_pods_without_a_group_or_in_a_basic_group_pass() -> None:
    plugin = make_plugin(GANG, handle=handle(groups=(group(min_count=None),)))
    for one in (pod(), member("a", "g")):
        assert plugin.pre_enqueue(one) is None
        assert plugin.permit(one, "n", STATE) is None


def test_a_pod_is_gated_until_its_group_exists_and_there_are_enough_pods() -> None:
    a, b = member("a", "g"), member("b", "g")
    missing = make_plugin(GANG, handle=handle(a, groups=())).pre_enqueue(a)
    assert missing.message == 'waiting for pods\'s pod group "g" to appear in scheduling queue'
    too_few = make_plugin(GANG, handle=handle(a)).pre_enqueue(a)
    assert too_few.message == "waiting for minCount pods from a gang to appear in scheduling queue"
    assert {missing.code, too_few.code} == {Code.UNSCHEDULABLE_AND_UNRESOLVABLE}
    assert make_plugin(GANG, handle=handle(a, b)).pre_enqueue(a) is None


def test_a_pod_waits_until_enough_pods_have_a_node_and_the_others_are_tried() -> None:
    a, b = member("a", "g"), member("b", "g")
    known = handle(a, b, assumed=(a,))
    returned = make_plugin(GANG, handle=known).permit(a, "n", STATE)
    assert returned == Wait(300.0, "waiting for minCount pods from a gang to be scheduled")
    assert known.activated == [b]


def test_the_pod_that_makes_them_enough_allows_the_others() -> None:
    a, b = member("a", "g"), member("b", "g")
    known = handle(a, b, assumed=(a, b))
    waiting = known.add_waiting(a, GANG)
    assert make_plugin(GANG, handle=known).permit(b, "n", STATE) is None
    assert waiting.is_allowed


def test_bound_pods_count_too_and_nobody_is_allowed_in_a_trial() -> None:
    a, b = member("a", "g", node_name="n"), member("b", "g")
    known = handle(a, b, assumed=(b,))
    waiting = known.add_waiting(b, GANG)
    trial = CycleState()
    trial.is_trial = True
    assert make_plugin(GANG, handle=known).permit(b, "n", trial) is None
    assert not waiting.is_allowed


def test_a_group_that_is_gone_is_an_error_at_permit() -> None:
    status = make_plugin(GANG, handle=handle(groups=())).permit(member("a", "g"), "n", STATE)
    assert status.code == Code.ERROR
    assert status.message.startswith("failed to get podGroup default/g: ")


@pytest.mark.parametrize("hook", ["pre_enqueue", "permit"])
def test_a_gang_of_which_no_pod_is_known_is_an_error(hook: str) -> None:
    plugin, one = make_plugin(GANG, handle=handle()), member("a", "g")
    status = plugin.pre_enqueue(one) if hook == "pre_enqueue" else plugin.permit(one, "n", STATE)
    assert status.message == "pod group state not found for pod group default/g"


@pytest.mark.parametrize(
    ("event", "new", "hint"),
    [
        (ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.ADD), member("b", "g"), Hint.QUEUE),
        (ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.ADD), member("b", "other"), Hint.SKIP),
        (ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.ADD), pod("b"), Hint.SKIP),
        (ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.ADD), member("b", "g", namespace="x"), Hint.SKIP),
        (ClusterEvent(Resource.POD_GROUP, Action.ADD), group(), Hint.QUEUE),
        (ClusterEvent(Resource.POD_GROUP, Action.ADD), group("other"), Hint.SKIP),
    ],
)
def test_pods_of_the_same_group_and_the_group_itself_free_a_pod(event: ClusterEvent, new: Any, hint: Hint) -> None:
    assert ask_hint(GANG, event, member("a", "g"), new=new) is hint


@pytest.mark.parametrize(
    ("needed", "scheduled", "remaining", "answer"),
    [
        (3, 1, 1, unschedulable("minCount (3) cannot be satisfied: 1 scheduled, 1 remaining")),
        (3, 1, 2, not_yet("minCount (3) is not yet satisfied: 1 scheduled, 2 remaining")),
        (3, 3, 0, None),
        (None, 0, 0, unschedulable("minCount (1) cannot be satisfied: 0 scheduled, 0 remaining")),
        (None, 0, 2, not_yet("minCount (1) is not yet satisfied: 0 scheduled, 2 remaining")),
        (None, 1, 2, None),
    ],
)
def test_a_placement_is_feasible_with_as_many_pods_as_the_group_needs(
    needed: int | None, scheduled: int, remaining: int, answer: Any
) -> None:
    plugin = make_plugin(GANG, handle=handle(groups=(group(min_count=needed),)))
    assert (
        plugin.placement_feasible(PodGroupInfo("default", "g", ()), PlacementProgress(scheduled, remaining)) == answer
    )


def test_whether_a_placement_is_feasible_cannot_be_said_of_a_group_that_is_gone() -> None:
    status = make_plugin(GANG, handle=handle(groups=())).placement_feasible(
        PodGroupInfo("default", "g", ()), PlacementProgress(0, 1)
    )
    assert status.code == Code.ERROR
    assert status.message == (
        'failed to get podGroup default/g to compute gang feasibility: podgroup.scheduling.k8s.io "g" not found'
    )


@pytest.mark.parametrize(
    ("name", "before", "after", "hint"),
    [("g", 3, 2, Hint.QUEUE), ("g", 3, 3, Hint.SKIP), ("g", 2, 3, Hint.SKIP), ("other", 3, 2, Hint.SKIP)],
)
def test_since_1_37_a_smaller_gang_is_tried_again(name: str, before: int, after: int, hint: Hint) -> None:
    plugin = make_plugin(GANG, handle=FakeHandle(emulated_version=(1, 37)))
    event = ClusterEvent(Resource.POD_GROUP, Action.UPDATE)
    assert ask_hint(plugin, event, member("a", "g"), old=group(name, before), new=group(name, after)) == hint


def test_before_1_37_changes_of_groups_are_of_no_interest() -> None:
    registered = make_plugin(GANG, handle=FakeHandle()).events_to_register()
    assert not [
        one for one in registered if one.event.action & Action.UPDATE and one.event.resource == Resource.POD_GROUP
    ]


def tree_handle(*pods: Pod, low: bool = True) -> FakeHandle:
    """Two gangs of two below ``low``, which needs both, and one below ``top``, which needs two children."""
    parents = [composite_pod_group("top", min_group_count=2)]
    if low:
        parents.append(composite_pod_group("low", parent="top", min_group_count=2))
    leaves = [pod_group(name, min_count=2, parent="low") for name in ("a", "b")]
    groups = [*leaves, pod_group("c", min_count=2, parent="top"), pod_group("alone", min_count=2)]
    return FakeHandle(
        emulated_version=(1, 37),
        gates={"GenericWorkload": True, "CompositePodGroup": True},
        known_objects={"PodGroup": groups, "CompositePodGroup": parents},
        grouped=list(pods),
    )


def two(*groups: str) -> list[Pod]:
    return [member(f"{name}{number}", name) for name in groups for number in range(2)]


@pytest.mark.parametrize(
    ("pods", "text"),
    [
        (two("a", "b", "c"), ""),
        (two("a", "b"), 'waiting for composite pod group "top" tree to meet quorum'),
        (two("a", "c"), 'waiting for composite pod group "top" tree to meet quorum'),
        ([*two("a", "c"), member("b0", "b")], 'waiting for composite pod group "top" tree to meet quorum'),
    ],
)
def test_pods_of_a_tree_are_gated_until_enough_of_its_groups_have_enough_pods(pods: list[Pod], text: str) -> None:
    status = make_plugin(GANG, handle=tree_handle(*pods)).pre_enqueue(member("a0", "a"))
    assert ("" if status is None else status.message) == text


def test_pods_of_a_tree_that_is_not_whole_are_gated() -> None:
    plugin = make_plugin(GANG, handle=tree_handle(*two("a", "b", "c", "alone"), low=False))
    status = plugin.pre_enqueue(member("a0", "a"))
    assert status.message == 'failed to build hierarchy snapshot: composite pod group "low" not found'
    assert status.code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert plugin.pre_enqueue(member("alone0", "alone")) is None


def test_of_a_composite_group_the_child_groups_are_counted() -> None:
    plugin = make_plugin(GANG, handle=tree_handle())
    group = PodGroupInfo("default", "top", (), "CompositePodGroup", group_names=("a", "b", "c"))
    returned = [plugin.placement_feasible(group, PlacementProgress(*one)) for one in ((0, 1), (1, 1), (2, 0))]
    assert [one and one.message for one in returned] == [
        "minCount (2) cannot be satisfied: 0 scheduled, 1 remaining",
        "minCount (2) is not yet satisfied: 1 scheduled, 1 remaining",
        None,
    ]
    gone = PodGroupInfo("default", "gone", (), "CompositePodGroup", group_names=())
    missing = plugin.placement_feasible(gone, PlacementProgress(0, 1))
    assert missing.message.endswith('compositepodgroup.scheduling.k8s.io "gone" not found')


@pytest.mark.parametrize(
    ("resource", "new", "hint"),
    [
        (Resource.POD, member("c0", "c"), Hint.QUEUE),
        (Resource.POD, member("x", "alone"), Hint.SKIP),
        (Resource.POD, member("x", "c", namespace="other"), Hint.SKIP),
        (Resource.POD_GROUP, pod_group("c", parent="top"), Hint.QUEUE),
        (Resource.POD_GROUP, pod_group("alone"), Hint.SKIP),
        (Resource.COMPOSITE_POD_GROUP, composite_pod_group("low", parent="top"), Hint.QUEUE),
        (Resource.COMPOSITE_POD_GROUP, composite_pod_group("elsewhere"), Hint.SKIP),
    ],
)
def test_pods_and_groups_of_the_same_tree_free_a_pod(resource: str, new: Any, hint: Hint) -> None:
    event = ClusterEvent(resource, Action.ADD)
    assert ask_hint(GANG, event, member("a0", "a"), new=new, handle=tree_handle()) is hint
