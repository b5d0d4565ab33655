"""Pods that this process decides on: a node of its own, a proposal to the owner of another one, or victims."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define

from contrib.sharding.claims import Claims
from contrib.sharding.objects import Node, ShardedPod
from contrib.sharding.owners import Owners
from contrib.sharding.requests import Requests
from contrib.sharding.room import Room
from contrib.sharding.terms import Terms
from trio_sched.engine.sharding.ownership import LANE


@define(eq=False)
class Placing:
    """Finds places for pods, one at a time."""

    requests: Requests
    owners: Owners
    terms: Terms
    claims: Claims

    def place(self, pod: ShardedPod, shard: int, room: Room) -> None:
        """Find a place for a pod that *shard* decides on, of *shard* if there is one."""
        if not self.terms.may_place(pod):
            return
        self.requests.process.decisions += 1
        nodes, conflicts = self.claims.nodes(pod), room.conflicts(pod)
        with_room = [node for node in nodes if node.zone not in conflicts and room.free(pod, node.name) >= pod.cpu]
        answering = [node for node in with_room if not self.owners.is_slow(node.name)]
        if answering:
            chosen = [node for node in answering if self._is_own(node, shard)] or answering
            node = max(chosen, key=lambda node: (room.free(pod, node.name), node.name))
            self._take(pod, node, shard, room, preempts=False)
        elif not with_room and (found := self._with_victims(pod, shard, nodes, conflicts, room)):
            self._take(pod, found, shard, room, preempts=True)
        elif pod.claim:
            self.claims.has_no_place(pod, shard)

    def _is_own(self, node: Node, shard: int) -> bool:
        return shard == LANE or self.requests.process.shard(node.name) == shard

    def _with_victims(
        self, pod: ShardedPod, shard: int, nodes: list[Node], conflicts: Mapping[str, set[str]], room: Room
    ) -> Node | None:
        """The node on which the fewest and least important pods would have to make room."""
        found: list[tuple[bool, int, int, str]] = []
        for node in nodes:
            if not self.owners.is_slow(node.name):
                victims = room.victims(pod, node.name, conflicts.get(node.zone, set()))
                if victims is not None:
                    highest = max((one.priority for one in victims), default=-1)
                    found.append((not self._is_own(node, shard), highest, len(victims), node.name))
        return room.nodes[min(found)[-1]] if found else None

    def _take(self, pod: ShardedPod, node: Node, shard: int, room: Room, *, preempts: bool) -> None:
        """Allocate what the pod claims, else bind it if the node is an own one and has room, else nominate it."""
        server, owner = self.requests.process.link.server, self.requests.process.shard(node.name)
        is_reserved = preempts and self.requests.process.protocol.reserves_before_evicting
        is_reserved = is_reserved and self.requests.leases.may_decide(owner)
        room.take(pod, node.name, is_reserving=is_reserved)
        claim = self.claims.unallocated(pod)
        if claim is not None:
            self.claims.allocate(claim, node, shard)
        elif not self.requests.leases.may_decide(owner):
            self._nominate(pod, node, (shard,), preempts=preempts, is_reserved=False)
        elif preempts:
            self._nominate(pod, node, (shard, owner), preempts=True, is_reserved=is_reserved)
        else:
            version = pod.version if self.requests.process.protocol.binds_with_version else None
            self.requests.send(pod.name, (shard, owner), lambda: server.bind(pod.name, node.name, version), node.name)

    def _nominate(
        self, pod: ShardedPod, node: Node, shards: tuple[int, ...], *, preempts: bool, is_reserved: bool
    ) -> None:
        server = self.requests.process.link.server
        self.requests.send(
            pod.name,
            shards,
            lambda: server.nominate(pod.name, node.name, pod.version, preempts=preempts, is_reserved=is_reserved),
            node.name,
            is_reserving=is_reserved,
        )
