"""Counters that devices of a pool share: what allocated devices leave of them, and what a search has taken.

Source: counters of the structured allocator of Kubernetes 1.36 and 1.37.
"""

from __future__ import annotations

from collections.abc import Hashable

from attrs import define, field

from trio_sched.plugin_api import AllocatedDevices, DeviceId, NodeDevices, Pool, PoolDevice


@define(eq=False)
class PoolCounters:
    """The counters of the pools of one node during one search."""

    node: NodeDevices
    allocated: AllocatedDevices
    by_driver: bool
    """Whether pools of different drivers with one name have counters of their own."""
    _available: dict[Hashable, dict[tuple[str, str], int]] = field(factory=dict, init=False)
    """Pool → counter set and counter → amount in nano units."""
    _taken: dict[Hashable, dict[tuple[str, str], int]] = field(factory=dict, init=False)
    _pool_of: dict[DeviceId, Pool] | None = field(default=None, init=False)

    def take(self, device: PoolDevice) -> bool:
        """Take what *device* consumes; False, and nothing is taken, if there is not as much."""
        available = self._available_to(device)
        taken = self._taken_of(device)
        for counter_set, counter, amount in device.consumes:
            key = counter_set, counter
            taken[key] = taken.get(key, 0) + amount
        if all(amount >= taken.get(key, 0) for key, amount in available.items()):
            return True
        self.give_back(device)
        return False

    def give_back(self, device: PoolDevice) -> None:
        """Take back one successful `take`."""
        taken = self._taken_of(device)
        for counter_set, counter, amount in device.consumes:
            taken[counter_set, counter] = taken.get((counter_set, counter), 0) - amount

    def _key(self, device: PoolDevice) -> Hashable:
        return (device.id.driver, device.id.pool) if self.by_driver else device.id.pool

    def _taken_of(self, device: PoolDevice) -> dict[tuple[str, str], int]:
        return self._taken.setdefault(self._key(device), {})

    def _available_to(self, device: PoolDevice) -> dict[tuple[str, str], int]:
        """What allocated devices leave of the counters of the pool."""
        key = self._key(device)
        found = self._available.get(key)
        if found is not None:
            return found
        if self._pool_of is None:
            self._pool_of = {one.id: pool for pool in self.node.pools for one in pool.devices}
        pool = self._pool_of[device.id]
        found = {(name, counter): amount for name, one in pool.counter_sets.items() for counter, amount in one.items()}
        for one in (*pool.devices, *pool.other_devices):
            if one.consumes and self.allocated.has(one.id):
                for counter_set, counter, amount in one.consumes:
                    if (counter_set, counter) in found:
                        found[counter_set, counter] -= amount
        self._available[key] = found
        return found
