"""The places that are left on nodes, as one process sees them when it decides."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from attrs import define, evolve, field

from contrib.sharding.objects import Node, ShardedPod
from contrib.sharding.requests import Requests


@define(eq=False)
class Room:
    """What is taken on each node; decisions of this moment are added to it."""

    nodes: Mapping[str, Node]
    requests: Requests
    _taken: Counter[str] = field(factory=Counter, init=False)
    """In millicores: by pods on the node, and pods that are being bound or nominated to it."""
    _nominated: dict[str, dict[str, ShardedPod]] = field(factory=lambda: defaultdict(dict), init=False)
    _bound: dict[str, list[ShardedPod]] = field(factory=lambda: defaultdict(list), init=False)
    _of_owner: dict[str, list[ShardedPod]] = field(factory=lambda: defaultdict(list), init=False)
    """Owners → their pods that have a place."""
    _repelling: dict[str, list[ShardedPod]] = field(factory=lambda: defaultdict(list), init=False)
    """Owners → pods that have a place and repel theirs."""

    def __attrs_post_init__(self) -> None:
        for pod in self.requests.view.pods.values():
            node = self.requests.place_of(pod)
            if not node:
                continue
            self._of_owner[pod.owner].append(pod)
            if pod.repels:
                self._repelling[pod.repels].append(pod)
            if pod.node:
                self._bound[node].append(pod)
            under_way = self.requests.under_way.get(pod.name)
            if pod.node or (under_way is not None and under_way.node and not under_way.is_reserving):
                self._taken[node] += pod.cpu
            else:
                is_reserved = pod.is_reserved or (under_way is not None and under_way.is_reserving)
                self._nominated[node][pod.name] = evolve(pod, is_reserved=is_reserved)

    def free(self, pod: ShardedPod, node: str) -> int:
        """The millicores that are left for *pod*.

        Nominated pods count that are not of lower priority, or whose place is kept. For one whose own place is kept,
        others of that kind do not: there will be room for all of them. Pods of groups are bound without another look.
        """
        if pod.is_reserved:
            return self._free(node, [one for one in self._others(pod, node) if one.is_reserved and one.group])
        others = self._others(pod, node)
        return self._free(node, [one for one in others if one.is_reserved or one.priority >= pod.priority])

    def take(self, pod: ShardedPod, node: str, *, is_reserving: bool = False) -> None:
        """The place is taken from now on, or kept for the pod until it can be."""
        self._nominated[node].pop(pod.name, None)
        if is_reserving:
            self._nominated[node][pod.name] = evolve(pod, is_reserved=True)
        else:
            self._taken[node] += pod.cpu
        self._of_owner[pod.owner].append(pod)
        if pod.repels:
            self._repelling[pod.repels].append(pod)

    def give_back(self, pod: ShardedPod) -> None:
        """The pod is not nominated any more."""
        self._nominated[pod.nominated].pop(pod.name, None)

    def conflicts(self, pod: ShardedPod) -> dict[str, set[str]]:
        """Zones that the pod cannot be in because of other pods → the names of these."""
        found: dict[str, set[str]] = defaultdict(set)
        for other in (*self._of_owner.get(pod.repels, ()), *self._repelling.get(pod.owner, ())):
            node = self.requests.place_of(other)
            if node and other.name != pod.name:
                found[self.nodes[node].zone].add(other.name)
        return found

    def is_evicting(self, pod: ShardedPod, node: str) -> bool:
        """Whether requests to evict pods of lower priority than *pod* from the node have no end yet."""
        return any(one.priority < pod.priority and one.name in self.requests.under_way for one in self._bound[node])

    def leaving(self, node: str) -> list[ShardedPod]:
        """The pods on a node that terminate, or are being evicted."""
        return [one for one in self._bound[node] if one.is_terminating or one.name in self.requests.under_way]

    def will_change(self, pod: ShardedPod, node: str) -> bool:
        """Whether others leave the node, or will because of a more important pod that a place is kept for."""
        kept = [one for one in self._others(pod, node) if one.is_reserved and not one.group]
        return bool(self.leaving(node)) or any((one.priority, one.name) > (pod.priority, pod.name) for one in kept)

    def victims(self, pod: ShardedPod, node: str, conflicts: set[str]) -> list[ShardedPod] | None:
        """The pods of lower priority that must leave the node for *pod*; None: that would not be enough.

        Args:
            pod: the one that needs a place.
            node: the node.
            conflicts: names of pods that must not be in the zone of the node with it.
        """
        lower = [one for one in self._bound[node] if one.priority < pod.priority]
        # Others that a place is kept for have victims of their own, which may be as important as this pod.
        leaving = [one for one in self.leaving(node) if pod.is_reserved or one.priority < pod.priority]
        going = {one.name: one for one in (*lower, *leaving)}
        free = self.free(pod, node) + sum(one.cpu for one in going.values()) - pod.cpu
        if pod.is_reserved:
            free -= sum(one.cpu for one in self._others(pod, node) if one.is_reserved and not one.group)
        if free < 0 or conflicts - going.keys():
            return None
        victims = []
        for one in sorted(lower, key=lambda one: (-one.priority, one.name)):
            if one in leaving:
                continue
            if one.cpu <= free and one.name not in conflicts:
                free -= one.cpu
            else:
                victims.append(one)
        return victims

    def _others(self, pod: ShardedPod, node: str) -> list[ShardedPod]:
        return [one for one in self._nominated.get(node, {}).values() if one.name != pod.name]

    def _free(self, node: str, nominated: list[ShardedPod]) -> int:
        return self.nodes[node].cpu - self._taken[node] - sum(one.cpu for one in nominated)
