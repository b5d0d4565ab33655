from typing import Any

import pytest

from trio_sched.plugin_api import Action, ClusterEvent, Code, Hint, Resource
from trio_sched.testing import ask_hint, make_plugin, node, pod, schedule

CORDON = "NodeUnschedulable"
OPEN, CLOSED = node("n"), node("n", unschedulable=True)


@pytest.mark.parametrize(
    ("tolerations", "passes"),
    [
        ((), False),
        (("node.kubernetes.io/unschedulable:NoSchedule",), True),
        (("node.kubernetes.io/unschedulable=:NoSchedule",), True),
        (("node.kubernetes.io/unschedulable=x:NoSchedule",), False),
        (("node.kubernetes.io/unschedulable:NoExecute",), False),
        (("",), True),
    ],
)
def test_cordoned_nodes_take_only_pods_that_tolerate_it(tolerations: Any, passes: bool) -> None:
    outcome = schedule(pod(tolerations=tolerations), on=[CLOSED, node("open")], plugins=[CORDON])
    assert outcome.feasible == (("n", "open") if passes else ("open",))
    if not passes:
        assert outcome.reasons == {"n": ["node(s) were unschedulable"]}
        assert outcome.statuses["n"].code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE


NODE_ADD = ClusterEvent(Resource.NODE, Action.ADD)
NODE_TAINT = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT)
POD_TOLERATION = ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.UPDATE_POD_TOLERATION)


@pytest.mark.parametrize(
    ("event", "old", "new", "expected"),
    [
        (NODE_ADD, None, OPEN, Hint.QUEUE),
        (NODE_ADD, None, CLOSED, Hint.SKIP),
        (NODE_TAINT, CLOSED, OPEN, Hint.QUEUE),
        (NODE_TAINT, OPEN, OPEN, Hint.SKIP),
        (NODE_TAINT, OPEN, CLOSED, Hint.SKIP),
        (POD_TOLERATION, pod("waiting"), pod("waiting", tolerations=[""]), Hint.QUEUE),
        (POD_TOLERATION, pod("waiting"), pod("waiting", tolerations=["x"]), Hint.SKIP),
        (POD_TOLERATION, pod("other"), pod("other", tolerations=[""]), Hint.SKIP),
    ],
)
def test_hints(event: ClusterEvent, old: Any, new: Any, expected: Hint) -> None:
    assert ask_hint(CORDON, event, pod("waiting"), old=old, new=new) is expected


def test_the_tolerations_are_the_signature() -> None:
    sign = make_plugin(CORDON).sign
    assert sign(pod("a", tolerations=["x"])) == sign(pod("b", tolerations=["x"])) != sign(pod())
