"""What must never happen, looked at with every bind; and what must be true at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import define, field

from contrib.sharding.server import Node, ShardedPod


@define(eq=False)
class Checks:
    """Collects what was wrong."""

    nodes: Mapping[str, Node]
    now: Callable[[], float]
    problems: list[str] = field(factory=list, init=False)
    bound_at: dict[str, float] = field(factory=dict, init=False)
    """When each pod was bound."""
    pods: Mapping[str, ShardedPod] = field(factory=dict, init=False)
    """All that are stored."""

    def before_bind(self, pod: ShardedPod, node: str) -> None:
        """A pod is about to be bound."""
        self.bound_at[pod.name] = self.now()
        self.problems += [f"{self.now():.3f}: {pod.name} on {node}: {why}" for why in self._objections(pod, node)]

    def left_unplaced(self) -> list[str]:
        """The pods that one scheduler would find a place for, now."""
        waiting = [pod for pod in self.pods.values() if not pod.node]
        return [pod.name for pod in waiting if any(not self._objections(pod, name) for name in self.nodes)]

    def _objections(self, pod: ShardedPod, node: str) -> list[str]:
        there, zone, found = self.nodes[node], self.nodes[node].zone, []
        others = [one for one in self.pods.values() if one.node and one.name != pod.name]
        requested = sum(one.cpu for one in others if one.node == node) + pod.cpu
        if requested > there.cpu:
            found.append(f"{requested} of {there.cpu} millicores")
        for one in others:
            if self.nodes[one.node].zone == zone and (one.repels == pod.owner or pod.repels == one.owner):
                found.append(f"{one.name} is in {zone}, too")
        return found
