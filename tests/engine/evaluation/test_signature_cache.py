"""Decisions from the cache of a signature must always equal the plain evaluation."""

from collections.abc import Hashable, Sequence
from random import Random
from typing import Any, ClassVar

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from plugin_base import PluginBase
from pod_infos import pod_info

from trio_sched.engine.cache import Cache
from trio_sched.engine.evaluation import signature_cache
from trio_sched.engine.evaluation.decision import Decision, ScheduleResult, SchedulingFailure
from trio_sched.engine.evaluation.filtering import NominatedPods, run_pre_filters
from trio_sched.engine.evaluation.host_selection import best_positions
from trio_sched.engine.evaluation.preemption import DryRunCache, dry_run, is_judged_by_signature
from trio_sched.engine.evaluation.scheduling_cycle import FeasibleNodes, SchedulingCycle
from trio_sched.engine.evaluation.signature_cache import SignatureCache
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.hooks.measurements import Measurements
from trio_sched.plugin_api import (
    CycleState,
    Domain,
    Handle,
    Input,
    Int64Array,
    Node,
    NodeColumns,
    NodeView,
    Pod,
    PodSelector,
    PreFilterResult,
    Status,
    Verdicts,
    failure,
    hookimpl,
    unresolvable,
    unschedulable,
)
from trio_sched.plugin_api.preemption import Budget, BudgetsByNamespace
from trio_sched.snapshot.labels.label_selection import selector_of_map
from trio_sched.snapshot.pod_info import PodInfo
from trio_sched.testing import make_profile, make_table, node, node_affinity, pod, term

BUILT_IN = (
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "NodeResourcesBalancedAllocation",
    "NodeDeclaredFeatures",
)
"""Plugins that judge each node by itself; with ImageLocality, which looks at all, every change means starting over."""


class Licensed(PluginBase):
    """Looks at nodes one by one: at their annotations, and at how many pods they have. Its verdicts are cached."""

    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.NODE, Input.PODS})

    @hookimpl
    def filter_node(self, pod: Pod, node: NodeView) -> Status | None:
        seats = int((node.node.metadata.annotations or {}).get("seats", 3))
        return None if len(node.pods) < seats else unschedulable("no seat left")

    @hookimpl
    def score_node(self, pod: Pod, node: NodeView) -> int:
        return 10 * len(node.pods) + len(pod.labels)

    @hookimpl
    def normalize_score(self, scores: Int64Array) -> Int64Array:
        return scores * 100 // max(1, int(scores.max(initial=0)))

    @hookimpl
    def sign(self, pod: Pod) -> Hashable:
        return len(pod.labels)


class Moody(PluginBase):
    """Answers differently for every pod and has no sign, so nothing of it may be cached."""

    @hookimpl
    def filter(self, pod: Pod, nodes: NodeColumns) -> Verdicts:
        passes = np.array(
            [(len(name) + len(pod.name) + int(name[-1])) % 4 != 0 for name in nodes.names], dtype=np.bool_
        )
        return Verdicts.where(passes, unschedulable("not in the mood"))

    @hookimpl
    def score(self, pod: Pod, nodes: NodeColumns) -> Int64Array:
        return np.array([(7 * int(name[-1]) + int(pod.name[-1])) % 101 for name in nodes.names], dtype=np.int64)


class Picky(PluginBase):
    """Has only a pre_filter, which must be called for every pod."""

    @hookimpl
    def pre_filter(self, pod: Pod, nodes: NodeColumns) -> PreFilterResult | Status | None:
        match pod.labels.get("picky"):
            case "rejects":
                return unresolvable("picky")
            case "narrows":
                return PreFilterResult(frozenset({"node-0", "node-1"}))
        return None


class Zoned(PluginBase):
    """Can only rank nodes that its own filter lets pass."""

    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.NODE})

    @hookimpl
    def filter_node(self, node: NodeView) -> Status | None:
        return None if "zone" in node.labels else unschedulable("no zone")

    @hookimpl
    def score(self, nodes: NodeColumns) -> Int64Array:
        return np.array([ord(node.labels["zone"]) - ord("a") for node in nodes], dtype=np.int64)

    @hookimpl
    def sign(self, pod: Pod) -> Hashable:
        return ()


ZONE = Domain("zone")
ALL_PODS = PodSelector(())


