"""Groups that are evicted as a whole, from nodes of several replicas."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from full_nodes import AS_ONE, BOTH, OF_LANE, OF_OTHER, Scene, full_nodes, pinned
from trio.testing import MockClock

from trio_sched.engine.sharding.reserved_places import is_reserved
from trio_sched.testing import pod_group

LEASE_SECONDS = 15.0


@asynccontextmanager
async def with_group_on_both_nodes(mode: str = "PodGroup", **details: Any) -> AsyncGenerator[Scene, None]:
    """A group of two pods fills both nodes; of 1.37, where it is evicted as a whole if its mode says so."""
    async with full_nodes(AS_ONE, **details) as scene:
        for name in BOTH:
            await scene.cluster.delete(scene.cluster.pod(name), grace_seconds=0)
        await scene.cluster.create(pod_group("victim", min_count=1, disruption_mode=mode))
        for name in (OF_OTHER, OF_LANE):
            await scene.cluster.create(pinned(f"low-{name}", name, group="victim"))
            await trio.sleep(2)
        scene.evictions.victims.clear()
        for name in (OF_LANE, OF_OTHER):
            scene.cluster.assert_scheduled(f"low-{name}", on=name)
        yield scene


@pytest.mark.parametrize(("there", "mode"), [(OF_LANE, "PodGroup"), (OF_OTHER, "PodGroup"), (OF_OTHER, "Pod")])
async def test_all_pods_of_a_group_are_evicted_with_one_wherever_they_are(
    there: str, mode: str, autojump_clock: MockClock
) -> None:
    async with with_group_on_both_nodes(mode) as scene:
        await scene.cluster.create(pinned("high", there, priority=10))
        await trio.sleep(30)
        scene.cluster.assert_scheduled("high", on=there)
        victims, left = scene.evictions.victims, scene.left()
        assert victims == (BOTH if mode == "PodGroup" else {f"low-{there}": there})
        assert left == []


async def test_a_gang_evicts_all_pods_of_a_group(autojump_clock: MockClock) -> None:
    async with with_group_on_both_nodes() as scene:
        await scene.create_gang(1)
        await trio.sleep(30)
        bound, victims, left = scene.bound(), scene.evictions.victims, scene.left()
        assert (bound, victims, left) == (1, BOTH, [])


async def test_a_late_eviction_of_a_pod_of_the_group_on_the_node_of_another_fails(autojump_clock: MockClock) -> None:
    async with with_group_on_both_nodes(replicas=3) as scene:
        cluster, link, elsewhere = scene.cluster, scene.link(1), f"low-{OF_LANE}"
        held = scene.hold_deletion(link, elsewhere)
        await cluster.create(pinned("high", OF_OTHER, priority=10))
        await trio.sleep(5)
        is_kept = is_reserved(cluster.pod("high"))
        assert (is_kept, held) == (True, [elsewhere])
        await scene.replicas.owner(1).kill()
        await trio.sleep(2 * LEASE_SECONDS)
        cluster.assert_scheduled("high", on=OF_OTHER)
        link.let_go.set()
        await trio.sleep(5)
        deleted_at = cluster.pod(elsewhere).metadata.deletion_timestamp
        assert deleted_at is None
