"""The API server is down, loses its watch history, drops replies or refuses; every pod is bound once."""

import pytest
import trio
from cluster_pods import create_pods
from ledger import Ledger, check_nothing_left
from trio.testing import MockClock

from trio_sched.testing import node, pod
from trio_sched.testing.cluster import virtual_cluster


@pytest.mark.parametrize("loses_history", [False, True])
async def test_an_outage_of_30_seconds_in_the_middle_of_300_pods(
    loses_history: bool,
    autojump_clock: MockClock,
) -> None:
    async with virtual_cluster(nodes=50) as cluster:
        history = Ledger(cluster)
        await create_pods(cluster, 300, cpu="100m")
        await trio.sleep(2)
        assert 50 < len(history.binds) < 250
        cluster.api.stop()
        await trio.sleep(30)
        cluster.api.resume()
        cluster.api.restart(lose_history=loses_history)
        await cluster.settle()
        assert len(history.binds) == 300
        assert all(cluster.placements().values())
        history.check()
        assert len(cluster.events("Scheduled")) == 300
        check_nothing_left(cluster)


async def test_pods_deleted_while_the_watch_history_was_lost_are_removed(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("a", cpu=2), node("b", cpu=2)], kubelets=False) as cluster:
        history = Ledger(cluster)
        for name in ("placed-1", "placed-2", "placed-3", "placed-4"):
            await cluster.create(pod(name, cpu=1))
        await trio.sleep(3)
        await cluster.create(pod("waiting", cpu=1))
        await trio.sleep(3)
        # Watches break, and before they are back everything changes and is forgotten.
        cluster.api.restart()
        await cluster.delete(pod("waiting"))
        doomed = cluster.pod("placed-1")
        await cluster.delete(doomed, grace_seconds=0)
        other = "b" if doomed.node_name == "a" else "a"
        await cluster.delete(node(other))
        await cluster.create(pod("waiting", cpu=1))
        cluster.api.compact()
        await cluster.settle()
        assert cluster.pod("waiting").node_name == doomed.node_name
        history.check()
        scheduler = cluster.schedulers[0].assembly.scheduler
        assert list(scheduler.cache.table.row_of) == [doomed.node_name]
        check_nothing_left(cluster)


async def test_constantly_breaking_watches_lose_no_change(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=10) as cluster:
        history = Ledger(cluster)
        for number in range(100):
            await cluster.create(pod(f"p{number}", cpu="100m"))
            await trio.sleep(0.5)
            cluster.api.restart(lose_history=number % 3 == 0)
        await cluster.settle()
        assert len(history.binds) == 100
        history.check()
        check_nothing_left(cluster)


async def test_a_bind_whose_reply_is_lost_counts_as_bound(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=5) as cluster:
        history = Ledger(cluster)
        cluster.api.faults.drop_next(20, verb="bind", resource="pods")
        await create_pods(cluster, 50, cpu="100m")
        await cluster.settle()
        assert len(history.binds) == 50
        history.check()
        assert len(cluster.events("Scheduled")) == 50
        assert cluster.events("FailedScheduling") == []
        check_nothing_left(cluster)


async def test_a_bind_whose_reply_is_lost_before_an_outage_is_verified_afterwards(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=2) as cluster:
        history = Ledger(cluster)
        cluster.api.faults.drop_next(1, verb="bind", resource="pods")
        cluster.api.faults.fail_next(3, verb="get", resource="pods", code=503, reason="ServiceUnavailable")
        await create_pods(cluster, 1, cpu="100m")
        await trio.sleep(0.01)
        cluster.api.stop()
        await trio.sleep(20)
        cluster.api.resume()
        await cluster.settle(quiet_seconds=300)  # it asks ever more rarely while it is refused
        history.check()
        assert len(history.binds) == 1
        assert cluster.events("FailedScheduling") == []
        check_nothing_left(cluster)


@pytest.mark.parametrize(("code", "reason"), [(500, "InternalError"), (503, "ServiceUnavailable"), (409, "Conflict")])
async def test_refused_binds_are_tried_again_after_a_backoff(
    code: int,
    reason: str,
    autojump_clock: MockClock,
) -> None:
    async with virtual_cluster(nodes=5) as cluster:
        history = Ledger(cluster)
        cluster.api.faults.fail_next(30, verb="bind", resource="pods", code=code, reason=reason)
        await create_pods(cluster, 20, cpu="100m")
        await cluster.settle()
        assert len(history.binds) == 20
        assert 1.0 <= max(history.bound_at) < 10.0
        history.check()
        failures = cluster.events("FailedScheduling")
        assert failures[0].message == (
            'running Bind plugin "DefaultBinder": Internal error occurred: injected by the simulator'
        )
        assert {c.status for p in cluster.pods() for c in p.status.conditions or ()} == {"True"}
        check_nothing_left(cluster)


async def test_too_many_requests_are_retried_after_the_given_time(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=5) as cluster:
        history = Ledger(cluster)
        cluster.api.faults.fail_next(
            10, verb="bind", resource="pods", code=429, reason="TooManyRequests", retry_after_seconds=2
        )
        await create_pods(cluster, 10, cpu="100m")
        await cluster.settle()
        assert len(history.binds) == 10
        assert min(history.bound_at) == pytest.approx(2, abs=0.5)
        assert cluster.events("FailedScheduling") == []


async def test_binds_that_time_out_are_verified(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=2, bind_latency_seconds=400) as cluster:
        history = Ledger(cluster)
        await create_pods(cluster, 3, cpu="100m")
        await trio.sleep(30)
        cluster.api.faults.clear()
        await cluster.settle()
        assert len(history.binds) == 3
        history.check()
        check_nothing_left(cluster)


async def test_lost_replies_to_all_writes_lose_no_pod(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=2) as cluster:
        history = Ledger(cluster)
        await create_pods(cluster, 5, cpu="100m")
        for number in range(5):
            await cluster.create(pod(f"big{number}", cpu=64))
        for verb, resource in (("bind", "pods"), ("patch", "pods"), ("create", "events"), ("patch", "events")):
            cluster.api.faults.drop_next(3, verb=verb, resource=resource)
        await cluster.settle()
        assert len(history.binds) == 5
        history.check()
        assert len({event.involved_object.name for event in cluster.events()}) == len(cluster.events()) == 10
        for number in range(5):
            (condition,) = cluster.pod(f"big{number}").status.conditions or ()
            assert condition.reason == "Unschedulable"
        check_nothing_left(cluster)


async def test_a_scheduler_started_during_an_outage_waits_for_the_server(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1, scheduler=False) as cluster:
        history = Ledger(cluster)
        await create_pods(cluster, 3, cpu="100m")
        cluster.api.stop()
        scheduler = await cluster.start_scheduler(wait=False)
        await trio.sleep(300)
        assert scheduler.running
        cluster.api.resume()
        await cluster.settle()
        assert len(history.binds) == 3
