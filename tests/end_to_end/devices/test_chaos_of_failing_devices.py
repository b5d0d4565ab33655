"""Random operations and faults about devices: no device ever has two owners, and no claim is forgotten."""

from random import Random

import pytest
import trio
from chaos import check_cache_equals_server, check_fresh_scheduler_agrees
from device_chaos import (
    NODES,
    DeviceChaos,
    DeviceLedger,
    calm_down,
    check_claims,
    check_memory_equals_server,
    check_waiting_pods_lack_devices,
    gpu_node,
    prepare,
)
from ledger import Ledger
from trio.testing import MockClock

from trio_sched.testing.cluster import virtual_cluster

MINUTES = 5


@pytest.mark.parametrize("seed", [0])
async def test_random_operations_and_faults(seed: int, autojump_clock: MockClock) -> None:
    nodes = [gpu_node(number) for number in range(1, NODES + 1)]
    async with virtual_cluster(nodes=nodes, seed=seed, bind_latency_seconds=0.2) as cluster:
        await prepare(cluster)
        history, ledger = Ledger(cluster), DeviceLedger(cluster)
        chaos = DeviceChaos(cluster, Random(seed))
        while trio.current_time() < MINUTES * 60:
            await chaos.act()
            await trio.sleep(chaos.dice.expovariate(1.0))
        await calm_down(cluster, chaos)
        assert ledger.allocations > 30
        assert ledger.double == []
        history.check()
        check_claims(cluster)
        check_waiting_pods_lack_devices(cluster)
        assert cluster.scheduler.assembly is not None
        check_memory_equals_server(cluster, cluster.scheduler.assembly)
        check_cache_equals_server(cluster, cluster.scheduler.assembly)
        await check_fresh_scheduler_agrees(cluster)


@pytest.mark.parametrize("seed", [100])
async def test_random_operations_and_faults_while_schedulers_are_killed(seed: int, autojump_clock: MockClock) -> None:
    nodes = [gpu_node(number) for number in range(1, NODES + 1)]
    async with virtual_cluster(nodes=nodes, seed=seed, bind_latency_seconds=0.2, leader_elect=True) as cluster:
        await prepare(cluster)
        history, ledger = Ledger(cluster), DeviceLedger(cluster)
        chaos = DeviceChaos(cluster, Random(seed))
        await cluster.start_scheduler()
        next_change = 20.0
        while trio.current_time() < MINUTES * 60:
            await chaos.act()
            await trio.sleep(chaos.dice.expovariate(1.0))
            for process in cluster.schedulers:
                if not process.running and process.has_failed:
                    await process.failed()  # an outage longer than the renew deadline
            running = [process for process in cluster.schedulers if process.running]
            if trio.current_time() > next_change or not running:
                next_change = trio.current_time() + chaos.dice.uniform(5, 40)
                if running:
                    leaving = chaos.dice.choice(running)
                    await (leaving.kill() if chaos.dice.random() < 0.8 else leaving.stop())
                await cluster.start_scheduler(wait=False)
        await calm_down(cluster, chaos)
        assert ledger.double == []
        history.check()
        check_claims(cluster)
        check_waiting_pods_lack_devices(cluster)
        for process in cluster.schedulers:
            if process.running and process.assembly is not None:
                check_memory_equals_server(cluster, process.assembly)
                check_cache_equals_server(cluster, process.assembly)
        await check_fresh_scheduler_agrees(cluster)
