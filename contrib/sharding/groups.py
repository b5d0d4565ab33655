"""Groups of pods that run together or not at all: the lane proposes all, and has them bound once all have a place."""

from __future__ import annotations

from collections import defaultdict

from attrs import define, field

from contrib.sharding.objects import PodGroup, ShardedPod
from contrib.sharding.owners import Owners
from contrib.sharding.proposals import Proposals
from contrib.sharding.requests import Requests
from contrib.sharding.room import Room
from trio_sched.engine.sharding.ownership import LANE


@define(eq=False)
class Groups:
    """Those that the lane has not scheduled yet."""

    requests: Requests
    owners: Owners
    proposals: Proposals
    _since: dict[str, float] = field(factory=dict, init=False)
    """Groups whose pods are nominated → since when on the local clock."""

    def is_waiting(self, pod: ShardedPod) -> bool:
        """Whether the pod gets a place with its group only."""
        group = self.requests.view.groups.get(pod.group)
        return bool(pod.group) and (group is None or not group.is_scheduled)

    def decide(self, room: Room) -> None:
        """Decide on all of them, if this process is to."""
        if not self.requests.leases.may_decide(LANE):
            return
        view, members = self.requests.view, defaultdict[str, list[ShardedPod]](list)
        for pod in view.pods.values():
            if self.is_waiting(pod) and pod.group in view.groups:
                members[pod.group].append(pod)
        self._since = {name: since for name, since in self._since.items() if name in members}
        for name, pods in members.items():
            if not any(one in self.requests.under_way for one in (name, *(pod.name for pod in pods))):
                self._decide(view.groups[name], pods, room)

    def _decide(self, group: PodGroup, pods: list[ShardedPod], room: Room) -> None:
        """Propose all, note that all have a place, or take everything back if one has none."""
        self.requests.process.decisions += 1
        now, server = self.requests.process.clock(), self.requests.process.link.server
        nominated = [pod for pod in pods if pod.nominated]
        if sum(pod.is_reserved for pod in nominated) >= group.min_count:
            self.requests.send(group.name, (LANE,), lambda: server.schedule_group(group.name, group.version))
        elif nominated:
            since = self._since.setdefault(group.name, now)
            is_late = now >= since + self.requests.process.protocol.proposal_seconds
            if is_late:
                for pod in nominated:
                    if not pod.is_reserved:
                        self.owners.did_not_answer(pod.nominated)
            if is_late or len(nominated) < group.min_count:
                del self._since[group.name]
                for pod in nominated:
                    self.proposals.take_back(pod, LANE)
        else:
            self._since.pop(group.name, None)
            self._propose([pod for pod in pods if not pod.node], group.min_count, room)

    def _propose(self, pods: list[ShardedPod], count: int, room: Room) -> None:
        """Nominate *count* of the pods to nodes with room for them, or none of them."""
        places: dict[str, int] = {}
        chosen: list[tuple[ShardedPod, str]] = []
        nodes = [name for name in room.nodes if not self.owners.is_slow(name)]
        for pod in pods[:count]:
            free = {name: room.free(pod, name) - places.get(name, 0) for name in nodes}
            name = max(free, key=lambda name: (free[name], name), default="")
            if not name or free[name] < pod.cpu:
                return
            places[name] = places.get(name, 0) + pod.cpu
            chosen.append((pod, name))
        if len(chosen) < count:
            return
        for pod, name in chosen:
            room.take(pod, name)
            self._nominate(pod, name)

    def _nominate(self, pod: ShardedPod, node: str) -> None:
        server = self.requests.process.link.server
        self.requests.send(pod.name, (LANE,), lambda: server.nominate(pod.name, node, pod.version), node)
