"""Random operations of users and administrators and random faults, and checks on the cluster that they leave."""

from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import trio
from attrs import define, field

from trio_sched.daemon.assembly import Assembly
from trio_sched.objects.amounts.quantity import parse_nano
from trio_sched.simulator import PretendExtender
from trio_sched.simulator.endpoints.faults import ReplyDropped
from trio_sched.testing import node, pod
from trio_sched.testing.cluster import VirtualCluster
from trio_sched.testing.cluster_objects import Refused

NODE_CPU = 4
GPU = "example.com/gpu"


@define(eq=False)
class Chaos:
    """Random operations of users and administrators and random faults, drawn from *dice*."""

    cluster: VirtualCluster
    dice: Random
    extender: PretendExtender | None = None
    count: int = 0
    missing: set[str] = field(factory=set)
    expected_codes: tuple[int, ...] = (404, 409)
    """How operations may be refused: another one was faster."""

    def actions(self) -> dict[Callable[[], Awaitable[None]], int]:
        """What can happen, and how often."""
        return {
            self.create_pod: 40,
            self.delete_pod: 14,
            self.label_pod: 6,
            self.cordon: 4,
            self.uncordon: 4,
            self.remove_node: 2,
            self.bring_node_back: 3,
            self.recreate_pod: 4,
            self.break_something: 8,
            self.restart: 3,
            self.outage: 1,
        }

    async def act(self) -> None:
        actions = self.actions()
        (action,) = self.dice.choices(list(actions), list(actions.values()))
        try:
            await action()
        except Refused as refused:
            if refused.code not in self.expected_codes:
                raise
        except ReplyDropped:
            pass  # meant for the scheduler, but it has hit a user for once

    def some_pod(self) -> Any:
        pods = self.cluster.pods()
        return self.dice.choice(pods) if pods else None

    async def create_pod(self) -> None:
        self.count += 1
        cpu = self.dice.choice(["100m", "500m", "1", "2", "3"])
        life = self.dice.choice([None, "20", "60"])
        annotations = {"trio-sched.dev/run-seconds": life} if life else {}
        requests = {GPU: 1} if self.extender is not None and self.dice.random() < 0.7 else {}
        await self.cluster.create(
            pod(
                f"p{self.count}",
                cpu=cpu,
                requests=requests,
                priority=self.dice.choice([0, 0, 5]),
                annotations=annotations,
            )
        )

    async def delete_pod(self) -> None:
        if (found := self.some_pod()) is not None:
            await self.cluster.delete(found, grace_seconds=self.dice.choice([None, 0]))

    async def recreate_pod(self) -> None:
        if (found := self.some_pod()) is not None:
            await self.cluster.delete(found, grace_seconds=0)
            await self.cluster.create(pod(found.name, cpu=1))

    async def label_pod(self) -> None:
        if (found := self.some_pod()) is not None:
            await self.cluster.patch(found, {"metadata": {"labels": {"dice": str(self.dice.random())}}})

    def some_node(self) -> str:
        return f"node-{self.dice.randint(1, 8)}"

    async def cordon(self) -> None:
        await self.cluster.patch(node(self.some_node()), {"spec": {"unschedulable": True}})

    async def uncordon(self) -> None:
        await self.cluster.patch(node(self.some_node()), {"spec": {"unschedulable": None}})

    async def remove_node(self) -> None:
        name = self.some_node()
        await self.cluster.delete(node(name))
        self.missing.add(name)

    async def bring_node_back(self) -> None:
        if self.missing:
            name = self.dice.choice(sorted(self.missing))
            await self.cluster.create(node(name, cpu=NODE_CPU, pods=10))
            self.missing.discard(name)

    async def break_something(self) -> None:
        faults, count = self.cluster.api.faults, self.dice.randint(1, 4)
        match self.dice.randrange(7):
            case 0:
                faults.drop_next(count, verb="bind", resource="pods")
            case 1:
                faults.fail_next(count, verb="bind", resource="pods", code=409, reason="Conflict")
            case 2:
                faults.fail_next(count, verb="bind", resource="pods", code=503, reason="ServiceUnavailable")
            case 3:
                faults.drop_next(count, verb="patch", resource="pods")
            case 4:
                faults.fail_next(1, verb="watch", code=self.dice.choice([500, 410]), reason="Expired")
            case 5:
                faults.drop_next(count, verb="create", resource="events")
            case _:
                faults.set_latency(self.dice.choice([0, 0.01, 0.5, 3]), verb="bind", resource="pods")

    def change_the_extender(self) -> None:
        assert self.extender is not None
        self.extender.is_dead = self.dice.random() < 0.2
        self.extender.status = self.dice.choice([200, 200, 200, 500])
        self.extender.delay_seconds = self.dice.choice([0, 0, 0.3, 3, 10])

    async def restart(self) -> None:
        self.cluster.api.restart(lose_history=self.dice.random() < 0.5)

    async def outage(self) -> None:
        self.cluster.api.stop()
        await trio.sleep(self.dice.choice([1, 5, 12]))
        self.cluster.api.resume()


async def calm_down(cluster: VirtualCluster, chaos: Chaos) -> None:
    """Remove all faults and restore all nodes, so that every pod that fits can be placed."""
    cluster.api.faults.clear()
    cluster.api.resume()
    for name in sorted(chaos.missing):
        await cluster.create(node(name, cpu=NODE_CPU, pods=10))
    for number in range(1, 9):
        await cluster.patch(node(f"node-{number}"), {"spec": {"unschedulable": None}})
    await cluster.settle()


def check_pending_pods_fit_nowhere(cluster: VirtualCluster) -> None:
    """Every pending pod fits on no node, counted without the scheduler."""
    free = {f"node-{number}": parse_nano(str(NODE_CPU)) for number in range(1, 9)}
    seats = dict.fromkeys(free, 10)
    waiting = []
    for one in cluster.pods():
        cpu = parse_nano(one.spec.containers[0].resources.requests["cpu"])  # type: ignore[union-attr,index]
        if one.status.phase in ("Succeeded", "Failed"):
            continue
        if one.node_name:
            free[one.node_name] -= cpu
            seats[one.node_name] -= 1
        else:
            waiting.append((one.name, cpu))
    forgotten = [name for name, cpu in waiting for n in free if cpu <= free[n] and seats[n]]
    assert forgotten == []


def check_cache_equals_server(cluster: VirtualCluster, assembly: Assembly) -> None:
    """The cache of the scheduler equals the bound pods of the API server."""
    cached_nodes = {cached.pod.uid: cached.node_name for cached in assembly.scheduler.cache}
    stored_nodes = {
        one.uid: one.node_name
        for one in cluster.pods()
        if one.node_name and one.status.phase not in ("Succeeded", "Failed")
    }
    assert cached_nodes == stored_nodes


async def check_fresh_scheduler_agrees(cluster: VirtualCluster) -> None:
    """A scheduler that starts on what is there places nothing that the one before has left."""
    before = cluster.placements()
    for process in cluster.schedulers:
        if process.running:
            await process.stop()
    await cluster.start_scheduler()
    await cluster.settle()
    assert cluster.placements() == before