class CrowdedZones(PluginBase):
    """Judges nodes by how many pods their whole zone has."""

    depends_on: ClassVar[frozenset[Domain]] = frozenset({ZONE})

    @hookimpl
    def filter(self, pod: Pod, nodes: NodeColumns) -> Verdicts:
        return Verdicts.where(self._pods(nodes) < 12, unschedulable("crowded zone"))

    @hookimpl
    def score(self, pod: Pod, nodes: NodeColumns) -> Int64Array:
        return self._pods(nodes)

    @hookimpl
    def normalize_score(self, scores: Int64Array) -> Int64Array:
        return scores * 100 // max(1, int(scores.max(initial=0)))

    @hookimpl
    def sign(self, pod: Pod) -> Hashable:
        return ()

    def _pods(self, nodes: NodeColumns) -> Int64Array:
        in_zone = nodes.domain_counts(ALL_PODS, ZONE.key).counts
        return in_zone[nodes.label_values(ZONE.key)]


class CrowdedZonesPerNode(PluginBase):
    """Looks at nodes one by one, and at all nodes with the same zone or the same disk."""

    depends_on: ClassVar[frozenset[Domain]] = frozenset({ZONE, Domain("disk")})

    def __init__(self, args: None, handle: Handle) -> None:
        self.handle = handle
        self.asked: list[str] = []

    @hookimpl
    def filter_node(self, node: NodeView) -> Status | None:
        self.asked.append(node.name)
        others = [other for other in self.handle.nodes if other.name != node.name and self._shares(node, other)]
        around = len(node.pods) + sum(len(other.pods) + (other.node.spec.unschedulable or False) for other in others)
        return unschedulable("crowded") if around > 6 else None

    @hookimpl
    def sign(self, pod: Pod) -> Hashable:
        return ()

    @staticmethod
    def _shares(node: NodeView, other: NodeView) -> bool:
        return any(key in node.labels and node.labels[key] == other.labels.get(key) for key in ("zone", "disk"))


def seats(node: NodeView) -> str | None:
    return (node.node.metadata.annotations or {}).get("seats")


class FailsOnNodes:
    """A cached filter that fails on some nodes, which ends the cycle if the filters before it let them pass."""

    name: ClassVar[str] = "FailsOnNodes"
    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.NODE})
    statuses: ClassVar[tuple[Status, ...]] = (failure("cannot tell"), unschedulable("few seats"))

    def __init__(self, args: None, handle: Handle) -> None:
        pass

    @hookimpl
    def filter(self, nodes: NodeColumns) -> Verdicts:
        codes = np.array([{"4": 1, "20": 2}.get(seats(node) or "", 0) for node in nodes], dtype=np.int64)
        return Verdicts(codes, lambda code: self.statuses[code - 1], may_fail=True)

    @hookimpl
    def sign(self, pod: Pod) -> Hashable:
        return ()


class FailsOnUsedNodes(FailsOnNodes):
    """The same, but it depends on the pods of the node."""

    name: ClassVar[str] = "FailsOnUsedNodes"
    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.NODE, Input.PODS})

    @hookimpl
    def filter(self, nodes: NodeColumns) -> Verdicts:
        return Verdicts(nodes.pod_count % 7 // 6, lambda _code: self.statuses[0], may_fail=True)


class AnswersWrongly:
    """Cached filters and scores of the wrong type, shape or dtype as soon as they see a certain node."""

    name: ClassVar[str] = "AnswersWrongly"
    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.NODE})

    def __init__(self, args: None, handle: Handle) -> None:
        pass

    @hookimpl
    def filter(self, pod: Pod, nodes: NodeColumns) -> Any:
        good = Verdicts.where(np.ones(len(nodes), dtype=np.bool_), unschedulable("no"))
        wrong: list[Any] = [True, good.codes, Verdicts.where(np.ones(len(nodes) + 1, dtype=np.bool_), unschedulable())]
        return wrong[len(pod.labels)] if any(seats(node) == "4" for node in nodes) else good

    @hookimpl
    def score(self, pod: Pod, nodes: NodeColumns) -> Any:
        good = np.array([50 if seats(node) else 0 for node in nodes], dtype=np.int64)
        wrong: list[Any] = [good / 2, good.tolist(), good[1:]]
        return wrong[len(pod.labels)] if any(seats(node) == "20" for node in nodes) else good

    @hookimpl
    def sign(self, pod: Pod) -> Hashable:
        return len(pod.labels)


