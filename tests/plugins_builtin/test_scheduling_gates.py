import pytest

from trio_sched.plugin_api import Action, ClusterEvent, Code, Hint, Pod, Resource
from trio_sched.testing import ask_hint, make_plugin, pod, schedule

GATES = "SchedulingGates"
ELIMINATED = ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)


def test_a_pod_with_gates_is_rejected_at_pre_enqueue() -> None:
    status = make_plugin(GATES).pre_enqueue(pod(gates=["quota", "review"]))
    assert status.message == "waiting for scheduling gates: [quota review]"
    assert status.code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert make_plugin(GATES).pre_enqueue(pod()) is None
    assert schedule(pod(gates=["quota"]), on=[], plugins=[GATES]).rejected_by == {GATES}


@pytest.mark.parametrize(("new", "expected"), [(pod("waiting"), Hint.QUEUE), (pod("other"), Hint.SKIP)])
def test_only_its_own_gates_matter(new: Pod, expected: Hint) -> None:
    assert ask_hint(GATES, ELIMINATED, pod("waiting"), old=pod("x", gates=["g"]), new=new) is expected
