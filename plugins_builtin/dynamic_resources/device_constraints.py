"""Constraints across the devices of a claim.

Source: constraints of the structured allocator of Kubernetes 1.36 and 1.37; that before 1.37 values of
distinctAttribute are kept per request, and forgotten when any device of the request is given back, is its behaviour
too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from attrs import define, field

from plugins_builtin.dynamic_resources.device_requests import Wanted
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


def constraint_of(spec: DeviceConstraint, *, lists: bool = False, every_distinct: bool = False) -> Constraint:
    """The constraint with no devices.

    Args:
        spec: of the claim.
        lists: gate DRAListTypeAttributes: attributes are sets of values, and match if they have one in common.
        every_distinct: all devices of a request are compared, not only the latest.

    Raises:
        UnknownConstraint: it is of no known kind.
    """
    names = frozenset(spec.requests or ())
    value_of = _values if lists else _value
    if spec.match_attribute is not None:
        return _MatchAttribute(names, spec.match_attribute, value_of)
    if spec.distinct_attribute is not None:
        made = _EveryDistinct if every_distinct else _DistinctAttribute
        return made(names, spec.distinct_attribute, value_of)
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


_Values = tuple[str, frozenset[object]]
"""Kind and values of an attribute."""


def _value(attribute: DeviceAttribute) -> _Values | None:
    """None for lists and what comes later."""
    for kind, value in (
        ("string", attribute.string),
        ("int", attribute.int_),
        ("bool", attribute.bool_),
        ("version", attribute.version),
    ):
        if value is not None:
            return kind, frozenset((value,))
    return None


def _values(attribute: DeviceAttribute) -> _Values | None:
    """None for what comes later."""
    for kind, values in (
        ("int", attribute.ints),
        ("bool", attribute.bools),
        ("string", attribute.strings),
        ("version", attribute.versions),
    ):
        if values:
            return kind, frozenset(values)
    return _value(attribute)


@define(eq=False)
class _MatchAttribute:
    requests: frozenset[str]
    name: str
    value_of: Callable[[DeviceAttribute], _Values | None]
    _common: _Values | None = None
    """What all devices have; not widened again when one is given back, as in kube-scheduler."""
    _count: int = 0

    def add(self, wanted: Wanted, device: PoolDevice) -> bool:
        if self.requests and not wanted.is_among(self.requests):
            return True
        attribute = attribute_of(device, self.name)
        if attribute is None:
            return False
        found = self.value_of(attribute)
        if self._count == 0:
            self._common, self._count = found, 1
            return found is not None or self.value_of is _value
        if found is None or self._common is None or found[0] != self._common[0]:
            return False
        common = self._common[1] & found[1]
        if not common:
            return False
        self._common = found[0], common
        self._count += 1
        return True

    def remove(self, wanted: Wanted, device: PoolDevice) -> None:
        if not self.requests or wanted.is_among(self.requests):
            self._count -= 1


@define(eq=False)
class _DistinctAttribute:
    requests: frozenset[str]
    name: str
    value_of: Callable[[DeviceAttribute], _Values | None]
    _latest: dict[str, _Values | None] = field(factory=dict)
    """The values of the latest device, by the name of the request."""
    _count: int = 0

    def add(self, wanted: Wanted, device: PoolDevice) -> bool:
        if self.requests and not wanted.is_among(self.requests):
            return True
        attribute = attribute_of(device, self.name)
        if attribute is None:
            return False
        found = self.value_of(attribute)
        if (
            self._count
            and self._latest
            and (found is None or any(_overlap(found, one) for one in self._latest.values()))
        ):
            return False
        self._latest[wanted.request_name] = found
        self._count = self._count + 1 if self._count else 1
        return True

    def remove(self, wanted: Wanted, device: PoolDevice) -> None:
        if not self.requests or wanted.is_among(self.requests):
            self._latest.pop(wanted.request_name, None)
            self._count -= 1


@define(eq=False)
class _EveryDistinct:
    requests: frozenset[str]
    name: str
    value_of: Callable[[DeviceAttribute], _Values | None]
    _values: list[_Values | None] = field(factory=list)
    """Those of the devices, in the order in which these were added."""

    def add(self, wanted: Wanted, device: PoolDevice) -> bool:
        if self.requests and not wanted.is_among(self.requests):
            return True
        attribute = attribute_of(device, self.name)
        if attribute is None:
            return False
        found = self.value_of(attribute)
        if self._values and (found is None or any(_overlap(found, one) for one in self._values)):
            return False
        self._values.append(found)
        return True

    def remove(self, wanted: Wanted, device: PoolDevice) -> None:
        if not self.requests or wanted.is_among(self.requests):
            self._values.pop()  # devices are given back in the opposite order


def _overlap(one: _Values, other: _Values | None) -> bool:
    return other is not None and one[0] == other[0] and not one[1].isdisjoint(other[1])
