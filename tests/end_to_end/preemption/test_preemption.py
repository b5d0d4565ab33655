"""Preemption of pods of lower priority: which become victims, how they are evicted, and that none is lost."""

from collections import Counter
from typing import Any

import pytest
import trio
from ledger import Ledger
from trio.testing import MockClock

from trio_sched.plugin_api import LabelSelector, Pod, TopologySpreadConstraint
from trio_sched.simulator import KubeletPace
from trio_sched.testing import node, pod
from trio_sched.testing.cluster import virtual_cluster


def low(name: str, **options: Any) -> Pod:
    return pod(name, **{"cpu": 2, "priority": 0, **options})


def high(name: str, **options: Any) -> Pod:
    return pod(name, **{"cpu": 2, "priority": 100, **options})


POLITE = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "polite"},
    "value": 100,
    "preemptionPolicy": "Never",
}
SLOW = KubeletPace(stop_seconds=20.0)


def manifest(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], **spec},
    }


def budget(name: str, allowed: int, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"maxUnavailable": allowed, "selector": {"matchLabels": labels}},
        "status": {
            "disruptionsAllowed": allowed,
            "currentHealthy": 1,
            "desiredHealthy": 1,
            "expectedPods": 1,
            "observedGeneration": 1,
        },
    }


async def test_a_pod_of_higher_priority_preempts_one_of_lower_priority(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("n", cpu=3)]) as cluster:
        await cluster.create(low("modest"))
        await cluster.settle()
        await cluster.create(high("grand"))
        await cluster.settle()
        assert cluster.placements() == {"default/grand": "n"}
        (evicted,) = cluster.events("Preempted")
        assert evicted.message == f"Preempted by pod {cluster.pod('grand').uid} on node n"
        assert evicted.involved_object.name == "modest"
        (refused,) = cluster.events("FailedScheduling", about="grand")
        assert refused.message == "0/1 nodes are available: 1 Insufficient cpu."
        assert cluster.pod("grand").nominated_node_name == ""


async def test_a_victim_gets_a_disruption_condition_before_it_is_deleted(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("n", cpu=3)], kubelets=SLOW) as cluster:
        await cluster.create(low("modest", grace_seconds=30))
        await cluster.settle()
        await cluster.create(high("grand"))
        await trio.sleep(5)
        modest = cluster.pod("modest")
        assert modest.metadata.deletion_timestamp is not None
        (condition,) = [c for c in modest.status.conditions or () if c.type == "DisruptionTarget"]
        assert (condition.status, condition.reason) == ("True", "PreemptionByScheduler")
        assert condition.message == "default-scheduler: preempting to accommodate a higher priority pod"
        assert cluster.pod("grand").nominated_node_name == "n"
        assert cluster.pod("grand").node_name == ""
        await cluster.settle()
        assert cluster.placements() == {"default/grand": "n"}


async def test_the_node_is_reserved_for_the_preemptor_while_its_victim_terminates(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("n", cpu=3)], kubelets=SLOW) as cluster:
        await cluster.create(low("modest", grace_seconds=30))
        await cluster.settle()
        await cluster.create(high("grand"))
        await trio.sleep(5)
        await cluster.create(low("upstart"))
        await cluster.settle()
        assert cluster.placements() == {"default/grand": "n", "default/upstart": ""}


async def test_pods_with_preemption_policy_never_do_not_preempt(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("n", cpu=3)]) as cluster:
        await cluster.create(low("modest"))
        await cluster.settle()
        await cluster.create(POLITE)
        await cluster.create(manifest("polite", priorityClassName="polite"))
        await cluster.settle()
        assert cluster.placements() == {"default/modest": "n", "default/polite": ""}
        (refused,) = cluster.events("FailedScheduling", about="polite")
        assert refused.message.endswith("preemption: not eligible due to preemptionPolicy=Never.")


async def test_pods_protected_by_a_disruption_budget_are_spared_if_possible(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("a", cpu=3), node("b", cpu=3)]) as cluster:
        await cluster.create(budget("guard", 0, app="db"))
        await cluster.create(low("db", labels={"app": "db"}))
        await cluster.create(low("web", labels={"app": "web"}))
        await cluster.settle()
        where = cluster.placements()
        await cluster.create(high("grand"))
        await cluster.settle()
        after = cluster.placements()
        assert after == {"default/db": where["default/db"], "default/grand": where["default/web"]}


async def test_a_deleted_preemptor_loses_its_nomination(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("n", cpu=3)], kubelets=SLOW) as cluster:
        await cluster.create(low("modest", grace_seconds=30))
        await cluster.settle()
        grand = await cluster.create(high("grand"))
        await cluster.create(low("next"))
        await trio.sleep(5)
        await cluster.delete(grand)
        await cluster.settle()
        assert cluster.placements() == {"default/next": "n"}


async def test_preemption_can_satisfy_spread_constraints(autojump_clock: MockClock) -> None:
    zones = [node(f"n{zone}", cpu=3, labels={"zone": zone}) for zone in ("a", "b")]
    constraint = TopologySpreadConstraint(
        max_skew=1,
        topology_key="zone",
        when_unsatisfiable="DoNotSchedule",
        label_selector=LabelSelector(match_labels={"app": "web"}),
    )

    async with virtual_cluster(nodes=zones) as cluster:
        await cluster.create(low("x"))
        await cluster.create(low("y"))
        await cluster.settle()
        await cluster.create(high("one", labels={"app": "web"}, spread=[constraint]))
        await cluster.create(high("two", labels={"app": "web"}, spread=[constraint]))
        await cluster.settle()
        placed = cluster.placements()
        assert {placed["default/one"], placed["default/two"]} == {"na", "nb"}
        assert "default/x" not in placed


@pytest.mark.parametrize("asynchronous", [True, False])
async def test_many_preemptors_on_a_full_cluster_are_all_bound(asynchronous: bool, autojump_clock: MockClock) -> None:
    nodes, each = 50, 2
    async with virtual_cluster(
        nodes=[node(f"n{i}", cpu=4) for i in range(nodes)], gates={"SchedulerAsyncPreemption": asynchronous}
    ) as cluster:
        ledger = Ledger(cluster)
        for i in range(nodes * each):
            await cluster.create(low(f"low-{i}", labels={"app": "precious" if i % 4 == 0 else "cheap"}))
        await cluster.create(budget("guard", 0, app="precious"))
        await cluster.settle()
        assert Counter(cluster.placements().values()) == Counter({f"n{i}": each for i in range(nodes)})
        for i in range(nodes):
            await cluster.create(high(f"high-{i}", cpu=2))
        await cluster.settle()
        placed = cluster.placements()
        assert "" not in placed.values()
        assert sum("high" in name for name in placed) == nodes
        ledger.check()  # no overcommit at any moment
        preempted = cluster.events("Preempted")
        assert len(preempted) == nodes  # one victim for each, and none besides
        protected = {f"low-{i}" for i in range(0, nodes * each, 4)}
        assert not protected & {event.involved_object.name for event in preempted}
