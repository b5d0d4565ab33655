"""Rules of numbers, and of numbers that may be a percentage."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from trio_sched.documents.json_values import Json
from trio_sched.simulator.validation.meta.field_problems import FieldProblem, bad_value


def negative_problems(value: Json, path: str, *fields: str) -> Iterator[FieldProblem]:
    """Each of *fields* of *value* that is below zero."""
    for field in fields:
        number = value.get(field)
        if number is not None and number < 0:
            yield bad_value(f"{path}.{field}" if path else field, number, "must be greater than or equal to 0")


def amount(value: Any) -> int:
    """A number, or the number of a percentage; 0 for what is neither."""
    if isinstance(value, int):
        return value
    return int(value[:-1]) if re.fullmatch(r"[0-9]+%", value or "") else 0


def amount_problems(value: Any, path: str, *, percent: bool = True) -> Iterator[FieldProblem]:
    """What is wrong with a number or percentage.

    Args:
        value: a number or a text.
        path: where it is.
        percent: whether more than 100 % are wrong.
    """
    if isinstance(value, str):
        if not re.fullmatch(r"[0-9]+%", value):
            detail = (
                "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', "
                "regex used for validation is '[0-9]+%')"
            )
            yield bad_value(path, value, detail)
        elif percent and amount(value) > 100:
            yield bad_value(path, value, "must not be greater than 100%")
    elif value < 0:
        yield bad_value(path, value, "must be greater than or equal to 0")
