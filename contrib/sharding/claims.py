"""Devices for claims: whoever decides on a pod allocates one before the pod gets a place."""

from __future__ import annotations

from attrs import define, field

from contrib.sharding.objects import Claim, Node, ShardedPod
from contrib.sharding.requests import Requests


@define(eq=False)
class Claims:
    """Those that one process decides on."""

    requests: Requests
    _allocating: dict[str, tuple[str, int]] = field(factory=dict, init=False)
    """Claims → the node and device that was asked for last."""
    _useless: dict[str, int] = field(factory=dict, init=False)
    """Claims with a device with which a pod has no place → the shard that was decided for."""

    def nodes(self, pod: ShardedPod) -> list[Node]:
        """The nodes on which the pod has its device, or could get one."""
        nodes = self.requests.process.link.server.nodes
        if not pod.claim:
            return list(nodes.values())
        claim = self.requests.view.claims.get(pod.claim)
        if claim is None or claim.name in self.requests.under_way:
            return []
        if claim.node:
            return [nodes[claim.node]]
        taken = self._taken()
        return [node for node in nodes.values() if self._free_device(node, taken) is not None]

    def unallocated(self, pod: ShardedPod) -> Claim | None:
        """The claim of the pod, if it has no device yet."""
        claim = self.requests.view.claims.get(pod.claim)
        return None if claim is None or claim.node else claim

    def allocate(self, claim: Claim, node: Node, shard: int) -> None:
        """Allocate a device of *node* to a claim."""
        device = self._free_device(node, self._taken())
        if device is not None:
            self._allocating[claim.name] = node.name, device
            self._write(claim, shard, node.name, device)

    def has_no_place(self, pod: ShardedPod, shard: int) -> None:
        """A pod has no place with the device that its claim has, if it has one."""
        claim = self.requests.view.claims.get(pod.claim)
        if claim is not None and claim.node:
            self._useless[claim.name] = shard

    def give_back(self) -> None:
        """Take the devices back with which pods have no place, unless others have one that use them, too."""
        useless, self._useless = self._useless, {}
        under_way = self.requests.under_way
        for name, shard in useless.items():
            users = [one for one in self.requests.view.pods.values() if one.claim == name]
            if name not in under_way and not any(self.requests.place_of(one) or one.name in under_way for one in users):
                self._write(self.requests.view.claims[name], shard, "", 0)

    def _write(self, claim: Claim, shard: int, node: str, device: int) -> None:
        server = self.requests.process.link.server
        self.requests.send(claim.name, (shard,), lambda: server.allocate(claim.name, claim.version, node, device))

    def _taken(self) -> set[tuple[str, int]]:
        under_way = self.requests.under_way
        self._allocating = {name: device for name, device in self._allocating.items() if name in under_way}
        allocated = {(claim.node, claim.device) for claim in self.requests.view.claims.values() if claim.node}
        return allocated | set(self._allocating.values())

    def _free_device(self, node: Node, taken: set[tuple[str, int]]) -> int | None:
        return next((device for device in range(node.devices) if (node.name, device) not in taken), None)
