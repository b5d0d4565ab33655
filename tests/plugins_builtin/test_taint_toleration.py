from typing import Any

import pytest

from trio_sched.plugin_api import Action, ClusterEvent, Code, Hint, Resource, Toleration
from trio_sched.testing import FakeHandle, ask_hint, make_plugin, node, pod, schedule

TAINTS = "TaintToleration"
REASON = "node(s) had untolerated taint(s)"


@pytest.mark.parametrize(
    ("taints", "tolerations", "passes"),
    [
        ((), (), True),
        (("a:NoSchedule",), (), False),
        (("a:NoExecute",), (), False),
        (("a:PreferNoSchedule",), (), True),
        (("a=b:NoSchedule",), ("a=b:NoSchedule",), True),
        (("a=b:NoSchedule",), ("a=c:NoSchedule",), False),
        (("a=b:NoSchedule", "c:NoExecute"), ("a",), False),
        (("a=b:NoSchedule", "c:NoExecute"), ("a", "c"), True),
        (("a=b:NoSchedule", "c:NoExecute"), ("",), True),
    ],
)
def test_every_hard_taint_must_be_tolerated(taints: Any, tolerations: Any, passes: bool) -> None:
    outcome = schedule(pod(tolerations=tolerations), on=[node("n", taints=taints)], plugins=[TAINTS])
    assert outcome.reasons == ({} if passes else {"n": [REASON]})
    if not passes:
        assert outcome.statuses["n"].code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_numbers_are_compared_only_where_the_gate_is_on() -> None:
    waiting = pod(tolerations=[Toleration(key="load", operator="Lt", value="50")])
    nodes = [node("low", taints=["load=20:NoSchedule"]), node("high", taints=["load=80:NoSchedule"])]
    gate = FakeHandle(gates={"TaintTolerationComparisonOperators": True})
    assert schedule(waiting, on=nodes, plugins=[TAINTS], handle=gate).feasible == ("low",)
    assert schedule(waiting, on=nodes, plugins=[TAINTS]).feasible == ()


def test_nodes_with_fewer_untolerated_soft_taints_are_better() -> None:
    nodes = [
        node("none"),
        node("one", taints=["a:PreferNoSchedule"]),
        node("two", taints=["a:PreferNoSchedule", "b:PreferNoSchedule"]),
        node("hard", taints=["c:NoSchedule"]),
    ]
    outcome = schedule(pod(tolerations=["c"]), on=nodes, plugins=[TAINTS])
    assert outcome.raw_scores[TAINTS] == {"none": 0, "one": 1, "two": 2, "hard": 0}
    assert outcome.scores[TAINTS] == {"none": 100, "one": 50, "two": 0, "hard": 100}
    tolerant = schedule(pod(tolerations=["b:PreferNoSchedule", "a:NoSchedule"]), on=nodes[:3], plugins=[TAINTS])
    assert tolerant.raw_scores[TAINTS] == {"none": 0, "one": 1, "two": 1}


def test_without_soft_taints_all_nodes_are_best() -> None:
    assert schedule(pod(), on=[node("a"), node("b")], plugins=[TAINTS]).scores[TAINTS] == {"a": 100, "b": 100}


NODE_ADD = ClusterEvent(Resource.NODE, Action.ADD)
NODE_TAINT = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT)
POD_TOLERATION = ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.UPDATE_POD_TOLERATION)
TAINTED, FREE = node("n", taints=["a:NoSchedule"]), node("n")


@pytest.mark.parametrize(
    ("event", "old", "new", "expected"),
    [
        (NODE_ADD, None, FREE, Hint.QUEUE),
        (NODE_ADD, None, TAINTED, Hint.SKIP),
        (NODE_TAINT, TAINTED, FREE, Hint.QUEUE),
        (NODE_TAINT, FREE, FREE, Hint.SKIP),
        (NODE_TAINT, FREE, TAINTED, Hint.SKIP),
        (POD_TOLERATION, pod("waiting"), pod("waiting", tolerations=["a"]), Hint.QUEUE),
        (POD_TOLERATION, pod("other"), pod("other", tolerations=["a"]), Hint.SKIP),
        (ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL), FREE, FREE, None),
    ],
)
def test_hints(event: ClusterEvent, old: Any, new: Any, expected: Hint | None) -> None:
    assert ask_hint(TAINTS, event, pod("waiting"), old=old, new=new) is expected


def test_pods_with_the_same_tolerations_have_one_signature() -> None:
    sign = make_plugin(TAINTS).sign
    assert sign(pod("a", tolerations=["x"])) == sign(pod("b", tolerations=["x"], cpu="1"))
    assert sign(pod(tolerations=["x"])) != sign(pod())
