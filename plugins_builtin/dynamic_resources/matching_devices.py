"""The devices that a request of a pending pod could get, for its explanation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np
from attrs import field, frozen

from plugins_builtin.dynamic_resources.search_effort import SearchTimedOut, SelectorFailed
from trio_sched.plugin_api import (
    BadNodeSelector,
    BoolArray,
    DeviceClass,
    DeviceId,
    DeviceRequest,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    Handle,
    NodeColumns,
    NodeDevicesCache,
    Pool,
    PoolDevice,
    QuantityStyle,
    ResourceClaim,
    format_nano,
)

CLASS: Final = "DeviceClass"
_NEVER: Final = "false"
"""What the devices of a class that does not exist fulfil."""
_NO_SCHEDULE: Final = ("NoSchedule", "NoExecute")

WantedDevices = ExactDeviceRequest | DeviceSubRequest
"""What a request asks for, or one of its alternatives."""
Matches = Callable[[str, PoolDevice], bool]
"""Whether a CEL expression is true for a device."""


@frozen(eq=False, kw_only=True)
class Devices:
    """The devices of all nodes, and what a request says of them."""

    handle: Handle
    nodes: NodeColumns
    matches: Matches
    cache: NodeDevicesCache = field(factory=NodeDevicesCache)
    _known: dict[tuple[str, ...], list[PoolDevice]] = field(factory=dict, init=False)
    """CEL expressions → the devices for which they are all true: an explanation asks for the same several times."""

    def all(self) -> list[PoolDevice]:
        """Each device once."""
        return self._true_for_all(())

    def _true_for_all(self, wanted: tuple[str, ...]) -> list[PoolDevice]:
        """The devices for which all expressions are true."""
        known = self._known.get(wanted)
        if known is None:
            known = self.passing(wanted[-1:], self._true_for_all(wanted[:-1])) if wanted else self._each()
            self._known[wanted] = known
        return known

    def _each(self) -> list[PoolDevice]:
        found: dict[Any, PoolDevice] = {}
        for position in range(len(self.nodes)):
            try:
                found.update((one.id, one) for one in self.cache.get(self.nodes, position).devices)
            except BadNodeSelector:
                continue  # the filter reports it
        return list(found.values())

    def unusable_pools(self) -> list[str]:
        """Why pools have no devices, a few words each."""
        found: dict[str, None] = {}
        for position in range(len(self.nodes)):
            try:
                pools = self.cache.get(self.nodes, position).pools
            except BadNodeSelector:
                continue
            for pool in pools:
                if pool.is_incomplete or pool.is_invalid:
                    state = "lacks some of its slices" if pool.is_incomplete else "is not valid"
                    found[f"the pool {pool.key[1]} of driver {pool.key[0]} {state}"] = None
        return list(found)

    def passing(self, expressions: Iterable[str], devices: Iterable[PoolDevice]) -> list[PoolDevice]:
        """Those for which all *expressions* are true."""
        wanted = list(expressions)
        return [one for one in devices if all(self._is_true(expression, one) for expression in wanted)]

    def _is_true(self, expression: str, device: PoolDevice) -> bool:
        try:
            return self.matches(expression, device)
        except (SelectorFailed, SearchTimedOut):
            return False

    def of_class(self, name: str) -> list[PoolDevice]:
        """The devices of a class."""
        return self._true_for_all(tuple(self.class_expressions(name)))

    def class_expressions(self, name: str) -> list[str]:
        """The CEL expressions of a class."""
        found: DeviceClass | None = self.handle.object(CLASS, name)
        return [_NEVER] if found is None else expressions(found.spec.selectors)

    def matching(self, request: WantedDevices) -> list[PoolDevice]:
        """The devices that *request* could get, if they were free."""
        return self._true_for_all((*self.class_expressions(request.device_class_name), *expressions(request.selectors)))

    def is_free(self, device: PoolDevice) -> bool:
        """Whether no claim has *device*."""
        return not self.nodes.devices.allocated.has(device.id)

    def short_counters(self, device: PoolDevice) -> tuple[list[str], list[PoolDevice]]:
        """The counters of which others leave too little for *device*, in words, and the devices that consume them."""
        for position in range(len(self.nodes)) if device.consumes else ():
            try:
                pools = self.cache.get(self.nodes, position).pools
            except BadNodeSelector:
                continue
            for pool in pools:
                if any(one.id == device.id for one in pool.devices):
                    return self._short_counters(device, pool)
        return [], []

    def _short_counters(self, device: PoolDevice, pool: Pool) -> tuple[list[str], list[PoolDevice]]:
        texts: list[str] = []
        users: dict[DeviceId, PoolDevice] = {}
        in_use = [one for one in (*pool.devices, *pool.other_devices) if one.consumes and not self.is_free(one)]
        for counter_set, counter, amount in device.consumes:
            taken = {
                one.id: (one, used)
                for one in in_use
                for name, of, used in one.consumes
                if (name, of) == (counter_set, counter)
            }
            left = pool.counter_sets.get(counter_set, {}).get(counter, 0) - sum(used for _one, used in taken.values())
            if left < amount:
                has, needed = (format_nano(value, QuantityStyle.BINARY) for value in (max(left, 0), amount))
                texts.append(f"{counter} of {counter_set} has {has} left, it consumes {needed}")
                users.update((key, one) for key, (one, _used) in taken.items())
        return texts, list(users.values())

    def lacking(self, claim: ResourceClaim) -> BoolArray:
        """Shape (nodes,): which nodes have no device that a request of *claim* could get, free or not."""
        requests = claim.spec.devices.requests or ()
        wanted = [
            {device.id for one in alternatives_of(request) for device in self.matching(one)} for request in requests
        ]
        found = np.zeros(len(self.nodes), dtype=np.bool_)
        for position in range(len(self.nodes)):
            try:
                there = {one.id for one in self.cache.get(self.nodes, position).devices}
            except BadNodeSelector:
                continue
            found[position] = any(there.isdisjoint(one) for one in wanted)
        return found


def alternatives_of(request: DeviceRequest) -> Sequence[WantedDevices]:
    """What *request* asks for: one of these."""
    return (request.exactly,) if request.exactly is not None else request.first_available or ()


def expressions(selectors: Iterable[Any] | None) -> list[str]:
    """The CEL expressions of *selectors*."""
    return [one.cel.expression for one in selectors or () if one.cel is not None]


def untolerated(wanted: WantedDevices, device: PoolDevice) -> list[Any]:
    """The taints of *device* that keep pods away, and that *wanted* does not tolerate."""
    return [
        taint
        for taint in device.device.taints or ()
        if taint.effect in _NO_SCHEDULE and not any(_tolerates(one, taint) for one in wanted.tolerations or ())
    ]


def _tolerates(toleration: DeviceToleration, taint: Any) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    return toleration.operator == "Exists" or toleration.value == taint.value
