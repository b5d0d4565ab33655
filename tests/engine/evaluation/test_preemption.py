"""Dry runs of preemption: the victims, the order of reprieves, and the calls of plugins."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
from msgspec.structs import replace
from plugin_base import PluginBase
from pod_infos import pod_info

from trio_sched.engine.evaluation.filtering import run_pre_filters
from trio_sched.engine.evaluation.preemption import NO_VICTIMS, Evictable, dry_run
from trio_sched.objects.affinity import Affinity, PodAffinity, PodAffinityTerm
from trio_sched.objects.selector import LabelSelector
from trio_sched.plugin_api import (
    Code,
    CycleState,
    DryRun,
    Node,
    NodeColumns,
    NodeView,
    Pod,
    Status,
    Verdicts,
    Victims,
    hookimpl,
    unschedulable,
)
from trio_sched.plugin_api.preemption import Budget
from trio_sched.snapshot.labels.label_selection import selector_of_map
from trio_sched.snapshot.node_table import NodeTable
from trio_sched.testing import make_profile, make_table, node, pod

NODE = node("n", cpu=4)


def running(name: str, priority: int = 0, *, cpu: Any = 1, on: str = "n", start: str = "", **more: Any) -> Pod:
    made = pod(name, priority=priority, cpu=cpu, node_name=on, **more)
    return replace(made, status=replace(made.status, start_time=start or None))


def incoming(cpu: Any = 4, priority: int = 100, **more: Any) -> Pod:
    return pod("incoming", cpu=cpu, priority=priority, **more)


def budget(allowed: int, *disrupted: str, **labels: str) -> Budget:
    return Budget("default", selector_of_map(labels), allowed, frozenset(disrupted))


def try_out(
    waiting: Pod,
    nodes: Sequence[Node] = (NODE,),
    pods: Sequence[Pod] = (),
    *,
    plugins: Sequence[Any] = ("NodeResourcesFit",),
    nominated: Mapping[str, Sequence[Pod]] | None = None,
    budgets: Sequence[Budget] = (),
    num_candidates: int = 100,
    names: Sequence[str] | None = None,
    table: NodeTable | None = None,
    evictable: Evictable | None = None,
) -> DryRun:
    table = make_table(nodes, pods) if table is None else table
    profile, state = make_profile(plugins), CycleState()
    run_pre_filters(profile.pre_filter, waiting, NodeColumns(table), state)
    nominated_pods = {name: [pod_info(one) for one in many] for name, many in (nominated or {}).items()}
    return dry_run(
        profile,
        table,
        waiting,
        state,
        nominated_pods,
        table.names if names is None else names,
        budgets={"default": list(enumerate(budgets))},
        num_candidates=num_candidates,
        evictable=evictable,
    )


def victims(tried: DryRun, on: str = "n") -> list[str]:
    return [one.name for one in tried.candidates[on].pods]


# --- victims --------------------------------------------------------------------------------------------------------


def test_only_pods_of_lower_priority_are_victims() -> None:
    tried = try_out(incoming(cpu=2), pods=[running("low", 0, cpu=2), running("equal", 100), running("high", 101)])
    assert victims(tried) == ["low"]
    assert tried.candidates["n"].pdb_violations == 0
    assert (tried.statuses, tried.error) == ({}, None)


def test_a_node_without_pods_of_lower_priority_is_no_candidate() -> None:
    tried = try_out(incoming(), pods=[running("equal", 100)])
    assert tried == DryRun({}, {"n": NO_VICTIMS})
    assert NO_VICTIMS.code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert NO_VICTIMS.message == "No preemption victims found for incoming pod"


def test_a_node_where_the_pod_does_not_fit_without_victims_has_a_status() -> None:
    tried = try_out(incoming(cpu=4), pods=[running("low", 0), running("high", 101)])
    assert tried.candidates == {}
    assert tried.statuses["n"].message == "Insufficient cpu"
    assert tried.statuses["n"].plugin == "NodeResourcesFit"


def test_a_plugin_may_name_the_pods_that_can_be_evicted_whatever_their_priority() -> None:
    pods = [running("low", 1), running("high", 1000), running("higher", 2000), running("other", 3000)]
    named = {"high", "higher", "elsewhere"}

    def evictable(node: NodeView) -> list[Pod]:
        assert node.name == "n"
        return [*(one for one in node.pods if one.name in named), running("elsewhere")]

    assert victims(try_out(incoming(cpu=1), pods=pods, evictable=evictable)) == ["high"]
    assert victims(try_out(incoming(cpu=2), pods=pods, evictable=evictable)) == ["higher", "high"]
    assert try_out(incoming(cpu=3), pods=pods, evictable=evictable).candidates == {}
    assert try_out(incoming(cpu=1), pods=pods, evictable=lambda _node: []).statuses == {"n": NO_VICTIMS}


def test_a_pod_without_a_priority_counts_as_zero() -> None:
    bare = replace(running("bare"), spec=replace(running("bare").spec, priority=None))
    assert victims(try_out(incoming(priority=1), pods=[bare])) == ["bare"]
    assert try_out(incoming(priority=0), pods=[bare]).candidates == {}


def test_pods_of_any_namespace_and_scheduler_and_terminating_pods_can_be_victims() -> None:
    going = running("going", namespace="other", scheduler_name="another")
    going = replace(going, metadata=replace(going.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))
    assert victims(try_out(incoming(), pods=[going])) == ["going"]


def test_a_pod_that_fits_without_any_victim_is_an_error() -> None:
    tried = try_out(incoming(cpu=1), pods=[running("low")])
    assert tried.candidates == tried.statuses == {}
    assert tried.error is not None
    assert (tried.error.code, tried.error.message) == (Code.ERROR, 'expected at least one victim pod on node "n"')


# --- reprieves ------------------------------------------------------------------------------------------------------


def test_pods_are_reprieved_from_the_highest_priority_down() -> None:
    pods = [running("low", 1), running("high", 3), running("middle", 2)]
    assert victims(try_out(incoming(cpu=2), pods=pods)) == ["low"]
    assert victims(try_out(incoming(cpu=3), pods=pods)) == ["middle", "low"]


def test_of_equal_priority_pods_that_started_earlier_are_reprieved_first() -> None:
    pods = [
        running("new", start="2026-03-01T00:00:00Z"),
        running("old", start="2026-01-01T00:00:00Z"),
        running("not-started"),
        running("newer", start="2026-04-01T00:00:00Z"),
    ]
    assert victims(try_out(incoming(cpu=1), pods=pods)) == ["not-started"]
    assert victims(try_out(incoming(cpu=3), pods=pods)) == ["new", "newer", "not-started"]


def test_a_pod_of_lower_priority_is_reprieved_if_one_of_higher_priority_does_not_fit() -> None:
    pods = [running("large", 5, cpu=3), running("small", 1, cpu=1)]
    assert victims(try_out(incoming(cpu=2), pods=pods)) == ["large"]


def test_each_node_is_tried_independently() -> None:
    nodes = [node("a", cpu=4), node("b", cpu=2), node("c", cpu=1), node("empty", cpu=1)]
    pods = [running("a1", on="a", cpu=3), running("b1", on="b", cpu=1), running("b2", 5, on="b"), running("c1", on="c")]
    tried = try_out(incoming(cpu=2), nodes, pods)
    assert {name: [one.name for one in v.pods] for name, v in tried.candidates.items()} == {
        "a": ["a1"],
        "b": ["b2", "b1"],
    }
    assert tried.statuses["c"].message == "Insufficient cpu"
    assert tried.statuses["empty"] == NO_VICTIMS


def test_a_dry_run_does_not_change_the_cache() -> None:
    table = make_table([NODE], [running("a"), running("b", cpu=3)])
    try_out(incoming(cpu=2), table=table, nominated={"n": [incoming(cpu=1, priority=200)]})
    assert [one.name for one in NodeColumns(table).node(0).pods] == ["a", "b"]
    assert NodeColumns(table).requested[0].tolist() == [4000]


def test_names_of_unknown_nodes_are_ignored() -> None:
    tried = try_out(incoming(), pods=[running("low")], names=["gone", "n"])
    assert list(tried.candidates) == ["n"]


# --- budgets --------------------------------------------------------------------------------------------------------


def test_pods_protected_by_a_disruption_budget_are_reprieved_first() -> None:
    pods = [running("protected", 1, cpu=2, labels={"app": "db"}), running("free", 5, cpu=2)]
    tried = try_out(incoming(cpu=2), pods=pods, budgets=[budget(0, app="db")])
    assert victims(tried) == ["free"]
    assert tried.candidates["n"].pdb_violations == 0


def test_violations_are_counted_among_the_victims_only() -> None:
    pods = [running(f"db-{i}", i, labels={"app": "db"}) for i in range(3)] + [running("free", 9)]
    tried = try_out(incoming(cpu=3), pods=pods, budgets=[budget(0, app="db")])
    assert victims(tried) == ["free", "db-1", "db-0"]
    assert tried.candidates["n"].pdb_violations == 2


def test_allowed_disruptions_are_used_up_from_the_highest_priority_down() -> None:
    pods = [running(f"db-{i}", i, cpu=2, labels={"app": "db"}) for i in range(2)]
    tried = try_out(incoming(cpu=2), pods=pods, budgets=[budget(1, app="db")])
    # db-1 is covered by the budget; db-0, which is not, comes back first.
    assert victims(tried) == ["db-1"]
    assert tried.candidates["n"].pdb_violations == 0


def test_every_node_starts_with_all_allowed_disruptions() -> None:
    nodes = [node("a", cpu=1), node("b", cpu=1)]
    pods = [running("db-a", on="a", labels={"app": "db"}), running("db-b", on="b", labels={"app": "db"})]
    tried = try_out(incoming(cpu=1), nodes, pods, budgets=[budget(1, app="db")])
    assert [found.pdb_violations for found in tried.candidates.values()] == [0, 0]


def test_candidates_without_budget_violations_come_first() -> None:
    nodes = [node("a", cpu=1), node("b", cpu=1), node("c", cpu=1)]
    pods = [running(f"p-{name}", on=name, labels={"on": name}) for name in "abc"]
    tried = try_out(incoming(cpu=1), nodes, pods, budgets=[budget(0, on="a")])
    assert list(tried.candidates) == ["b", "c", "a"]


# --- number of candidates -------------------------------------------------------------------------------------------

FIVE = [node(f"n{i}", cpu=1) for i in range(5)]
FIVE_PODS = [running(f"p{i}", on=f"n{i}", labels={"on": str(i)}) for i in range(5)]


def test_the_search_ends_with_enough_candidates() -> None:
    assert list(try_out(incoming(cpu=1), FIVE, FIVE_PODS, num_candidates=2).candidates) == ["n0", "n1"]
    backwards = try_out(incoming(cpu=1), FIVE, FIVE_PODS, num_candidates=2, names=["n4", "n3", "n2"])
    assert list(backwards.candidates) == ["n4", "n3"]


def test_the_search_goes_on_until_one_candidate_violates_no_budget() -> None:
    budgets = [budget(0, on=str(i)) for i in range(4)]
    tried = try_out(incoming(cpu=1), FIVE, FIVE_PODS, num_candidates=2, budgets=budgets)
    assert list(tried.candidates) == ["n4", "n0", "n1"]


def test_nodes_after_the_first_chunk_are_tried_too() -> None:
    nodes = [node(f"n{i}", cpu=1) for i in range(150)]
    tried = try_out(incoming(cpu=1), nodes, [running("only", on="n149")], num_candidates=1)
    assert list(tried.candidates) == ["n149"]
    assert len(tried.statuses) == 149


# --- nominated pods ------------------------------------------------------------------------------------------------


def test_pods_nominated_to_the_node_use_its_resources() -> None:
    pods = [running("a", 1), running("b", 2), running("c", 3), running("d", 4)]
    assert victims(try_out(incoming(cpu=1), pods=pods)) == ["a"]
    rival = pod("rival", cpu=2, priority=200)
    assert victims(try_out(incoming(cpu=1), pods=pods, nominated={"n": [rival]})) == ["c", "b", "a"]
    hog = try_out(incoming(cpu=1), pods=pods, nominated={"n": [pod("rival", cpu=4, priority=200)]})
    assert hog.statuses["n"].message == "Insufficient cpu"


def near(app: str) -> Affinity:
    term = PodAffinityTerm(LabelSelector(match_labels={"app": app}), topology_key="kubernetes.io/hostname")
    return Affinity(pod_affinity=PodAffinity((term,)))


def test_the_pod_must_also_fit_without_nominated_pods() -> None:
    rival = pod("rival", cpu=1, priority=200, labels={"app": "web"})
    tried = try_out(
        incoming(cpu=2, affinity=near("web")),
        pods=[running("low", cpu=4)],
        plugins=["NodeResourcesFit", "InterPodAffinity"],
        nominated={"n": [rival]},
    )
    assert tried.statuses["n"].message == "node(s) didn't match pod affinity rules"


def test_nominations_to_other_nodes_are_ignored() -> None:
    rival = pod("rival", cpu=4, priority=200)
    assert victims(try_out(incoming(), pods=[running("low")], nominated={"other": [rival]})) == ["low"]


# --- plugins --------------------------------------------------------------------------------------------------------


class CountingLoud(PluginBase):
    """Rejects nodes with a pod labelled ``loud``, from a count of its own."""

    calls: ClassVar[list[str]] = []

    @hookimpl
    def pre_filter(self, nodes: NodeColumns, state: CycleState) -> None:
        state.write("CountingLoud", {one.name: sum("loud" in other.labels for other in one.pods) for one in nodes})

    @hookimpl
    def add_pod(self, added: Pod, node: NodeView, state: CycleState) -> Status | None:
        self.calls.append(f"+{added.name}")
        state.read("CountingLoud")[node.name] += "loud" in added.labels
        return unschedulable("cannot add") if "bad-add" in added.labels else None

    @hookimpl
    def remove_pod(self, removed: Pod, node: NodeView, state: CycleState) -> None:
        if "bad-remove" in removed.labels:
            raise LookupError("lost")
        self.calls.append(f"-{removed.name}")
        state.read("CountingLoud")[node.name] -= "loud" in removed.labels

    @hookimpl
    def filter(self, nodes: NodeColumns, state: CycleState) -> Verdicts:
        quiet = np.array([state.read("CountingLoud")[name] == 0 for name in nodes.names], dtype=np.bool_)
        return Verdicts.where(quiet, unschedulable("too loud"))


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    CountingLoud.calls.clear()


def test_remove_pod_and_add_pod_are_called_for_each_victim_and_reprieve() -> None:
    pods = [running("loud", 1, labels={"loud": ""}), running("quiet", 2)]
    assert victims(try_out(incoming(cpu=1), pods=pods, plugins=[CountingLoud])) == ["loud"]
    assert sorted(CountingLoud.calls[:2]) == ["-loud", "-quiet"]
    assert CountingLoud.calls[2:] == ["+quiet", "+loud", "-loud"]


def test_add_pod_is_called_for_nominated_pods_in_the_first_pass_only() -> None:
    rival = pod("rival", priority=200)
    tried = try_out(
        incoming(cpu=1), pods=[running("loud", labels={"loud": ""})], plugins=[CountingLoud], nominated={"n": [rival]}
    )
    assert victims(tried) == ["loud"]
    assert CountingLoud.calls == ["-loud", "+rival", "+loud", "+rival", "-loud"]


def test_each_node_has_its_own_clone_of_the_state() -> None:
    nodes = [node("a"), node("b")]
    pods = [running("loud-a", on="a", labels={"loud": ""}), running("loud-b", on="b", labels={"loud": ""})]
    tried = try_out(incoming(cpu=1), nodes, pods, plugins=[CountingLoud])
    assert {name: [one.name for one in v.pods] for name, v in tried.candidates.items()} == {
        "a": ["loud-a"],
        "b": ["loud-b"],
    }


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("bad-remove", 'running RemovePod on PreFilter plugin "CountingLoud": remove_pod raised LookupError: lost'),
        ("bad-add", 'running AddPod on PreFilter plugin "CountingLoud": cannot add'),
    ],
)
def test_a_failing_plugin_excludes_only_the_node_it_fails_on(label: str, message: str) -> None:
    nodes = [node("good"), node("spoilt")]
    pods = [
        running("loud", on="good", labels={"loud": ""}),
        running("bad", on="spoilt", labels={"loud": "", label: ""}),
    ]
    tried = try_out(incoming(cpu=1), nodes, pods, plugins=[CountingLoud])
    assert victims(tried, "good") == ["loud"]
    assert list(tried.candidates) == ["good"]
    assert tried.error is not None
    assert (tried.error.code, tried.error.message, tried.error.plugin) == (Code.ERROR, message, "CountingLoud")
    assert tried.statuses == {}


class Choosy(PluginBase):
    """Rejects nodes with two pods in filter_node, and raises on nodes labelled ``broken``."""

    @hookimpl
    def filter_node(self, node: NodeView) -> Status | None:
        if "broken" in node.labels:
            raise LookupError("broken")
        return None if len(node.pods) < 3 else unschedulable("crowded")


def test_filter_node_sees_the_remaining_pods() -> None:
    pods = [running(f"p{i}", i) for i in range(4)]
    assert victims(try_out(incoming(cpu=1), pods=pods, plugins=[Choosy])) == ["p1", "p0"]


class Brittle(PluginBase):
    """Looks at all nodes at once, and raises if one of them is labelled ``broken``."""

    @hookimpl
    def filter(self, nodes: NodeColumns) -> Verdicts:
        if any("broken" in one.labels for one in nodes):
            raise LookupError("broken")
        return Verdicts.where(np.array([not one.pods for one in nodes], dtype=np.bool_), unschedulable("taken"))


@pytest.mark.parametrize(
    ("plugin", "full"), [(Choosy, 3), (Brittle, 1)], ids=["one node at a time", "all nodes at once"]
)
def test_a_filter_that_fails_on_one_node_excludes_no_other(plugin: type[PluginBase], full: int) -> None:
    nodes = [node("a"), node("broken", labels={"broken": ""}), node("z")]
    pods = [running(f"{one.name}-{i}", on=one.name) for one in nodes for i in range(full)]
    tried = try_out(incoming(cpu=1), nodes, pods, plugins=[plugin])
    assert list(tried.candidates) == ["a", "z"]
    assert tried.statuses == {}
    assert tried.error is not None
    assert tried.error.message.startswith(f'running "{plugin.name}" filter plugin: filter')
    assert tried.error.message.endswith(" raised LookupError: broken")


class Idle(CountingLoud):
    """Skips in pre_filter."""

    @hookimpl
    def pre_filter(self) -> Status:
        return Status(Code.SKIP)


def test_skipped_plugins_are_not_called() -> None:
    tried = try_out(incoming(), pods=[running("low", labels={"loud": ""})], plugins=["NodeResourcesFit", Idle])
    assert tried.candidates == {"n": Victims((running("low", labels={"loud": ""}),))}
    assert CountingLoud.calls == []
