"""Amounts by resource in exact nano units, and which of them count while something is being resized."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from trio_sched.objects.amounts.quantity import Quantity, parse_nano
from trio_sched.objects.pod import ResourceRequirements

NanoAmounts = dict[str, int]
"""Resource name → exact amount in nano units."""

Quantities: TypeAlias = Mapping[str, Quantity] | None
"""Resource name → quantity as it is written."""
Resized: TypeAlias = Callable[[NanoAmounts, ResourceRequirements, Quantities], NanoAmounts]
"""The amounts of a container, or of a pod as a whole, from those wanted, in force and allocated."""


def parse_amounts(quantities: Quantities) -> NanoAmounts:
    """*quantities* in nano units."""
    return {name: parse_nano(quantity) for name, quantity in quantities.items()} if quantities else {}


def raise_to(into: NanoAmounts, amounts: Mapping[str, int]) -> None:
    """Raise each amount of *into* to that of *amounts*."""
    for name, amount in amounts.items():
        if name not in into or into[name] < amount:
            into[name] = amount


def most(wanted: NanoAmounts, actual: ResourceRequirements, allocated: Quantities) -> NanoAmounts:
    """The highest of the three: what a container holds that is being resized."""
    amounts = dict(wanted)
    raise_to(amounts, parse_amounts(actual.requests))
    raise_to(amounts, parse_amounts(allocated))
    return amounts


def most_feasible(wanted: NanoAmounts, actual: ResourceRequirements, allocated: Quantities) -> NanoAmounts:
    """The same, where what is wanted cannot be had."""
    return most({}, actual, allocated)


def wanted_amounts(wanted: NanoAmounts, actual: ResourceRequirements, allocated: Quantities) -> NanoAmounts:
    """What the spec asks for."""
    return wanted


def actual_amounts(wanted: NanoAmounts, actual: ResourceRequirements, allocated: Quantities) -> NanoAmounts:
    """What is in force."""
    return parse_amounts(actual.requests)


def allocated_amounts(wanted: NanoAmounts, actual: ResourceRequirements, allocated: Quantities) -> NanoAmounts:
    """What the kubelet has set aside; what is in force, if it does not say."""
    return parse_amounts(actual.requests if allocated is None else allocated)
