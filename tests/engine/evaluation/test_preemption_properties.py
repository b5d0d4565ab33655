"""Dry runs on copies of the columns equal trying one node after the other in rebuilt clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace
from plugin_base import PluginBase
from pod_infos import pod_info

from trio_sched.engine.evaluation.filtering import run_filters, run_pre_filters
from trio_sched.engine.evaluation.preemption import NO_VICTIMS, dry_run
from trio_sched.engine.registry.profile import Profile
from trio_sched.objects.affinity import Affinity, PodAffinity, PodAffinityTerm
from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod, TopologySpreadConstraint
from trio_sched.objects.selector import LabelSelector
from trio_sched.plugin_api import (
    CycleState,
    DryRun,
    NodeView,
    PodDisruptionBudget,
    Status,
    hookimpl,
    unschedulable,
)
from trio_sched.plugin_api.preemption import budgets_of
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.pod_info import PodInfo
from trio_sched.testing import make_profile, make_table, node, pod


class Crowded(PluginBase):
    """Looks at nodes one by one."""

    @hookimpl
    def filter_node(self, node: NodeView) -> Status | None:
        return unschedulable("crowded") if len(node.pods) > int(node.labels.get("seats", 9)) else None


PLUGINS = ("TaintToleration", "NodePorts", "NodeResourcesFit", "PodTopologySpread", "InterPodAffinity", Crowded)
Found = tuple[list[str], int] | str
"""Victims and violations, or why the node is no use."""


class Situation:
    """Random nodes, pods, nominations and budgets."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = Random(seed)
        self.nodes = [self.a_node(f"n{i}") for i in range(rng.randint(2, 6))]
        names = [one.name for one in self.nodes]
        self.pods: list[Pod] = []
        for i in range(rng.randint(4, 22)):
            self.pods.append(self.a_pod(f"p{i}", node_name=rng.choice(names)))
        self.incoming = self.a_pod("incoming", priority=5, wishes=0.5)
        self.nominated = {
            rng.choice(names): [self.a_pod("rival", priority=9, wishes=0.3)] for _ in range(rng.randint(0, 1))
        }
        self.budgets = [self.a_budget(f"b{i}") for i in range(rng.randint(0, 2))]
        self.names = rng.sample(names, rng.randint(1, len(names)))
        self.num_candidates = rng.randint(1, 4)

    def a_node(self, name: str) -> Node:
        labels = {"zone": self.rng.choice("ab")} if self.rng.random() < 0.9 else {}
        if self.rng.random() < 0.3:
            labels["seats"] = self.rng.choice("234")
        taints = ["x:NoSchedule"] if self.rng.random() < 0.1 else ()
        return node(name, cpu=self.rng.choice([2, 4]), labels=labels, taints=taints)

    def selector(self) -> LabelSelector:
        return LabelSelector(match_labels={"app": self.rng.choice("abc")})

    def a_pod(self, name: str, *, wishes: float = 0.2, **more: Any) -> Pod:
        rng = self.rng
        near, far = (
            PodAffinity(
                (PodAffinityTerm(self.selector(), topology_key=rng.choice(["zone", "kubernetes.io/hostname"])),)
            )
            if rng.random() < wishes * share
            else None
            for share in (0.3, 1.0)
        )
        constraint = TopologySpreadConstraint(
            max_skew=1,
            topology_key=rng.choice(["zone", "kubernetes.io/hostname"]),
            when_unsatisfiable="DoNotSchedule",
            label_selector=self.selector(),
        )
        taken = {other.node_name for other in self.pods if other.spec.containers[0].ports}
        may_take = more.get("node_name") not in taken  # the index of ports knows no two pods with the same one
        made = pod(
            name,
            host_ports=[80] if may_take and rng.random() < 0.3 else (),
            **{
                "cpu": rng.choice(["200m", "500m", 1]),
                "priority": rng.choice([0, 0, 1, 2, 7]),
                "labels": {"app": rng.choice("abc")} if rng.random() < 0.9 else None,
                "affinity": Affinity(pod_affinity=near, pod_anti_affinity=far) if near or far else None,
                "spread": [constraint] if rng.random() < wishes else (),
                **more,
            },
        )
        start = rng.choice([None, "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"])
        return replace(made, status=replace(made.status, start_time=start))

    def a_budget(self, name: str) -> PodDisruptionBudget:
        made = PodDisruptionBudget(metadata=ObjectMeta(name=name, namespace="default"))
        disrupted = {"p0": "2026-01-01T00:00:00Z"} if self.rng.random() < 0.3 else None
        status = replace(made.status, disruptions_allowed=self.rng.randint(0, 2), disrupted_pods=disrupted)
        return replace(made, spec=replace(made.spec, selector=self.selector()), status=status)


# --- one node after the other ---------------------------------------------------------------------------------------


def importance(one: Pod) -> tuple[int, str]:
    return -one.priority, one.status.start_time or "9999"