class AnswersNodesWrongly:
    """The same node by node, and a normalisation that loses a node."""

    name: ClassVar[str] = "AnswersNodesWrongly"
    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.NODE})

    def __init__(self, args: None, handle: Handle) -> None:
        pass

    @hookimpl
    def filter_node(self, node: NodeView) -> Any:
        return {"1": False, "20": unschedulable("full")}.get(seats(node) or "")

    @hookimpl
    def score_node(self, node: NodeView) -> Any:
        return 0.5 if seats(node) == "4" else 7

    @hookimpl
    def normalize_score(self, pod: Pod, scores: Int64Array) -> Any:
        return scores[1:] if pod.labels.get("app") else scores

    @hookimpl
    def sign(self, pod: Pod) -> Hashable:
        return pod.labels.get("app")


NODE_NAMES = [f"node-{i}" for i in range(10)]


def a_node(rng: Random, name: str) -> Node:
    return node(
        name,
        cpu=rng.choice(["2", "4", "16"]),
        memory=rng.choice(["4Gi", "32Gi"]),
        pods=rng.choice([3, 110, 110]),
        allocatable=rng.choice([None, {"example.com/gpu": 2}]),
        labels=rng.choice([None, {"zone": "a"}, {"zone": "b", "disk": "ssd"}, {"disk": "hdd"}]),
        annotations=rng.choice([None, {"seats": "4"}, {"seats": "20"}]),
        taints=rng.choice([(), (), ("dedicated=a:NoSchedule",), ("slow:PreferNoSchedule", "old:PreferNoSchedule")]),
        unschedulable=rng.random() < 0.1,
        images=rng.choice([None, {"big:1": 600 << 20}, {"big:1": 600 << 20, "small:1": 90 << 20}]),
    )


def a_shape(rng: Random) -> dict[str, Any]:
    """What a pod wants; a few of these recur all the time, as they do in a cluster."""
    return {
        "cpu": rng.choice([None, "100m", "500m", "1500m"]),
        "memory": rng.choice([None, "256Mi", "1Gi", "3Gi"]),
        "requests": rng.choice([None, None, None, {"example.com/gpu": 1}]),
        "image": rng.choice(["big:1", "small:1", "other:1"]),
        "host_ports": rng.choice([(), (), (), (80,)]),
        "labels": rng.choice([None, None, None, {"app": "a"}, {"picky": "rejects"}, {"picky": "narrows"}]),
        "node_selector": rng.choice([None, None, None, {"zone": "a"}]),
        "affinity": rng.choice(
            [
                *[None] * 4,
                node_affinity(preferred=[(3, term("zone In b")), (5, term("disk Exists"))]),
                node_affinity(term("zone NotIn a")),
                node_affinity(term(fields=["metadata.name In node-1"])),
            ]
        ),
        "tolerations": rng.choice([(), (), ("dedicated",), ("slow",)]),
        "priority": rng.choice([None, 10]),
    }


