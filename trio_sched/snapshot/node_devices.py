"""The devices that one node can use, in the order in which they are tried."""

from __future__ import annotations

from attrs import define, field

from trio_sched.errors import TrioSchedError
from trio_sched.objects.node import Node
from trio_sched.objects.selector import NodeSelector
from trio_sched.snapshot.devices.device_pools import Pool, PoolDevice, gather_pools
from trio_sched.snapshot.devices.device_table import DeviceTable
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.node_selection import match_node_selector, terms_problem


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
        self.has_mappings = any(
            one.device.node_allocatable_resource_mappings or one.device.node_allocatable_resources
            for one in self.devices
        )


_NO_DEVICES = NodeDevices((), (), is_local=True)


@define(eq=False)
class NodeDevicesCache:
    """The devices of nodes, put together once; the table that they come from keeps them until they change."""

    partitionable: bool = True
    """Gate DRAPartitionableDevices."""
    counters_belong_to_nodes: bool = False
    """Whether slices with shared counters are for the nodes that they name only, as since 1.37."""

    def get(self, nodes: NodeColumns, position: int) -> NodeDevices:
        """The devices of the node at *position*.

        Raises:
            BadNodeSelector: the selector of a slice or a device cannot be evaluated.
        """
        table, name = nodes.devices, nodes.name(position)
        has_shared = table.has_shared_slices
        if not has_shared and not table.has_own_slices(name):
            return _NO_DEVICES
        node = nodes.node(position).node if has_shared else None
        by_node = table.put_together.setdefault((self.partitionable, self.counters_belong_to_nodes), {})
        kept: tuple[Node | None, NodeDevices] | None = by_node.get(name)
        if kept is not None and kept[0] is node:
            return kept[1]
        found = self._put_together(table, nodes, position, name)
        by_node[name] = node, found
        return found

    def _put_together(self, table: DeviceTable, nodes: NodeColumns, position: int, name: str) -> NodeDevices:
        row = nodes.take(slice(position, position + 1))

        def matches(node_name: str | None, all_nodes: bool | None, selector: NodeSelector | None) -> bool:
            if node_name:
                return node_name == name
            if all_nodes or selector is None:
                return bool(all_nodes)
            check_node_selector(selector)
            return bool(match_node_selector(selector, row)[0])

        pools = gather_pools(
            table.slices_for(name),
            matches,
            table.slices_of_pool,
            partitionable=self.partitionable,
            counters_belong_to_nodes=self.counters_belong_to_nodes,
        )
        devices = tuple(one for pool in pools for one in pool.devices)
        is_local = not table.has_shared_slices and all(pool.is_usable for pool in pools)
        return NodeDevices(tuple(pools), devices, is_local)
