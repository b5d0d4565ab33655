"""Pods per topology domain, through the public API: ``nodes.domain_counts``."""

from collections.abc import Callable

import msgspec
import numpy as np
import pytest
from pod_infos import pod_info

from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.snapshot.arrays import BoolArray
from trio_sched.snapshot.labels.label_selection import EVERYTHING, selector_of_map
from trio_sched.snapshot.labels.pod_selector import NamespacedMatcher, PodSelector
from trio_sched.snapshot.node_columns import NodeColumns, NodeSet
from trio_sched.snapshot.node_table import NodeTable
from trio_sched.snapshot.pod_counts import domain_counts
from trio_sched.snapshot.pod_counts.domain_counts import NO_DOMAIN, DomainCounts
from trio_sched.testing import make_table, node, pod

WEB = PodSelector((NamespacedMatcher(frozenset({"default"}), selector_of_map({"app": "web"})),))


def zoned(name: str, zone: str = "", **more: object) -> Node:
    return node(name, labels={"zone": zone} if zone else None, **more)  # type: ignore[arg-type]


def web(name: str, on: str, app: str = "web") -> Pod:
    return pod(name, node_name=on, labels={"app": app})


def table_of_zones() -> NodeTable:
    return make_table(
        [zoned("a1", "a"), zoned("a2", "a"), zoned("b1", "b"), zoned("c1", "c"), zoned("none")],
        [web("p1", "a1"), web("p2", "a2"), web("p3", "b1"), web("p4", "none"), web("other", "c1", "db")],
    )


def per_zone(table: NodeTable, nodes: NodeSet | None = None, key: str = "zone") -> dict[str | None, int]:
    counts = NodeColumns(table).domain_counts(WEB, key, nodes)
    values = NodeColumns(table).label_vocabulary(key)
    return {values[i]: int(counts.counts[i]) for i in np.flatnonzero(counts.present)}


def add(table: NodeTable, new: Pod) -> None:
    table.add_pod(table.row_of[new.node_name], pod_info(new))


def counts_of(table: NodeTable) -> DomainCounts:
    return NodeColumns(table).domain_counts(WEB, "zone")


def test_pods_count_in_the_domain_of_their_node_and_nowhere_without_the_label() -> None:
    table = table_of_zones()
    assert per_zone(table) == {"a": 2, "b": 1, "c": 0}
    counts = counts_of(table)
    assert (counts.total, counts.size, counts.minimum) == (3, 3, 0)
    assert counts.counts[0] == 0
    assert not counts.present[0]


def test_counts_follow_pods_that_come_and_go() -> None:
    table = table_of_zones()
    counts = counts_of(table)
    add(table, web("p5", "c1"))
    assert (counts.total, counts.minimum) == (4, 1)
    table.remove_pod(table.row_of["b1"], pod("p3").uid)
    assert (counts.total, counts.minimum) == (3, 0)
    add(table, web("q", "c1", "db"))
    add(table, web("r", "none"))
    assert counts.total == 3
    assert counts_of(table) is counts
    assert per_zone(table) == {"a": 2, "b": 0, "c": 1}


def test_a_running_pod_that_changes_its_labels_begins_or_stops_to_count() -> None:
    table = table_of_zones()
    assert per_zone(table)["a"] == 2
    row = table.row_of["a1"]
    former = table.pods[row][pod("p1").uid]
    table.update_pod(row, former, web("p1", "a1", "db"))
    assert per_zone(table)["a"] == 1
    table.update_pod(row, former, web("p1", "a1"))
    assert per_zone(table)["a"] == 2


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda table: table.add_node(zoned("d1", "d")), {"a": 2, "b": 1, "c": 0, "d": 0}),
        (lambda table: table.remove_node("c1"), {"a": 2, "b": 1}),
        (lambda table: table.remove_node("a1"), {"a": 1, "b": 1, "c": 0}),
        (lambda table: table.update_node(zoned("b1", "c")), {"a": 2, "c": 1}),
        (lambda table: table.update_node(zoned("b1")), {"a": 2, "c": 0}),
        (lambda table: table.update_node(zoned("none", "n")), {"a": 2, "b": 1, "c": 0, "n": 1}),
    ],
    ids=["comes", "goes empty", "goes", "changes zone", "loses its zone", "gets a zone"],
)
def test_counts_follow_nodes(change: Callable[[NodeTable], object], expected: dict[str, int]) -> None:
    table = table_of_zones()
    assert per_zone(table) == {"a": 2, "b": 1, "c": 0}
    change(table)
    assert per_zone(table) == expected
    add(table, web("later", "a2"))
    assert per_zone(table) == {**expected, "a": expected["a"] + 1}


def test_pods_on_a_row_that_got_a_new_number_count_where_they_are() -> None:
    table = table_of_zones()
    table.update_node(zoned("none", "n"))
    assert per_zone(table)["n"] == 1
    table.remove_node("a1")  # the last node takes its row
    assert table.row_of["none"] == 0
    assert per_zone(table) == {"a": 1, "b": 1, "c": 0, "n": 1}
    table.remove_pod(0, pod("p4").uid)
    assert per_zone(table)["n"] == 0


def test_changes_between_two_reads_are_counted_at_the_second() -> None:
    table = table_of_zones()
    counts_of(table)
    table.add_node(zoned("d1", "d"))
    add(table, web("p5", "d1"))
    table.remove_pod(table.row_of["a1"], pod("p1").uid)
    assert per_zone(table) == {"a": 1, "b": 1, "c": 0, "d": 1}


