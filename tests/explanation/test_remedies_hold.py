"""Every change that is shown lets the pod run on a cluster that is built again; a smaller request is the largest."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

from filled_scheduler import scheduler_with
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from trio_sched.engine.evaluation.decision import ScheduleResult
from trio_sched.explanation.explanation import Explanation, explain
from trio_sched.explanation.trial import EditedObject
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.testing import node, pod

GIB = 1 << 30


def random_cluster(random: Random) -> tuple[list[Node], list[Pod], Pod]:
    """A few nodes, most of them full, tainted or cordoned, and a pod with a few requirements."""
    zones, disks = ["a", "b", "c"], ["ssd", "hdd", ""]
    nodes = []
    for number in range(random.randint(1, 5)):
        disk = random.choice(disks)
        made = node(
            f"n{number}",
            cpu=str(random.randint(1, 8)),
            memory=f"{random.randint(1, 16)}Gi",
            labels={
                "topology.kubernetes.io/zone": random.choice(zones),
                "kubernetes.io/hostname": f"n{number}",
                **({"disk": disk} if disk else {}),
            },
            taints=[f"{key}:NoSchedule" for key in ("gpu", "spot") if random.random() < 0.25],
            unschedulable=random.random() < 0.15,
        )
        nodes.append(made)
    pods = []
    for number in range(random.randint(0, 6)):
        name = random.choice(nodes).name
        pods.append(
            pod(
                f"p{number}",
                cpu=f"{random.randint(1, 20)}00m",
                memory=f"{random.randint(1, 4)}Gi",
                labels={"app": random.choice(["web", "db"])},
                node_name=name,
                host_ports=[8080] if random.random() < 0.2 else [],
            )
        )
    asked: dict[str, Any] = {
        "cpu": f"{random.randint(1, 90)}00m",
        "memory": f"{random.randint(1, 18)}Gi",
        "labels": {"app": random.choice(["web", "db"])},
    }
    if random.random() < 0.3:
        asked["node_selector"] = {"disk": random.choice(["ssd", "nvme"])}
    if random.random() < 0.2:
        asked["host_ports"] = [8080]
    if random.random() < 0.2:
        asked["tolerations"] = ["gpu"]
    return nodes, pods, pod("asked", **asked)


def made_anew(nodes: list[Node], pods: list[Pod], asked: Pod, edited: Iterable[EditedObject]) -> tuple[Any, ...]:
    """The cluster with the changes, built from its objects."""
    all_nodes = {one.name: one for one in nodes}
    all_pods = {(one.namespace, one.name): one for one in pods}
    for one in edited:
        if one.kind == "Node":
            all_nodes[one.name] = one.new
        elif (one.namespace, one.name) == (asked.namespace, asked.name):
            asked = one.new
        elif one.new is None:
            del all_pods[one.namespace, one.name]
        else:
            all_pods[one.namespace, one.name] = one.new
    return list(all_nodes.values()), list(all_pods.values()), asked


def is_placed(nodes: list[Node], pods: list[Pod], asked: Pod) -> str:
    decision = scheduler_with(nodes, pods).try_pod(asked)
    return decision.node_name if isinstance(decision, ScheduleResult) else ""


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(min_value=0, max_value=1 << 32))
def test_every_change_lets_the_pod_run_on_the_node_that_is_named(seed: int) -> None:
    nodes, pods, asked = random_cluster(Random(seed))
    scheduler = scheduler_with(nodes, pods)
    found = explain(scheduler, asked)
    assert found.fits_now == bool(is_placed(nodes, pods, asked))
    for remedy in found.remedies.found:
        cluster = made_anew(nodes, pods, asked, remedy.edited)
        assert is_placed(*cluster) == remedy.outcome.node_name, (seed, remedy.change.title)
    # Whatever was tried is undone.
    assert {one.name: one for one in scheduler.cache.table.nodes} == {one.name: one for one in nodes}
    assert sorted(one.pod.key for one in scheduler.cache) == sorted(one.key for one in pods)
    assert causes(explain(scheduler, asked)) == causes(found)


def causes(one: Explanation) -> list[tuple[str, int]]:
    assert one.analysis is not None
    return [(clause.title, int(clause.fails.sum())) for clause in one.analysis.clauses]


def with_memory(asked: Pod, gib: int) -> Pod:
    (container,) = asked.spec.containers or ()
    assert container.resources is not None
    requests = {**(container.resources.requests or {}), "memory": f"{gib}Gi"}
    changed = structs.replace(container, resources=structs.replace(container.resources, requests=requests))
    return structs.replace(asked, spec=structs.replace(asked.spec, containers=(changed,)))


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(min_value=0, max_value=1 << 32))
def test_the_smaller_request_is_the_largest_that_fits(seed: int) -> None:
    nodes, pods, asked = random_cluster(Random(seed))
    found = explain(scheduler_with(nodes, pods), asked)
    if found.fits_now:
        return
    (container,) = asked.spec.containers or ()
    assert container.resources is not None
    wanted = int(str((container.resources.requests or {})["memory"]).removesuffix("Gi"))
    # Everything in these clusters is whole gibibytes, so trying each of them tries all there is.
    another = scheduler_with(nodes, pods)
    sizes = {gib: another.try_pod(with_memory(asked, gib)) for gib in range(1, wanted)}
    fitting = [gib for gib, decision in sizes.items() if isinstance(decision, ScheduleResult)]
    shown = [remedy.change.title for remedy in found.remedies.found if remedy.change.title.startswith("request memory")]
    alone = [title for title in shown if " and " not in title]
    assert alone == ([f"request memory ≤ {max(fitting)}.0Gi"] if fitting else [])
