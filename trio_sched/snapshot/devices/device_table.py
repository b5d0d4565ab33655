"""Devices of the cluster: the slices that offer them, the claims that have them, and what each node can use.

Slices are indexed by node, since most are for one node. What a node can use is put together when it is asked for, and
dropped when a slice of one of its pools changes. Costs nothing where there are no slices and no claims.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator
from typing import Any

from attrs import define, field

from trio_sched.objects.resource.device_taint_rule import DeviceTaintRule
from trio_sched.objects.resource.resource_claim import ResourceClaim
from trio_sched.objects.resource.resource_slice import ResourceSlice
from trio_sched.snapshot.devices.allocated_devices import AllocatedDevices, DeviceId
from trio_sched.snapshot.devices.claim_cache import ClaimCache
from trio_sched.snapshot.devices.device_models import DeviceModels
from trio_sched.snapshot.devices.device_pools import PoolDevice, PoolKey, PoolSlices, SliceEntry, with_taints

KINDS = frozenset({"ResourceSlice", "ResourceClaim", "DeviceTaintRule"})
"""The kinds of objects that it is made of."""

_MANY_SLICES = 100
"""With more slices of one pool, a change of one counts as a change for all nodes: that costs less than to name them."""


def _ignore(_node_name: str | None) -> None:
    """Nobody follows the devices yet."""


@define(eq=False)
class DeviceTable:
    """The devices of all nodes; belongs to the table of nodes, and is the same for all profiles."""

    on_change: Callable[[str | None], None] = _ignore
    """Called with the node whose devices have changed, or some device of which was allocated or freed; None: any."""
    allocated: AllocatedDevices = field(factory=AllocatedDevices)
    claims: ClaimCache = field(init=False)
    generation: int = 0
    """Counts changes of slices."""
    generation_of_node: dict[str, int] = field(factory=dict)
    """Node → the generation in which a slice changed that is for it alone."""
    shared_generation: int = 0
    """The generation in which another slice changed."""
    put_together: dict[Hashable, dict[str, Any]] = field(factory=dict)
    """The rules for pools → node → what is made of its devices, until they change or the node is gone."""
    _slices: dict[str, SliceEntry] = field(factory=dict)
    _of_node: dict[str, dict[str, SliceEntry]] = field(factory=dict)
    _shared: dict[str, SliceEntry] = field(factory=dict)
    """Slices that may be for several nodes."""
    _of_pool: dict[PoolKey, PoolSlices] = field(factory=dict)
    _taint_rules: dict[str, DeviceTaintRule] = field(factory=dict)
    _published: dict[str, ResourceSlice] = field(factory=dict)
    """Slices as their drivers publish them, where rules add taints to their devices."""
    _models: DeviceModels = field(factory=DeviceModels)
    _nodes_of_device: dict[DeviceId, dict[str, int]] = field(factory=dict)
    """Devices in slices for one node → that node, and in how many slices it has the device: while a driver replaces a
    pool, slices of both generations have it. With several nodes, drivers have made a mistake."""

    def __attrs_post_init__(self) -> None:
        self.allocated.on_change = self._allocation_changed
        self.claims = ClaimCache(self.allocated)

    @property
    def has_shared_slices(self) -> bool:
        """Whether there are slices that may be for several nodes, or whose counters all nodes look at."""
        return bool(self._shared)

    def __len__(self) -> int:
        return len(self._slices)

    def has_own_slices(self, node_name: str) -> bool:
        """Whether there are slices for the node alone."""
        return node_name in self._of_node

    def forget_node(self, node_name: str) -> None:
        """Drop what is put together for the node: its devices have changed, or it is gone."""
        for by_node in self.put_together.values():
            by_node.pop(node_name, None)

    def forget_unused(self) -> None:
        """Forget what is shared by equal devices that are all gone."""
        self._models.forget_unused()

    def own_slices(self, node_name: str) -> Collection[SliceEntry]:
        """The slices for the node alone."""
        return self._of_node.get(node_name, {}).values()

    def slices_for(self, node_name: str) -> Iterator[SliceEntry]:
        """The slices that may be for the node."""
        yield from self.own_slices(node_name)
        yield from self._shared.values()

    def slices_of_pool(self, key: PoolKey) -> PoolSlices:
        """All slices of a pool that has some."""
        return self._of_pool[key]

    def device(self, id: DeviceId) -> PoolDevice | None:
        """The device with that id; None if no slice has it."""
        of_pool = self._of_pool.get((id.driver, id.pool))
        for entry in () if of_pool is None else of_pool.entries.values():
            for device in entry.devices:
                if device.id == id:
                    return device
        return None

    # --- the watches ------------------------------------------------------------------------------------------------

    def put(self, one: ResourceSlice | ResourceClaim | DeviceTaintRule) -> None:
        """A watch shows *one*."""
        if isinstance(one, ResourceClaim):
            self.claims.put(one)
        elif isinstance(one, DeviceTaintRule):
            self._taint_rules[one.metadata.name] = one
            self._apply_taint_rules()
        else:
            self._put_slice(one)

    def remove(self, kind: str, name: str, namespace: str = "") -> None:
        """A watch shows that an object of one of the `KINDS` is gone."""
        if kind == "ResourceClaim":
            self.claims.remove(namespace, name)
        elif kind == "DeviceTaintRule":
            if self._taint_rules.pop(name, None) is not None:
                self._apply_taint_rules()
        else:
            self._published.pop(name, None)
            self._take_out(name)

    def _put_slice(self, published: ResourceSlice) -> None:
        name = published.metadata.name
        tainted = with_taints(published, self._taint_rules.values()) if self._taint_rules else published
        if tainted is published:
            self._published.pop(name, None)
        else:
            self._published[name] = published
        self._take_out(name)
        self._put_in(SliceEntry(tainted, self._models))

    def _apply_taint_rules(self) -> None:
        """Taint the devices that the rules select, and no others."""
        for name, entry in list(self._slices.items()):
            published = self._published.get(name, entry.slice)
            if name in self._published or with_taints(published, self._taint_rules.values()) is not published:
                self._put_slice(published)

    def _put_in(self, entry: SliceEntry) -> None:
        self._slices[entry.name] = entry
        of_pool = self._of_pool.get(entry.pool_key)
        if of_pool is None:
            of_pool = self._of_pool[entry.pool_key] = PoolSlices()
        of_pool.add(entry)
        node_name = entry.slice.spec.node_name
        if entry.is_for_one_node and node_name:
            self._of_node.setdefault(node_name, {})[entry.name] = entry
            for device in entry.devices:
                nodes = self._nodes_of_device.setdefault(device.id, {})
                nodes[node_name] = nodes.get(node_name, 0) + 1
        else:
            self._shared[entry.name] = entry
        self._slice_changed(entry)

    def _take_out(self, name: str) -> None:
        entry = self._slices.pop(name, None)
        if entry is None:
            return
        of_pool = self._of_pool[entry.pool_key]
        of_pool.remove(entry)
        if not of_pool.entries:
            del self._of_pool[entry.pool_key]
        self._shared.pop(name, None)
        node_name = entry.slice.spec.node_name
        if entry.is_for_one_node and node_name:
            of_node = self._of_node[node_name]
            del of_node[name]
            if not of_node:
                del self._of_node[node_name]
                self.generation_of_node.pop(node_name, None)
            for device in entry.devices:
                nodes = self._nodes_of_device[device.id]
                nodes[node_name] -= 1
                if not nodes[node_name]:
                    del nodes[node_name]
                if not nodes:
                    del self._nodes_of_device[device.id]
        self._slice_changed(entry)

    def _slice_changed(self, entry: SliceEntry) -> None:
        self.generation += 1
        own = entry.slice.spec.node_name or ""
        if own in self._of_node:
            self.generation_of_node[own] = self.generation
        of_pool = self._of_pool.get(entry.pool_key)
        others = () if of_pool is None else of_pool.entries.values()
        is_local = entry.is_for_one_node and len(others) <= _MANY_SLICES
        if not is_local or any(not one.is_for_one_node for one in others):
            self.shared_generation = self.generation
            self.put_together.clear()
            self.on_change(None)
            return
        # A pool may have slices for several nodes: all of them see whether it is complete.
        for node_name in {one.slice.spec.node_name or "" for one in others} | {own}:
            if node_name in self._of_node:
                self.generation_of_node[node_name] = self.generation
            self.forget_node(node_name)
            self.on_change(node_name)

    def _allocation_changed(self, device: DeviceId) -> None:
        nodes = self._nodes_of_device.get(device)
        if nodes is not None:
            self.on_change(None if len(nodes) > 1 else next(iter(nodes)))
