"""Two hundred random schedules of faults: a state machine of the network, the API server and the schedulers."""

from collections.abc import Awaitable, Callable
from random import Random
from typing import Final

import pytest
import trio
from attrs import define, field
from chaos import NODE_CPU, Chaos, calm_down, check_cache_equals_server, check_pending_pods_fit_nowhere
from ledger import Ledger

from trio_sched.daemon.assembly import Assembly
from trio_sched.simulator import jumping_clock
from trio_sched.testing import node, pod
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster

SEEDS: Final = 200
SEEDS_PER_TEST: Final = 20
SECONDS: Final = 40.0

TRANSITIONS: Final = {
    "up": ("slow", "throttled", "forbidden", "failing", "lossy", "down", "restarted", "amnesia", "one scheduler less"),
    "slow": ("up", "down", "lossy"),
    "throttled": ("up", "restarted"),
    "forbidden": ("up", "down"),
    "failing": ("up", "amnesia"),
    "lossy": ("up", "slow", "one scheduler less"),
    "down": ("up", "amnesia", "restarted", "failing"),
    "restarted": ("up", "restarted", "forbidden"),
    "amnesia": ("up", "amnesia", "down"),
    "one scheduler less": ("up", "down", "throttled"),
}
"""The states, and which of them may follow."""


@define(eq=False)
class FaultMachine(Chaos):
    """Walks through the states, while users go on."""

    expected_codes: tuple[int, ...] = (403, 404, 409, 429, 500)
    state: str = "up"
    visited: set[str] = field(factory=set)

    def actions(self) -> dict[Callable[[], Awaitable[None]], int]:
        return {
            self.create_pod: 40,
            self.create_urgent_pod: 4,
            self.delete_pod: 14,
            self.recreate_pod: 4,
            self.label_pod: 4,
            self.cordon: 3,
            self.uncordon: 3,
            self.remove_node: 2,
            self.bring_node_back: 3,
        }

    async def create_urgent_pod(self) -> None:
        """It evicts others where there is no room."""
        self.count += 1
        await self.cluster.create(pod(f"p{self.count}", cpu=3, priority=100))

    async def step(self) -> None:
        """Leave the state, and enter the next one."""
        api = self.cluster.api
        api.faults.clear()
        api.resume()
        await self.keep_schedulers()
        self.state = self.dice.choice(TRANSITIONS[self.state])
        self.visited.add(self.state)
        match self.state:
            case "slow":
                api.faults.set_latency(self.dice.choice([0.3, 2.0]), verb=self.dice.choice(["bind", "patch", "watch"]))
            case "throttled":
                api.faults.fail_next(10**6, resource="pods", code=429, reason="TooManyRequests")
            case "forbidden":
                api.faults.fail_next(10**6, verb="bind", code=403, reason="Forbidden")
                api.faults.fail_next(10**6, verb="watch", code=403, reason="Forbidden")
            case "failing":
                api.faults.fail_next(10**6, verb=self.dice.choice(["bind", "patch", "list", "watch"]), code=500)
            case "lossy":
                api.faults.drop_next(self.dice.randint(1, 5), verb=self.dice.choice(["bind", "patch", "create"]))
            case "down":
                api.stop()
            case "restarted":
                api.restart(lose_history=False)
            case "amnesia":
                api.restart(lose_history=True)
            case "one scheduler less":
                running = [process for process in self.cluster.schedulers if process.running]
                leaving = self.dice.choice(running)
                await (leaving.kill() if self.dice.random() < 0.5 else leaving.stop())

    async def keep_schedulers(self) -> None:
        """Start those again that have ended: killed, or because they lost the lease."""
        for process in self.cluster.schedulers:
            if not process.running and process.has_failed:
                await process.failed()
        if not any(process.running for process in self.cluster.schedulers):
            await self.cluster.start_scheduler(wait=False)


def check_every_pending_pod_has_a_reason(assembly: Assembly) -> None:
    """Nothing waits that no event and no timer would bring back."""
    queue = assembly.scheduler.queue
    for info in queue.unschedulable.values():
        assert info.rejectors or info.gating_plugin or info.backoff_expiry is not None, info.key
    for info in (*queue.backing_off.pod_backoff_q, *queue.backing_off.pod_error_backoff_q):
        assert info.backoff_expiry is not None, info.key


def check_no_nomination_is_left(cluster: VirtualCluster, assembly: Assembly) -> None:
    """Only pods that wait for their victims are nominated, and in the end none does."""
    assert [one.name for one in cluster.pods() if one.node_name == "" and one.nominated_node_name] == []
    assert len(assembly.scheduler.queue.nominator) == 0


async def run_schedule(seed: int) -> FaultMachine:
    nodes = [node(f"node-{number}", cpu=NODE_CPU, pods=10) for number in range(1, 9)]
    elects = seed % 3 == 0
    async with virtual_cluster(nodes=nodes, seed=seed, bind_latency_seconds=0.2, leader_elect=elects) as cluster:
        history = Ledger(cluster)
        machine = FaultMachine(cluster, Random(seed))
        if elects:
            await cluster.start_scheduler()
        next_step = 0.0
        while trio.current_time() < SECONDS:
            if trio.current_time() >= next_step:
                next_step = trio.current_time() + machine.dice.choice([0.5, 2.0, 6.0, 13.0])
                await machine.step()
            if machine.state not in ("down", "throttled"):
                await machine.act()
            await trio.sleep(machine.dice.expovariate(1.0))
        await machine.keep_schedulers()
        cluster.api.faults.clear()
        machine.missing = {one.name for one in nodes if cluster.api.store.get("nodes", one.name) is None}
        await calm_down(cluster, machine)
        await machine.keep_schedulers()
        await cluster.settle()
        history.check()
        check_pending_pods_fit_nowhere(cluster)
        for process in cluster.schedulers:
            if process.running:
                check_cache_equals_server(cluster, process.assembly)
                check_every_pending_pod_has_a_reason(process.assembly)
        check_no_nomination_is_left(cluster, next(one.assembly for one in cluster.schedulers if one.running))
        return machine


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_PER_TEST))
def test_after_any_schedule_of_faults_the_cluster_is_as_if_there_had_been_none(first: int) -> None:
    visited: set[str] = set()
    for seed in range(first, first + SEEDS_PER_TEST):
        try:
            visited |= trio.run(run_schedule, seed, clock=jumping_clock()).visited
        except BaseException as problem:
            problem.add_note(f"with seed {seed}")
            raise
    assert visited == TRANSITIONS.keys()
