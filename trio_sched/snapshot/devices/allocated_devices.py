"""Which devices are allocated: counted claim by claim, so that every step costs what one claim has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from attrs import define, field

from trio_sched.objects.amounts.quantity import QuantityError, parse_nano
from trio_sched.objects.resource.resource_claim import AllocationResult


class DeviceId(NamedTuple):
    """What identifies a device in the cluster."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return "/".join(self)


def _ignore(_device: DeviceId) -> None:
    """Nobody follows the allocations yet."""


@define(eq=False)
class SharedUse:
    """What the claims that share a device consume of it."""

    shares: int = 0
    """How many of their results name consumed capacity."""
    consumed: Counter[str] = field(factory=Counter)
    """Capacity → the sum, in nano units."""


@define(eq=False)
class AllocatedDevices:
    """The devices of all allocations that count: those of claims, and those that are in flight.

    Results with admin access do not count.
    """

    on_change: Callable[[DeviceId], None] = _ignore
    """Called with every device whose use has changed."""
    _dedicated: dict[DeviceId, int] = field(factory=dict)
    """Device → how many allocations have it; more than one only if somebody else made a mistake."""
    _share_ids: dict[DeviceId, Counter[str]] = field(factory=dict)
    _shared_use: dict[DeviceId, SharedUse] = field(factory=dict)

    @property
    def dedicated(self) -> Mapping[DeviceId, int]:
        """The devices that an allocation has for itself."""
        return self._dedicated

    @property
    def shared(self) -> Mapping[DeviceId, Counter[str]]:
        """The devices that allocations share, with the ids of their shares."""
        return self._share_ids

    @property
    def consumed(self) -> Mapping[DeviceId, SharedUse]:
        """Devices of whose capacity something is consumed."""
        return self._shared_use

    def has(self, device: DeviceId) -> bool:
        """Whether any allocation has *device*, alone or shared."""
        return device in self._dedicated or device in self._share_ids or device in self._shared_use

    def add(self, allocation: AllocationResult) -> None:
        """*allocation* counts from now on."""
        self._count(allocation, 1)

    def remove(self, allocation: AllocationResult) -> None:
        """*allocation*, which was added, counts no longer."""
        self._count(allocation, -1)

    def _count(self, allocation: AllocationResult, sign: int) -> None:
        for result in allocation.devices.results or ():
            if result.admin_access:
                continue
            device = DeviceId(result.driver, result.pool, result.device)
            if result.share_id is None:
                left = self._dedicated.get(device, 0) + sign
                if left > 0:
                    self._dedicated[device] = left
                else:
                    self._dedicated.pop(device, None)
            else:
                self._count_share(device, result.share_id, sign)
                if result.consumed_capacity is not None:
                    self._count_capacity(device, result.consumed_capacity, sign)
            self.on_change(device)

    def _count_share(self, device: DeviceId, share_id: str, sign: int) -> None:
        shares = self._share_ids.setdefault(device, Counter())
        shares[share_id] += sign
        if shares[share_id] <= 0:
            del shares[share_id]
        if not shares:
            del self._share_ids[device]

    def _count_capacity(self, device: DeviceId, consumed: Mapping[str, str | int | float], sign: int) -> None:
        use = self._shared_use.setdefault(device, SharedUse())
        use.shares += sign
        for name, quantity in consumed.items():
            try:
                use.consumed[name] += sign * parse_nano(quantity)
            except QuantityError:  # no API server stores such a thing
                continue
        if use.shares <= 0:
            del self._shared_use[device]
