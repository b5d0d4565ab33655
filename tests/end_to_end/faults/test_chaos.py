"""Minutes of random operations and faults under several seeds; afterwards cache and cluster must agree."""

from random import Random

import pytest
import trio
from chaos import (
    GPU,
    NODE_CPU,
    Chaos,
    calm_down,
    check_cache_equals_server,
    check_fresh_scheduler_agrees,
    check_pending_pods_fit_nowhere,
)
from ledger import Ledger, check_nothing_left
from trio.testing import MockClock

from trio_sched.simulator import PretendExtender, leaving, scoring
from trio_sched.testing import node
from trio_sched.testing.cluster import virtual_cluster

MINUTES = 6
WITH_EXTENDER = f"""\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders:
  - urlPrefix: http://extender.test
    filterVerb: filter
    prioritizeVerb: prioritize
    weight: 3
    managedResources: [{{name: {GPU}, ignoredByScheduler: true}}]
"""


@pytest.mark.parametrize("seed", range(2))
async def test_random_operations_and_faults(seed: int, autojump_clock: MockClock) -> None:
    nodes = [node(f"node-{number}", cpu=NODE_CPU, pods=10) for number in range(1, 9)]
    async with virtual_cluster(nodes=nodes, seed=seed, bind_latency_seconds=0.2) as cluster:
        history = Ledger(cluster)
        chaos = Chaos(cluster, Random(seed))
        while trio.current_time() < MINUTES * 60:
            await chaos.act()
            await trio.sleep(chaos.dice.expovariate(1.0))
        await calm_down(cluster, chaos)
        assert chaos.count > 100
        history.check()
        check_pending_pods_fit_nowhere(cluster)
        check_nothing_left(cluster)
        check_cache_equals_server(cluster, cluster.schedulers[0].assembly)
        await check_fresh_scheduler_agrees(cluster)


@pytest.mark.parametrize("seed", [200])
async def test_random_operations_and_faults_with_an_unreliable_extender(seed: int, autojump_clock: MockClock) -> None:
    extender = PretendExtender(
        answers={
            "filter": leaving(lambda name: dice.random() < 0.8, "not in the mood"),
            "prioritize": scoring({"node-3": 10, "node-5": 4}),
        }
    )
    dice = Random(seed)
    nodes = [node(f"node-{number}", cpu=NODE_CPU, pods=10) for number in range(1, 9)]
    async with virtual_cluster(
        nodes=nodes, seed=seed, config=WITH_EXTENDER, extenders=[extender], bind_latency_seconds=0.2
    ) as cluster:
        history = Ledger(cluster)
        chaos = Chaos(cluster, Random(seed), extender)
        while trio.current_time() < MINUTES * 60:
            await chaos.act()
            if chaos.dice.random() < 0.05:
                chaos.change_the_extender()
            await trio.sleep(chaos.dice.expovariate(1.0))
        extender.is_dead, extender.status, extender.delay_seconds = False, 200, 0.0
        extender.answers = {"filter": leaving(lambda name: True)}
        await calm_down(cluster, chaos)
        # What the extender refused last waits for an event, or for the flush that is minutes away.
        await cluster.patch(node("node-1"), {"metadata": {"labels": {"calm": "yes"}}})
        await cluster.settle()
        history.check()
        check_pending_pods_fit_nowhere(cluster)
        check_nothing_left(cluster)
        check_cache_equals_server(cluster, cluster.schedulers[0].assembly)
        assert extender.most_at_once == 1
        assert len(extender.asked_about("filter")) > 50
        assert len(cluster.schedulers[0].assembly.scheduler.queue.set_aside) == 0
        await check_fresh_scheduler_agrees(cluster)


@pytest.mark.parametrize("seed", [100])
async def test_random_operations_and_faults_under_changing_leaders(seed: int, autojump_clock: MockClock) -> None:
    nodes = [node(f"node-{number}", cpu=NODE_CPU, pods=10) for number in range(1, 9)]
    async with virtual_cluster(nodes=nodes, seed=seed, bind_latency_seconds=0.2, leader_elect=True) as cluster:
        history = Ledger(cluster)
        chaos = Chaos(cluster, Random(seed))
        await cluster.start_scheduler()
        next_change = 30.0
        while trio.current_time() < MINUTES * 60:
            await chaos.act()
            await trio.sleep(chaos.dice.expovariate(1.0))
            running = [process for process in cluster.schedulers if process.running]
            for process in cluster.schedulers:
                if not process.running and process.has_failed:
                    await process.failed()  # an outage longer than the renew deadline
            if trio.current_time() > next_change or not running:
                next_change = trio.current_time() + chaos.dice.uniform(20, 60)
                if running:
                    leaving = chaos.dice.choice(running)
                    await (leaving.kill() if chaos.dice.random() < 0.5 else leaving.stop())
                await cluster.start_scheduler(wait=False)
        await calm_down(cluster, chaos)
        history.check()
        check_pending_pods_fit_nowhere(cluster)
        for process in cluster.schedulers:
            assembly = process.assembly
            if process.running:
                check_cache_equals_server(cluster, assembly)
        await check_fresh_scheduler_agrees(cluster)
