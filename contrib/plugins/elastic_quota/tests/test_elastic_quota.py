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
    outcome = schedule(of("b", "p", "1500m"), on=[node("n", cpu="9")], pods=there, plugins=[ElasticQuota], handle=handle)
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
