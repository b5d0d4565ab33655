"""Binds pods to own nodes, or those that are kept for their group, in the version that was decided on."""

from __future__ import annotations

import logging
from functools import partial

from attrs import define

from trio_sched.daemon.sharding.group_places import GroupPlaces
from trio_sched.daemon.sharding.proposals import Proposals
from trio_sched.daemon.sharding.versioned_writes import (
    NoLongerOwn,
    PodHasChanged,
    VersionedWrites,
    place_as_before,
)
from trio_sched.engine.sharding.owned_shards import OwnedShards
from trio_sched.kube_client.binding import bind_version
from trio_sched.kube_client.errors import KubeClientError
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.status import Status, failure

log = logging.getLogger(__name__)


@define(eq=False, kw_only=True)
class ShardedBinder:
    """Implements `Handle.bind`, which DefaultBinder calls."""

    owned: OwnedShards
    writes: VersionedWrites
    proposals: Proposals
    groups: GroupPlaces

    async def bind(self, pod: Pod, node_name: str) -> Status | None:
        """Bind *pod* to *node_name*; returns None if it is bound there now, by this process or its node's owner."""
        if pod.uid in self.proposals.bound:
            return None
        under_way = self.owned.under_way.get(pod.uid)
        tokens = None if under_way is None else under_way.tokens
        kept = self.groups.kept(pod, node_name)
        is_own = tokens is not None and any(one.shard == self.owned.of_node(node_name) for one in tokens)
        if tokens is None or not (is_own or kept is not None):
            return failure(NoLongerOwn())
        pod, check = kept or pod, None
        if kept is not None or self.owned.is_proposed(pod):  # it may be wanted there for another reason by now
            check = partial(place_as_before, pod)
        write = partial(self._send, pod, node_name)
        try:
            await self.writes.send(
                pod,
                tokens,
                write,
                lambda found: found.uid == pod.uid and found.node_name == node_name,
                check,
            )
        except (KubeClientError, NoLongerOwn, PodHasChanged) as problem:
            return failure(problem)
        return None

    async def _send(self, pod: Pod, node_name: str, version: str) -> None:
        await bind_version(
            self.writes.client,
            namespace=pod.namespace,
            name=pod.name,
            uid=pod.uid,
            resource_version=version,
            node=node_name,
        )
