"""Devices that differ in nothing but their names and pools share a model: what holds for one holds for all of them.

A fleet has thousands of devices and a few models. Equal lists of devices, one per node, are recognised as a whole, and
are kept in memory once.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import Any

from attrs import define, field
from msgspec import structs

from trio_sched.documents.json_values import encode
from trio_sched.objects.amounts.quantity import QuantityError, parse_nano
from trio_sched.objects.resource.resource_slice import Device
from trio_sched.objects.sharing import SharedValues


class DeviceModel:
    """What a driver says about some devices; compared by identity.

    Attributes:
        driver: the name of the driver.
        device: one of these devices.
        notes: what plugins have found out about the model.
    """

    def __init__(self, driver: str, device: Device) -> None:
        self.driver = driver
        self.device = device
        self.notes: dict[Hashable, Any] = {}

    @cached_property
    def consumes(self) -> tuple[tuple[str, str, int], ...]:
        """(counter set, counter, amount in nano units) for what a device consumes when it is allocated."""
        return tuple(
            (consumption.counter_set, name, nano(counter.value))
            for consumption in self.device.consumes_counters or ()
            for name, counter in (consumption.counters or {}).items()
        )

    @cached_property
    def capacity(self) -> Mapping[str, int]:
        """Capacity → amount in nano units."""
        return {name: nano(one.value) for name, one in (self.device.capacity or {}).items()}


@define(eq=False)
class DeviceModels:
    """Finds the models of devices; forgets those that were not met again while many others were."""

    _lists: SharedValues[tuple[tuple[Device, ...], tuple[DeviceModel, ...]]] = field(factory=SharedValues)
    _models: SharedValues[DeviceModel] = field(factory=SharedValues)

    def forget_unused(self) -> None:
        """Forget lists and models that no slice has any more."""
        self._lists.forget_unused(lambda listed: listed[0])
        self._models.forget_unused()

    def of(self, driver: str, devices: Sequence[Device]) -> tuple[tuple[Device, ...], tuple[DeviceModel, ...]]:
        """The devices, as one tuple for all equal lists, and the model of each."""
        if not devices:
            return (), ()
        key = _digest((driver, devices))
        found = self._lists.newer.get(key)
        if found is None:
            found = self._lists.first(key, (tuple(devices), tuple([self._model(driver, one) for one in devices])))
        return found

    def _model(self, driver: str, device: Device) -> DeviceModel:
        key = _digest((driver, structs.replace(device, name="")))
        found = self._models.newer.get(key)
        return self._models.first(key, DeviceModel(driver, device)) if found is None else found


def _digest(value: object) -> bytes:
    # A list of devices has kilobytes of JSON.
    return blake2b(encode(value), digest_size=16).digest()


def nano(quantity: str | int | float) -> int:
    """An amount in nano units; 0 for what is no quantity, which no API server stores."""
    try:
        return parse_nano(quantity)
    except QuantityError:
        return 0
