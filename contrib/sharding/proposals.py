"""Pods that are nominated: the owner of the node answers, whoever has nominated them waits for so long."""

from __future__ import annotations

from attrs import define, field

from contrib.sharding.objects import ShardedPod
from contrib.sharding.owners import Owners
from contrib.sharding.requests import Requests
from contrib.sharding.room import Room


@define(eq=False)
class Proposals:
    """Those that one process answers or waits for."""

    requests: Requests
    owners: Owners
    _unanswered: dict[str, tuple[int, float]] = field(factory=dict, init=False)
    """Pods that are nominated to nodes of others → the version that is so, and since when on the local clock."""

    def answer(self, pod: ShardedPod, room: Room) -> None:
        """Answer as the owner of the node; else take the nomination back if it is not answered in time."""
        shard = self.requests.process.shard(pod.nominated)
        if self.requests.leases.may_decide(shard):
            self.requests.process.decisions += 1
            self._answer_as_owner(pod, shard, room)
        elif not pod.is_reserved and not self._is_gathered(pod):
            decider = self.owners.decider(pod)
            if self.requests.leases.may_decide(decider):
                self._wait(pod, decider)

    def take_back(self, pod: ShardedPod, shard: int) -> None:
        """Nominate a pod to no node any more."""
        server = self.requests.process.link.server
        self.requests.send(pod.name, (shard,), lambda: server.nominate(pod.name, "", pod.version))

    def _is_gathered(self, pod: ShardedPod) -> bool:
        """Whether the pod must not be bound before others of its group have places."""
        group = self.requests.view.groups.get(pod.group)
        is_waiting = bool(pod.group) and (group is None or not group.is_scheduled)
        return is_waiting and self.requests.process.protocol.gathers_groups

    def _answer_as_owner(self, pod: ShardedPod, shard: int, room: Room) -> None:
        """Bind it, keep the place for it, evict others for it, or take the nomination back."""
        if self._is_gathered(pod):
            if not pod.is_reserved and self._fits(pod, room):
                self._reserve(pod, shard, room)
            elif not pod.is_reserved:
                self._reject(pod, shard, room)
        elif pod.preempts and room.is_evicting(pod, pod.nominated):
            return  # even if there is room by now: what is evicted after the pod is bound would be so for nothing
        elif pod.preempts and (pod.is_reserved or not self._fits(pod, room)):
            self._preempt(pod, shard, room)
        elif (pod.is_reserved and pod.group) or self._fits(pod, room):
            self._bind(pod, shard, room)
        else:
            self._reject(pod, shard, room)

    def _fits(self, pod: ShardedPod, room: Room) -> bool:
        has_room = room.free(pod, pod.nominated) >= pod.cpu
        return has_room and not (pod.preempts and self._conflicts(pod, room))

    def _conflicts(self, pod: ShardedPod, room: Room) -> set[str]:
        """Pods on the node that must not be in a zone with it; others are for whoever has nominated it to know."""
        conflicts, pods = room.conflicts(pod).get(room.nodes[pod.nominated].zone, set()), self.requests.view.pods
        return {name for name in conflicts if pods[name].node == pod.nominated}

    def _preempt(self, pod: ShardedPod, shard: int, room: Room) -> None:
        """Keep the place for the pod, evict those that are on it, bind the pod once they have left.

        The nomination is taken back if that cannot be.
        """
        is_reserving = self.requests.process.protocol.reserves_before_evicting
        victims = room.victims(pod, pod.nominated, self._conflicts(pod, room))
        if victims is None:
            if not (pod.is_reserved and room.will_change(pod, pod.nominated)):
                self._reject(pod, shard, room)
        elif not pod.is_reserved and is_reserving:
            self._reserve(pod, shard, room)
        elif victims:
            for victim in victims:
                self._evict(victim, pod, shard)
        elif self._fits(pod, room):
            self._bind(pod, shard, room)

    def _evict(self, victim: ShardedPod, pod: ShardedPod, shard: int) -> None:
        server = self.requests.process.link.server
        self.requests.send(victim.name, (shard,), lambda: server.evict(victim.name, victim.version, pod.name))

    def _reserve(self, pod: ShardedPod, shard: int, room: Room) -> None:
        room.take(pod, pod.nominated, is_reserving=True)
        server, node = self.requests.process.link.server, pod.nominated
        self.requests.send(
            pod.name,
            (shard,),
            lambda: server.nominate(pod.name, node, pod.version, preempts=pod.preempts, is_reserved=True),
            node,
            is_reserving=True,
        )

    def _reject(self, pod: ShardedPod, shard: int, room: Room) -> None:
        room.give_back(pod)
        self.take_back(pod, shard)

    def _bind(self, pod: ShardedPod, shard: int, room: Room) -> None:
        room.take(pod, pod.nominated)
        server, node = self.requests.process.link.server, pod.nominated
        version = pod.version if self.requests.process.protocol.binds_with_version else None
        self.requests.send(pod.name, (shard,), lambda: server.bind(pod.name, node, version), node)

    def _wait(self, pod: ShardedPod, decider: int) -> None:
        now, pods = self.requests.process.clock(), self.requests.view.pods
        version, since = self._unanswered.setdefault(pod.name, (pod.version, now))
        if version != pod.version:
            self._unanswered[pod.name] = pod.version, now
        elif now >= since + self.requests.process.protocol.proposal_seconds:
            self._unanswered = {
                name: one for name, one in self._unanswered.items() if name in pods and name != pod.name
            }
            self.owners.did_not_answer(pod.nominated)
            self.take_back(pod, decider)
