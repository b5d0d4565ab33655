from collections.abc import Iterable
from random import Random
from typing import Any

import pytest
import trio
from trio_sched_coscheduling import Coscheduling

from trio_sched.plugin_api import Handle, Pod, hookimpl
from trio_sched.testing import VirtualCluster, conformance_test, node, pod, virtual_cluster

GROUP, MINIMUM = "trio-sched.dev/pod-group", "trio-sched.dev/min-available"
PROFILE = """
    plugins:
      multiPoint: {enabled: [{name: Coscheduling}]}
      queueSort: {disabled: [{name: "*"}], enabled: [{name: Coscheduling}]}
      postFilter: {enabled: [{name: Coscheduling}]}
    pluginConfig:
      - {name: Coscheduling, args: {scheduleTimeout: 20s, backoff: 2s, maxBackoff: 30s}}
"""
CONFIG = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: default-scheduler{PROFILE}
  - schedulerName: other{PROFILE}
"""


def member(gang: str, number: int, minimum: int | str = 4, cpu: str = "1", **more: Any) -> Pod:
    labels = {GROUP: gang, MINIMUM: str(minimum), **more.pop("labels", {})}
    return pod(f"{gang}-{number}", labels=labels, cpu=cpu, **more)


def gang_of(name: str, size: int, minimum: int | None = None, **more: Any) -> list[Pod]:
    return [member(name, number, size if minimum is None else minimum, **more) for number in range(size)]


async def create(cluster: VirtualCluster, pods: Iterable[Pod], pause: float = 0.0) -> None:
    for one in pods:
        await cluster.create(one)
        if pause:
            await trio.sleep(pause)


def bound(cluster: VirtualCluster, gang: str, namespace: str = "default") -> int:
    return sum(
        1 for one in cluster.pods() if one.labels.get(GROUP) == gang and one.namespace == namespace and one.node_name
    )


test_conformance = conformance_test(
    Coscheduling, pods=[*gang_of("a", 2), *gang_of("b", 2, minimum=3), member("c", 0, "many"), pod("alone")]
)


async def test_a_gang_is_bound_together() -> None:
    async with virtual_cluster(nodes=2, config=CONFIG, plugins=[Coscheduling]) as cluster:
        await create(cluster, gang_of("a", 4)[:3], pause=1)
        await trio.sleep(30)
        assert bound(cluster, "a") == 0
        cluster.assert_event("GangIncomplete", about="a-0", message="has 3 of the 4 pods that it needs")
        await cluster.create(member("a", 3))
        await trio.sleep(5)
        assert bound(cluster, "a") == 4


async def test_two_gangs_that_each_hold_half_of_the_room() -> None:
    """The pods alternate, so that each gang gets two of the four places at first."""
    async with virtual_cluster(nodes=[node("n", cpu="4")], config=CONFIG, plugins=[Coscheduling]) as cluster:
        a, b = gang_of("a", 4), gang_of("b", 4)
        for one in (*a[:3], *b[:3]):
            await cluster.create(one)
        await trio.sleep(5)
        await create(cluster, (b[3], a[3]))
        await trio.sleep(60)
        assert sorted((bound(cluster, "a"), bound(cluster, "b"))) == [0, 4]
        first = "a" if bound(cluster, "a") else "b"
        for one in a if first == "a" else b:
            await cluster.delete(one, grace_seconds=0)
        await trio.sleep(90)
        assert bound(cluster, "b" if first == "a" else "a") == 4


async def test_a_gang_that_holds_places_in_vain_gives_them_back() -> None:
    """Two pods of gang a fit on no node; meanwhile its others must not keep gang b from the only room there is."""
    async with virtual_cluster(nodes=[node("n", cpu="4")], config=CONFIG, plugins=[Coscheduling]) as cluster:
        await create(cluster, [*gang_of("a", 2, 4), *(member("a", n, node_selector={"no": "node"}) for n in (2, 3))])
        await trio.sleep(3)
        await create(cluster, gang_of("b", 4))
        await trio.sleep(30)
        assert (bound(cluster, "a"), bound(cluster, "b")) == (0, 4)
        cluster.assert_pending("a-2", reason="coscheduling: gang default/a ")


async def test_pods_beyond_the_minimum_come_later_or_not_at_all() -> None:
    async with virtual_cluster(nodes=[node("n", cpu="3")], config=CONFIG, plugins=[Coscheduling]) as cluster:
        await create(cluster, [member("a", 0, 3, cpu="8"), *(member("a", n, 3) for n in range(1, 5))])
        await trio.sleep(30)
        assert bound(cluster, "a") == 3
        cluster.assert_pending("a-0", reason="Insufficient cpu")
        await cluster.create(node("m", cpu="1"))
        await trio.sleep(30)
        assert bound(cluster, "a") == 4  # one at a time now


async def test_the_highest_minimum_counts_and_bad_ones_are_named() -> None:
    async with virtual_cluster(nodes=3, config=CONFIG, plugins=[Coscheduling]) as cluster:
        await create(cluster, [member("a", 0, 2), member("a", 1, 3), pod("a-2", labels={GROUP: "a"}), pod("alone")])
        await create(cluster, [member("b", 0, "two"), member("c", 0, 5)])
        await trio.sleep(20)
        assert bound(cluster, "a") == 3
        assert cluster.pod("alone").node_name
        cluster.assert_pending("b-0", plugin="Coscheduling")
        assert "must be a whole number from 1 on, not 'two'" in gate_of(cluster, "b-0")
        await cluster.patch(member("c", 0), {"metadata": {"labels": {MINIMUM: "1"}}})
        await trio.sleep(5)
        assert bound(cluster, "c") == 1


def gate_of(cluster: VirtualCluster, name: str) -> str:
    try:
        cluster.assert_scheduled(name)
    except AssertionError as described:
        return str(described)
    return ""


async def test_gangs_are_of_one_namespace_and_may_be_of_several_profiles() -> None:
    async with virtual_cluster(nodes=4, config=CONFIG, plugins=[Coscheduling]) as cluster:
        await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "else"}})
        await create(cluster, gang_of("a", 2, 4))
        await create(cluster, [member("a", n, namespace="else") for n in (2, 3)])
        await create(cluster, [member("b", 0, 2), member("b", 1, 2, scheduler_name="other")])
        await create(cluster, [member("c", 0, 2), member("c", 1, 2, scheduler_name="somebody-else")])
        await trio.sleep(30)
        assert (bound(cluster, "a"), bound(cluster, "a", "else")) == (0, 0)
        assert bound(cluster, "b") == 2
        assert bound(cluster, "c") == 0


class FailsFor:
    """Fails for one pod as long as it is told to."""

    name = "FailsFor"
    pod_name = ""

    def __init__(self, args: None, handle: Handle) -> None:
        pass

    @hookimpl
    def reserve(self, pod: Pod, node_name: str) -> None:
        if pod.name == self.pod_name:
            raise RuntimeError("on purpose")


async def test_all_are_rejected_when_the_time_is_over_and_tried_again_together() -> None:
    class FailsForA3(FailsFor):
        pod_name = "a-3"

    async with virtual_cluster(
        nodes=[node("n", cpu="4")], config=CONFIG, plugins=[Coscheduling, FailsForA3]
    ) as cluster:
        await create(cluster, gang_of("a", 4))
        await trio.sleep(19)
        await cluster.create(pod("alone", cpu="2"))
        cluster.assert_pending("alone")
        await trio.sleep(3)
        cluster.assert_event("GangDoesNotFit", message="did not find room for 4 pods within 20 s")
        cluster.assert_scheduled("alone")
        FailsForA3.pod_name = ""
        await cluster.delete(cluster.pod("alone"), grace_seconds=0)
        await trio.sleep(60)
        assert bound(cluster, "a") == 4


async def test_a_waiting_pod_is_deleted() -> None:
    class FailsForA3(FailsFor):
        pod_name = "a-3"

    async with virtual_cluster(
        nodes=[node("n", cpu="4")], config=CONFIG, plugins=[Coscheduling, FailsForA3]
    ) as cluster:
        await create(cluster, gang_of("a", 4))
        await trio.sleep(5)
        await cluster.delete(member("a", 1), grace_seconds=0)
        await trio.sleep(0.5)
        await cluster.create(pod("alone", cpu="4"))
        await trio.sleep(0.5)
        cluster.assert_scheduled("alone")  # the other two have not kept their places
        await cluster.delete(cluster.pod("alone"), grace_seconds=0)
        FailsForA3.pod_name = ""
        await cluster.create(member("a", 5))
        await trio.sleep(60)
        assert bound(cluster, "a") == 4


async def test_a_pod_that_waits_in_the_queue_is_deleted() -> None:
    class FailsForA3(FailsFor):
        pod_name = "a-3"

    async with virtual_cluster(
        nodes=[node("n", cpu="4")], config=CONFIG, plugins=[Coscheduling, FailsForA3]
    ) as cluster:
        await create(cluster, gang_of("a", 4))
        await trio.sleep(5)
        await cluster.delete(member("a", 3), grace_seconds=0)
        await trio.sleep(2)
        cluster.assert_event("GangDoesNotFit", message="has too few pods since some are gone")
        await cluster.create(pod("alone", cpu="4"))
        await cluster.wait_scheduled("alone", within_seconds=1)


async def test_the_scheduler_is_killed_when_half_of_a_gang_is_bound() -> None:
    async with virtual_cluster(
        nodes=[node("n", cpu="4")], config=CONFIG, plugins=[Coscheduling], bind_latency_seconds=1
    ) as cluster:
        await create(cluster, [pod(f"taken-{n}", cpu="1") for n in range(2)])
        await trio.sleep(3)
        await create(cluster, gang_of("a", 4, 2))
        await trio.sleep(3)
        assert bound(cluster, "a") == 2
        for one in cluster.pods():
            if one.labels.get(GROUP) and not one.node_name:
                await cluster.patch(one, {"metadata": {"labels": {MINIMUM: "4"}}})
        await cluster.stop_scheduler(drain_seconds=0)
        await cluster.start_scheduler()
        await trio.sleep(20)
        assert bound(cluster, "a") == 2  # those that run count, two more are needed at once
        await cluster.delete(cluster.pod("taken-0"), grace_seconds=0)
        await trio.sleep(40)
        assert bound(cluster, "a") == 2
        await cluster.delete(cluster.pod("taken-1"), grace_seconds=0)
        await trio.sleep(40)
        assert bound(cluster, "a") == 4


async def test_pods_are_evicted_only_for_gangs_that_become_complete() -> None:
    async with virtual_cluster(nodes=[node("n", cpu="4")], config=CONFIG, plugins=[Coscheduling]) as cluster:
        await create(cluster, [pod(f"low-{n}", cpu="1", priority=1, grace_seconds=0) for n in range(3)])
        await create(cluster, [pod("high", cpu="1", priority=1000)])
        await trio.sleep(3)
        await create(cluster, gang_of("four", 4, priority=100))
        await trio.sleep(100)
        assert bound(cluster, "four") == 0
        assert len([one for one in cluster.pods() if one.name.startswith("low") and one.node_name]) == 3
        await create(cluster, gang_of("three", 3, priority=100))
        await trio.sleep(100)
        assert bound(cluster, "three") == 3
        assert not [one for one in cluster.pods() if one.name.startswith("low")]


@pytest.mark.parametrize("seed", range(8))
async def test_random_gangs_come_and_go(seed: int) -> None:
    """No gang is bound in part by choice, and none waits for ever beside room for it."""
    random = Random(seed)
    nodes = [node(f"n{n}", cpu=str(random.randint(2, 6))) for n in range(4)]
    places = sum(int(str((one.status.allocatable or {})["cpu"])) for one in nodes)
    async with virtual_cluster(nodes=nodes, config=CONFIG, plugins=[Coscheduling], seed=seed) as cluster:
        sizes: dict[str, tuple[int, int]] = {}
        for step in range(25):
            action = random.random()
            if action < 0.6:
                name, size = f"g{step}", random.randint(1, 6)
                sizes[name] = size, random.randint(1, size)
                members = gang_of(name, *sizes[name], scheduler_name=random.choice(("default-scheduler", "other")))
                random.shuffle(members)
                await create(cluster, members, pause=random.choice((0, 0, 1)))
            elif action < 0.9 and sizes:
                name = random.choice(sorted(sizes))
                del sizes[name]
                for one in cluster.pods():
                    if one.labels.get(GROUP) == name:
                        await cluster.delete(one, grace_seconds=0)
            else:
                await cluster.stop_scheduler(drain_seconds=random.choice((0, 5)))
                await cluster.start_scheduler()
            await trio.sleep(random.choice((0.1, 1, 10)))
        await trio.sleep(150)
        counts = {name: bound(cluster, name) for name in sizes}
        free = places - sum(counts.values())
        assert free >= 0
        for name, (size, minimum) in sizes.items():
            assert counts[name] == 0 or counts[name] >= minimum, (name, size, minimum, counts)
            if counts[name] < size:
                assert free < (1 if counts[name] else minimum), (name, size, minimum, counts, free)
