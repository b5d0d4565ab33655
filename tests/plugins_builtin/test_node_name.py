import numpy as np
import pytest

from trio_sched.plugin_api import Action, ClusterEvent, Code, Hint, Resource
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing import ask_hint, make_plugin, make_table, node, pod, schedule

NAME = "NodeName"
NODES = [node("a"), node("b")]


def test_a_pod_that_names_no_node_may_run_anywhere() -> None:
    assert schedule(pod(), on=NODES, plugins=[NAME]).feasible == ("a", "b")


def test_a_pod_that_names_its_node_runs_there_or_nowhere() -> None:
    outcome = schedule(pod(node_name="b"), on=NODES, plugins=[NAME])
    assert outcome.node_name == "b"
    assert outcome.reasons == {"a": ["node(s) didn't match the requested node name"]}
    assert outcome.statuses["a"].code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    nowhere = schedule(pod(node_name="c"), on=NODES, plugins=[NAME])
    assert nowhere.message == "0/2 nodes are available: 2 node(s) didn't match the requested node name."


@pytest.mark.parametrize("positions", [[0], [1], [1, 0]])
def test_it_finds_the_node_among_some(positions: list[int]) -> None:
    nodes = NodeColumns(make_table(NODES)).take(np.array(positions))
    verdicts = make_plugin(NAME).filter(pod(node_name="b"), nodes, None)
    assert verdicts.passes.tolist() == [position == 1 for position in positions]


def test_hints_queue_for_the_named_node() -> None:
    assert ask_hint(NAME, ClusterEvent(Resource.NODE, Action.ADD), pod(node_name="c"), new=node("c")) is Hint.QUEUE


def test_the_name_is_the_signature() -> None:
    sign = make_plugin(NAME).sign
    assert sign(pod("x", node_name="a")) == sign(pod("y", node_name="a")) != sign(pod())
