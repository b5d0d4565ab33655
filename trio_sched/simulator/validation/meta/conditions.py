"""Rules of conditions of the type that newer kinds share, ``meta.v1.Condition``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from trio_sched.documents.json_values import Json
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    duplicate,
    required,
    too_long,
    unsupported,
)
from trio_sched.simulator.validation.meta.selectors import key_problems

_STATUSES: Final = ("False", "True", "Unknown")
_REASON: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_REASON_RULE: Final = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or "
    "'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is "
    "'[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')"
)
_LONGEST_REASON: Final = 1024
_LONGEST_MESSAGE: Final = 32 * 1024


def condition_problems(conditions: list[Json], path: str) -> Iterator[FieldProblem]:
    """What is wrong with *conditions*."""
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        where, type_ = f"{path}[{index}]", condition.get("type") or ""
        reason, message = condition.get("reason") or "", condition.get("message") or ""
        if type_ in seen:
            yield duplicate(f"{where}.type", type_)
        seen.add(type_)
        yield from key_problems(type_, f"{where}.type")
        if condition.get("status") not in _STATUSES:
            yield unsupported(f"{where}.status", condition.get("status") or "", _STATUSES)
        if condition.get("observedGeneration", 0) < 0:
            detail = "must be greater than or equal to zero"
            yield bad_value(f"{where}.observedGeneration", condition["observedGeneration"], detail)
        if not condition.get("lastTransitionTime"):
            yield required(f"{where}.lastTransitionTime")
        if not reason:
            yield required(f"{where}.reason")
        elif not _REASON.fullmatch(reason):
            yield bad_value(f"{where}.reason", reason, _REASON_RULE)
        for name, text, limit in (("reason", reason, _LONGEST_REASON), ("message", message, _LONGEST_MESSAGE)):
            if len(text.encode()) > limit:
                yield too_long(f"{where}.{name}", limit)