class ChangingCluster:
    """A cluster that changes at random, and pods that are decided both ways."""

    def __init__(self, plugins: Sequence[str | type[Any]], seed: int) -> None:
        self.rng = Random(seed)
        self.profile = make_profile(plugins, weights={"TaintToleration": 3, "NodeAffinity": 2})
        self.cache = Cache()
        self.cached = SignatureCache(self.profile, self.cache.table, max_signatures=6)
        for plugin in self.profile.plugins.values():
            if isinstance(plugin, CrowdedZonesPerNode):
                plugin.handle.nodes = NodeColumns(self.cache.table)  # type: ignore[misc]
        self.nominated: dict[str, tuple[PodInfo, ...]] = {}
        self.dry_runs = DryRunCache()
        self.budgets: BudgetsByNamespace = {}
        self.dry_runs_from_kept = 0
        self.shapes = [a_shape(self.rng) for _ in range(8)]
        self.uids = 0
        self.placed_from_kept = self.placed_on_nominated_node = 0
        self.decisions = 0
        """All of them equal to those without a cache."""
        for name in NODE_NAMES[:9]:
            self.cache.add_node(a_node(self.rng, name))

    def step(self) -> None:
        steps = {
            self.decide: 10,
            self.change_node: 1,
            self.annotate_node: 1,
            self.remove_node: 1,
            self.pod_appears: 1,
            self.pod_goes_on: 9,
            self.pod_starts: 2,
            self.nominate: 1,
            self.dry_run: 3,
            self.change_budgets: 0.2,
        }
        self.rng.choices(list(steps), weights=list(steps.values()))[0]()

    def a_pod(self, **more: Any) -> Pod:
        self.uids += 1
        return pod(f"pod-{self.rng.randrange(9)}", uid=f"uid-{self.uids}", **{**self.rng.choice(self.shapes), **more})

    def change_node(self) -> None:
        name = self.rng.choice(NODE_NAMES)
        row = self.cache.table.row_of.get(name)
        changed = a_node(self.rng, name)
        if row is not None and self.rng.random() < 0.7:  # only one thing at a time, as it mostly is
            old = self.cache.table.nodes[row]
            part = self.rng.choice(["metadata", "spec", "status"])
            changed = msgspec.structs.replace(old, **{part: getattr(changed, part)})
        self.cache.add_node(changed)

    def annotate_node(self) -> None:
        if self.cache.table.count:
            old = self.rng.choice(self.cache.table.nodes)
            annotations = self.rng.choice([None, {"seats": "1"}, {"seats": "4"}, {"seats": "20"}])
            metadata = msgspec.structs.replace(old.metadata, annotations=annotations)
            self.cache.add_node(msgspec.structs.replace(old, metadata=metadata))

    def remove_node(self) -> None:
        if self.cache.table.count > 2:
            self.cache.remove_node(self.rng.choice(self.cache.table.names))

    def pod_appears(self) -> None:
        self.cache.add(self.a_pod(node_name=self.rng.choice(NODE_NAMES)))

    def pod_goes_on(self) -> None:
        pods = list(self.cache)
        if not pods:
            return
        cached = self.rng.choice(pods)
        uid, name = cached.pod.uid, cached.node_name
        if not cached.assumed:
            if self.rng.random() < 0.8:
                self.cache.remove(uid)
            else:
                self.cache.update(msgspec.structs.replace(self.a_pod(node_name=name), metadata=cached.pod.metadata))
        elif self.rng.random() < 0.3:
            self.cache.forget(uid)
        else:
            spec = msgspec.structs.replace(cached.pod.spec, node_name=name)
            self.cache.add(msgspec.structs.replace(cached.pod, spec=spec))

    def pod_starts(self) -> None:
        confirmed = [cached.pod for cached in self.cache if not cached.assumed]
        if confirmed:
            started = self.rng.choice(confirmed)
            start = f"2026-01-01T00:00:{self.rng.randrange(60):02}Z"
            status = msgspec.structs.replace(started.status, start_time=start)
            self.cache.update(msgspec.structs.replace(started, status=status))

    def nominate(self) -> None:
        name = self.rng.choice(NODE_NAMES)
        if self.rng.random() < 0.5:
            self.nominated.pop(name, None)
        else:
            self.nominated[name] = (*self.nominated.get(name, ()), pod_info(self.a_pod()))

    def change_budgets(self) -> None:
        selector = selector_of_map({"app": self.rng.choice("ab")})
        budget = Budget("default", selector, self.rng.randrange(2), frozenset())
        self.budgets = self.rng.choice([{}, {"default": [(0, budget)]}])

    def dry_run(self) -> None:
        """What is kept of former dry runs is what a new one finds out."""
        incoming, table, state = self.a_pod(priority=20), self.cache.table, CycleState()
        try:
            run_pre_filters(self.profile.pre_filter, incoming, NodeColumns(table), state)
        except HookFailed:
            return
        signature = self.profile.signature(incoming)
        if not is_judged_by_signature(self.profile, signature, state):
            return
        kept = self.dry_runs.of(self.profile.name, signature, incoming.priority, self.budgets)
        names = self.rng.sample(table.names, table.count)
        enough = self.rng.randint(1, 4)
        found, expected = (
            dry_run(
                self.profile,
                table,
                incoming,
                state,
                self.nominated,
                names,
                budgets=self.budgets,
                num_candidates=enough,
                kept=one,
            )
            for one in (kept, None)
        )
        assert list(found.candidates.items()) == list(expected.candidates.items())
        assert (str(found.statuses), str(found.error)) == (str(expected.statuses), str(expected.error))
        self.dry_runs_from_kept += len(found.candidates)

    def decide(self) -> None:
        self.decisions += 1
        waiting = self.a_pod()
        if self.rng.random() < 0.05:
            waiting = self.a_pod(nominated_node_name=self.rng.choice(NODE_NAMES))
        nominated = {name: pods for name, pods in self.nominated.items() if name in self.cache.table.row_of}
        signature = self.profile.signature(waiting)
        decision = self.cached.decide(waiting, signature, nominated, self.rng)
        plain = SchedulingCycle(self.profile, self.cache.table, waiting, nominated, CycleState()).decide(self.rng)
        self.compare_on_nominated_node(waiting, nominated)
        with_kept = SchedulingCycle(self.profile, self.cache.table, waiting, nominated, CycleState())
        with_kept.evaluation = self.cached.evaluation(signature)
        if isinstance(plain, SchedulingFailure):
            failed = with_kept.decide(self.rng)
            assert isinstance(failed, SchedulingFailure)
            assert failed.message == plain.message
            if plain.diagnosis is not None and failed.diagnosis is not None:
                assert failed.diagnosis.statuses.by_node() == plain.diagnosis.statuses.by_node()
        elif plain.evaluated_nodes > 1:
            feasible = with_kept.find_feasible()
            assert isinstance(feasible, FeasibleNodes)
            assert len(feasible.nodes) == plain.feasible_nodes
        if isinstance(decision, ScheduleResult):
            self.placed_from_kept += 1
            self.compare_placed(waiting, nominated, decision)
        elif isinstance(decision, SchedulingFailure):
            assert isinstance(plain, SchedulingFailure)
            assert decision.message == plain.message
        if isinstance(plain, ScheduleResult):
            self.cache.assume(waiting, plain.node_name)
        elif plain.diagnosis is not None and not nominated:
            self.cached.remember_fit_error(signature, plain)

    def compare_on_nominated_node(self, waiting: Pod, nominated: NominatedPods) -> None:
        name = self.rng.choice(NODE_NAMES)
        decision = self.cached.decide_on_nominated_node(waiting, self.profile.signature(waiting), nominated, name)
        cycle = SchedulingCycle(self.profile, self.cache.table, waiting, nominated, CycleState(), nominated_node=name)
        if decision is not None:
            plain = cycle.decide(self.rng)
            assert isinstance(plain, ScheduleResult)
            assert (decision.node_name, decision.evaluated_nodes, decision.feasible_nodes) == (name, 1, 1)
            assert (plain.node_name, plain.evaluated_nodes, plain.feasible_nodes) == (name, 1, 1)
            self.placed_on_nominated_node += 1

    def compare_placed(self, waiting: Pod, nominated: NominatedPods, decision: ScheduleResult) -> None:
        cycle = SchedulingCycle(self.profile, self.cache.table, waiting, nominated, CycleState())
        found = cycle.find_feasible()
        assert isinstance(found, FeasibleNodes)
        assert decision.feasible_nodes == len(found.nodes)
        best = best_positions(cycle.prioritize(found.nodes).totals).tolist() if len(found.nodes) > 1 else [0]
        assert decision.node_name in [found.nodes.name(position) for position in best]


