"""All replicas but one, in the process of the simulated API server: it binds the pods of theirs itself.

So one replica can be measured at its limit on a machine that has no room for the others: what they create and bind
costs the server little, and the replica sees all of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from itertools import cycle

import trio
from attrs import define, field

from trio_sched.documents.json_values import Json
from trio_sched.engine.sharding.ownership import shard_lease, shard_of
from trio_sched.simulator import ApiServer, populate
from trio_sched.simulator.storage.object_store import StoredObject
from trio_sched.simulator.storage.resource_types import collection_of

OUTSTANDING_PODS = 200
"""So many pods of its own wait for it, at most."""
BINDING_PODS = 100
"""So many pods of others come before they have bound one."""
AT_ONCE = 10
"""Pods that are created before requests get their turn."""
_HOUR_SECONDS = 3_600
_PODS = "pods"
_PENDING = {"phase": "Pending", "qosClass": "Burstable"}
_SCHEDULED = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
_BOUND = {**_PENDING, "conditions": [_SCHEDULED]}


@define(eq=False, kw_only=True)
class OtherReplicas:
    """Hold all shards but one, for an hour."""

    server: ApiServer
    shards: int
    unbound: Callable[[], int]
    """How many pods have been created that wait to be bound."""
    wait_until: Callable[[Callable[[], bool]], Awaitable[None]]
    """Waits until something holds, which is asked whenever a pod has been bound."""
    _to_bind: deque[StoredObject] = field(factory=deque, init=False)

    @property
    def own_shard(self) -> int:
        """The only one that the replica can take: not the lane, which looks at the rules of all pods."""
        return self.shards - 1

    def hold_shards(self, lease: str = "kube-scheduler", namespace: str = "kube-system") -> None:
        """Create the leases of these shards."""
        for shard in range(self.shards):
            if shard == self.own_shard:
                continue
            metadata = {"name": shard_lease(lease, shard, self.shards), "namespace": namespace}
            now = f"{self.server.state.timestamp()[:-1]}.000000Z"
            spec = {
                "holderIdentity": f"other-{shard}",
                "leaseDurationSeconds": _HOUR_SECONDS,
                "acquireTime": now,
                "renewTime": now,
                "leaseTransitions": 0,
            }
            lease_kind = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
            populate(self.server, [{**lease_kind, "metadata": metadata, "spec": spec}])

    async def create_pods(self, templates: list[StoredObject], count: int) -> int:
        """Create so many pods like *templates*, which run; bind those of other shards; returns how many are not."""
        store, own, own_shard = self.server.store, 0, self.own_shard
        nodes = [name for name in store.collection("nodes").objects if shard_of(name, self.shards) != own_shard]
        places, template = cycle(nodes), cycle([one.fields for one in templates])
        for number in range(count):
            running = next(template)
            name, uid = f"shared-{store.version:08}", f"{store.version:032x}"
            metadata = {**running["metadata"], "name": name, "uid": uid}
            spec = {**running["spec"], "nodeName": ""}
            fields: Json = {"metadata": metadata, "spec": spec, "status": _PENDING}
            stored = store.create(_PODS, f"default/{name}", fields)
            if shard_of(uid, self.shards) == own_shard:
                own += 1
            else:
                self._to_bind.append(stored)
                if len(self._to_bind) > BINDING_PODS:
                    self._bind(self._to_bind.popleft(), next(places))
            if number % AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
            await self.wait_until(lambda: self.unbound() - len(self._to_bind) < OUTSTANDING_PODS)
        while self._to_bind:
            self._bind(self._to_bind.popleft(), next(places))
        return own

    def _bind(self, pod: StoredObject, node_name: str) -> None:
        fields, metadata = pod.fields, dict(pod.fields["metadata"])
        bound = {**fields, "metadata": metadata, "spec": {**fields["spec"], "nodeName": node_name}, "status": _BOUND}
        self.server.store.replace(_PODS, pod, bound)


def are_shared_out(server: ApiServer, shards: int, replicas: int) -> bool:
    """Whether so many shards are held, as evenly as possible, by at least so many replicas."""
    held: dict[str, int] = {}
    for one in server.store.collection(collection_of("coordination.k8s.io", "v1", "leases")).objects.values():
        holder = one.fields["spec"].get("holderIdentity")
        if holder and "-shard-" in one.key:
            held[holder] = held.get(holder, 0) + 1
    counts = held.values()
    return not shards or (sum(counts) == shards and len(held) >= replicas and max(counts) - min(counts) <= 1)
