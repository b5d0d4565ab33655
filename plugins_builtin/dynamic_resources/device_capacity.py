"""Consumable capacity: how much of a device a request consumes, and whether that much is left.

Amounts are in nano units. Source: consumable capacity of the structured allocator of Kubernetes 1.36 and 1.37.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from trio_sched.plugin_api import (
    CapacityRequestPolicy,
    DeviceCapacity,
    PoolDevice,
    Quantity,
    QuantityStyle,
    format_nano,
    parse_nano,
    quote,
    style_of,
)

NANO = 10**9
_PER_MILLI = 10**6
_MAX_INT64 = 2**63 - 1
_NOTHING: Mapping[str, int] = {}


@frozen
class CapacityRules:
    """How ranges are calculated with."""

    fractional: bool = False
    """Gate DRAFractionalCapacityRange: in milli units, where minimum, maximum and step are whole numbers of these."""
    are_checked: bool = False
    """Not a gate: what is negative, or cannot be rounded with 64 bits, fails; what is rounded to a step is written as
    the step is. See `trio_sched.plugin_api.behaviour.Behaviour`."""


DEFAULT_RULES = CapacityRules()


class ImpossibleCapacity(Exception):
    """What a request would consume of a capacity can be no capacity, whichever device it is."""


def consumed_capacity(
    device: PoolDevice, requested: Mapping[str, int] | None, rules: CapacityRules = DEFAULT_RULES
) -> dict[str, int]:
    """What a request consumes of each capacity of *device*.

    Raises:
        ImpossibleCapacity: see `has_room`.
    """
    capacities = device.device.capacity or {}
    wanted = requested or _NOTHING
    return {
        name: _consumed(name, wanted.get(name), device.capacity[name], one.request_policy, rules)
        for name, one in capacities.items()
    }


def consumed_text(
    device: PoolDevice,
    requested: Mapping[str, Quantity] | None,
    consumed: Mapping[str, int],
    rules: CapacityRules = DEFAULT_RULES,
) -> dict[str, str]:
    """The amounts of `consumed_capacity` as they are written: in the style of the quantity that each comes from."""
    capacities, wanted = device.device.capacity or {}, requested or {}
    texts = {}
    for name, amount in consumed.items():
        style = _style(wanted.get(name), amount, capacities[name], rules)
        texts[name] = format_nano(amount, style)
    return texts


def _style(requested: Quantity | None, amount: int, capacity: DeviceCapacity, rules: CapacityRules) -> QuantityStyle:
    policy = capacity.request_policy
    if requested is None:
        return style_of(capacity.value if policy is None or policy.default is None else policy.default)
    valid_range = None if policy is None else policy.valid_range
    if valid_range is not None and valid_range.min is not None:
        if amount == parse_nano(valid_range.min) != parse_nano(requested):
            return style_of(valid_range.min)
        if valid_range.step is None:
            return style_of(requested)
        return style_of(valid_range.step) if rules.are_checked else QuantityStyle.BINARY
    for value in () if policy is None else policy.valid_values or ():
        if amount == parse_nano(value):
            return style_of(value)
    return style_of(requested)


def has_room(
    device: PoolDevice,
    requested: Mapping[str, int] | None,
    consumed: Mapping[str, int] = _NOTHING,
    consumed_in_attempt: Mapping[str, int] = _NOTHING,
    rules: CapacityRules = DEFAULT_RULES,
) -> bool:
    """Whether *device* can serve a request for the capacities *requested*; not if its own amounts are no quantities.

    Args:
        device: it need not be shareable.
        requested: capacity → amount; None or without an entry: as much as the device says.
        consumed: what claims consume of it.
        consumed_in_attempt: what the claims consume for which devices are being looked for.
        rules: how ranges are calculated with.

    Raises:
        ImpossibleCapacity: with *rules* that are checked, a request would consume less than nothing, or more than
            64 bits can say.
    """
    try:
        return _has_room(device, requested, consumed, consumed_in_attempt, rules)
    except ValueError:  # a quantity that is none, which no API server stores
        return False


def _has_room(
    device: PoolDevice,
    requested: Mapping[str, int] | None,
    consumed: Mapping[str, int],
    consumed_in_attempt: Mapping[str, int],
    rules: CapacityRules,
) -> bool:
    capacities = device.device.capacity or {}
    if requested is not None and not capacities.keys() >= requested.keys():
        return False
    # All at first: an amount that is impossible is told whichever capacity is looked at before.
    amounts = consumed_capacity(device, requested, rules)
    for name, one in capacities.items():
        amount, policy = amounts[name], one.request_policy
        if policy is not None and _violates(amount, policy, rules):
            return False
        if consumed.get(name, 0) + amount + consumed_in_attempt.get(name, 0) > device.capacity[name]:
            return False
    return True


def _consumed(
    name: str, requested: int | None, available: int, policy: CapacityRequestPolicy | None, rules: CapacityRules
) -> int:
    try:
        amount = _rounded(requested, available, policy, rules)
    except OverflowError as problem:
        text = "capacity request cannot be represented in the device's range arithmetic"
        raise ImpossibleCapacity(f"capacity {quote(name)}: {text}: {problem}") from None
    if rules.are_checked and amount < 0:
        raise ImpossibleCapacity(f"capacity {quote(name)}: capacity value is negative")
    return amount


def _rounded(requested: int | None, available: int, policy: CapacityRequestPolicy | None, rules: CapacityRules) -> int:
    if requested is None:
        return available if policy is None or policy.default is None else parse_nano(policy.default)
    if policy is None:
        return requested
    valid_range = policy.valid_range
    if valid_range is not None and valid_range.min is not None:
        lowest = parse_nano(valid_range.min)
        if requested < lowest:
            return lowest
        if valid_range.step is None:
            return requested
        unit = _unit(policy, rules)
        step, start = _units(parse_nano(valid_range.step), unit), _units(lowest, unit)
        if step <= 0:
            return requested
        rounded = start + step * -(-(_units(requested, unit) - start) // step)
        if rules.are_checked:
            _check_rounded(requested, rounded, unit)
        return rounded * unit
    if policy.valid_values is not None:
        for value in map(parse_nano, policy.valid_values):
            if requested <= value:
                return value
    return requested


def _check_rounded(requested: int, rounded: int, unit: int) -> None:
    """Check that 64 bits can say *requested* and *rounded*, which is in units of *unit*.

    Raises:
        OverflowError: they cannot.
    """
    text = format_nano(requested, QuantityStyle.DECIMAL)
    if unit == NANO:
        if requested > _MAX_INT64 * NANO:
            raise OverflowError(f"request {text} exceeds MaxInt64")
        what = "MaxInt64"
    else:
        if not _is_milli(requested):
            raise OverflowError(f"request {text} is not a representable milli value")
        what = "the milli-value range"
    if rounded > _MAX_INT64:
        raise OverflowError(f"rounding request {text} up to the next step passes {what}")


def _violates(amount: int, policy: CapacityRequestPolicy, rules: CapacityRules) -> bool:
    if policy.default is not None and amount == parse_nano(policy.default):
        return False
    valid_range = policy.valid_range
    if valid_range is not None:
        if valid_range.max is not None and amount > parse_nano(valid_range.max):
            return True
        if valid_range.step is None:
            return False
        unit = _unit(policy, rules)
        if unit != NANO and not _is_milli(amount):
            return True
        step, start = _units(parse_nano(valid_range.step), unit), _units(parse_nano(valid_range.min or 0), unit)
        return step > 0 and (_units(amount, unit) - start) % step != 0
    return bool(policy.valid_values) and amount not in map(parse_nano, policy.valid_values or ())


def _unit(policy: CapacityRequestPolicy, rules: CapacityRules) -> int:
    """In how many nano units amounts in the range of *policy* are counted."""
    valid_range = policy.valid_range
    if not rules.fractional or valid_range is None:
        return NANO
    given = [parse_nano(one) for one in (valid_range.min, valid_range.max, valid_range.step) if one is not None]
    is_milli = all(map(_is_milli, given)) and (valid_range.step is None or parse_nano(valid_range.step) >= _PER_MILLI)
    return _PER_MILLI if is_milli else NANO


def _is_milli(nano: int) -> bool:
    """Whether it is a whole number of milli units that 64 bits can say."""
    return nano % _PER_MILLI == 0 and abs(nano) <= _MAX_INT64 * _PER_MILLI


def _units(nano: int, unit: int) -> int:
    """Whole units, rounded up."""
    return -(-nano // unit)
