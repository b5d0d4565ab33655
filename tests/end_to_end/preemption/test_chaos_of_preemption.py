"""Random preemptions while deletions fail, nodes, pods and budgets change, and leaders are lost; no wake-up is lost."""

from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import msgspec
import pytest
import trio
from attrs import define, field
from chaos import GPU, NODE_CPU, Chaos, calm_down, check_cache_equals_server, check_fresh_scheduler_agrees
from ledger import Ledger, check_nothing_left
from trio.testing import MockClock

from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api import Handle, Wait, hookimpl
from trio_sched.simulator import KubeletPace
from trio_sched.testing import node, pod
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster

SECONDS = 90
QUIET_SECONDS = 35.0
"""Longer than any pod runs; chaos and quiet together end before the flush, which would hide lost wake-ups."""


class Doorman:
    """Has some pods wait on permit and some in pre_bind, and refuses some of them, until the chaos is over."""

    name = "Doorman"

    def __init__(self, args: None, handle: Handle) -> None:
        self.handle, self.dice = handle, Random(0)

    def is_at_work(self) -> bool:
        return trio.current_time() < SECONDS

    @hookimpl
    def permit(self) -> Wait | None:
        return Wait(7) if self.is_at_work() and self.dice.random() < 0.2 else None

    @hookimpl
    async def pre_bind(self) -> None:
        if self.is_at_work() and self.dice.random() < 0.15:
            await trio.sleep(3)
            if self.dice.random() < 0.5:
                raise RuntimeError("not today")

    @hookimpl
    async def run(self) -> None:
        while True:
            await trio.sleep(self.dice.random() * 4)
            for waiting in list(self.handle.waiting_pods().values()):
                if self.dice.random() < 0.6:
                    waiting.allow(self.name)
                else:
                    waiting.reject(self.name, "no")


@define(eq=False)
class PreemptionChaos(Chaos):
    """Chaos among pods of five priorities."""

    expected_codes: tuple[int, ...] = (403, 404, 409, 500, 503)
    budgets: set[str] = field(factory=set)

    def actions(self) -> dict[Callable[[], Awaitable[None]], int]:
        return super().actions() | {
            self.create_many: 3,
            self.delete_nominated: 5,
            self.edit_nominated: 6,
            self.recreate_node: 2,
            self.label_node: 3,
            self.change_budget: 4,
            self.break_deletions: 8,
        }

    def a_pod(self, name: str) -> Pod:
        dice = self.dice
        return pod(
            name,
            cpu=dice.choice(["100m", "500m", 1, 2, 3, 4]),
            requests={GPU: dice.choice([1, 2])} if dice.random() < 0.25 else {},
            priority=dice.choice([0, 0, 1, 5, 9, 20]),
            preemption_policy="Never" if dice.random() < 0.07 else None,
            labels={"app": dice.choice("xyz")},
            grace_seconds=dice.choice([None, 0, 1, 5, 30]),
            node_selector={"zone": dice.choice("ab")} if dice.random() < 0.15 else None,
            annotations={"trio-sched.dev/run-seconds": "20"} if dice.random() < 0.4 else {},
        )

    async def create_pod(self) -> None:
        self.count += 1
        await self.cluster.create(self.a_pod(f"p{self.count}"))

    async def create_many(self) -> None:
        for _ in range(self.dice.randint(3, 10)):
            await self.create_pod()

    async def recreate_pod(self) -> None:
        if (found := self.some_pod()) is not None:
            await self.cluster.delete(found, grace_seconds=0)
            await trio.sleep(self.dice.choice([0, 0, 0.001, 1]))
            await self.cluster.create(self.a_pod(found.name))

    def some_nominated(self) -> Pod | None:
        pending = [one for one in self.cluster.pods() if not one.node_name]
        nominated = [one for one in pending if one.nominated_node_name] or pending
        return self.dice.choice(nominated) if nominated else None

    async def delete_nominated(self) -> None:
        if (found := self.some_nominated()) is not None:
            await self.cluster.delete(found)

    async def edit_nominated(self) -> None:
        if (found := self.some_nominated()) is not None:
            given = [msgspec.to_builtins(one) for one in found.spec.tolerations or ()]
            await self.cluster.patch(found, {"spec": {"tolerations": [*given, {"key": "t", "operator": "Exists"}]}})

    def a_node(self, name: str) -> Node:
        return a_node(int(name.removeprefix("node-")), zone=self.dice.choice("ab"))

    async def recreate_node(self) -> None:
        name = self.some_node()
        await self.cluster.delete(node(name))
        self.missing.add(name)
        await trio.sleep(self.dice.choice([0, 0.001, 0.1]))
        await self.cluster.create(self.a_node(name))
        self.missing.discard(name)

    async def label_node(self) -> None:
        await self.cluster.patch(node(self.some_node()), {"metadata": {"labels": {"zone": self.dice.choice("ab")}}})

    async def change_budget(self) -> None:
        app = self.dice.choice("xyz")
        budget: dict[str, Any] = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": f"guard-{app}", "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}},
            "status": {"disruptionsAllowed": self.dice.choice([0, 0, 1, 3])},
        }
        if app in self.budgets:
            self.budgets.discard(app)
            await self.cluster.delete(budget)
        else:
            await self.cluster.create(budget)
            self.budgets.add(app)

    async def break_deletions(self) -> None:
        faults, count = self.cluster.api.faults, self.dice.randint(1, 6)
        code, slow = self.dice.choice([403, 409, 500, 503]), self.dice.choice([0, 0.5, 8])
        match self.dice.randrange(4):
            case 0:
                faults.fail_next(count, verb="delete", resource="pods", code=code, reason="Broken")
            case 1:
                faults.fail_next(2 * count, verb="patch", resource="pods", code=code, reason="Broken")
            case 2:
                faults.drop_next(count, verb="delete", resource="pods")
            case _:
                faults.set_latency(slow, verb=self.dice.choice(["patch", "delete"]), resource="pods")