@pytest.mark.parametrize(
    "plugins",
    [
        BUILT_IN,
        (*BUILT_IN, "ImageLocality"),
        (*BUILT_IN, Licensed),
        (*BUILT_IN, CrowdedZones),
        (*BUILT_IN, CrowdedZones, CrowdedZonesPerNode, Licensed),
        (*BUILT_IN, Moody, Licensed),
        (*BUILT_IN, Picky),
        (*BUILT_IN, "ImageLocality", Zoned),
        (*BUILT_IN, FailsOnNodes),
        (FailsOnNodes, *BUILT_IN, FailsOnUsedNodes),
        (*BUILT_IN, AnswersWrongly),
        (*BUILT_IN, AnswersNodesWrongly),
    ],
    ids=lambda plugins: "+".join(
        ["built-in", *(p if isinstance(p, str) else p.name for p in plugins if p not in BUILT_IN)]
    ),
)
@settings(derandomize=True, deadline=None, database=None, max_examples=10)
@given(seed=st.integers(0, 2**32 - 1))
def test_decisions_from_the_cache_equal_plain_ones(plugins: Sequence[str | type[Any]], seed: int) -> None:
    cluster = ChangingCluster(plugins, seed)
    for _ in range(150):
        cluster.step()
    assert cluster.decisions > 20


def test_many_pods_are_decided_from_the_cache() -> None:
    cluster = ChangingCluster(BUILT_IN, seed=1)
    for _ in range(300):
        cluster.step()
    assert cluster.placed_from_kept > 40
    assert cluster.placed_on_nominated_node > 20
    assert cluster.dry_runs_from_kept > 5


