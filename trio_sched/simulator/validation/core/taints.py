"""Rules of taints and tolerations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from trio_sched.documents.json_values import Json
from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    duplicate,
    required,
    unsupported,
)
from trio_sched.simulator.validation.meta.selectors import key_problems

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def taint_problems(taints: list[Json], path: str) -> Iterator[FieldProblem]:
    """What is wrong with the taints of a node."""
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        where = f"{path}[{index}]"
        key, value, effect = (taint.get(name) or "" for name in ("key", "value", "effect"))
        yield from key_problems(key, f"{where}.key")
        if problem := names.label_value(value):
            yield bad_value(f"{where}.value", value, problem)
        if not effect:
            yield required(f"{where}.effect")
        elif effect not in _EFFECTS:
            yield unsupported(f"{where}.effect", effect, _EFFECTS)
        if (key, effect) in seen:
            yield duplicate(where, taint)
        seen.add((key, effect))


def toleration_problems(tolerations: list[Json], path: str) -> Iterator[FieldProblem]:
    """What is wrong with tolerations."""
    for index, toleration in enumerate(tolerations):
        yield from _toleration_problems(toleration, f"{path}[{index}]")


def _toleration_problems(toleration: Json, path: str) -> Iterator[FieldProblem]:
    key, operator = toleration.get("key") or "", toleration.get("operator") or ""
    value, effect = toleration.get("value") or "", toleration.get("effect") or ""
    if key:
        yield from key_problems(key, f"{path}.key")
    elif operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield bad_value(f"{path}.operator", operator, detail)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield bad_value(f"{path}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    match operator:
        case "Equal" | "":
            if problem := names.label_value(value):
                yield bad_value(f"{path}.operator", value, problem)
        case "Exists":
            if value:
                yield bad_value(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'")
        case "Lt" | "Gt":
            if not re.fullmatch(r"0|-?[1-9][0-9]*", value) or not -(1 << 63) <= int(value) < 1 << 63:
                yield bad_value(f"{path}.value", value, "must be a valid decimal integer in canonical form")
        case _:
            yield unsupported(f"{path}.operator", operator, ("Equal", "Exists"))
    if effect and effect not in _EFFECTS:
        yield unsupported(f"{path}.effect", effect, _EFFECTS)
