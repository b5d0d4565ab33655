"""What may free a pod that spread constraints turned away."""

from typing import Any

import pytest

from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod, TopologySpreadConstraint
from trio_sched.objects.selector import LabelSelector, LabelSelectorRequirement
from trio_sched.plugin_api import Action, ClusterEvent, Hint, Resource
from trio_sched.testing import ask_hint, node, pod

SPREAD = "PodTopologySpread"


def constraint(key: str = "zone", app: str = "a", **more: Any) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(
        max_skew=1,
        topology_key=key,
        when_unsatisfiable="DoNotSchedule",
        label_selector=LabelSelector(match_labels={"app": app}),
        **more,
    )


def waiting(*constraints: TopologySpreadConstraint, **more: Any) -> Pod:
    return pod("waiting", spread=constraints or [constraint()], labels={"app": "a"}, **more)


def other(app: str = "a", **more: Any) -> Pod:
    return pod("other", **{"labels": {"app": app}, "node_name": "n", **more})


def on_pod(action: Action, old: Pod | None, new: Pod | None, one: Pod | None = None) -> Hint | None:
    return ask_hint(SPREAD, ClusterEvent(Resource.ASSIGNED_POD, action), one or waiting(), old=old, new=new)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (other(), Hint.QUEUE),
        (other("b"), Hint.SKIP),
        (other(namespace="elsewhere"), Hint.SKIP),
        (other(node_name="", nominated_node_name="n"), Hint.QUEUE),
        (other(node_name=""), Hint.SKIP),
    ],
    ids=["matches", "other labels", "other namespace", "nominated", "unassigned"],
)
def test_hints_for_counted_pods_created_or_deleted(changed: Pod, expected: Hint) -> None:
    assert on_pod(Action.ADD, None, changed) is expected
    assert on_pod(Action.DELETE, changed, None) is expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (other("b"), other("a"), Hint.QUEUE),
        (other("a"), other("b"), Hint.QUEUE),
        (other("b"), other("c"), Hint.SKIP),
        (other("a"), other("a"), Hint.SKIP),
    ],
)
def test_hints_for_pods_whose_labels_change(old: Pod, new: Pod, expected: Hint) -> None:
    assert on_pod(Action.UPDATE_POD_LABEL, old, new) is expected


def test_any_of_several_constraints_is_enough() -> None:
    both = waiting(constraint(app="b"), constraint("rack"))
    assert on_pod(Action.ADD, None, other("a"), both) is Hint.QUEUE
    assert on_pod(Action.ADD, None, other("b"), both) is Hint.QUEUE
    assert on_pod(Action.ADD, None, other("c"), both) is Hint.SKIP


def test_hints_of_soft_constraints_skip() -> None:
    soft = TopologySpreadConstraint(
        max_skew=1,
        topology_key="zone",
        when_unsatisfiable="ScheduleAnyway",
        label_selector=LabelSelector(match_labels={"app": "a"}),
    )
    assert on_pod(Action.ADD, None, other("a"), pod("waiting", spread=[soft])) is Hint.SKIP


@pytest.mark.parametrize(("policy", "expected"), [("Honor", Hint.QUEUE), (None, Hint.SKIP)])
def test_the_pod_itself_tolerates_something_else(policy: str | None, expected: Hint) -> None:
    one = waiting(constraint(node_taints_policy=policy))
    tolerant = waiting(constraint(node_taints_policy=policy), tolerations=["x"])
    event = ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.UPDATE_POD_TOLERATION)
    assert ask_hint(SPREAD, event, one, old=one, new=tolerant) is expected


def test_tolerations_of_other_pods_are_ignored() -> None:
    one = waiting(constraint(node_taints_policy="Honor"))
    assert on_pod(Action.UPDATE_POD_LABEL, other(), other(tolerations=["x"]), one) is Hint.SKIP


def test_the_pod_itself_changes_its_labels() -> None:
    one = waiting()
    event = ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.UPDATE_POD_LABEL)
    changed = pod("waiting", spread=[constraint()], labels={"app": "b"})
    assert ask_hint(SPREAD, event, one, old=one, new=changed) is Hint.QUEUE
    assert ask_hint(SPREAD, event, one, old=one, new=one) is Hint.SKIP


BARE, ZONED, MOVED = node("n"), node("n", labels={"zone": "x"}), node("n", labels={"zone": "y"})
TAINTED = node("n", labels={"zone": "x"}, taints=["t:NoSchedule"])
BOTH = node("n", labels={"zone": "x", "rack": "1"})


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, ZONED, Hint.QUEUE),
        (None, BARE, Hint.SKIP),
        (ZONED, None, Hint.QUEUE),
        (BARE, None, Hint.SKIP),
        (BARE, ZONED, Hint.QUEUE),
        (ZONED, BARE, Hint.QUEUE),
        (ZONED, MOVED, Hint.QUEUE),
        (ZONED, TAINTED, Hint.QUEUE),
        (TAINTED, ZONED, Hint.QUEUE),
        (ZONED, node("n", labels={"zone": "x", "disk": "ssd"}), Hint.SKIP),
        (BARE, node("n", taints=["t:NoSchedule"]), Hint.SKIP),
    ],
)
def test_hints_for_counted_nodes(old: Node | None, new: Node | None, expected: Hint) -> None:
    action = Action.ADD if old is None else Action.DELETE if new is None else Action.UPDATE_NODE_LABEL
    assert ask_hint(SPREAD, ClusterEvent(Resource.NODE, action), waiting(), old=old, new=new) is expected


def test_a_node_counts_if_it_has_all_the_keys() -> None:
    one = waiting(constraint("zone"), constraint("rack"))
    added, changed = ClusterEvent(Resource.NODE, Action.ADD), ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL)
    assert ask_hint(SPREAD, added, one, new=BOTH) is Hint.QUEUE
    assert ask_hint(SPREAD, added, one, new=ZONED) is Hint.SKIP
    assert ask_hint(SPREAD, changed, one, old=ZONED, new=MOVED) is Hint.SKIP
    assert ask_hint(SPREAD, changed, one, old=ZONED, new=BOTH) is Hint.QUEUE


@pytest.mark.parametrize(
    ("event", "concerns"),
    [
        (ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT), True),
        (ClusterEvent(Resource.NODE, Action.UPDATE_NODE_ALLOCATABLE), False),
        (ClusterEvent(Resource.ASSIGNED_POD, Action.UPDATE_POD_SCALE_DOWN), False),
    ],
)
def test_other_events_are_skipped(event: ClusterEvent, concerns: bool) -> None:
    old, new = (ZONED, TAINTED) if event.resource == Resource.NODE else (other(), other())
    assert (ask_hint(SPREAD, event, waiting(), old=old, new=new) is not None) is concerns


def test_a_hint_for_a_pod_with_an_invalid_selector_raises() -> None:
    bad = TopologySpreadConstraint(
        max_skew=1,
        topology_key="zone",
        when_unsatisfiable="DoNotSchedule",
        label_selector=LabelSelector(match_expressions=(LabelSelectorRequirement("app", "In"),)),
    )
    with pytest.raises(
        HookFailed, match=r"raised SelectorError: obtaining pod's hard topology spread constraints: values: "
    ):
        on_pod(Action.ADD, None, other(), waiting(bad))
