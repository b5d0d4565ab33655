"""Who holds which shard, and what waits for it, as the leases, nodes and pods of a cluster say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from attrs import frozen

from trio_sched.daemon.sharding.group_lease import read_holder, replicas_of
from trio_sched.engine.sharding.labelled_nodes import LabelledNodes
from trio_sched.engine.sharding.owned_shards import OwnedShards
from trio_sched.engine.sharding.ownership import shard_lease
from trio_sched.engine.sharding.sharded_event_handlers import revision_of
from trio_sched.errors import TrioSchedError
from trio_sched.kube_client import leases, verbs
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.decoding.decoding import Page
from trio_sched.kube_client.kinds import NODE_KIND, POD_KIND, Kind, T
from trio_sched.objects.pod import Pod
from trio_sched.objects.timestamps import parse_time

_MAX_NAMES: Final = 20


class NothingIsShared(TrioSchedError):
    """No replicas share the work under this lease."""

    def __init__(self, lease: str, holder: str) -> None:
        super().__init__(lease, holder)
        self.lease, self.holder = lease, holder

    def __str__(self) -> str:
        if not self.holder:
            return f"nobody holds the lease {self.lease}; name another with --lease and --lease-namespace"
        return f"the lease {self.lease} is held by {self.holder}, which shares no work"


@frozen(kw_only=True)
class ShardState:
    """One shard."""

    shard: int
    holder: str
    """Empty: nobody holds it."""
    renewed_seconds: float | None
    """How long ago its lease was renewed, by the clock of this machine; None: that is not known."""
    nodes: int
    pods: int
    """Pods on these nodes."""
    pending: int
    """Pods without a node that its holder decides on."""
    nominated: tuple[str, ...]
    """Pods of other shards that wait for its holder: they are nominated to its nodes."""

    @property
    def as_fields(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "shard": self.shard,
            "holder": self.holder,
            "renewedSeconds": self.renewed_seconds,
            "nodes": self.nodes,
            "pods": self.pods,
            "pending": self.pending,
            "nominated": list(self.nominated),
        }


@frozen(kw_only=True)
class ShardReport:
    """All shards."""

    lease: str
    """``namespace/name`` of the lease that all replicas hold together."""
    node_label: str
    """The label that says which shard a node belongs to; empty: its name does."""
    nodes_without_label: int
    replicas: tuple[str, ...]
    shards: tuple[ShardState, ...]

    @property
    def as_fields(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "lease": self.lease,
            "nodeLabel": self.node_label,
            "nodesWithoutLabel": self.nodes_without_label,
            "replicas": list(self.replicas),
            "shards": [shard.as_fields for shard in self.shards],
        }


async def read_shards(
    client: KubeClient, *, namespace: str, lease: str, scheduler_names: frozenset[str], now: datetime
) -> ShardReport:
    """Read leases, nodes and pods.

    Args:
        client: with the rights of whoever asks.
        namespace: of the leases.
        lease: the name of that of leader election.
        scheduler_names: the profiles of the replicas.
        now: the time of day.

    Raises:
        NothingIsShared: the lease is held by somebody else, or by nobody.
        KubeClientError: something could not be read.
    """
    stored = await leases.list_leases(client, namespace=namespace)
    group = stored.get(lease)
    holder = "" if group is None else group.lease.spec.holder_identity or ""
    shared = read_holder(holder)
    if group is None or shared is None:
        raise NothingIsShared(f"{namespace}/{lease}", holder)
    nodes, pods, shards = await _all(client, NODE_KIND), await _all(client, POD_KIND), shared.shards
    labelled = LabelledNodes(shards=shards, label=shared.node_label) if shared.node_label else None
    owned = OwnedShards(shards=shards, has_groups=shared.has_groups, labelled=labelled)
    if labelled is not None:
        for node in nodes:
            labelled.node_changed(node, revision_of(node))
    for one in pods:
        owned.terms.add(one, revision_of(one))
    of_nodes = Counter(owned.of_node(node.name) for node in nodes)
    on_nodes = Counter(owned.of_node(pod.node_name) for pod in pods if pod.node_name)
    waiting = [pod for pod in pods if not pod.node_name and pod.scheduler_name in scheduler_names]
    pending = Counter(map(owned.decider, waiting))
    states: list[ShardState] = []
    of_shards = [stored.get(shard_lease(lease, shard, shards)) for shard in range(shards)]
    holders = ["" if one is None else one.lease.spec.holder_identity or "" for one in of_shards]
    for shard, found in enumerate(of_shards):
        renewed = None if found is None else found.lease.spec.renew_time
        moment = None if renewed is None else parse_time(renewed)
        states.append(
            ShardState(
                shard=shard,
                holder=holders[shard],
                renewed_seconds=None if moment is None else round(now.timestamp() - moment, 1),
                nodes=of_nodes[shard],
                pods=on_nodes[shard],
                pending=pending[shard],
                nominated=_nominated(waiting, owned, shard, holders),
            )
        )
    label = shared.node_label
    return ShardReport(
        lease=f"{namespace}/{lease}",
        node_label=label,
        nodes_without_label=sum(not node.labels.get(label) for node in nodes) if label else 0,
        replicas=tuple(sorted(replicas_of(group))),
        shards=tuple(states),
    )


def _nominated(waiting: list[Pod], owned: OwnedShards, shard: int, holders: Sequence[str]) -> tuple[str, ...]:
    """Pods of others that are nominated to a node of *shard*: not those that its own holder evicts others for."""

    def is_asked_for(pod: Pod) -> bool:
        name, decider = pod.nominated_node_name, owned.decider(pod)
        is_there = bool(name) and owned.of_node(name) == shard
        return is_there and decider != shard and not (holders[decider] and holders[decider] == holders[shard])

    return tuple(sorted(pod.key for pod in waiting if is_asked_for(pod))[:_MAX_NAMES])


async def _all(client: KubeClient, kind: Kind[T]) -> list[T]:
    found: list[T] = []

    def take(page: Page[T]) -> None:
        if page.starts_over:
            found.clear()
        found.extend(page.objects)

    await verbs.list_pages(client, kind, take)
    return found
