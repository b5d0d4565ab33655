"""Gangs while processes end, nodes are lost, binds are refused, and small pods compete: never partial for long."""

import statistics
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
import trio
from attrs import define
from gangs import GANG_GATES, Gang, Gangs
from trio.testing import MockClock

from trio_sched.engine.pod_groups.gang_holds import HOLD_AFTER_SECONDS, HOLD_SECONDS
from trio_sched.engine.pod_groups.gang_recovery import INCOMPLETE_SECONDS
from trio_sched.simulator.endpoints.faults import Faults
from trio_sched.simulator.errors.status_errors import ApiError
from trio_sched.testing import node, pod
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster
from trio_sched.testing.cluster_objects import Refused

LEASE_SECONDS = 15.0


@define(eq=False)
class SlowBinds(Faults):
    """Every bind takes another time, so that those of a gang do not arrive at once; some are refused or unanswered."""

    seconds: Callable[[], float] = lambda: 0.0
    refuses: Callable[[], bool] = lambda: False
    drops: Callable[[], bool] = lambda: False
    """Whether the next bind is carried out and its reply lost."""

    def __bool__(self) -> bool:
        return True

    def latency_seconds(self, verb: str, resource: str) -> float:
        return self.seconds() if verb == "bind" else super().latency_seconds(verb, resource)

    def inject(self, verb: str, resource: str) -> bool:
        if verb == "bind" and self.refuses():
            raise ApiError(403, "Forbidden", "no")
        return (verb == "bind" and self.drops()) or super().inject(verb, resource)


def nodes(count: int, cpu: int = 4) -> list[Any]:
    return [node(f"n{number}", cpu=str(cpu), pods=110) for number in range(count)]


async def until(is_true: Callable[[], bool]) -> None:
    while not is_true():  # noqa: ASYNC110 - what is waited for is in the store, which has no events
        await trio.sleep(0.05)


@pytest.mark.parametrize(("seed", "version"), [(0, "1.36"), (1, "1.36"), (1, "1.37")])
async def test_the_next_leader_binds_the_rest_of_a_gang_first(
    seed: int, version: str, autojump_clock: MockClock
) -> None:
    dice = Random(seed)
    async with virtual_cluster(
        emulated_version=version, nodes=nodes(4), gates=GANG_GATES, leader_elect=True, seed=seed
    ) as cluster:
        gangs = Gangs(cluster)
        cluster.api.faults = SlowBinds(seconds=lambda: dice.uniform(0.1, 5.0))
        await gangs.create("gang", 12)
        first = dice.randrange(1, 12)
        await until(lambda: gangs.bound("gang") == first)
        await cluster.scheduler.kill()
        assert gangs.bound("gang") == first
        # Pods of the same priority that would take the places, were these not held.
        for number in range(8):
            await cluster.create(pod(f"small-{number}", cpu="1"))
        await cluster.start_scheduler()
        await cluster.settle()
        assert gangs.bound("gang") == 12
        assert gangs.by_name["gang"].longest_partial < LEASE_SECONDS + 10
        assert not any(event.reason == "IncompleteGangEvicted" for event in cluster.events())


@pytest.mark.parametrize("version", ["1.36", "1.37"])
async def test_a_gang_whose_bind_is_refused_for_good_is_evicted_and_starts_again(
    version: str, autojump_clock: MockClock
) -> None:
    async with virtual_cluster(emulated_version=version, nodes=nodes(2), gates=GANG_GATES) as cluster:
        gangs = Gangs(cluster)
        cluster.api.faults = SlowBinds(refuses=lambda: gangs.bound("gang") >= 2)
        async with trio.open_nursery() as nursery:
            await gangs.create("gang", 4)
            nursery.start_soon(gangs.run_controller, 60.0)
            await trio.sleep(INCOMPLETE_SECONDS - 10)
            assert gangs.bound("gang") == 2
            await trio.sleep(30)
            assert [event.reason for event in cluster.events(about="gang") if "Evicted" in event.reason]
            cluster.api.faults = SlowBinds()
            await until(lambda: gangs.by_name["gang"].done)
        await cluster.settle()
        assert gangs.by_name["gang"].longest_partial < INCOMPLETE_SECONDS + 10
        assert len(cluster.events("EvictedWithGang")) == 2


