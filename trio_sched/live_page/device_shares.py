"""The devices that drivers offer on each node, and how many of them are allocated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from attrs import define, field

from trio_sched.snapshot.arrays import Int64Array
from trio_sched.snapshot.devices.allocated_devices import DeviceId
from trio_sched.snapshot.node_table import NodeTable

NOT_OFFERED: Final = -1
_TOGETHER: Final = 100
"""Nodes whose devices are counted without a pause."""


@define(eq=False)
class DeviceShares:
    """Counts the devices of a node again when something about its pods or devices has changed.

    Devices of slices that may be for several nodes count for none.
    """

    table: NodeTable
    columns: dict[str, Int64Array] = field(init=False, factory=dict)
    """By driver, shape (nodes,): permille of its devices that are allocated; `NOT_OFFERED` where it has none."""
    names: list[str] = field(init=False, factory=list)
    """The nodes, in the order of the columns."""
    _membership: int = field(init=False, default=-1)
    _generations: Int64Array = field(init=False, factory=lambda: np.zeros(0, dtype=np.int64))

    def refresh(self) -> Iterator[None]:
        """Count what has to be counted; yields where others may run, after which there may be other nodes."""
        table = self.table
        if not len(table.devices):
            self.columns = {}
            return
        if self._membership != table.membership_generation:
            self._membership, self.names = table.membership_generation, list(table.names)
            self._generations = np.full(len(self.names), -1, dtype=np.int64)
            self.columns = {}
        generations = table.views.pods_generation.copy()
        for number, row in enumerate(np.flatnonzero(generations != self._generations).tolist(), start=1):
            self._count(row)
            if number % _TOGETHER == 0:
                yield
        self._generations = generations

    def _count(self, row: int) -> None:
        devices = self.table.devices
        offered: dict[str, set[DeviceId]] = {}
        for entry in devices.own_slices(self.names[row]):
            offered.setdefault(entry.slice.spec.driver, set()).update(device.id for device in entry.devices)
        for driver in offered.keys() - self.columns.keys():
            self.columns[driver] = np.full(len(self.names), NOT_OFFERED, dtype=np.int64)
        for driver, column in self.columns.items():
            ids = offered.get(driver, ())
            allocated = sum(map(devices.allocated.has, ids))
            column[row] = round(1000 * allocated / len(ids)) if ids else NOT_OFFERED
