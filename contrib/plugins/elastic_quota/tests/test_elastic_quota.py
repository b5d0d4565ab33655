from random import Random
from typing import Any

import pytest
import trio
from trio_sched_elastic_quota import QUOTA, ElasticQuota
from trio_sched_elastic_quota.resource import Quota, QuotaSpec

from trio_sched.plugin_api import Pod
from trio_sched.testing import (
    FakeHandle,
    VirtualCluster,
    conformance_test,
    disruption_budget,
    metadata,
    node,
    pod,
    schedule,
    virtual_cluster,
)

PROFILE = """
    plugins:
      multiPoint: {enabled: [{name: ElasticQuota}]}
      postFilter: {enabled: [{name: ElasticQuota}]}
"""
CONFIG = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: default-scheduler{PROFILE}
  - schedulerName: other{PROFILE}
"""


def quota(namespace: str, least: dict[str, Any], most: dict[str, Any] | None = None, name: str = "quota") -> Quota:
    return Quota(metadata(name, namespace=namespace), QuotaSpec(least, most or {}))


def of(namespace: str, name: str, cpu: str = "1", **more: Any) -> Pod:
    return pod(name, namespace=namespace, cpu=cpu, **{"grace_seconds": 0, **more})


async def start(cluster: VirtualCluster, *quotas: Quota) -> None:
    for one in quotas:
        name = one.metadata.namespace
        await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        await cluster.create(one)
    await trio.sleep(1)


def running(cluster: VirtualCluster, namespace: str) -> list[str]:
    return sorted(one.name for one in cluster.pods() if one.namespace == namespace and one.node_name)


test_conformance = conformance_test(
    ElasticQuota,
    pods=[of("a", "p"), of("b", "p", "3"), of("free", "p")],
    objects={QUOTA: [quota("a", {"cpu": "2"}, {"cpu": "3"}), quota("b", {"cpu": "1", "memory": "1Gi"})]},
)


def test_the_reason_says_what_is_used_requested_and_allowed() -> None:
    handle = FakeHandle(known_objects={QUOTA: [quota("a", {"cpu": "2"}, {"cpu": "3"}), quota("b", {"cpu": "1"})]})
    there = [of("a", "r", "2500m", node_name="n")]
    outcome = schedule(of("a", "p"), on=[node("n", cpu="9")], pods=there, plugins=[ElasticQuota], handle=handle)
    assert "ElasticQuota quota: 2500m of cpu used, 1 requested, but at most 3 are allowed" in outcome.message
    outcome = schedule(
        of("b", "p", "1500m"), on=[node("n", cpu="9")], pods=there, plugins=[ElasticQuota], handle=handle
    )
    text = "ElasticQuota quota: 0 of cpu used, 1500m requested, but 1 are guaranteed, and others have 500m to lend"
    assert text in outcome.message


async def test_a_namespace_borrows_up_to_its_maximum() -> None:
    async with virtual_cluster(
        nodes=[node("n", cpu="10")], config=CONFIG, plugins=[ElasticQuota], custom_resources=[QUOTA]
    ) as cluster:
        await start(cluster, quota("a", {"cpu": "2"}, {"cpu": "4"}), quota("b", {"cpu": "4"}))
        for number in range(5):
            await cluster.create(of("a", f"p{number}"))
        await cluster.settle()
        assert len(running(cluster, "a")) == 4
        stored = cluster.object(QUOTA, "quota", "a")
        assert stored.status.used == {"cpu": "4"}
        assert stored.status.borrowed == {"cpu": "2"}


async def test_what_was_borrowed_is_taken_back() -> None:
    async with virtual_cluster(
        nodes=[node("n", cpu="3"), node("m", cpu="3")],
        config=CONFIG,
        plugins=[ElasticQuota],
        custom_resources=[QUOTA],
    ) as cluster:
        await start(cluster, quota("a", {"cpu": "2"}), quota("b", {"cpu": "4"}))
        for number in range(6):
            await cluster.create(of("a", f"p{number}", priority=1000))
            await trio.sleep(1)
        assert len(running(cluster, "a")) == 6
        for number in range(5):
            await cluster.create(of("b", f"q{number}"))
        await cluster.settle()
        assert len(running(cluster, "b")) == 4
        assert len(running(cluster, "a")) == 2


async def test_budgets_are_respected_until_they_allow_it() -> None:
    async with virtual_cluster(
        nodes=[node("n", cpu="4")], config=CONFIG, plugins=[ElasticQuota], custom_resources=[QUOTA]
    ) as cluster:
        await start(cluster, quota("a", {"cpu": "2"}), quota("b", {"cpu": "2"}))
        budget = await cluster.create(disruption_budget("keep", {"app": "a"}, namespace="a", allowed=0))
        for number in range(4):
            await cluster.create(of("a", f"p{number}", labels={"app": "a"}))
            await trio.sleep(1)
        await cluster.create(of("b", "q0"))
        await trio.sleep(120)
        assert running(cluster, "a") == ["p0", "p1", "p2", "p3"]
        cluster.assert_pending("b/q0", reason="Insufficient cpu")
        await cluster.delete(budget)
        await trio.sleep(60)
        assert running(cluster, "a") == ["p0", "p1", "p2"]  # the youngest
        assert running(cluster, "b") == ["q0"]
        cluster.assert_event("QuotaReclaimed", message="b/q0 is guaranteed the room")


async def test_what_is_guaranteed_is_never_evicted() -> None:
    """Namespace c has no quota and is left alone; of a there is nothing left but its minimum."""
    async with virtual_cluster(
        nodes=[node("n", cpu="4")], config=CONFIG, plugins=[ElasticQuota], custom_resources=[QUOTA]
    ) as cluster:
        await start(cluster, quota("a", {"cpu": "2"}), quota("b", {"cpu": "4"}), quota("c", {"memory": "1Gi"}))
        for number in range(2):
            await cluster.create(of("a", f"p{number}"))
            await cluster.create(of("c", f"r{number}"))
        await cluster.settle()
        await cluster.create(of("b", "q0"))
        await trio.sleep(120)
        assert (len(running(cluster, "a")), len(running(cluster, "b")), len(running(cluster, "c"))) == (2, 0, 2)


async def test_the_room_of_an_evicted_pod_is_not_borrowed_again() -> None:
    """As if by a controller, evicted pods come back at once; they have the higher priority."""
    async with virtual_cluster(
        nodes=[node("n", cpu="4")], config=CONFIG, plugins=[ElasticQuota], custom_resources=[QUOTA]
    ) as cluster:
        await start(cluster, quota("a", {"cpu": "2"}), quota("b", {"cpu": "2"}))
        for number in range(4):
            await cluster.create(of("a", f"p{number}", priority=1000, grace_seconds=5))
        await trio.sleep(5)
        await cluster.create(of("b", "q0", "2"))
        for number in range(4, 8):
            await cluster.create(of("a", f"p{number}", priority=1000))
        await trio.sleep(200)
        assert running(cluster, "b") == ["q0"]
        assert len(running(cluster, "a")) == 2
        assert len(cluster.events("QuotaReclaimed")) == 2


async def test_quotas_come_change_and_go() -> None:
    async with virtual_cluster(
        nodes=[node("n", cpu="9")], config=CONFIG, plugins=[ElasticQuota], custom_resources=[QUOTA]
    ) as cluster:
        first = quota("a", {}, {"cpu": "0"})
        await start(cluster, first)
        await cluster.create(of("a", "p0", scheduler_name="other"))
        await trio.sleep(20)
        cluster.assert_pending(
            "a/p0", reason="ElasticQuota quota: 0 of cpu used, 1 requested, but at most 0 are allowed"
        )
        second = await cluster.create(quota("a", {"cpu": "5"}, name="second"))
        await trio.sleep(20)
        cluster.assert_pending("a/p0")  # the older one counts
        assert "quota is older" in cluster.object(QUOTA, "second", "a").status.message
        await cluster.delete(first)
        await cluster.wait_scheduled("a/p0", within_seconds=15)
        await trio.sleep(15)
        stored = cluster.object(QUOTA, "second", "a").status
        assert (stored.used, stored.message) == ({"cpu": "1"}, "")
        await cluster.patch(second, {"spec": {"min": {"cpu": "many"}}})
        await cluster.create(of("a", "p1"))
        await trio.sleep(20)
        cluster.assert_pending("a/p1", reason="ElasticQuota a/second is wrong: spec.min.cpu")
        await cluster.delete(second)
        await cluster.wait_scheduled("a/p1", within_seconds=15)


async def test_pods_that_bind_slowly_count_also_after_a_restart() -> None:
    async with virtual_cluster(
        nodes=[node("n", cpu="9")],
        config=CONFIG,
        plugins=[ElasticQuota],
        custom_resources=[QUOTA],
        bind_latency_seconds=2,
    ) as cluster:
        await start(cluster, quota("a", {"cpu": "3"}, {"cpu": "3"}))
        for number in range(6):
            await cluster.create(of("a", f"p{number}", scheduler_name=("other", "default-scheduler")[number % 2]))
        await trio.sleep(1)
        await cluster.stop_scheduler(drain_seconds=0)
        await cluster.start_scheduler()
        await cluster.settle()
        assert len(running(cluster, "a")) == 3


@pytest.mark.parametrize("seed", range(8))
async def test_random_namespaces(seed: int) -> None:
    """Never more than the maximum; and at the end who is guaranteed room has it, or nobody has borrowed any."""
    random = Random(seed)
    minimum = {name: random.randint(1, 5) for name in "abc"}
    maximum = {name: minimum[name] + random.randint(0, 4) for name in "abc"}
    cpus = sum(minimum.values())
    nodes = [node("n", cpu=str(cpus - 2)), node("m", cpu="2")]
    async with virtual_cluster(
        nodes=nodes, config=CONFIG, plugins=[ElasticQuota], custom_resources=[QUOTA], seed=seed
    ) as cluster:
        await start(cluster, *(quota(name, {"cpu": minimum[name]}, {"cpu": maximum[name]}) for name in "abc"))
        for step in range(60):
            action, name = random.random(), random.choice("abc")
            if action < 0.7:
                profile = random.choice(("default-scheduler", "other"))
                more = {"priority": random.choice((0, 100)), "grace_seconds": random.choice((0, 3))}
                await cluster.create(of(name, f"p{step}", scheduler_name=profile, **more))
            elif action < 0.95:
                of_name = [one for one in cluster.pods() if one.namespace == name]
                if of_name:
                    await cluster.delete(random.choice(of_name), grace_seconds=0)
            else:
                await cluster.stop_scheduler(drain_seconds=0)
                await cluster.start_scheduler()
            for one in "abc":
                assert len(running(cluster, one)) <= maximum[one]
            await trio.sleep(random.choice((0.0, 0.1, 2.0)))
        await trio.sleep(300)
        there = {one: len(running(cluster, one)) for one in "abc"}
        wanted = {one: len([each for each in cluster.pods() if each.namespace == one]) for one in "abc"}
        for one in "abc":
            assert there[one] <= maximum[one]
            assert there[one] >= min(wanted[one], minimum[one]), (one, there, wanted, minimum, maximum)
            if there[one] < min(wanted[one], maximum[one]):
                assert sum(there.values()) == cpus, (one, there, wanted, minimum, maximum)