@pytest.mark.parametrize("version", ["1.36", "1.37"])
async def test_a_gang_that_has_lost_a_node_is_completed_or_evicted(version: str, autojump_clock: MockClock) -> None:
    async with virtual_cluster(emulated_version=version, nodes=nodes(3, cpu=2), gates=GANG_GATES) as cluster:
        gangs = Gangs(cluster)
        await gangs.create("gang", 6)
        await cluster.settle()
        assert gangs.bound("gang") == 6
        await _lose_node(cluster, "n1")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(gangs.run_controller, 10_000.0)
            await trio.sleep(INCOMPLETE_SECONDS + 30)
            assert gangs.bound("gang") == 0  # there is room for four: evicted as a whole
            await cluster.create(node("n1", cpu="2"))
            await until(lambda: gangs.bound("gang") == 6)
            nursery.cancel_scope.cancel()


async def _lose_node(cluster: VirtualCluster, name: str) -> None:
    """The node is gone, and its pods with it."""
    await cluster.delete(node(name))
    for one in cluster.pods():
        if one.node_name == name:
            try:
                await cluster.delete(one, grace_seconds=0)
            except Refused as refused:
                if refused.code != 404:
                    raise


@pytest.mark.parametrize("version", ["1.36", "1.37"])
async def test_small_pods_that_keep_coming_do_not_starve_a_gang(version: str, autojump_clock: MockClock) -> None:
    async with virtual_cluster(emulated_version=version, nodes=nodes(4), gates=GANG_GATES) as cluster:
        gangs = Gangs(cluster)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_keep_full, cluster)
            await trio.sleep(60)
            gang = await gangs.create("gang", 12, cpu="1")
            with trio.move_on_after(900):
                await until(lambda: gang.complete_at is not None)
            nursery.cancel_scope.cancel()
        assert gang.complete_at is not None
        assert gang.complete_at - gang.created_at < HOLD_AFTER_SECONDS + 2 * HOLD_SECONDS


async def _keep_full(cluster: VirtualCluster) -> None:
    """Small pods, each of which runs for a minute or so; there are always some that wait."""
    dice, number = Random(1), 0
    while True:
        small = [one for one in cluster.pods() if one.spec.scheduling_group is None]
        for one in small:
            if one.is_terminal:
                await cluster.delete(one, grace_seconds=0)
        for _ in range(8 - sum(not one.node_name for one in small)):
            number += 1
            life = {"trio-sched.dev/run-seconds": str(dice.randrange(20, 100))}
            await cluster.create(pod(f"small-{number}", cpu="1", annotations=life))
        await trio.sleep(2.0)


async def test_a_gang_that_can_never_fit_holds_nothing(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=nodes(2), gates=GANG_GATES) as cluster:
        gangs = Gangs(cluster)
        await gangs.create("giant", 9)
        await trio.sleep(HOLD_AFTER_SECONDS + 60)
        assert not any(one.nominated_node_name for one in cluster.pods())
        for number in range(8):
            await cluster.create(pod(f"small-{number}", cpu="1"))
        await trio.sleep(5)
        assert all(one.node_name for one in cluster.pods() if one.name.startswith("small"))


