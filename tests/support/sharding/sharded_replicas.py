"""Clusters whose schedulers share the work."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import trio
from attrs import define
from ledger import Ledger

from trio_sched.daemon.sharding.sharding import Sharding
from trio_sched.objects.node import Node
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster
from trio_sched.testing.scheduler_process import SchedulerProcess

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
SETTLED_SECONDS = 10.0
"""So long after the last one has started, every replica has its share, and is ready."""


@define(eq=False)
class Replicas:
    """Schedulers of one cluster."""

    cluster: VirtualCluster
    ledger: Ledger

    async def start(self, count: int) -> None:
        for _ in range(count):
            await self.cluster.start_scheduler(wait=False)
        await trio.sleep(SETTLED_SECONDS)

    @property
    def running(self) -> list[SchedulerProcess]:
        return [process for process in self.cluster.schedulers if process.running]

    def ready(self) -> list[list[int]]:
        """The shards of each that runs."""
        return [ready_of(process) for process in self.running]

    def owner(self, shard: int) -> SchedulerProcess:
        return next(process for process in self.running if shard in sharding_of(process).owned.ready)

    def bound_elsewhere(self) -> int:
        """How many pods were bound to nodes of others than those who decided on them."""
        return sum(sharding_of(process).proposals.results["bound"] for process in self.cluster.schedulers)


def sharding_of(process: SchedulerProcess) -> Sharding:
    assert process.assembly is not None
    assert process.assembly.sharding is not None
    return process.assembly.sharding


def ready_of(process: SchedulerProcess) -> list[int]:
    """The shards that it decides for; assertions are about plain values, as pytest shows what is in an object."""
    return sorted(sharding_of(process).owned.ready)


def held_of(process: SchedulerProcess) -> list[int]:
    """The shards whose leases it holds."""
    return sorted(sharding_of(process).elector.held)


def take_away(cluster: VirtualCluster, shard: int) -> None:
    """Another process has the lease of a shard from now on."""
    store, kind, name = cluster.api.store, "leases.coordination.k8s.io", f"shard-{shard}-of"
    stored = next(one for one in store.collection(kind).objects.values() if name in one.fields["metadata"]["name"])
    spec = {**stored.fields["spec"], "holderIdentity": "another", "leaseDurationSeconds": 3600}
    store.replace(kind, stored, {**stored.fields, "metadata": dict(stored.fields["metadata"]), "spec": spec})


@asynccontextmanager
async def replicas_of(
    nodes: Iterable[Node],
    *,
    shards: int,
    replicas: int,
    node_label: str = "",
    more_config: str = "",
    **details: Any,
) -> AsyncGenerator[Replicas, None]:
    by_label = f", nodeLabel: {node_label}" * bool(node_label)
    config = HEAD + f"sharding: {{shards: {shards}{by_label}}}\n" + more_config
    details = {"kubelets": False, **details}
    async with virtual_cluster(nodes=nodes, config=config, leader_elect=True, scheduler=False, **details) as cluster:
        found = Replicas(cluster, Ledger(cluster))
        await found.start(replicas)
        yield found
        found.ledger.check()
