"""Rules that claims, classes and slices of devices share: of lists, names and taints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from trio_sched.documents.json_values import Json
from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    duplicate,
    required,
    too_long,
    too_many,
    unsupported,
)
from trio_sched.simulator.validation.meta.selectors import key_problems

_MAX_CONDITIONS: Final = 4
EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_IDENTIFIER_RULE: Final = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters "
    "or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')"
)


def size_problems(items: Any, limit: int, path: str) -> Iterator[FieldProblem]:
    """Whether there are more than *limit* items."""
    if len(items) > limit:
        yield too_many(path, len(items), limit)


def names_again(items: list[Json], path: str) -> Iterator[FieldProblem]:
    """The names that several items have."""
    seen: set[str] = set()
    for index, item in enumerate(items):
        name = item.get("name") or ""
        if name in seen:
            yield duplicate(f"{path}[{index}].name", name)
        seen.add(name)


def name_problems(name: str | None, path: str) -> Iterator[FieldProblem]:
    """What is wrong with the name of a request, a device or a set of counters."""
    if not name:
        yield required(path)
    elif problem := names.dns_label(name):
        yield bad_value(path, name, problem)


def qualified_problems(name: str, path: str) -> Iterator[FieldProblem]:
    """What is wrong with the key of an attribute or a capacity."""
    if not name:
        yield required(path, "name required")
        return
    domain, slash, identifier = name.rpartition("/")
    if slash and not domain:
        yield required(path, "the domain must not be empty")
    elif slash and (problem := names.subdomain(domain)):
        yield bad_value(path, domain, problem)
    if slash and len(domain) > 63:
        yield too_long(path, 63)
    if not identifier:
        yield required(path, "the name must not be empty")
    elif not _IDENTIFIER.fullmatch(identifier):
        yield bad_value(path, identifier, _IDENTIFIER_RULE)
    elif len(identifier) > 32:
        yield too_long(path, 32)


def taint_problems(taint: Json, path: str) -> Iterator[FieldProblem]:
    """What is wrong with a taint of a device."""
    key, value, effect = taint.get("key") or "", taint.get("value") or "", taint.get("effect") or ""
    yield from key_problems(key, f"{path}.key")
    if value and (problem := names.label_value(value)):
        yield bad_value(f"{path}.value", value, problem)
    if not effect:
        yield required(f"{path}.effect")
    elif effect not in EFFECTS:
        yield unsupported(f"{path}.effect", effect, EFFECTS)


def pool_name_problems(name: str, path: str) -> Iterator[FieldProblem]:
    """What is wrong with the name of a pool of devices."""
    if not name:
        yield required(path)
        return
    if len(name) > 253:
        yield too_long(path, 253)
    for part in name.split("/"):
        if problem := names.subdomain(part):
            yield bad_value(path, part, problem)


def binding_problems(device: Json, path: str) -> Iterator[FieldProblem]:
    """What is wrong with the conditions that pods wait for before they are bound, and with those of failure."""
    wanted, failures = device.get("bindingConditions") or [], device.get("bindingFailureConditions") or []
    for field, conditions, other in (
        ("bindingConditions", wanted, "bindingFailureConditions"),
        ("bindingFailureConditions", failures, "bindingConditions"),
    ):
        yield from size_problems(conditions, _MAX_CONDITIONS, f"{path}.{field}")
        for index, condition in enumerate(conditions):
            where = f"{path}.{field}[{index}]"
            yield from key_problems(condition, where)
            if condition in conditions[:index]:
                yield duplicate(where, condition)
            if conditions is failures and condition in wanted:
                detail = "bindingFailureConditions must not overlap with bindingConditions"
                yield bad_value(where, condition, detail)
        if conditions and not device.get(other):
            yield bad_value(f"{path}.{other}", None, f"{other} are required to use {field}")
