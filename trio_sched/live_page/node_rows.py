"""The nodes as columns, and what has changed of them since they were looked at last."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from trio_sched.live_page.device_shares import NOT_OFFERED, DeviceShares
from trio_sched.live_page.names import OTHERS, GrowingNames
from trio_sched.objects.node import Node
from trio_sched.objects.node_pools import pool_name
from trio_sched.objects.pod_requests import is_extended
from trio_sched.snapshot.arrays import Int64Array
from trio_sched.snapshot.node_table import NodeTable
from trio_sched.snapshot.vocabulary import CPU_ROW, MEMORY_ROW

CORDONED, NOT_READY, TAINTED = 1, 2, 4
"""The bits in the column ``flags``."""
_ZONE_LABELS: Final = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
_REPELLING: Final = frozenset({"NoSchedule", "NoExecute"})
_MOST_NAMES: Final = 1000
_MOST_DEVICES: Final = 8
_MOST_PERMILLE: Final = 1_000_000
_TOGETHER: Final = 200
"""Nodes whose labels and conditions are read without a pause."""

Columns = dict[str, Int64Array]
Traits = tuple[int, int, int, int]
"""Zone and pool as numbers, flags, and the shard."""


def is_ready(node: Node) -> bool:
    """Whether the kubelet of *node* says that it is ready, or nobody says anything about that."""
    return all(one.status == "True" for one in node.status.conditions or () if one.type == "Ready")


@define(eq=False)
class NodeRows:
    """Compares the nodes in the table of the cache with what it has returned of them last."""

    table: NodeTable
    evictions: Mapping[str, int]
    """By the name of a node: how many of its pods were evicted."""
    shard_of: Callable[[str], int] | None = None
    """Returns the shard of a node, where replicas share the work."""
    zones: GrowingNames = field(init=False, factory=lambda: GrowingNames(_MOST_NAMES))
    pools: GrowingNames = field(init=False, factory=lambda: GrowingNames(_MOST_NAMES))
    devices: GrowingNames = field(init=False, factory=lambda: GrowingNames(_MOST_DEVICES))
    """Extended resources that nodes offer, and drivers that have devices on them; beyond a few they are left out."""
    columns: Columns = field(init=False, factory=dict)
    """By name, shape (nodes,), in the order of `names`: what was returned last."""
    names: list[str] = field(init=False, factory=list)
    ids: Int64Array = field(init=False, factory=lambda: np.zeros(0, dtype=np.int64))
    """Shape (nodes,): the number of each node in the stream."""
    _generations: Int64Array = field(init=False, factory=lambda: np.zeros(0, dtype=np.int64))
    """Shape (nodes,): of the node objects that were read."""
    _traits: Int64Array = field(init=False, factory=lambda: np.zeros((4, 0), dtype=np.int64))
    """Shape (4, nodes): what was read of them."""
    _next_id: int = field(init=False, default=0)
    _device_shares: DeviceShares = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._device_shares = DeviceShares(self.table)

    def refresh(self, delta: dict[str, Any]) -> Iterator[None]:
        """Look at the nodes, and put what has changed into *delta*; yields where others may run."""
        prepared: dict[str, tuple[Node, Traits]] = {}
        if self.table.count > len(self.names) + _TOGETHER:  # while others run, the rows may change
            for number, node in enumerate(list(self.table.nodes), start=1):
                prepared[node.name] = node, self._traits_of(node)
                if number % _TOGETHER == 0:
                    yield
        yield from self._device_shares.refresh()
        counts = len(self.zones), len(self.pools), len(self.devices)
        changes = self._compare(prepared)
        for name, known, before in zip(("zones", "pools", "devices"), self._vocabularies(), counts, strict=True):
            if len(known) > before:
                delta[name] = known.names
        if changes:
            delta["nodes"] = changes

    def shown(self) -> dict[str, list[Any]]:
        """All columns, as lists."""
        return self._listed(np.arange(len(self.names)))

    def _vocabularies(self) -> tuple[GrowingNames, GrowingNames, GrowingNames]:
        return self.zones, self.pools, self.devices

    def _compare(self, prepared: dict[str, tuple[Node, Traits]]) -> dict[str, Any]:
        changes: dict[str, Any] = {}
        added: Int64Array = np.zeros(0, dtype=np.int64)
        if self.names != self.table.names:
            added, removed = self._follow_membership()
            if removed:
                changes["removed"] = removed
        self._read_objects(prepared)
        before, now = self.columns, self._all_columns()
        self.columns = now
        is_old = np.ones(len(self.names), dtype=np.bool_)
        is_old[added] = False
        changed = {}
        for name, column in now.items():
            known = before.get(name)
            differs = is_old & (column != (NOT_OFFERED if known is None else known))
            rows = np.flatnonzero(differs)
            if len(rows):
                changed[name] = [self.ids[rows].tolist(), _values(name, column[rows])]
        if len(added):
            changes["added"] = self._listed(added)
        if changed:
            changes["changed"] = changed
        return changes

    def _follow_membership(self) -> tuple[Int64Array, list[int]]:
        """Other nodes than before, or in another order: returns the rows of the new ones, and the ids of those gone."""
        row_of = {name: row for row, name in enumerate(self.names)}
        self.names = list(self.table.names)
        former = np.array([row_of.get(name, -1) for name in self.names], dtype=np.intp)
        is_new = former < 0
        gone = np.ones(len(row_of), dtype=np.bool_)
        gone[former[~is_new]] = False
        removed: list[int] = self.ids[gone].tolist()
        self.ids, self._generations = _taken(self.ids, former), _taken(self._generations, former)
        self._traits = np.stack([_taken(trait, former) for trait in self._traits])
        self.columns = {name: _taken(column, former) for name, column in self.columns.items()}
        added = np.flatnonzero(is_new)
        self.ids[added] = np.arange(self._next_id, self._next_id + len(added))
        self._generations[added] = -1
        self._next_id += len(added)
        return added, removed

    def _read_objects(self, prepared: dict[str, tuple[Node, Traits]]) -> None:
        """Read the node objects that are new, or not those that were read."""
        generations, nodes = self.table.views.node_generation, self.table.nodes
        for row in np.flatnonzero(generations != self._generations).tolist():
            node = nodes[row]
            known = prepared.get(node.name)
            traits = known[1] if known is not None and known[0] is node else self._traits_of(node)
            self._traits[:, row] = traits
        self._generations = generations.copy()

    def _traits_of(self, node: Node) -> Traits:
        labels = node.labels
        zone = next((labels[label] for label in _ZONE_LABELS if label in labels), "")
        flags = CORDONED if node.spec.unschedulable else 0
        if not is_ready(node):
            flags |= NOT_READY
        if any(taint.effect in _REPELLING for taint in node.spec.taints or ()):
            flags |= TAINTED
        shard = 0 if self.shard_of is None else self.shard_of(node.name)
        return self.zones.number(zone), self.pools.number(pool_name(node) or ""), flags, shard

    def _all_columns(self) -> Columns:
        """The columns as they are now."""
        views = self.table.views
        zone, pool, flags, shard = self._traits.copy()
        columns = {
            "zone": zone,
            "pool": pool,
            "flags": flags,
            "cpu": _permille(views.requested[CPU_ROW], views.allocatable[CPU_ROW]),
            "memory": _permille(views.requested[MEMORY_ROW], views.allocatable[MEMORY_ROW]),
            "pods": views.pod_count.copy(),
            "pod_limit": views.allowed_pods.copy(),
            "evicted": self._evicted(),
        }
        if self.shard_of is not None:
            columns["shard"] = shard
        for row, resource in enumerate(self.table.resources.values):
            if not is_extended(resource):
                continue
            offered = views.allocatable[row]
            number = self.devices.number(resource) if offered.any() else self.devices.get(resource)
            if number is not None and self.devices.names[number] != OTHERS:
                shares = _permille(views.requested[row], offered)
                columns[_device_column(number)] = np.where(offered > 0, shares, NOT_OFFERED)
        if self._device_shares.names == self.names:  # else nodes have come or gone while others ran
            for driver, column in self._device_shares.columns.items():
                number = self.devices.number(driver)
                if self.devices.names[number] != OTHERS:
                    columns[_device_column(number)] = column.copy()
        for number, name in enumerate(self.devices.names):
            if name != OTHERS and _device_column(number) not in columns:
                columns[_device_column(number)] = np.full(len(self.names), NOT_OFFERED, dtype=np.int64)
        return columns

    def _evicted(self) -> Int64Array:
        if not self.evictions:
            return np.zeros(len(self.names), dtype=np.int64)
        return np.fromiter((self.evictions.get(name, 0) for name in self.names), np.int64, len(self.names))

    def _listed(self, rows: Int64Array) -> dict[str, list[Any]]:
        return {
            "id": self.ids[rows].tolist(),
            "name": [self.names[row] for row in rows.tolist()],
            **{name: _values(name, column[rows]) for name, column in self.columns.items()},
        }


def _taken(column: Int64Array, rows: NDArray[np.intp]) -> Int64Array:
    """Shape (rows,): the entries of *column* at *rows*; 0 where these are negative."""
    return np.append(column, 0)[rows]


def _device_column(number: int) -> str:
    return f"device_{number}"


def _values(name: str, column: Int64Array) -> list[Any]:
    """*column* as a list; null where a device is not offered."""
    values: list[Any] = column.tolist()
    if not name.startswith("device_"):
        return values
    return [None if value == NOT_OFFERED else value for value in values]


def _permille(requested: Int64Array, allocatable: Int64Array) -> Int64Array:
    """Shape (nodes,): what is requested of what there is; as if there were one unit where there is nothing."""
    shares = np.rint(requested / np.maximum(allocatable, 1) * 1000)
    return np.clip(shares, 0, _MOST_PERMILLE).astype(np.int64)
