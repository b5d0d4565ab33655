"""What PodTopologySpread and InterPodAffinity say from counters that follow every change equals counting again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from random import Random
from typing import Any

import numpy as np
import pytest
from changing_topology import NODES, ChangingCluster
from msgspec.structs import replace
from plain_topology import (
    MISSING_LABEL,
    NOT_NEAR,
    SKEWED,
    TOO_NEAR,
    UNWELCOME,
    BadSelector,
    PlainAffinity,
    PlainSpread,
    parses,
)
from pod_infos import pod_info

from plugins_builtin.spreading import spread_constraints
from trio_sched.engine.evaluation.decision import ScheduleResult, SchedulingFailure
from trio_sched.engine.evaluation.filtering import NominatedPods, run_pre_filters
from trio_sched.engine.evaluation.host_selection import best_positions
from trio_sched.engine.evaluation.scheduling_cycle import FeasibleNodes, SchedulingCycle
from trio_sched.engine.evaluation.scoring import run_pre_scores, run_scores
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.hooks.plugin_calls import call_filter
from trio_sched.engine.queue.scheduling_queue import SchedulingQueue
from trio_sched.engine.registry.profile import Profile
from trio_sched.engine.scheduler import Scheduler
from trio_sched.objects.pod import Pod, TopologySpreadConstraint
from trio_sched.plugin_api import Code, CycleState, InterPodAffinityArgs, NodeColumns, PodTopologySpreadArgs
from trio_sched.snapshot import topology_columns
from trio_sched.snapshot.labels import affinity_terms, label_selection
from trio_sched.snapshot.pod_counts import domain_counts, pod_index, term_index
from trio_sched.snapshot.pod_info import PodInfo
from trio_sched.snapshot.what_if import WhatIf
from trio_sched.testing import make_profile

SPREAD, AFFINITY = "PodTopologySpread", "InterPodAffinity"
UNRESOLVABLE = {MISSING_LABEL, NOT_NEAR}
DEFAULTS = (
    TopologySpreadConstraint(max_skew=1, topology_key="rack", when_unsatisfiable="DoNotSchedule"),
    TopologySpreadConstraint(
        max_skew=2, topology_key="topology.kubernetes.io/zone", when_unsatisfiable="ScheduleAnyway"
    ),
)
ARGUMENTS: list[dict[str, Any]] = [
    {"defaults": None, "hard_weight": 1, "ignore": False},
    {"defaults": DEFAULTS, "hard_weight": 0, "ignore": True},
    {"defaults": (), "hard_weight": 50, "ignore": True},
]


class BothWays:
    """A changing cluster, and the plugins that judge it."""

    def __init__(self, seed: int, *, defaults: Any, hard_weight: int, ignore: bool) -> None:
        self.cluster = ChangingCluster(seed)
        self.rng = Random(seed + 1)
        self.defaults, self.hard_weight, self.ignore = defaults, hard_weight, ignore
        self.args = {
            SPREAD: PodTopologySpreadArgs(
                default_constraints=defaults, defaulting_type="System" if defaults is None else "List"
            ),
            AFFINITY: InterPodAffinityArgs(
                hard_pod_affinity_weight=hard_weight, ignore_preferred_terms_of_existing_pods=ignore
            ),
        }
        self.profiles = {
            name: make_profile([name], args={name: self.args[name]}, handle=self.cluster.handle)
            for name in (SPREAD, AFFINITY)
        }
        self.shapes: list[Pod] = []
        self.seen: dict[str, int] = {}

    def note(self, what: str) -> None:
        """Keeps count of what was met, so that a test that meets nothing fails."""
        self.seen[what] = self.seen.get(what, 0) + 1

    def plain(self, plugin: str, incoming: Pod) -> Any:
        if plugin == SPREAD:
            return PlainSpread(self.cluster.plain, incoming, self.defaults)
        return PlainAffinity(self.cluster.plain, incoming, hard_weight=self.hard_weight, ignore=self.ignore)

    def compare(self) -> None:
        """With a pod like one of the last few, mostly: only what is asked again can be answered from memory."""
        if len(self.shapes) < 6 or self.rng.random() < 0.2:
            self.shapes = [*self.shapes[-5:], self.cluster.draw.a_pod(incoming=True)]
        incoming = self.rng.choice(self.shapes)
        for plugin, profile in self.profiles.items():
            self.compare_filter(plugin, profile, incoming)
            self.compare_score(plugin, profile, incoming)

    # --- filter -----------------------------------------------------------------------------------------------------

    def compare_filter(self, plugin: str, profile: Profile, incoming: Pod) -> None:
        nodes, state, plain = NodeColumns(self.cluster.cache.table), CycleState(), self.plain(plugin, incoming)
        if plugin == AFFINITY and not parses_whole(incoming):
            rejected = run_pre_filters(profile.pre_filter, incoming, nodes, state).rejected
            assert rejected is not None
            assert rejected.message.startswith("parsing pod: ")
            self.note(f"{plugin}: does not parse")
            return
        try:
            has_work = plain.pre_filter()
        except BadSelector:
            with pytest.raises(HookFailed, match="obtaining pod's hard topology spread constraints: "):
                run_pre_filters(profile.pre_filter, incoming, nodes, state)
            self.note(f"{plugin}: does not parse")
            return
        run_pre_filters(profile.pre_filter, incoming, nodes, state)
        assert (plugin in state.skip_filter) == (not has_work)
        if has_work:
            self.compare_verdicts(profile, plain, nodes, state)
            self.compare_what_if(profile, plain, state)
            self.compare_verdicts(profile, self.again(plain), nodes, state)

    def again(self, plain: Any) -> Any:
        plain = self.plain(self.plugin_of(plain), plain.pod)
        plain.pre_filter()
        return plain

    def plugin_of(self, plain: Any) -> str:
        return SPREAD if isinstance(plain, PlainSpread) else AFFINITY

    def compare_verdicts(self, profile: Profile, plain: Any, nodes: NodeColumns, state: CycleState) -> None:
        (caller,) = profile.filter
        verdicts = call_filter(caller, plain.pod, nodes, state)
        for name, code in zip(nodes.names, verdicts.codes.tolist(), strict=True):
            expected = plain.refusal(self.cluster.plain.nodes[name])
            self.note(expected or f"{caller.plugin}: passes")
            if not expected:
                assert code == 0, (name, verdicts.explain(code))
                continue
            status = verdicts.explain(code) if code else None
            assert status is not None, (name, expected)
            assert status.message == expected
            assert (status.code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE) == (expected in UNRESOLVABLE)

    def compare_what_if(self, profile: Profile, plain: Any, original: CycleState) -> None:
        """Pods come and go on copies of a few nodes, the plugin is told, and the original does not notice."""
        table, state = self.cluster.cache.table, original.clone()
        (plugin,) = profile.add_pod
        rows = self.rng.sample(range(table.count), self.rng.randint(1, 2))
        what_if = WhatIf(table, rows)
        gone: list[tuple[str, PodInfo]] = []
        for _ in range(self.rng.randint(1, 4)):
            name = self.rng.choice(what_if.nodes.names)
            here = list(what_if.pods_on(name))
            choice = self.rng.random()
            if here and choice < 0.6:
                moved, delta = what_if.remove_pod(name, self.rng.choice(here).pod.uid), -1
                gone.append((name, moved))
            elif gone and choice < 0.8:
                (name, moved), delta = gone.pop(), 1
                what_if.add_pod(name, moved)
            else:
                new = self.cluster.draw.a_pod(incoming=False)
                moved, delta = pod_info(new), 1
                what_if.add_pod(name, moved)
            position = what_if.nodes.position(name)
            assert position is not None
            call = profile.add_pod[plugin] if delta > 0 else profile.remove_pod[plugin]
            call.function(plain.pod, moved.pod, what_if.nodes.node(position), state)
            plain.change(moved.pod, self.cluster.plain.nodes[name], delta)
            self.compare_verdicts(profile, plain, what_if.nodes, state)
            if self.rng.random() < 0.3:
                state = state.clone()

    # --- score ------------------------------------------------------------------------------------------------------

    def compare_score(self, plugin: str, profile: Profile, incoming: Pod) -> None:
        table, state = self.cluster.cache.table, CycleState()
        rows = sorted(self.rng.sample(range(table.count), self.rng.randint(1, table.count)))
        nodes = NodeColumns(table).take(np.array(rows, dtype=np.intp))
        if plugin == AFFINITY and not parses_whole(incoming):
            return
        try:
            expected = self.plain(plugin, incoming).scores([self.cluster.plain.nodes[name] for name in nodes.names])
        except BadSelector:
            with pytest.raises(HookFailed, match="obtaining pod's soft topology spread constraints: "):
                run_pre_scores(profile.pre_score, incoming, nodes, state)
            return
        run_pre_scores(profile.pre_score, incoming, nodes, state)
        assert (plugin in state.skip_score) == (expected is None)
        if expected is None:
            self.note(f"{plugin}: no score")
            return
        scores = run_scores(profile.score, incoming, nodes, state)
        assert by_name(nodes, scores.raw[plugin]) == expected[0]
        assert by_name(nodes, scores.normalized[plugin]) == expected[1]
        self.note(f"{plugin}: scored" if len(set(expected[1].values())) > 1 else f"{plugin}: all the same")


def by_name(nodes: NodeColumns, column: Any) -> Mapping[str, int]:
    return dict(zip(nodes.names, column.tolist(), strict=True))


def parses_whole(incoming: Pod) -> bool:
    affinity = incoming.spec.affinity
    for wish in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ():
        if wish is not None:
            weighted = wish.preferred_during_scheduling_ignored_during_execution or ()
            terms = wish.required_during_scheduling_ignored_during_execution or ()
            if not parses((*terms, *(one.pod_affinity_term for one in weighted))):
                return False
    return True


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=["system-defaults", "list-of-defaults", "no-defaults"])
@pytest.mark.parametrize("seed", range(2))
def test_the_plugins_agree_with_counting_from_scratch(seed: int, arguments: dict[str, Any]) -> None:
    both = BothWays(seed, **arguments)
    for _ in range(450):
        both.cluster.step()
        both.compare()
    for plugin in (SPREAD, AFFINITY):
        for what in ("passes", "scored", "no score", "does not parse"):
            assert both.seen.get(f"{plugin}: {what}", 0) > 3, what
    assert min(both.seen.get(reason, 0) for reason in (MISSING_LABEL, SKEWED, NOT_NEAR, TOO_NEAR, UNWELCOME)) > 20


def test_dropped_counts_are_counted_again_correctly(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, limit in (
        (pod_index, "_MAX_COUNTS"),
        (topology_columns, "_MAX_MASKS"),
        (affinity_terms, "_MAX_PARSED"),
        (term_index, "_MAX_MATCHES"),
        (label_selection, "_MAX_COMPILED"),
        (spread_constraints, "_MAX_MERGED"),
    ):
        assert getattr(module, limit) > 4
        monkeypatch.setattr(module, limit, 4)
    monkeypatch.setattr(domain_counts, "_MAX_CELLS", 4 * domain_counts._OVERHEAD_CELLS)
    monkeypatch.setattr(topology_columns, "_MAX_CELLS", 1)
    monkeypatch.setattr(topology_columns, "_MIN_COLUMNS", 2)
    for seed, arguments in enumerate(ARGUMENTS):
        both = BothWays(seed, **arguments)
        for _ in range(150):
            both.cluster.step()
            both.compare()


# --- decisions ------------------------------------------------------------------------------------------------------

EVERYTHING_USUAL = (
    "PrioritySort",
    "NodeUnschedulable",
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    SPREAD,
    AFFINITY,
)


class Deciding:
    """A scheduler over a changing cluster; what it decides is decided again in the plain way."""

    def __init__(self, seed: int) -> None:
        self.cluster = ChangingCluster(seed)
        self.rng = Random(seed + 1)
        self.profile = make_profile(EVERYTHING_USUAL, handle=self.cluster.handle, weights={SPREAD: 2, AFFINITY: 2})
        self.known: dict[str, Pod] = {}
        self.queue = SchedulingQueue(get_unassigned_pod=self.known.get)
        self.scheduler = Scheduler(cache=self.cluster.cache, queue=self.queue, rng=Random(seed))
        self.scheduler.install_profiles({self.profile.name: self.profile})
        self.shapes = [self.cluster.draw.a_pod(incoming=True) for _ in range(6)]
        self.nominated: list[Pod] = []
        self.placed = self.unplaced = 0

    def nominate(self) -> None:
        """Nominate a pod to a node, or clear the nominations."""
        nominator = self.scheduler.queue.nominator
        for one in self.nominated:
            nominator.delete(one.uid)
        self.nominated = []
        if self.rng.random() < 0.5:
            one = self.cluster.draw.a_pod(incoming=True)
            self.known[one.key] = one
            nominator.add(one, self.rng.choice(NODES))
            self.nominated = [one]

    def beside(self, waiting: Pod) -> NominatedPods:
        """The nominated pods of at least the same priority, by node."""
        nodes = {name: pods.values() for name, pods in self.scheduler.queue.nominator.nodes.items()}
        return {
            name: [pod_info(one) for one in pods if one.priority >= waiting.priority]
            for name, pods in nodes.items()
            if name in self.cluster.cache.table.row_of
        }

    def decide(self) -> None:
        """Pods of the same few shapes, so that the signature cache is used."""
        self.cluster.draw.uids += 1
        shape, uid = self.rng.choice(self.shapes), f"uid-{self.cluster.draw.uids}"
        waiting = replace(shape, metadata=replace(shape.metadata, name=uid, uid=uid))
        self.queue.add(waiting, now=0.0)
        info = self.queue.pop()
        assert info is not None
        decision = self.scheduler.decide(info)
        self.queue.done(info.uid)
        cycle = SchedulingCycle(self.profile, self.cluster.cache.table, waiting, self.beside(waiting), CycleState())
        if isinstance(decision, SchedulingFailure) and decision.diagnosis is None:  # a selector that does not parse
            with pytest.raises(HookFailed, match=re.escape(decision.message)):
                cycle.prioritize(found_nodes(cycle))
            return
        found = cycle.find_feasible()
        if isinstance(found, SchedulingFailure):
            assert isinstance(decision, SchedulingFailure)
            assert decision.message == found.message
            self.unplaced += 1
            return
        assert isinstance(decision, ScheduleResult)
        assert decision.feasible_nodes == len(found.nodes)
        if len(found.nodes) > 1:
            best = best_positions(cycle.prioritize(found.nodes).totals)
            assert decision.node_name in [found.nodes.name(position) for position in best]
        self.placed += 1
        self.cluster.assumed(waiting, decision.node_name)


def found_nodes(cycle: SchedulingCycle) -> NodeColumns:
    found = cycle.find_feasible()
    assert isinstance(found, FeasibleNodes)
    return found.nodes


@pytest.mark.parametrize("seed", range(3))
def test_decisions_from_the_signature_cache_equal_plain_ones(seed: int) -> None:
    deciding = Deciding(seed)
    for _ in range(250):
        if deciding.rng.random() < 0.55:
            deciding.cluster.step()
        elif deciding.rng.random() < 0.1:
            deciding.nominate()
        else:
            deciding.decide()
    assert min(deciding.placed, deciding.unplaced) > 5
