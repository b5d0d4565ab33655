"""Whether the fields of a manifest have the types that Kubernetes gives them.

An API server refuses what its decoder cannot put into the kind's structs, before anything else looks at it. The types
are those that `protobuf_bodies` reads; for kinds that are not among them, ``metadata``, ``spec`` and ``status`` are
checked, and unknown fields nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from trio_sched.documents.errors import shortened
from trio_sched.objects.quantity import QuantityError, parse_nano
from trio_sched.simulator.protobuf_bodies import message_of, types_of_fields

_WORDS: Final = {
    "string": "a text; put it in quotes",
    "bool": "true or false",
    "int32": "a whole number of 32 bits",
    "int64": "a whole number of 64 bits",
    "double": "a number",
    "bytes": "a text in base64",
    "time": "a text such as 2026-01-31T08:00:00Z",
    "quantity": "a quantity such as 500m or 2Gi",
    "int_or_string": "a whole number or a text",
}
_ANY_KIND: Final = {"metadata": "meta.ObjectMeta", "spec": "object", "status": "object"}


def type_problem(manifest: Mapping[str, Any]) -> str | None:
    """The first field of *manifest*, which has a ``kind`` and an ``apiVersion``, that is not of its type.

    Returns:
        Its path and what it should be; None if there is none.
    """
    message = message_of(manifest["apiVersion"], manifest["kind"])
    return next(_of_message(manifest, types_of_fields(message) or _ANY_KIND, ""), None)


def _of_message(value: Mapping[str, Any], types: Mapping[str, str], path: str) -> Iterator[str]:
    for name, field in value.items():
        type_ = types.get(name)
        if type_ is not None and field is not None:
            yield from _of_field(field, type_, f"{path}.{name}" if path else name)


def _of_field(value: Any, type_: str, path: str) -> Iterator[str]:
    if type_.startswith("list "):
        if not isinstance(value, list):
            yield _expected(path, "a list", value)
            return
        for index, item in enumerate(value):
            if item is None:
                yield _expected(f"{path}[{index}]", "an item", item)
            else:
                yield from _of_field(item, type_.removeprefix("list "), f"{path}[{index}]")
    elif type_.startswith("map "):
        if not isinstance(value, dict):
            yield _expected(path, "a mapping", value)
            return
        for key, item in value.items():
            if item is not None:
                yield from _of_field(item, type_.removeprefix("map "), f"{path}[{shortened(key)}]")
    elif type_ in _WORDS:
        if not _is_scalar(value, type_):
            yield _expected(path, _WORDS[type_], value)
    elif type_ == "raw":
        return
    elif not isinstance(value, dict):
        yield _expected(path, "a mapping", value)
    else:
        yield from _of_message(value, types_of_fields(type_), path)


def _is_scalar(value: Any, type_: str) -> bool:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    match type_:
        case "string" | "bytes" | "time":
            return isinstance(value, str)
        case "bool":
            return isinstance(value, bool)
        case "int32":
            return is_whole and -(1 << 31) <= value < 1 << 31
        case "int64":
            return is_whole and -(1 << 63) <= value < 1 << 63
        case "double":
            return is_whole or isinstance(value, float)
        case "int_or_string":
            return is_whole or isinstance(value, str)
    return _is_quantity(value)


def _is_quantity(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    try:
        parse_nano(str(value))
    except QuantityError:
        return False
    return True


def _expected(path: str, what: str, value: Any) -> str:
    return f"{path} must be {what}, not {shortened(repr(value))}"