def cache_for(*plugins: str | type[Any], nodes: int = 20) -> SignatureCache:
    return SignatureCache(make_profile(plugins), make_table([node(f"node-{i}") for i in range(nodes)]))


def decide(cached: SignatureCache, waiting: Pod) -> Decision | None:
    return cached.decide(waiting, cached.profile.signature(waiting), {}, Random(0))


class Asked:
    """Records how many nodes it was called with."""

    name: ClassVar[str] = "Asked"
    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.NODE, Input.PODS})

    def __init__(self, args: None, handle: Handle) -> None:
        self.handle = handle
        self.asked: list[int] = []

    @hookimpl
    def filter(self, nodes: NodeColumns) -> Verdicts:
        self.asked.append(len(nodes))
        return Verdicts.where(np.ones(len(nodes), dtype=np.bool_), unschedulable())

    @hookimpl
    def sign(self, pod: Pod) -> Hashable:
        return pod.priority


def test_only_changed_nodes_are_evaluated_again() -> None:
    cached = cache_for(Asked)
    for number in range(3):
        decision = decide(cached, pod(f"p{number}"))
        assert isinstance(decision, ScheduleResult)
        cached.table.add_pod(cached.table.row_of[decision.node_name], pod_info(pod(f"p{number}")))
    assert cached.profile.plugins["Asked"].asked == [20, 1, 1]


@pytest.mark.parametrize("plugin", [Asked, CrowdedZonesPerNode], ids=["filter", "filter_node"])
def test_a_change_in_a_domain_makes_the_results_for_its_nodes_outdated_and_no_others(plugin: type[Any]) -> None:
    zones = [node(f"node-{i}", labels={"zone": "abcd"[i % 4]}) for i in range(20)]
    by_zone = type(plugin.__name__, (plugin,), {"name": plugin.__name__, "depends_on": frozenset({ZONE})})
    cached = SignatureCache(make_profile([by_zone]), make_table([*zones, node("alone"), node("alone-too")]))
    instance = cached.profile.plugins[plugin.__name__]
    instance.handle.nodes = NodeColumns(cached.table)

    def asked() -> int:
        """About how many nodes, in one call or in one for each."""
        instance.asked.clear()
        assert isinstance(decide(cached, pod()), ScheduleResult)
        return len(instance.asked) if plugin is CrowdedZonesPerNode else sum(instance.asked)

    assert asked() == 22
    for name, expected in (("node-1", 5), ("alone", 1), ("node-2", 5)):
        cached.table.add_pod(cached.table.row_of[name], pod_info(pod(uid=name)))
        assert asked() == expected
    cached.table.update_node(node("node-1", labels={"zone": "b", "disk": "ssd"}))
    assert asked() == 5


def test_dry_runs_keep_nothing_about_a_node_that_is_judged_by_its_domain() -> None:
    for plugin, expected in ((Asked, True), (CrowdedZones, False)):
        profile = make_profile([plugin])
        assert is_judged_by_signature(profile, profile.signature(pod()), CycleState()) is expected


def test_a_node_that_leaves_a_domain_changes_the_results_for_both() -> None:
    zones = [node(f"node-{i}", labels={"zone": "ab"[i % 2]}) for i in range(4)]
    cached = SignatureCache(make_profile([CrowdedZones]), make_table(zones))
    table = cached.table
    for number in range(12):
        table.add_pod(table.row_of["node-0"], pod_info(pod(uid=f"a{number}")))
    assert decide(cached, pod()).feasible_nodes == 2
    table.update_node(node("node-0", labels={"zone": "b"}))
    decision = decide(cached, pod())
    assert isinstance(decision, ScheduleResult)
    assert (decision.node_name, decision.feasible_nodes) == ("node-2", 1)


def test_the_least_recently_used_signature_is_evicted_first() -> None:
    cached = cache_for(Asked)
    cached.max_signatures = 2
    for priority in (1, 2, 1, 3, 1, 2):
        decide(cached, pod(priority=priority))
    assert cached.profile.plugins["Asked"].asked == [20, 20, 20, 20]  # 1, 2, 3, and 2 again
    measured = cached.profile.measured
    assert measured.flushed == {"pod_incompatible": 2}
    assert measured.store_seconds.count == 4
    cached.clear()
    assert measured.flushed == {"pod_incompatible": 2, "expired": 2}


