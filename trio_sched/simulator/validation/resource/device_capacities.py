"""Rules of how much of a device's capacity one request may take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from trio_sched.documents.json_values import Json
from trio_sched.objects.amounts.quantity import NANO, parse_nano
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    duplicate,
    forbidden_field,
    required,
)
from trio_sched.simulator.validation.resource.device_parts import size_problems

_MAX_VALUES: Final = 10


def request_policy_problems(policy: Json, capacity: Any, path: str) -> Iterator[FieldProblem]:
    """What is wrong with the ``requestPolicy`` of a *capacity*."""
    values, limits, default = policy.get("validValues") or [], policy.get("validRange"), policy.get("default")
    if values and limits is not None:
        detail = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
        yield forbidden_field(path, detail)
        return
    for kind, given in (("validValues", bool(values)), ("validRange", limits is not None)):
        if given and default is None:
            yield required(f"{path}.default", f"required when {kind} is defined")
            return
    if values:
        yield from _value_problems(values, default, capacity, f"{path}.validValues")
    elif limits is not None:
        yield from _range_problems(limits, default, capacity, f"{path}.validRange")


def _value_problems(values: list[Any], default: Any, capacity: Any, path: str) -> Iterator[FieldProblem]:
    amounts = [parse_nano(value) for value in values]
    yield from size_problems(values, _MAX_VALUES, path)
    for index, (value, amount) in enumerate(zip(values, amounts, strict=True)):
        where = f"{path}[{index}]"
        if index and amounts[index - 1] > amount:
            yield bad_value(where, str(value), "values must be sorted in ascending order")
        if amount in amounts[:index]:
            yield duplicate(where, str(value))
        if amount > parse_nano(capacity):
            yield bad_value(where, str(value), f"option is larger than capacity value: {capacity}")
    if parse_nano(default) not in amounts:
        yield bad_value(path, str(default), "default value is not valid according to the requestPolicy")


def _range_problems(limits: Json, default: Any, capacity: Any, path: str) -> Iterator[FieldProblem]:
    least, most, step = limits.get("min"), limits.get("max"), limits.get("step")
    if least is None:
        yield required(f"{path}.min", "required when validRange is defined")
        return
    if parse_nano(least) > parse_nano(capacity):
        yield bad_value(f"{path}.min", str(least), f"min is larger than capacity value: {capacity}")
    if parse_nano(default) < parse_nano(least):
        yield bad_value(f"{path}.min", str(default), f"default is less than min: {least}")
    if most is not None:
        for value, limit, detail in (
            (least, most, f"min is larger than max: {most}"),
            (most, capacity, f"max is larger than capacity value: {capacity}"),
            (default, most, f"default is more than max: {most}"),
        ):
            if parse_nano(value) > parse_nano(limit):
                yield bad_value(f"{path}.max", str(value), detail)
    if step is None:
        return
    where, after = f"{path}.step", parse_nano(least) + parse_nano(step)
    if after > parse_nano(capacity):
        yield bad_value(where, str(step), f"one step {after // NANO} is larger than capacity value: {capacity}")
    for value in (default, most):
        # The API server fails when it divides by a step of zero.
        if value is not None and (not _whole(step) or (_whole(value) - _whole(least)) % _whole(step)):
            detail = f"value is not a multiple of a given step ({step}) from ({least})"
            yield bad_value(where, str(value), detail)


def _whole(quantity: Any) -> int:
    """As Go's ``Value``: rounded up."""
    return -(-parse_nano(quantity) // NANO)
