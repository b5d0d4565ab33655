"""What is cached is compared with the watches, and these with a fresh list; what differs is repaired."""

import logging

import pytest
import trio
from trio.testing import MockClock

from trio_sched.daemon.cache_debugger.cache_check import CacheCheck
from trio_sched.daemon.limits import CACHE_CHECK_SECONDS
from trio_sched.testing import node, pod
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster


def check_of(cluster: VirtualCluster) -> CacheCheck:
    return CacheCheck(assembly=cluster.scheduler.assembly)


async def test_nothing_differs_while_pods_come_run_and_go(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=5, bind_latency_seconds=0.5) as cluster:
        found = []
        async with trio.open_nursery() as nursery:

            async def churn() -> None:
                for i in range(60):
                    await cluster.create(pod(f"p{i}", cpu="500m", scheduler_name=["default-scheduler", "x"][i % 2]))
                    if i > 30:
                        await cluster.delete(pod(f"p{i - 30}"))
                    await trio.sleep(0.7)

            nursery.start_soon(churn)
            for _ in range(8):
                found.append((await check_of(cluster).check()).parts())
                await trio.sleep(1.1)
        await cluster.settle()
        found.append((await check_of(cluster).check()).parts())
        assert [one for one in found if any(one.values())] == []


async def test_pods_and_nodes_that_the_cache_has_lost_are_found_and_taken_up(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with virtual_cluster(nodes=[node("a"), node("b", taints=["x:NoSchedule"])]) as cluster:
        running = await cluster.create(pod("running", cpu=1, node_name="a"))
        waiting = await cluster.create(pod("waiting", cpu=100))
        await cluster.settle()
        scheduler = cluster.scheduler.assembly.scheduler
        scheduler.cache.remove(running.uid)
        scheduler.cache.remove_node("b")
        scheduler.queue.delete(scheduler.queue.find("default/waiting").pod)
        found = await check_of(cluster).check()
        assert found.missed_nodes == ["b"]
        assert sorted(found.missed_pods) == sorted([running.uid, waiting.uid])
        assert found.redundant_nodes == found.redundant_pods == found.wrong_sums == found.outdated == []
        assert "Cache mismatch" in caplog.text
        assert scheduler.cache.get(running.uid).node_name == "a"
        assert "b" in scheduler.cache.table.row_of
        assert scheduler.queue.find("default/waiting") is not None
        assert dict(cluster.scheduler.assembly.cache_checks.drift)["missedPods"] == 2
        assert not await check_of(cluster).check()


async def test_pods_and_nodes_that_do_not_exist_are_dropped(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1, gates={"GenericWorkload": True}) as cluster:
        scheduler = cluster.scheduler.assembly.scheduler
        ghost = pod("ghost", cpu=1, node_name="node-1")
        scheduler.cache.add(ghost)
        scheduler.cache.add_node(node("nowhere"))
        queued = pod("queued", group="g")
        scheduler.cache.put_unassigned(queued)
        found = await check_of(cluster).check()
        assert found.redundant_nodes == ["nowhere"]
        assert sorted(found.redundant_pods) == sorted([ghost.uid, queued.uid])
        assert len(scheduler.cache.groups) == 0
        assert not await check_of(cluster).check()


async def test_sums_that_are_wrong_are_computed_again(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("a", cpu=4), node("b", cpu=4)]) as cluster:
        await cluster.create(pod("p", cpu=3, node_name="a"))
        await cluster.settle()
        table = cluster.scheduler.assembly.scheduler.cache.table
        table._store.requested[0, table.row_of["a"]] = 0
        found = await check_of(cluster).check()
        assert found.wrong_sums == ["a"]
        assert not await check_of(cluster).check()
        for i in range(2):
            await cluster.create(pod(f"q{i}", cpu=2))
        await cluster.settle()
        assert {cluster.placements()[f"default/q{i}"] for i in range(2)} == {"b"}


async def test_a_watch_that_has_missed_something_is_listed_again(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("a"), node("b")]) as cluster:
        await cluster.create(pod("p", node_name="a"))
        await cluster.create(pod("q", node_name="a"))
        await cluster.settle()
        assembly = cluster.scheduler.assembly
        pods, nodes = assembly.watches.pods, assembly.watches.nodes
        gone = pods._known.pop(("default", "p"))
        assembly.scheduler.cache.remove(gone.uid)
        stale = nodes._known["", "a"]
        nodes._known["", "ghost"] = node("ghost")
        assembly.scheduler.cache.add_node(node("ghost"))
        found = await check_of(cluster).check()
        assert sorted(found.outdated) == ["nodes//ghost", "pods/default/p"]
        await cluster.settle()
        assert pods.known("default", "p") is not None
        assert nodes.known("", "ghost") is None
        assert nodes.known("", "a").metadata.uid == stale.metadata.uid
        assert assembly.scheduler.cache.get(gone.uid) is not None
        assert "ghost" not in assembly.scheduler.cache.table.row_of
        assert not await check_of(cluster).check()


async def test_a_watch_that_is_interrupted_is_late_and_nothing_is_wrong(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with virtual_cluster(nodes=1) as cluster:
        await cluster.create(pod("there", node_name="node-1"))
        await cluster.settle()
        pods = cluster.scheduler.assembly.watches.pods
        cluster.api.faults.set_latency(40, verb="watch", resource="pods")
        pods.list_again()
        await trio.sleep(1)
        await cluster.create(pod("new"))
        await cluster.delete(pod("there"))
        lists = pods.lists
        assert not await check_of(cluster).check()
        assert pods.known("default", "new") is None  # it was not shown meanwhile
        await trio.sleep(100)
        assert pods.known("default", "new") is not None
        assert pods.lists == lists
        assert "Cache mismatch" not in caplog.text


async def test_it_checks_by_itself_and_goes_on_without_the_api_server(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with virtual_cluster(nodes=1) as cluster:
        checks = cluster.scheduler.assembly.cache_checks
        await trio.sleep(CACHE_CHECK_SECONDS + 60)
        assert checks.count == 1
        cluster.api.faults.fail_next(1000, verb="list", resource="pods", code=500, reason="InternalError")
        await trio.sleep(CACHE_CHECK_SECONDS)
        assert checks.count == 2
        assert "the cache cannot be compared with a fresh list" in caplog.text


async def test_a_signal_has_everything_dumped(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with virtual_cluster(nodes=[node("n1", cpu=4, memory="8Gi")]) as cluster:
        there = await cluster.create(pod("there", cpu="1500m", memory="1Gi", node_name="n1"))
        waits = await cluster.create(pod("waits", cpu=100))
        await cluster.settle()
        cluster.scheduler.assembly.cache_checks.requested.set()
        await trio.sleep(1)
        records = {record.getMessage(): record for record in caplog.records}
        text = records["Dump of cached NodeInfo"].nodes
        assert text.startswith(
            "Node name: n1\nDeleted: false\n"
            "Requested Resources: &{MilliCPU:1500 Memory:1073741824 EphemeralStorage:0 AllowedPodNumber:0 "
            "ScalarResources:map[]}\n"
            "Allocatable Resources:&{MilliCPU:4000 Memory:8589934592 "
        )
        assert text.endswith(
            "Scheduled Pods(number: 1):\n"
            f"name: there, namespace: default, uid: {there.uid}, phase: Running, nominated node: \n"
        )
        queue = records["Dump of scheduling queue"]
        assert queue.summary == "activeQ:0; backoffQ:0; unschedulablePods:1"
        assert queue.pods == f"name: waits, namespace: default, uid: {waits.uid}, phase: Pending, nominated node: \n"