class Fragile(PluginBase):
    """Fails on some nodes."""

    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.NODE, Input.PODS})

    @hookimpl
    def filter(self, nodes: NodeColumns) -> Verdicts:
        if any("broken" in node.labels for node in nodes):
            raise LookupError("broken")
        return Verdicts.where(np.ones(len(nodes), dtype=np.bool_), unschedulable())

    @hookimpl
    def sign(self, pod: Pod) -> Hashable:
        return ()


def test_a_failure_falls_back_to_the_plain_evaluation_and_is_not_cached() -> None:
    cached = cache_for(Fragile)
    assert isinstance(decide(cached, pod()), ScheduleResult)
    cached.table.update_node(node("node-7", labels={"broken": "yes"}))
    assert decide(cached, pod()) is None
    assert cached.profile.measured.flushed == {"pod_failed": 1}


class Rates(PluginBase):
    """Fails at one hook once nodes have a label of its name."""

    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.NODE})

    @hookimpl
    def score(self, nodes: NodeColumns) -> NDArray[np.int64]:
        if any("score" in node.labels for node in nodes):
            raise LookupError("score")
        return np.array([200 if "normalize" in node.labels else 1 for node in nodes], dtype=np.int64)

    @hookimpl
    def normalize_score(self, scores: NDArray[np.int64]) -> NDArray[np.int64]:
        return scores

    @hookimpl
    def sign(self, pod: Pod) -> Hashable:
        return ()


@pytest.mark.parametrize(
    ("label", "since"), [("score", "rescore_error"), ("normalize", "normalize_error"), ("other", None)]
)
@pytest.mark.parametrize("has_rescoring", [False, True], ids=["1.36", "1.37"])
def test_scores_that_cannot_be_made_again_drop_the_results_under_the_reason_of_the_version(
    has_rescoring: bool, label: str, since: str | None
) -> None:
    cached = cache_for(Rates)
    measured = Measurements(has_rescoring=has_rescoring).add_profile("")
    cached.profile.measured = measured
    assert isinstance(decide(cached, pod()), ScheduleResult)
    cached.table.update_node(node("node-7", labels={label: "yes"}))
    assert isinstance(decide(cached, pod()), ScheduleResult) == (since is None)
    assert measured.flushed == ({} if since is None else {since if has_rescoring else "pod_failed": 1})
    cached.table.update_node(node("node-7"))
    assert isinstance(decide(cached, pod()), ScheduleResult)


def test_nominated_pods_are_evaluated_plainly() -> None:
    assert decide(cache_for(Asked), pod(nominated_node_name="node-1")) is None


def test_an_empty_cluster_is_evaluated_plainly() -> None:
    assert decide(cache_for(Asked, nodes=0), pod()) is None


def test_an_unschedulable_outcome_is_repeated_until_a_row_changes() -> None:
    cached = cache_for("NodeResourcesFit")
    huge = pod(cpu="64")
    signature = cached.profile.signature(huge)
    assert decide(cached, huge) is None
    outcome = SchedulingCycle(cached.profile, cached.table, huge, {}, CycleState()).decide(Random(0))
    assert isinstance(outcome, SchedulingFailure)
    cached.remember_fit_error(signature, outcome)
    again = decide(cached, huge)
    assert isinstance(again, SchedulingFailure)
    assert again.diagnosis is outcome.diagnosis
    cached.table.add_pod(0, pod_info(pod("other")))
    assert decide(cached, huge) is None


class Blocklist(PluginBase):
    """Rejects pods of some names in pre_filter; what it says about one pod is not cached for others."""

    depends_on: ClassVar[frozenset[Input]] = frozenset()

    @hookimpl
    def pre_filter(self, pod: Pod) -> Status | None:
        return unresolvable("blocked") if pod.name == "blocked" else None

    @hookimpl
    def sign(self, pod: Pod) -> None:
        return None


@pytest.mark.parametrize("name", ["blocked", "other"])
def test_that_a_pre_filter_rejects_one_pod_is_not_repeated_for_others(name: str) -> None:
    cached = cache_for("NodeResourcesFit", Blocklist)
    first, second = pod(name, cpu="64"), pod("second", cpu="64")
    signature = cached.profile.signature(first)
    assert signature == cached.profile.signature(second)
    assert decide(cached, first) is None
    outcome = SchedulingCycle(cached.profile, cached.table, first, {}, CycleState()).decide(Random(0))
    assert isinstance(outcome, SchedulingFailure)
    cached.remember_fit_error(signature, outcome)
    again = decide(cached, second)
    if name == "blocked":
        assert again is None
    else:
        assert isinstance(again, SchedulingFailure)
        assert "Insufficient cpu" in again.message


