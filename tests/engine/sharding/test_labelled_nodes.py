"""Which shard a node belongs to where a label says it, and what is acknowledged about its changes."""

from typing import Any

import pytest

from trio_sched.engine.sharding.labelled_nodes import LabelledNodes
from trio_sched.engine.sharding.ownership import shard_of, shard_of_value
from trio_sched.objects.node import Node
from trio_sched.testing import node, node_affinity, pod, term

POOL, SHARDS = "example.com/pool", 4
IDLE: dict[str, Any] = {"is_in_use": lambda _name: False}


def of_pool(value: str, name: str = "n1") -> Node:
    return node(name, labels={POOL: value})


def labelled(*nodes: Node, **details: Any) -> LabelledNodes:
    """Nodes that are there from revision 1 on, and settled."""
    found = LabelledNodes(shards=SHARDS, label=POOL, **details)
    for one in nodes:
        found.node_changed(one, 1)
    found.settle(found.unsettled(range(SHARDS)).items())
    return found


@pytest.mark.parametrize(
    ("value", "shard"), [("3", 3), ("0", 0), ("4", shard_of("4", 4)), ("blue", shard_of("blue", 4))]
)
def test_a_value_that_is_the_number_of_a_shard_stands_for_that_and_any_other_is_hashed(value: str, shard: int) -> None:
    assert shard_of_value(value, SHARDS) == shard
    assert labelled(of_pool(value)).of("n1") == shard


def test_without_the_label_a_node_belongs_to_the_shard_of_its_name() -> None:
    assert labelled(node("n1")).of("n1") == shard_of("n1", SHARDS) == labelled().of("n1")


def test_a_pod_that_selects_nodes_by_the_label_is_of_their_shard() -> None:
    found = labelled()
    assert found.wanted_by(pod("p", node_selector={POOL: "2"})) == 2
    assert found.wanted_by(pod("p", affinity=node_affinity(term(f"{POOL} In 2")))) == 2
    several = node_affinity(term(f"{POOL} In 2"), term("zone In a"))
    assert found.wanted_by(pod("p", affinity=several)) is None
    assert found.wanted_by(pod("p", affinity=node_affinity(term(f"{POOL} In 1 2")))) is None
    assert found.wanted_by(pod("p")) is None


def test_a_new_node_is_settled_once_its_revision_is_acknowledged() -> None:
    found = labelled(**IDLE)
    assert found.node_changed(of_pool("2"), 7)
    assert (found.acknowledged, found.newest) == (7, 7)
    assert found.unsettled([2]) == {"n1": 7}
    assert not found.is_settled("n1")
    assert found.code("n1") == 2 + SHARDS
    before = found.column
    assert found.settle([("n1", 7)]) == ["n1"]
    assert found.code("n1") == 2
    assert found.column is not before
    assert not found.node_changed(of_pool("2"), 8)
    assert found.is_settled("n1")
    assert found.acknowledged == 8


def test_a_node_in_use_stays_where_it_is_until_its_shard_is_given_back() -> None:
    found = labelled(of_pool("1"), held=(held := {1}))
    assert found.node_changed(of_pool("2"), 5)
    assert found.left == {1}
    assert found.of("n1") == 1
    found.node_changed(of_pool("2"), 9)
    assert (found.seen, found.acknowledged) == (9, 4)
    assert found.unsettled([1, 2]) == {}
    found.finish_moves()  # not yet
    assert found.of("n1") == 1
    held.clear()
    found.finish_moves()
    assert found.of("n1") == 2
    assert (found.acknowledged, found.left) == (9, frozenset())
    assert found.unsettled([2]) == {"n1": 5}


def test_a_node_that_is_back_at_once_is_given_back_all_the_same() -> None:
    found = labelled(of_pool("1"), held=(held := {1}))
    found.node_changed(of_pool("2"), 5)
    assert found.node_changed(of_pool("1"), 6)
    assert found.left == {1}
    assert found.acknowledged == 4
    held.clear()
    found.finish_moves()
    assert found.unsettled([1]) == {"n1": 6}  # others may have taken it to be of shard 2


def test_a_node_that_is_not_in_use_or_not_of_a_held_shard_moves_at_once() -> None:
    for found in (labelled(of_pool("1"), held={1}, **IDLE), labelled(of_pool("1"), held={2})):
        found.node_changed(of_pool("3"), 5)
        assert found.of("n1") == 3
        assert found.acknowledged == 5


def test_what_was_settled_for_an_earlier_revision_is_not_settled_now() -> None:
    found = labelled(**IDLE)
    found.node_changed(of_pool("2"), 7)
    asked = found.unsettled([2])
    found.node_changed(of_pool("3"), 8)
    found.node_changed(of_pool("2"), 9)
    assert found.settle(asked.items()) == []
    assert not found.is_settled("n1")


def test_when_changes_were_missed_nodes_are_given_back_and_settled_anew() -> None:
    found = labelled(of_pool("1"), of_pool("2", "n2"), of_pool("2", "n3"), held=(held := {1}))
    found.node_changed(of_pool("2", "n2"), 20)
    found.changes_were_missed(["n1", "n2", "gone"])
    assert found.left == {1}
    assert found.acknowledged == 19
    held.clear()
    found.finish_moves()
    assert found.unsettled(range(SHARDS)) == {"n1": 20, "n2": 20}


def test_a_deleted_node_is_forgotten_once_it_is_not_in_use_and_one_of_its_name_begins_anew() -> None:
    used = {"n1"}
    found = labelled(of_pool("1"), of_pool("1", "n2"), held=(held := {1}), is_in_use=used.__contains__)
    for name in ("n1", "n2"):
        found.node_deleted(name, 5)
    assert len(found._homes) == 1
    found.node_changed(of_pool("2"), 6)  # something for the old one is still under way
    assert found.acknowledged == 5
    found.node_deleted("n1", 7)
    held.clear()
    used.clear()
    found.finish_moves()
    assert not found._homes
    assert not found._gone
    assert found.acknowledged == 7
