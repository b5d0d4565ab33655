"""Two replicas whose nodes are full, and gangs of higher priority that want both."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import trio
from attrs import define, field
from evictions import Evictions
from gangs import GANG_GATES, GATES_OF, Gang, Gangs
from lossy_network import Deadline, LossyNetwork, start_behind_lossy_network, start_with_deadline
from sharded_replicas import SETTLED_SECONDS, Replicas, replicas_of, sharding_of

from trio_sched.engine.sharding.ownership import LANE, shard_of
from trio_sched.engine.sharding.reserved_places import is_preempting_for_group
from trio_sched.objects.pod import Pod
from trio_sched.simulator import KubeletPace
from trio_sched.simulator.storage.object_store import Change
from trio_sched.testing import node, node_affinity, pod, pod_group, term
from trio_sched.testing.cluster import VirtualCluster
from trio_sched.testing.scheduler_process import SchedulerProcess

NAMES = [f"n{number}" for number in range(8)]
OF_LANE = next(name for name in NAMES if shard_of(name, 2) == LANE)
OF_OTHER = next(name for name in NAMES if shard_of(name, 2) != LANE)
BOTH = {f"low-{OF_LANE}": OF_LANE, f"low-{OF_OTHER}": OF_OTHER}
"""The pods of low priority, and their nodes."""
SLOW_STOP = KubeletPace(stop_seconds=8.0)
BY_POD: dict[str, Any] = {"emulated_version": "1.36", "gates": GANG_GATES}
"""Each pod that fits nowhere finds victims for itself."""
BY_GROUP: dict[str, Any] = {"emulated_version": "1.36", "gates": GATES_OF["1.36"]}
AS_ONE: dict[str, Any] = {"emulated_version": "1.37", "kubernetes_version": "1.37", "gates": GATES_OF["1.37"]}


def pinned(name: str, at: str, **details: Any) -> Pod:
    """A pod for which the owner of a node decides."""
    return pod(name, cpu=1, affinity=node_affinity(term(fields=[f"metadata.name In {at}"])), **details)


@define(eq=False)
class Scene:
    """Two replicas, each with a node that a pod of low priority fills, and a gang that wants both."""

    replicas: Replicas
    gangs: Gangs
    evictions: Evictions
    links: dict[str, LossyNetwork] = field(factory=dict)

    @property
    def cluster(self) -> VirtualCluster:
        return self.replicas.cluster

    def link(self, shard: int) -> LossyNetwork:
        """The network of the replica that has a shard."""
        return self.links[self.replicas.owner(shard).identity]

    async def create_gang(self, size: int = 2) -> None:
        await self.create_members(size)
        await self.create_group(size)

    async def create_members(self, size: int = 2) -> None:
        for number in range(size):
            await self.cluster.create(pod(f"gang-{number}", cpu=1, group="gang", priority=10))

    async def create_group(self, size: int = 2) -> None:
        self.gangs.by_name["gang"] = Gang("gang", size, trio.current_time())
        await self.cluster.create(pod_group("gang", min_count=size, priority=10))

    def has_condition(self, name: str) -> bool:
        return any(one.type == "DisruptionTarget" for one in self.cluster.pod(name).status.conditions or ())

    def hold_deletion(self, link: LossyNetwork, *names: str) -> list[str]:
        """Hold back the deletion of the first of the pods called so that is about to be evicted; returns its name."""
        held: list[str] = []

        def see(change: Change) -> None:
            name, status = change.current.fields["metadata"]["name"], change.current.fields["status"]
            is_told = any(one["type"] == "DisruptionTarget" for one in status.get("conditions", ()))
            if name in names and is_told and not held:
                held.append(name)
                link.held = f"/pods/{name}".encode()

        self.cluster.api.store.collection("pods").listen(see)
        return held

    def members(self) -> list[Pod]:
        return [one for one in self.cluster.pods() if one.group_key == "default/gang"]

    def promised(self) -> list[str]:
        """The nodes that have promised a place."""
        return sorted(one.nominated_node_name for one in self.members() if is_preempting_for_group(one))

    def counted_by(self, process: SchedulerProcess) -> list[str]:
        """Where a process counts pods of the gang as nominated."""
        nominator = sharding_of(process).scheduler.queue.nominator
        return sorted(node for node in (nominator.node_of(one.uid) for one in self.members()) if node)

    def nominated(self) -> list[str]:
        return sorted(one.nominated_node_name for one in self.members() if one.nominated_node_name)

    def bound(self) -> int:
        return self.gangs.bound("gang")

    def left(self) -> list[object]:
        """What running processes have under way."""
        found: list[object] = []
        for process in self.replicas.running:
            sharding = sharding_of(process)
            unfinished = ["group"] * sharding.groups.unfinished
            found += [*sharding.owned.under_way, *sharding.places().elsewhere, *sharding.owned.evicting, *unfinished]
        return found


@asynccontextmanager
async def full_nodes(
    way: dict[str, Any], *, replicas: int = 2, deadline: Deadline | None = None, **details: Any
) -> AsyncGenerator[Scene, None]:
    """Replicas whose nodes are full; links to each, unless they end with *deadline*."""
    nodes = [node(name, cpu=1) for name in (OF_LANE, OF_OTHER)]
    details = {"kubelets": SLOW_STOP, **way, **details}
    async with trio.open_nursery() as network, replicas_of(nodes, shards=2, replicas=0, **details) as found:
        cluster = found.cluster
        scene = Scene(found, Gangs(cluster), Evictions(cluster))
        for number in range(replicas):
            if deadline is not None:
                await start_with_deadline(cluster, network, deadline)
                continue
            name = f"r{number}"
            _process, scene.links[name] = await start_behind_lossy_network(cluster, network, name, Random(0), 0.0)
        await trio.sleep(SETTLED_SECONDS)
        for name in (OF_LANE, OF_OTHER):
            await cluster.create(pinned(f"low-{name}", name))
        await trio.sleep(2)
        yield scene
        wrong = scene.evictions.wrong
        assert wrong == []
        network.cancel_scope.cancel()
