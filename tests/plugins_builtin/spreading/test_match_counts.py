"""Counts of the cluster with assumed changes."""

import numpy as np

from plugins_builtin.spreading.match_counts import MatchCounts
from trio_sched.engine.evaluation.filtering import run_pre_filters
from trio_sched.engine.evaluation.preemption import dry_run
from trio_sched.objects.pod import TopologySpreadConstraint
from trio_sched.objects.selector import LabelSelector
from trio_sched.plugin_api import NO_DOMAIN, CycleState, NamespacedMatcher, PodSelector, selector_of_map
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.node_table import NodeTable
from trio_sched.testing import make_profile, make_table, node, pod

WEB = PodSelector((NamespacedMatcher(None, selector_of_map({"app": "web"})),))


def three_zones() -> NodeTable:
    """With 2, 1 and 0 pods."""
    nodes = [node(name, labels={"zone": name}) for name in "abc"]
    return make_table(nodes, [pod(f"p{i}", labels={"app": "web"}, node_name=name) for i, name in enumerate("aab")])


def match_counts(table: NodeTable) -> MatchCounts:
    return MatchCounts(NodeColumns(table).domain_counts(WEB, "zone"))


A, B, C = 1, 2, 3


def test_without_changes_it_says_what_the_cluster_says() -> None:
    table = three_zones()
    one = match_counts(table)
    assert one.counts(NodeColumns(table)).tolist() == [0, 2, 1, 0]
    assert (one.count(A), one.total, one.minimum) == (2, 3, 0)


def test_changes_show_and_leave_the_cluster_alone() -> None:
    table = three_zones()
    one = match_counts(table)
    one.change(C, 2)
    assert one.counts(NodeColumns(table)).tolist() == [0, 2, 1, 2]
    assert (one.count(C), one.total, one.minimum) == (2, 5, 1)
    one.change(A, -2)
    assert one.counts(NodeColumns(table)).tolist() == [0, 0, 1, 2]
    assert (one.total, one.minimum) == (3, 0)
    assert match_counts(table).counts(NodeColumns(table)).tolist() == [0, 2, 1, 0]


def test_changes_that_cancel_each_other_are_none() -> None:
    one = match_counts(three_zones())
    one.change(A, -1)
    one.change(A, 1)
    assert one.changes == {}


def test_a_clone_is_independent() -> None:
    one = match_counts(three_zones())
    one.change(A, 1)
    other = one.clone()
    other.change(A, 1)
    one.change(B, -1)
    assert ((one.count(A), one.count(B)), (other.count(A), other.count(B))) == ((3, 0), (4, 1))


def test_it_follows_the_cluster_underneath() -> None:
    table = three_zones()
    one = match_counts(table)
    one.change(C, 1)
    table.remove_pod(0, pod("p0").uid)
    assert (one.count(A), one.total, one.minimum) == (1, 3, 1)


def test_a_domain_that_came_up_after_counting_has_no_pods_and_is_none_of_those_compared() -> None:
    table = three_zones()
    one = match_counts(table)
    table.update_node(node("c", labels={"zone": "new"}))
    new = NodeColumns(table).label_value_id("zone", "new")
    assert new == 4
    assert one.counts(NodeColumns(table)).tolist() == [0, 2, 1, 0, 0]
    one.change(new, 1)
    assert one.counts(NodeColumns(table)).tolist() == [0, 2, 1, 0, 1]
    assert (one.count(new), one.minimum) == (1, 0)
    one.change(C, 3)
    one.change(new, -2)
    assert one.minimum == 1


def test_where_there_is_no_domain_there_is_no_smallest_count() -> None:
    table = make_table([node("bare")])
    one = match_counts(table)
    assert one.minimum == NO_DOMAIN
    assert np.array_equal(one.counts(NodeColumns(table)), [0])


def test_a_zone_added_after_the_filter_does_not_break_the_dry_run() -> None:
    """A third-party post_filter may await before preemption is called; the cluster changes meanwhile."""
    constraint = TopologySpreadConstraint(
        max_skew=1,
        topology_key="zone",
        when_unsatisfiable="DoNotSchedule",
        label_selector=LabelSelector(match_labels={"app": "web"}),
    )
    table, state = three_zones(), CycleState()
    waiting = pod("waiting", priority=5, labels={"app": "web"}, spread=[constraint])
    profile = make_profile(["PodTopologySpread"])
    run_pre_filters(profile.pre_filter, waiting, NodeColumns(table), state)
    table.update_node(node("a", labels={"zone": "new"}))
    tried = dry_run(profile, table, waiting, state, {}, ["a", "b"], budgets={}, num_candidates=9)
    assert tried.error is not None  # no pod in the new zone was counted, so none there is a victim
    assert tried.error.message == 'expected at least one victim pod on node "a"'
    assert [one.name for one in tried.candidates["b"].pods] == ["p2"]
