"""What must never happen, looked at with every write; and what must be true at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from attrs import define, field

from contrib.sharding.objects import Claim, Lease, Node, PodGroup, ShardedPod
from contrib.sharding.server import Server


@define(eq=False)
class Checks:
    """Collects what was wrong."""

    nodes: Mapping[str, Node]
    now: Callable[[], float]
    problems: list[str] = field(factory=list, init=False)
    bound_at: dict[str, float] = field(factory=dict, init=False)
    """When each pod was bound."""
    bound_on: dict[str, str] = field(factory=dict, init=False)
    """The node of each pod that was bound."""
    evicted: dict[str, tuple[str, str]] = field(factory=dict, init=False)
    """Pods that were evicted → their nodes, and the pods that they made room for."""
    server: Server = field(init=False)

    def before_bind(self, pod: ShardedPod, node: str) -> None:
        """A pod is about to be bound."""
        self.bound_at[pod.name], self.bound_on[pod.name] = self.now(), node
        for why in self._objections(pod, node):
            self._note(f"{pod.name} on {node}: {why}")
        if pod.claim and self._claim_of(pod).node != node:
            self._note(f"{pod.name} on {node}: its device is not there")

    def before_eviction(self, pod: ShardedPod, preemptor: str) -> None:
        """A pod is about to be evicted."""
        self.evicted[pod.name] = pod.node, preemptor
        other = self.server.pods.get(preemptor)
        if other is None:
            return  # deleted by its user while the request was under way
        if other.priority <= pod.priority:
            self._note(f"{pod.name} is evicted for {preemptor}, which is not more important")
        elif other.node or other.nominated != pod.node:
            self._note(f"{pod.name} is evicted for {preemptor}, which has or seeks another place")
        elif list(self._objections(other, pod.node, above=other.priority)):
            self._note(f"{pod.name} is evicted for {preemptor}, which has no place there without it")

    def before_allocation(self, claim: Claim) -> None:
        """A claim is about to get a device, or to lose it."""
        for other in self.server.claims.values():
            if other.name == claim.name and any(pod.claim == claim.name and pod.node for pod in self._pods()):
                self._note(f"{claim.name} is changed while pods use its device")
            if other.name != claim.name and claim.node and (other.node, other.device) == (claim.node, claim.device):
                self._note(f"{claim.name} gets a device of {claim.node} that {other.name} has")

    def before_lease(self, name: str, lease: Lease) -> None:
        """A lease is about to be written."""
        if not name.startswith("shard-") or not lease.holder:
            return
        for other, stored in self.server.leases.items():
            if other.startswith("shard-") and other != name and stored.holder and stored.shards != lease.shards:
                self._note(f"{name} of {lease.shards} is held while {other} of {stored.shards} is")

    def at_the_end(self) -> None:
        """Everything is quiet."""
        for group in self.server.groups.values():
            bound = sum(pod.group == group.name and bool(pod.node) for pod in self._pods())
            lost = any(self._group_of(name) == group.name for name in self.bound_on if name not in self.server.pods)
            if 0 < bound < group.min_count and not lost and not self.has_lost_pods(group.name):
                self._note(f"{group.name} runs in part: {bound} of {group.min_count}")

    def has_lost_pods(self, group: str) -> bool:
        """Whether a pod of the group was deleted."""
        return any(change.stored is None and self._group_of(change.name) == group for change in self.server.log)

    def left_unplaced(self) -> list[str]:
        """The pods that one scheduler would find a place for, now."""
        waiting = [pod for pod in self._pods() if not pod.node and not self._awaits_group(pod)]
        alone = [pod.name for pod in waiting if any(self._could_be_on(pod, name) for name in self.nodes)]
        return alone + [group.name for group in self.server.groups.values() if self._could_run(group)]

    def wasted(self) -> Counter[str]:
        """How many were evicted on a node that the other pod did not get, by the reason."""
        found: Counter[str] = Counter()
        for node, preemptor in self.evicted.values():
            if preemptor not in self.bound_on:
                found["not bound" if preemptor in self.server.pods else "deleted"] += 1
            elif self.bound_on[preemptor] != node:
                found["bound elsewhere"] += 1
        return found

    def _note(self, what: str) -> None:
        self.problems.append(f"{self.now():.3f}: {what}")

    def _pods(self) -> list[ShardedPod]:
        return list(self.server.pods.values())

    def _objections(self, pod: ShardedPod, node: str, above: int | None = None) -> Iterator[str]:
        """Why a pod cannot be on a node; *above*: even without those of the node that have a lower priority."""
        there, zone = self.nodes[node], self.nodes[node].zone
        others = [one for one in self._pods() if one.node and one.name != pod.name]
        if above is not None:
            others = [one for one in others if one.node != node or (one.priority >= above and not one.is_terminating)]
        requested = sum(one.cpu for one in others if one.node == node) + pod.cpu
        if requested > there.cpu:
            yield f"{requested} of {there.cpu} millicores"
        for one in others:
            if self.nodes[one.node].zone == zone and (one.repels == pod.owner or pod.repels == one.owner):
                yield f"{one.name} is in {zone}, too"

    def _could_be_on(self, pod: ShardedPod, node: str) -> bool:
        return not any(self._objections(pod, node, above=pod.priority)) and (
            not pod.claim or self._has_device(pod, node)
        )

    def _has_device(self, pod: ShardedPod, node: str) -> bool:
        """Whether the pod's device is on the node, or one is free there, if devices are taken by pods that run only."""
        in_use = {one.claim for one in self._pods() if one.claim and one.node}
        if pod.claim not in self.server.claims:
            return False
        if pod.claim in in_use:
            return self._claim_of(pod).node == node
        return sum(self.server.claims[name].node == node for name in in_use) < self.nodes[node].devices

    def _could_run(self, group: PodGroup) -> bool:
        members = [pod for pod in self._pods() if pod.group == group.name and not pod.node]
        if group.is_scheduled or len(members) < group.min_count:
            return False
        free = Counter({name: node.cpu for name, node in self.nodes.items()})
        for pod in self._pods():
            free[pod.node] -= pod.cpu
        return sum(free[name] // members[0].cpu for name in self.nodes) >= group.min_count

    def _awaits_group(self, pod: ShardedPod) -> bool:
        return bool(pod.group) and not self.server.groups[pod.group].is_scheduled

    def _claim_of(self, pod: ShardedPod) -> Claim:
        return self.server.claims.get(pod.claim, Claim(name=pod.claim))

    def _group_of(self, pod: str) -> str:
        """Pods of groups have their names from these."""
        return pod.rpartition("-")[0]
