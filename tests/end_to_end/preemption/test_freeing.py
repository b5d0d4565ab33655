"""Which events requeue an unschedulable pod, and when."""

from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import msgspec
import pytest
import trio
from attrs import frozen
from cluster_pods import create_pods
from ledger import Ledger, check_nothing_left
from trio.testing import MockClock

from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api import Action, EventRegistration, Handle, Resource, Status, hookimpl, on, unschedulable
from trio_sched.testing import node, node_affinity, pod, term
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster

FULL = node("n", cpu=2)


@frozen
class Case:
    """A node that rejects *waiting* until *change* happens."""

    node: Node
    waiting: Pod
    change: Callable[[VirtualCluster], Awaitable[Any]]
    lodger: Pod | None = None


async def label(cluster: VirtualCluster) -> None:
    await cluster.patch(FULL, {"metadata": {"labels": {"disk": "ssd"}}})


async def tolerate(cluster: VirtualCluster) -> None:
    given = [msgspec.to_builtins(one) for one in cluster.pod("p").spec.tolerations or ()]
    await cluster.patch(pod("p"), {"spec": {"tolerations": [*given, {"key": "a", "operator": "Exists"}]}})


CASES = {
    "a node is added": Case(FULL, pod("p", cpu=3), lambda c: c.create(node("big", cpu=4))),
    "a node grows": Case(
        FULL,
        pod("p", cpu=3),
        lambda c: c.patch(FULL, {"status": {"allocatable": {"cpu": "4"}}}, subresource="status"),
    ),
    "a node is uncordoned": Case(
        node("n", unschedulable=True), pod("p"), lambda c: c.patch(FULL, {"spec": {"unschedulable": None}})
    ),
    "a taint is taken away": Case(
        node("n", taints=["a=b:NoSchedule"]), pod("p"), lambda c: c.patch(FULL, {"spec": {"taints": None}})
    ),
    "a node gets a label": Case(FULL, pod("p", node_selector={"disk": "ssd"}), label),
    "a node gets a label that an affinity wants": Case(
        FULL, pod("p", affinity=node_affinity(term("disk In ssd nvme"))), label
    ),
    "a pod is deleted": Case(FULL, pod("p", cpu=2), lambda c: c.delete(pod("lodger")), lodger=pod("lodger", cpu=1)),
    "a port becomes free": Case(
        FULL, pod("p", host_ports=[80]), lambda c: c.delete(pod("lodger")), lodger=pod("lodger", host_ports=[80])
    ),
    "the pod gets a toleration": Case(
        node("n", taints=["a=b:NoSchedule"]),
        pod("p"),
        tolerate,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_a_pod_is_scheduled_after(case: Case, autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[case.node]) as cluster:
        if case.lodger is not None:
            await cluster.create(case.lodger)
        await trio.sleep(3)
        await cluster.create(case.waiting)
        await trio.sleep(20)
        assert cluster.pod("p").node_name == ""
        changed = trio.current_time()
        history = Ledger(cluster)
        await case.change(cluster)
        await trio.sleep(5)
        assert cluster.pod("p").node_name
        assert history.binds[cluster.pod("p").uid][0][0] - changed < 2
        await cluster.settle()
        check_nothing_left(cluster)


IRRELEVANT = {
    "a node that is as small is added": lambda c: c.create(node("another", cpu=2)),
    "a label changes": label,
    "a small pod elsewhere is deleted": lambda c: c.delete(pod("elsewhere")),
}


@pytest.mark.parametrize("change", IRRELEVANT.values(), ids=IRRELEVANT.keys())
async def test_a_pod_is_not_retried_after(change: Any, autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[FULL]) as cluster:
        await cluster.create(pod("elsewhere", cpu="1m", scheduler_name="other", node_name="gone"), check_node=False)
        await cluster.create(pod("p", cpu=3))
        await trio.sleep(20)
        queue = cluster.schedulers[0].assembly.scheduler.queue
        attempts = queue.scheduling_cycle
        await change(cluster)
        await trio.sleep(20)
        assert queue.scheduling_cycle == attempts


class Never:
    """Rejects every pod, and registers for label updates of nodes."""

    name = "Never"
    asked: list[float]

    def __init__(self, args: None, handle: Handle) -> None:
        Never.asked = []

    @hookimpl
    def filter_node(self, pod: Pod) -> Status:
        self.asked.append(trio.current_time())
        return unschedulable("never")

    @hookimpl
    def events_to_register(self) -> list[EventRegistration]:
        return [on(Resource.NODE, Action.UPDATE_NODE_LABEL)]


async def test_the_backoff_of_a_pod_requeued_in_vain_doubles(autojump_clock: MockClock) -> None:
    gates = {"SchedulerPopFromBackoffQ": False}  # with it, a pod that is alone is tried at once
    async with virtual_cluster(nodes=1, plugins=[Never], gates=gates) as cluster:
        await cluster.create(pod("p"))
        for step in range(800):
            await trio.sleep(0.05)
            await cluster.patch(node("node-1"), {"metadata": {"labels": {"step": str(step)}}})
    pauses = [later - earlier for earlier, later in pairwise(dict.fromkeys(Never.asked))]
    assert len(pauses) >= 5
    for pause, nominal in zip(pauses, (1, 2, 4, 8, 10), strict=False):
        assert nominal <= pause <= nominal + 0.11


async def test_many_unschedulable_pods_fill_added_nodes(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[FULL]) as cluster:
        history = Ledger(cluster)
        await create_pods(cluster, 60, cpu=1)
        await cluster.settle()
        for number in range(5):
            await cluster.create(node(f"more-{number}", cpu=4))
            await trio.sleep(1)
        await cluster.settle()
        assert len(history.binds) == 22
        history.check()
