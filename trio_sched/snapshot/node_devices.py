"""The devices that one node can use, in the order in which they are tried."""

from __future__ import annotations

from attrs import define, field

from trio_sched.errors import TrioSchedError
from trio_sched.objects.node import Node
from trio_sched.objects.selector import NodeSelector
from trio_sched.snapshot.device_pools import Pool, PoolDevice, gather_pools
from trio_sched.snapshot.device_table import DeviceTable
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.node_selection import match_node_selector, terms_problem

_SLACK = 100
"""Nodes that are gone whose devices may be kept."""


class BadNodeSelector(TrioSchedError):
    """The node selector of a slice, a device or an allocation cannot be evaluated."""


def check_node_selector(selector: NodeSelector) -> None:
    """Check that *selector* can be evaluated.

    Raises:
        BadNodeSelector: it cannot.
    """
    if problem := terms_problem(selector.node_selector_terms or ()):
        raise BadNodeSelector(problem)


@define(eq=False)
class NodeDevices:
    """The pools of one node."""

    pools: tuple[Pool, ...]
    devices: tuple[PoolDevice, ...]
    """Those of all usable pools, in the order in which they are tried."""
    is_local: bool
    """Whether it depends on nothing but slices for this node alone, all of whose pools are usable."""
    has_mappings: bool = field(init=False)
    """Whether one of its devices takes resources of the node itself; gate DRANodeAllocatableResources."""

    def __attrs_post_init__(self) -> None:
        self.has_mappings = any(one.device.node_allocatable_resource_mappings for one in self.devices)


_NO_DEVICES = NodeDevices((), (), is_local=True)


@define(eq=False)
class NodeDevicesCache:
    """What `devices_of_node` has put together, until a slice changes."""

    partitionable: bool = True
    """Gate DRAPartitionableDevices."""
    _kept: dict[str, tuple[tuple[int, int], Node | None, NodeDevices]] = field(factory=dict)
    _drop_at: int = _SLACK

    def get(self, nodes: NodeColumns, position: int) -> NodeDevices:
        """The devices of the node at *position*.

        Raises:
            BadNodeSelector: the selector of a slice or a device cannot be evaluated.
        """
        table, name = nodes.devices, nodes.name(position)
        version = table.generation_of_node.get(name, 0), table.shared_generation
        node = nodes.node(position).node if table.has_shared_slices else None
        kept = self._kept.get(name)
        if kept is not None and kept[0] == version and kept[1] is node:
            return kept[2]
        if not table.has_shared_slices and version[0] == 0:
            return _NO_DEVICES
        found = _node_devices(table, nodes, position, name, self.partitionable)
        self._kept[name] = version, node, found
        if len(self._kept) > self._drop_at:
            self._drop_outdated(table)
        return found

    def _drop_outdated(self, table: DeviceTable) -> None:
        """Drop what belongs to other versions of the slices: nodes that are gone, above all."""
        self._kept = {
            name: one
            for name, one in self._kept.items()
            if one[0] == (table.generation_of_node.get(name, 0), table.shared_generation)
        }
        self._drop_at = 2 * len(self._kept) + _SLACK


def _node_devices(table: DeviceTable, nodes: NodeColumns, position: int, name: str, partitionable: bool) -> NodeDevices:
    row = nodes.take(slice(position, position + 1))

    def matches(node_name: str | None, all_nodes: bool | None, selector: NodeSelector | None) -> bool:
        if node_name:
            return node_name == name
        if all_nodes or selector is None:
            return bool(all_nodes)
        check_node_selector(selector)
        return bool(match_node_selector(selector, row)[0])

    pools = gather_pools(table.slices_for(name), matches, table.slices_of_pool, partitionable=partitionable)
    devices = tuple(one for pool in pools for one in pool.devices)
    is_local = not table.has_shared_slices and all(pool.is_usable for pool in pools)
    return NodeDevices(tuple(pools), devices, is_local)
