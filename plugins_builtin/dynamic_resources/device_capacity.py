"""Consumable capacity: how much of a device a request consumes, and whether that much is left.

Amounts are in nano units. Source: consumable capacity of the structured allocator of Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping

from trio_sched.plugin_api import (
    CapacityRequestPolicy,
    DeviceCapacity,
    PoolDevice,
    Quantity,
    QuantityStyle,
    format_nano,
    parse_nano,
    style_of,
)

NANO = 10**9
_NOTHING: Mapping[str, int] = {}


def consumed_capacity(device: PoolDevice, requested: Mapping[str, int] | None) -> dict[str, int]:
    """What a request consumes of each capacity of *device*."""
    capacities = device.device.capacity or {}
    wanted = requested or _NOTHING
    return {
        name: _consumed(wanted.get(name), device.capacity[name], one.request_policy) for name, one in capacities.items()
    }


def consumed_text(
    device: PoolDevice, requested: Mapping[str, Quantity] | None, consumed: Mapping[str, int]
) -> dict[str, str]:
    """The amounts of `consumed_capacity` as they are written: in the style of the quantity that each comes from."""
    capacities, wanted = device.device.capacity or {}, requested or {}
    texts = {}
    for name, amount in consumed.items():
        style = _style(wanted.get(name), amount, capacities[name])
        texts[name] = format_nano(amount, style)
    return texts


def _style(requested: Quantity | None, amount: int, capacity: DeviceCapacity) -> QuantityStyle:
    policy = capacity.request_policy
    if requested is None:
        return style_of(capacity.value if policy is None or policy.default is None else policy.default)
    valid_range = None if policy is None else policy.valid_range
    if valid_range is not None and valid_range.min is not None:
        if amount == parse_nano(valid_range.min) != parse_nano(requested):
            return style_of(valid_range.min)
        return style_of(requested) if valid_range.step is None else QuantityStyle.BINARY
    for value in () if policy is None else policy.valid_values or ():
        if amount == parse_nano(value):
            return style_of(value)
    return style_of(requested)


def has_room(
    device: PoolDevice,
    requested: Mapping[str, int] | None,
    consumed: Mapping[str, int] = _NOTHING,
    consumed_in_attempt: Mapping[str, int] = _NOTHING,
) -> bool:
    """Whether *device* can serve a request for the capacities *requested*; not if its own amounts are no quantities.

    Args:
        device: it need not be shareable.
        requested: capacity → amount; None or without an entry: as much as the device says.
        consumed: what claims consume of it.
        consumed_in_attempt: what the claims consume for which devices are being looked for.
    """
    try:
        return _has_room(device, requested, consumed, consumed_in_attempt)
    except ValueError:  # a quantity that is none, which no API server stores
        return False


def _has_room(
    device: PoolDevice,
    requested: Mapping[str, int] | None,
    consumed: Mapping[str, int],
    consumed_in_attempt: Mapping[str, int],
) -> bool:
    capacities = device.device.capacity or {}
    if requested is not None and not capacities.keys() >= requested.keys():
        return False
    wanted = requested or _NOTHING
    for name, one in capacities.items():
        available, policy = device.capacity[name], one.request_policy
        try:
            amount = _consumed(wanted.get(name), available, policy)
            if policy is not None and _violates(amount, policy):
                return False
        except ValueError:  # no API server stores such a thing; one that does must not stop other devices
            return False
        if consumed.get(name, 0) + amount + consumed_in_attempt.get(name, 0) > available:
            return False
    return True


def _consumed(requested: int | None, available: int, policy: CapacityRequestPolicy | None) -> int:
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
        step, start = _units(parse_nano(valid_range.step)), _units(lowest)
        if step <= 0:
            return requested
        return (start + step * -(-(_units(requested) - start) // step)) * NANO
    if policy.valid_values is not None:
        for value in map(parse_nano, policy.valid_values):
            if requested <= value:
                return value
    return requested


def _violates(amount: int, policy: CapacityRequestPolicy) -> bool:
    if policy.default is not None and amount == parse_nano(policy.default):
        return False
    valid_range = policy.valid_range
    if valid_range is not None:
        if valid_range.max is not None and amount > parse_nano(valid_range.max):
            return True
        if valid_range.step is None:
            return False
        step, start = _units(parse_nano(valid_range.step)), _units(parse_nano(valid_range.min or 0))
        return step > 0 and (_units(amount) - start) % step != 0
    return bool(policy.valid_values) and amount not in map(parse_nano, policy.valid_values or ())


def _units(nano: int) -> int:
    """Whole units, rounded up."""
    return -(-nano // NANO)
