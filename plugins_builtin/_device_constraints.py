"""Constraints across the devices of a claim.

Source: constraints of the structured allocator of Kubernetes 1.36; that values of distinctAttribute are kept per
request, and forgotten when any device of the request is given back, is its behaviour too.
"""

from __future__ import annotations

from typing import Protocol

from attrs import define, field

from plugins_builtin._device_requests import Wanted
from trio_sched.plugin_api import DeviceAttribute, DeviceConstraint, PoolDevice


class UnknownConstraint(Exception):
    """A constraint of a kind that does not exist yet."""


class Constraint(Protocol):
    """A constraint while devices are looked for."""

    def add(self, wanted: Wanted, device: PoolDevice) -> bool:
        """Take *device* in for *wanted*; False if that violates the constraint."""
        ...

    def remove(self, wanted: Wanted, device: PoolDevice) -> None:
        """Take back one successful `add`."""
        ...


def constraint_of(spec: DeviceConstraint) -> Constraint:
    """The constraint with no devices.

    Raises:
        UnknownConstraint: it is of no known kind.
    """
    names = frozenset(spec.requests or ())
    if spec.match_attribute is not None:
        return _MatchAttribute(names, spec.match_attribute)
    if spec.distinct_attribute is not None:
        return _DistinctAttribute(names, spec.distinct_attribute)
    raise UnknownConstraint


def attribute_of(device: PoolDevice, name: str) -> DeviceAttribute | None:
    """The attribute with the fully qualified *name*."""
    attributes = device.device.attributes or {}
    found = attributes.get(name)
    if found is None:
        domain, slash, identifier = name.partition("/")
        if slash and domain == device.id.driver:
            return attributes.get(identifier)
    return found


def attribute_value(attribute: DeviceAttribute) -> tuple[str, object] | None:
    """Kind and value; None for lists and what comes later."""
    if attribute.string is not None:
        return "string", attribute.string
    if attribute.int_ is not None:
        return "int", attribute.int_
    if attribute.bool_ is not None:
        return "bool", attribute.bool_
    if attribute.version is not None:
        return "version", attribute.version
    return None


@define(eq=False)
class _MatchAttribute:
    requests: frozenset[str]
    name: str
    _first: tuple[str, object] | None = None
    _count: int = 0

    def add(self, wanted: Wanted, device: PoolDevice) -> bool:
        if self.requests and not wanted.is_among(self.requests):
            return True
        attribute = attribute_of(device, self.name)
        if attribute is None:
            return False
        value = attribute_value(attribute)
        if self._count == 0:
            self._first, self._count = value, 1
            return True
        if value is None or value != self._first:
            return False
        self._count += 1
        return True

    def remove(self, wanted: Wanted, device: PoolDevice) -> None:
        if not self.requests or wanted.is_among(self.requests):
            self._count -= 1


@define(eq=False)
class _DistinctAttribute:
    requests: frozenset[str]
    name: str
    _values: dict[str, tuple[str, object] | None] = field(factory=dict)
    """The value of the latest device, by the name of the request."""
    _count: int = 0

    def add(self, wanted: Wanted, device: PoolDevice) -> bool:
        if self.requests and not wanted.is_among(self.requests):
            return True
        attribute = attribute_of(device, self.name)
        if attribute is None:
            return False
        value = attribute_value(attribute)
        if self._count and self._values and (value is None or value in self._values.values()):
            return False
        self._values[wanted.request_name] = value
        self._count = self._count + 1 if self._count else 1
        return True

    def remove(self, wanted: Wanted, device: PoolDevice) -> None:
        if not self.requests or wanted.is_among(self.requests):
            self._values.pop(wanted.request_name, None)
            self._count -= 1