class Naive:
    """Builds the whole cluster again for every question."""

    def __init__(self, profile: Profile, given: Situation) -> None:
        self.profile, self.given = profile, given
        state = CycleState()
        run_pre_filters(profile.pre_filter, given.incoming, NodeColumns(make_table(given.nodes, given.pods)), state)
        self.skipped = state.skip_filter

    def problem(self, pods: Sequence[Pod], name: str) -> str:
        """Why the pod does not fit on *name* next to *pods*; empty if it does."""
        table, state = make_table(self.given.nodes, pods), CycleState()
        run_pre_filters(self.profile.pre_filter, self.given.incoming, NodeColumns(table), state)
        state.skip_filter |= self.skipped
        row = table.row_of[name]
        one = NodeColumns(table).take(slice(row, row + 1))
        status = run_filters(self.profile.filter, self.given.incoming, one, state).status(0)
        return "" if status is None else status.message

    def problem_both_ways(self, pods: Sequence[Pod], name: str) -> str:
        nominated = self.given.nominated.get(name, ())
        if nominated:
            there = [replace(one, spec=replace(one.spec, node_name=name)) for one in nominated]
            problem = self.problem([*pods, *there], name)
            if problem:
                return problem
        return self.problem(pods, name)

    def on_node(self, name: str) -> Found:
        candidates = [
            one for one in self.given.pods if one.node_name == name and one.priority < self.given.incoming.priority
        ]
        if not candidates:
            return NO_VICTIMS.message
        candidates.sort(key=importance)
        left = [one for one in self.given.pods if one not in candidates]
        problem = self.problem_both_ways(left, name)
        if problem:
            return problem
        violating = self.violating(candidates)
        victims: list[Pod] = []
        for one in [*violating, *(one for one in candidates if one not in violating)]:
            if self.problem_both_ways([*left, one], name):
                victims.append(one)
            else:
                left.append(one)
        in_order = [one.name for one in sorted(victims, key=importance)]
        if not in_order:
            return "error"
        return in_order, sum(one in violating for one in victims)

    def violating(self, victims: Sequence[Pod]) -> list[Pod]:
        left = [budget.status.disruptions_allowed for budget in self.given.budgets]
        found = []
        for one in victims:
            overdrawn = False
            for i, budget in enumerate(self.given.budgets):
                selector = budget.spec.selector
                assert selector is not None
                wanted = (selector.match_labels or {})["app"]
                if one.labels.get("app") == wanted and one.name not in (budget.status.disrupted_pods or {}):
                    left[i] -= 1
                    overdrawn = overdrawn or left[i] < 0
            if overdrawn:
                found.append(one)
        return found

    def run(self) -> tuple[dict[str, Found], dict[str, str]]:
        """Candidates in order, and the statuses of other nodes."""
        good: dict[str, Found] = {}
        violating: dict[str, Found] = {}
        useless: dict[str, str] = {}
        for name in self.given.names:
            found = self.on_node(name)
            if isinstance(found, str):
                useless[name] = found
                continue
            group = violating if found[1] else good
            if len(group) < self.given.num_candidates:
                group[name] = found
            if good and len(good) + len(violating) >= self.given.num_candidates:
                break
        return {**good, **violating}, useless


def as_found(tried: DryRun) -> dict[str, Found]:
    return {
        name: ([one.name for one in victims.pods], victims.pdb_violations) for name, victims in tried.candidates.items()
    }


def dry(profile: Profile, given: Situation) -> DryRun:
    table, state = make_table(given.nodes, given.pods), CycleState()
    run_pre_filters(profile.pre_filter, given.incoming, NodeColumns(table), state)
    nominated: Mapping[str, Sequence[PodInfo]] = {
        name: [pod_info(one) for one in pods] for name, pods in given.nominated.items()
    }
    budgets = budgets_of(given.budgets)
    return dry_run(
        profile,
        table,
        given.incoming,
        state,
        nominated,
        given.names,
        budgets=budgets,
        num_candidates=given.num_candidates,
    )


@pytest.mark.parametrize("block", range(2))
def test_a_dry_run_equals_trying_one_node_after_the_other(block: int) -> None:
    profile = make_profile(PLUGINS)
    candidates = violations = several = 0
    for seed in range(150 * block, 150 * block + 150):
        given = Situation(seed)
        tried = dry(profile, given)
        expected, useless = Naive(profile, given).run()
        assert as_found(tried) == expected, seed
        assert list(tried.candidates) == list(expected), seed
        seen = {name: status.message for name, status in tried.statuses.items() if name in useless}
        assert seen == {name: reason for name, reason in useless.items() if reason != "error"}, seed
        assert (tried.error is not None) >= ("error" in useless.values()), seed
        candidates += len(expected)
        violations += sum(victims.pdb_violations > 0 for victims in tried.candidates.values())
        several += sum(len(victims.pods) > 1 for victims in tried.candidates.values())
    assert min(candidates, violations, several) > 5
