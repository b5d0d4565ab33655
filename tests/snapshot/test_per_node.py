import gc
import weakref

import numpy as np
import pytest

from trio_sched.objects.pod_requests import pod_resources
from trio_sched.snapshot.node_columns import NodeColumns, NodeView
from trio_sched.snapshot.node_table import NodeTable
from trio_sched.snapshot.pod_info import PodInfo
from trio_sched.snapshot.what_if import WhatIf
from trio_sched.testing import make_table, node, pod


class Counting:
    """Counts the pods of a node, and which nodes it was asked about."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def pods(self, node: NodeView) -> int:
        self.asked.append(node.name)
        return len(node.pods)

    def length(self, node: NodeView) -> int:
        return len(node.name)

    def since(self) -> list[str]:
        asked, self.asked = self.asked, []
        return asked


@pytest.fixture
def table() -> NodeTable:
    return make_table([node("a"), node("b"), node("c")], [pod("p", node_name="b")])


def test_only_nodes_that_have_changed_are_computed_again(table: NodeTable) -> None:
    counting = Counting()
    nodes = NodeColumns(table)
    assert nodes.per_node(counting.pods).tolist() == [0, 1, 0]
    assert counting.since() == ["a", "b", "c"]
    assert NodeColumns(table).per_node(counting.pods).tolist() == [0, 1, 0]
    assert nodes.take(np.array([2, 1])).per_node(counting.pods).tolist() == [0, 1]
    assert nodes.take(slice(1, 3)).per_node(counting.pods).tolist() == [1, 0]
    assert counting.since() == []
    table.add_pod(0, PodInfo(pod("q"), pod_resources(pod("q"))))
    table.update_node(node("c", labels={"new": "yes"}))
    assert NodeColumns(table).per_node(counting.pods).tolist() == [1, 1, 0]
    assert counting.since() == ["a", "c"]
    assert nodes.per_node(counting.length).tolist() == [1, 1, 1]


def test_nodes_that_come_and_go_have_values_of_their_own(table: NodeTable) -> None:
    counting = Counting()
    NodeColumns(table).per_node(counting.pods)
    table.remove_node("a")
    table.add_node(node("d"))
    table.add_node(node("e"))
    nodes = NodeColumns(table)
    assert dict(zip(nodes.names, nodes.per_node(counting.pods).tolist(), strict=True)) == {
        "b": 1,
        "c": 0,
        "d": 0,
        "e": 0,
    }
    table.remove_node("e")
    assert dict(zip(nodes.names, nodes.per_node(counting.pods).tolist(), strict=True)) == {"b": 1, "c": 0, "d": 0}


def test_assumptions_of_a_copy_stay_in_the_copy(table: NodeTable) -> None:
    counting = Counting()
    NodeColumns(table).per_node(counting.pods)
    what_if = WhatIf(table, [1])
    assert what_if.nodes.per_node(counting.pods).tolist() == [1]
    what_if.remove_pod("b", next(iter(table.pods[1])))
    assert what_if.nodes.per_node(counting.pods).tolist() == [0]
    assert NodeColumns(table).per_node(counting.pods).tolist() == [0, 1, 0]


def test_values_cannot_be_written_to_and_go_with_their_plugin(table: NodeTable) -> None:
    counting = Counting()
    values = NodeColumns(table).per_node(counting.pods)
    with pytest.raises(ValueError, match="read-only"):
        values[0] = 7
    gone = weakref.ref(counting)
    del counting
    gc.collect()
    assert gone() is None
    assert NodeColumns(table).per_node(len_of_name).tolist() == [1, 1, 1]


def len_of_name(node: NodeView) -> int:
    return len(node.name)


def half(node: NodeView) -> int:
    return 0.5  # type: ignore[return-value]


class Unhashable:
    __hash__ = None  # type: ignore[assignment]

    def value(self, node: NodeView) -> int:
        return 1


def test_what_is_no_integer_or_no_function_is_an_error(table: NodeTable) -> None:
    with pytest.raises(TypeError, match="'float' object cannot be interpreted as an integer"):
        NodeColumns(table).per_node(half)
    with pytest.raises(TypeError, match=r"nodes.per_node takes a function or a method, not .*unhashable"):
        NodeColumns(table).per_node(Unhashable().value)