def a_node(number: int, *, zone: str) -> Node:
    gpus = {GPU: 2} if number <= 4 else {}
    return node(f"node-{number}", cpu=NODE_CPU, pods=10, allocatable=gpus, labels={"zone": zone})


async def lose_leader(cluster: VirtualCluster, dice: Random) -> None:
    """Stop or kill a scheduler, or let it lose its lease, and start another one."""
    running = [process for process in cluster.schedulers if process.running]
    if running and dice.random() < 0.6:
        leaving = dice.choice(running)
        await (leaving.kill() if dice.random() < 0.5 else leaving.stop())
    else:
        cluster.api.faults.fail_next(
            20, verb="update", resource="leases", code=dice.choice([403, 500]), reason="Broken"
        )
    await cluster.start_scheduler(wait=False)


@pytest.mark.parametrize("leader_elect", [False, True], ids=["alone", "leaders"])
@pytest.mark.parametrize("seed", range(300, 302))
async def test_random_preemptions_and_faults(seed: int, leader_elect: bool, autojump_clock: MockClock) -> None:
    nodes = [a_node(number, zone="ab"[number % 2]) for number in range(1, 9)]
    async with virtual_cluster(
        nodes=nodes,
        seed=seed,
        bind_latency_seconds=0.2,
        leader_elect=leader_elect,
        plugins=[Doorman],
        kubelets=KubeletPace(stop_seconds=[1.0, 12.0][seed % 2]),
    ) as cluster:
        history, dice = Ledger(cluster), Random(seed)
        chaos = PreemptionChaos(cluster, dice)
        next_loss = 20.0 if leader_elect else SECONDS
        while trio.current_time() < SECONDS:
            await chaos.act()
            await trio.sleep(dice.expovariate(dice.choice([0.7, 1.5, 6])))
            if next_loss < trio.current_time() < SECONDS - 30:  # one that cannot renew its lease ends before the checks
                next_loss = trio.current_time() + dice.uniform(15, 30)
                await lose_leader(cluster, dice)
            for process in cluster.schedulers:
                if process.has_failed:
                    await process.failed()
        if not cluster.scheduler.running:
            await cluster.start_scheduler(wait=False)
        await calm_down(cluster, chaos)
        await cluster.settle(quiet_seconds=QUIET_SECONDS)
        history.check()
        for process in cluster.schedulers:
            assert process.assembly is not None
            assert process.assembly.scheduler.queue.counters.scheduled_after_flush == 0
            if process.running:
                check_cache_equals_server(cluster, process.assembly)
        if not leader_elect:
            check_nothing_left(cluster)
        await check_fresh_scheduler_agrees(cluster)