class Census(PluginBase):
    """Counts nodes with a label in pre_filter, so it depends on all nodes."""

    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.NODE, Input.ALL_NODES})

    @hookimpl
    def pre_filter(self, nodes: NodeColumns, state: CycleState) -> None:
        state.write("Census", sum("ssd" in node.labels for node in nodes))

    @hookimpl
    def filter(self, nodes: NodeColumns, state: CycleState) -> Verdicts:
        enough = np.full(len(nodes), state.read("Census") >= 2, dtype=np.bool_)
        return Verdicts.where(enough, unschedulable("too few"))

    @hookimpl
    def sign(self, pod: Pod) -> Hashable:
        return ()


def test_pre_filter_is_called_again_when_a_plugin_depends_on_all_nodes_and_one_changes() -> None:
    cached = cache_for(Census)
    assert decide(cached, pod()) is None
    for name in ("node-3", "node-4"):
        cached.table.update_node(node(name, labels={"ssd": "yes"}))
    assert isinstance(decide(cached, pod()), ScheduleResult)
    assert cached.profile.measured.flushed == {"expired": 1}


class NarrowsLater(Census):
    """Narrows once a node has the label."""

    @hookimpl
    def pre_filter(self, nodes: NodeColumns, state: CycleState) -> PreFilterResult | None:
        found = frozenset(node.name for node in nodes if "ssd" in node.labels)
        state.write("Census", 2)
        return PreFilterResult(found) if found else None


def test_results_are_dropped_once_pods_of_their_signature_are_narrowed() -> None:
    cached = cache_for(NarrowsLater)
    assert isinstance(decide(cached, pod()), ScheduleResult)
    cached.table.update_node(node("node-3", labels={"ssd": "yes"}))
    assert decide(cached, pod()) is None
    assert cached.profile.measured.flushed == {"pod_not_batchable": 1}


def test_large_pods_push_others_out_of_the_cache_but_can_use_it_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signature_cache, "MAX_BYTES", 20_000)
    entries: signature_cache._RecentlyUsed[int] = signature_cache._RecentlyUsed()
    large = {f"key-{number}": "x" for number in range(500)}
    for number in range(50):
        entries.put((number,), number, pod("p", labels=large), 200)
    assert len(entries) <= 2
    entries.put(("larger",), 1, pod("p", labels={f"key-{number}": "x" for number in range(5000)}), 200)
    assert len(entries) == 1
    assert entries.get(("larger",)) == 1
    entries.put(("usual",), 2, pod("q"), 200)
    assert (entries.get(("larger",)), entries.get(("usual",))) == (None, 2)


def test_pods_of_a_daemon_set_are_decided_from_one_evaluation() -> None:
    cached = cache_for("NodeAffinity", "NodeResourcesFit", Asked)
    asked: list[int] = cached.profile.plugins["Asked"].asked
    for i in range(20):
        pinned = pod(f"p{i}", cpu=1, affinity=node_affinity(term(fields=[f"metadata.name In node-{i}"])))
        decided = decide(cached, pinned)
        assert isinstance(decided, ScheduleResult)
        assert (decided.node_name, decided.evaluated_nodes, decided.feasible_nodes) == (f"node-{i}", 1, 1)
        cached.table.add_pod(cached.table.row_of[f"node-{i}"], pod_info(pinned))
    assert asked == [20, *[1] * 19]


@pytest.mark.parametrize("fields", [["metadata.name In node-1,node-2"], ["metadata.name In nowhere"]])
def test_pods_that_name_several_nodes_or_none_that_exists_are_evaluated_plainly(fields: list[str]) -> None:
    cached = cache_for("NodeAffinity", Asked)
    assert decide(cached, pod("p", affinity=node_affinity(term(fields=fields)))) is None


def test_a_pod_that_does_not_fit_on_its_only_node_is_evaluated_plainly() -> None:
    cached = cache_for("NodeAffinity", "NodeResourcesFit")
    affinity = node_affinity(term(fields=["metadata.name In node-1"]))
    assert decide(cached, pod("p", cpu=1000, affinity=affinity)) is None
    wrong_zone = node_affinity(term("zone In nowhere", fields=["metadata.name In node-1"]))
    assert decide(cached, pod("q", cpu=1, affinity=wrong_zone)) is None