async def test_held_places_are_released_after_a_while(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=nodes(2), gates=GANG_GATES) as cluster:
        await cluster.create(pod("blocker", cpu="1", node_name="n0"))
        gangs = Gangs(cluster)
        await gangs.create("gang", 8)
        await trio.sleep(HOLD_AFTER_SECONDS + 30)
        assert sum(bool(one.nominated_node_name) for one in cluster.pods()) == 8
        await cluster.create(pod("small", cpu="1"))
        await trio.sleep(20)
        assert not cluster.pod("small").node_name
        await until(lambda: bool(cluster.pod("small").node_name))
        assert HOLD_AFTER_SECONDS + HOLD_SECONDS - 5 < trio.current_time() < HOLD_AFTER_SECONDS + HOLD_SECONDS + 30
        assert not any(one.nominated_node_name for one in cluster.pods())


@pytest.mark.parametrize(("seed", "version"), [(0, "1.36"), (1, "1.36"), (0, "1.37")])
async def test_many_gangs_on_a_cluster_with_room_for_half_of_them(
    seed: int, version: str, autojump_clock: MockClock
) -> None:
    await check_many_gangs(seed, gangs_count=24, largest=16)


async def check_many_gangs(seed: int, *, gangs_count: int, largest: int, real_seconds: float = 120.0) -> None:
    """Gangs of 2 to *largest* pods, room for half of them, processes that end between binds, nodes that are lost."""
    dice = Random(seed)
    sizes = [dice.randint(2, largest) for _ in range(gangs_count)]
    count = max(-(-sum(sizes) // 2 // 8), -(-largest // 8)) + 1
    async with virtual_cluster(
        nodes=nodes(count, cpu=8), gates=GANG_GATES, leader_elect=True, seed=seed, real_seconds=real_seconds
    ) as cluster:
        cluster.api.faults = SlowBinds(
            seconds=lambda: dice.uniform(0.0, 2.0),
            refuses=lambda: dice.random() < 0.01,
            drops=lambda: dice.random() < 0.02,
        )
        gangs = Gangs(cluster)
        for number, size in enumerate(sizes):
            await gangs.create(f"gang-{number}", size)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_make_trouble, cluster, gangs, dice)
            with trio.move_on_after(6 * 3600):
                await gangs.run_controller(60.0)
            nursery.cancel_scope.cancel()
        check_never_partial(gangs)
        waits = sorted(_waited(gang) for gang in gangs.by_name.values())
        print(
            f"{gangs_count} gangs of 2-{largest} pods: waited {waits[0]:.0f}-{waits[-1]:.0f} s, "
            f"median {statistics.median(waits):.0f} s, longest partial "
            f"{max(gang.longest_partial for gang in gangs.by_name.values()):.1f} s"
        )


def _waited(gang: Gang) -> float:
    assert gang.complete_at is not None, f"{gang.name} of {gang.size} pods was never bound"
    return gang.complete_at - gang.created_at


def check_never_partial(gangs: Gangs) -> None:
    """No gang stays partial for longer than it takes to complete or evict it."""
    for gang in gangs.by_name.values():
        assert gang.done, f"{gang.name} of {gang.size} pods was not scheduled"
        assert gang.partial_since is None
        assert gang.longest_partial < INCOMPLETE_SECONDS + LEASE_SECONDS + 60, gang


async def _make_trouble(cluster: VirtualCluster, gangs: Gangs, dice: Random) -> None:
    lost: list[str] = []
    while True:
        await trio.sleep(dice.uniform(5, 40))
        what = dice.choice(["kill", "lose"])
        if what == "kill":
            is_partial = any(gang.partial_since is not None for gang in gangs.by_name.values())
            if not is_partial:  # between two binds, if that comes about soon
                with trio.move_on_after(20):
                    await until(lambda: any(gang.partial_since is not None for gang in gangs.by_name.values()))
            await cluster.scheduler.kill()
            await cluster.start_scheduler(wait=False)
        elif lost:
            await cluster.create(node(lost.pop(), cpu="8", pods=110))
        else:
            name = dice.choice([one.key for one in cluster.api.store.collection("nodes").in_order()])
            lost.append(name)
            await _lose_node(cluster, name)