def test_counts_grow_with_the_columns() -> None:
    table = table_of_zones()
    assert counts_of(table).total == int(NodeColumns(table).pod_counts(WEB)[:4].sum()) == 3
    for i in range(200):
        table.add_node(zoned(f"more-{i}", "m"))
    add(table, web("late", "more-199"))
    assert per_zone(table)["m"] == 1
    assert int(NodeColumns(table).pod_counts(WEB)[table.row_of["more-199"]]) == 1
    assert len(NodeColumns(table).pod_counts(WEB)) == 205


def test_the_smallest_count_can_leave_a_domain_out() -> None:
    table = table_of_zones()
    counts = counts_of(table)
    zone_c = NodeColumns(table).label_value_id("zone", "c")
    assert zone_c is not None
    assert counts.minimum_without(zone_c) == 1
    assert counts.minimum == 0


def test_without_domains_there_is_no_smallest_count() -> None:
    table = make_table([zoned("n")], [web("p", "n")])
    counts = counts_of(table)
    assert (counts.minimum, counts.total, counts.size) == (NO_DOMAIN, 0, 0)
    only = make_table([zoned("n", "a")], [web("p", "n")])
    zone = NodeColumns(only).label_value_id("zone", "a")
    assert zone is not None
    assert NodeColumns(only).domain_counts(WEB, "zone").minimum_without(zone) == NO_DOMAIN


# --- sets of nodes --------------------------------------------------------------------------------------------------


def untainted(nodes: NodeColumns) -> BoolArray:
    return nodes.taint_sets == 0


UNTAINTED = NodeSet("untainted", untainted)
TAINTED_A1 = zoned("a1", "a", taints=["x:NoSchedule"])


def test_only_nodes_of_the_set_count_and_make_domains() -> None:
    table = table_of_zones()
    table.update_node(TAINTED_A1)
    table.update_node(zoned("c1", "c", taints=["x:NoSchedule"]))
    assert per_zone(table, UNTAINTED) == {"a": 1, "b": 1}
    assert per_zone(table) == {"a": 2, "b": 1, "c": 0}
    add(table, web("on-tainted", "a1"))
    add(table, web("on-other", "a2"))
    assert per_zone(table, UNTAINTED) == {"a": 2, "b": 1}
    assert NodeColumns(table).domain_counts(WEB, "zone", UNTAINTED).total == 3


def test_the_set_is_selected_again_when_taints_change() -> None:
    table = table_of_zones()
    assert per_zone(table, UNTAINTED)["a"] == 2
    table.update_node(TAINTED_A1)
    assert per_zone(table, UNTAINTED)["a"] == 1
    table.update_node(zoned("a1", "a"))
    assert per_zone(table, UNTAINTED)["a"] == 2


def test_a_set_is_selected_once_as_long_as_no_node_changes() -> None:
    table, asked = table_of_zones(), []

    def select(nodes: NodeColumns) -> BoolArray:
        asked.append(len(nodes))
        return np.ones(len(nodes), dtype=np.bool_)

    for key in ("zone", "kubernetes.io/hostname", "zone"):
        NodeColumns(table).domain_counts(WEB, key, NodeSet("all", select))
    add(table, web("p5", "a1"))
    NodeColumns(table).domain_counts(WEB, "zone", NodeSet("all", select))
    assert asked == [5]
    table.remove_node("c1")
    NodeColumns(table).domain_counts(WEB, "zone", NodeSet("all", select))
    assert asked == [5, 4]


def test_updates_that_leave_labels_and_taints_alone_do_not_begin_anew() -> None:
    table = table_of_zones()
    before = table.topology.generation
    old = table.nodes[0]
    table.update_node(msgspec.structs.replace(old, status=msgspec.structs.replace(old.status, images=None)))
    bigger = node("a1", cpu=64, labels={"zone": "a"})
    assert table.update_node(bigger)
    assert table.topology.generation == before
    table.update_node(TAINTED_A1)
    assert table.topology.generation == before + 1


# --- limits ---------------------------------------------------------------------------------------------------------


def test_domain_counts_that_were_dropped_are_counted_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domain_counts, "_MAX_CELLS", 2 * domain_counts._OVERHEAD_CELLS + 20)
    table = table_of_zones()
    for key in ("zone", "kubernetes.io/hostname", "rack", "zone"):
        NodeColumns(table).domain_counts(WEB, key)
    add(table, web("p5", "c1"))
    assert per_zone(table) == {"a": 2, "b": 1, "c": 1}
    assert per_zone(table, key="kubernetes.io/hostname") == {"a1": 1, "a2": 1, "b1": 1, "c1": 1, "none": 1}


def test_every_pod_can_be_counted() -> None:
    table = table_of_zones()
    every_pod = PodSelector((NamespacedMatcher(None, EVERYTHING),))
    assert NodeColumns(table).domain_counts(every_pod, "zone").total == 4


def test_counts_over_nodes_that_a_large_key_stands_for_are_dropped_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domain_counts, "_MAX_CELLS", 10 * domain_counts._OVERHEAD_CELLS)
    nodes = NodeColumns(table_of_zones())

    def counts(key: str, texts: int) -> DomainCounts:
        return nodes.domain_counts(WEB, "zone", NodeSet(key, untainted, texts))

    small = [counts(f"small-{number}", 1) for number in range(3)]
    assert [counts(f"small-{number}", 1) for number in range(3)] == small
    counts("large", 10_000)
    assert counts("small-0", 1) is not small[0]
