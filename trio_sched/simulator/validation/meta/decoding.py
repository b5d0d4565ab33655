"""Reads an object as the API server's decoder does: what is of the wrong type, and what is unknown.

Source: the decoder of ``sigs.k8s.io/json``, whose error texts clients show.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from datetime import datetime
from typing import Any, Final

from attrs import define, field, frozen

from trio_sched.documents.json_values import Json
from trio_sched.errors import nearest_name
from trio_sched.go.text import quote, shortened
from trio_sched.objects.amounts.quantity import QuantityError, parse_nano
from trio_sched.simulator.validation.meta.shapes import ADDED_SINCE, fields_of, is_well_formed

_WORDS: Final = {
    "string": "a text; put it in quotes",
    "bool": "true or false",
    "int32": "a whole number of 32 bits",
    "int64": "a whole number of 64 bits",
    "double": "a number",
    "bytes": "a text in base64",
    "time": "a time such as 2026-01-31T08:00:00Z",
    "micro_time": "a time with microseconds such as 2026-01-31T08:00:00.000000Z",
    "quantity": "a quantity such as 500m or 2Gi",
    "int_or_string": "a whole number or a text",
}
_GO_TYPES: Final = {"double": "float64", "bytes": "[]uint8"}
_INTEGERS: Final = {"int32": 1 << 31, "int64": 1 << 63}
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:\d\d)")
_MICRO_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.,]\d{6}(Z|[+-]\d\d:\d\d)")
_ZERO: Final = {"string": "", "bool": False, "quantity": "0", "bytes": "", "int32": 0, "int64": 0, "double": 0.0}


@frozen
class WrongType:
    """A value that is not of its field's type.

    Attributes:
        path: where it is, like ``spec.containers[0].ports``.
        text: what it should be, for a person.
        decoder_text: the error of the API server's decoder.
    """

    path: str
    text: str
    decoder_text: str


@frozen
class UnknownField:
    """A field that its message does not have."""

    path: str
    suggestion: str | None

    @property
    def text(self) -> str:
        """For a person."""
        return "unknown field" + (f"; did you mean {self.suggestion!r}?" if self.suggestion else "")

    @property
    def decoder_text(self) -> str:
        """The error of the API server's strict decoder."""
        return f"unknown field {quote(self.path)}"


@define(eq=False)
class Decoded:
    """An object as it was understood.

    Attributes:
        fields: without unknown fields and nulls; values of the wrong type are left out as well.
        wrong: values of the wrong type, in their order.
        unknown: fields that are not known.
    """

    fields: Json
    wrong: list[WrongType] = field(factory=list)
    unknown: list[UnknownField] = field(factory=list)


def decode(fields: Json, message: str, minor: int = ADDED_SINCE) -> Decoded:
    """*fields* as an object of *message*, of which the table has the fields; not changed.

    Args:
        fields: the object.
        message: what it is.
        minor: the minor version of Kubernetes that reads it: to older ones fields are unknown that came later.
    """
    newest = minor >= ADDED_SINCE
    if is_well_formed(fields, message, newest):
        return Decoded(fields)
    decoded = Decoded({})
    decoded.fields = _Reader(decoded, newest).message(fields, message, "", "")
    return decoded


@define(eq=False)
class _Reader:
    """One walk through an object; *path* has indexes, *names* has none, as in the decoder's texts."""

    _found: Decoded
    _newest: bool

    def message(self, value: Json, message: str, path: str, names: str) -> Json:
        known = fields_of(message, self._newest)
        kept: Json = {}
        for name, inner in value.items():
            here = f"{path}.{name}" if path else str(name)
            found = known.get(name)
            if found is None:
                self._found.unknown.append(UnknownField(shortened(here), nearest_name(str(name), known)))
            elif inner is not None:
                owner = message.rpartition(".")[2]
                target = f"{owner}.{names}.{name}" if names else f"{owner}.{name}"
                read = self.value(inner, found.type, here, target)
                if read is not _WRONG:
                    kept[name] = read
        return kept

    def value(self, value: Any, type_: str, path: str, target: str) -> Any:
        container, _, inner = type_.partition(" ")
        if container == "list":
            return self._list(value, inner, path, target)
        if container == "map":
            return self._map(value, inner, path, target)
        if type_ == "raw":
            return value
        if type_ in _WORDS:
            return self._scalar(value, type_, path, target)
        if not isinstance(value, dict):
            return self._wrong(value, path, target, "a mapping", _go_type(type_))
        if is_well_formed(value, type_, self._newest):  # most are: a mistake is in one place
            return value
        return self.message(value, type_, path, target.partition(".")[2])

    def _list(self, value: Any, inner: str, path: str, target: str) -> Any:
        if not isinstance(value, list):
            return self._wrong(value, path, target, "a list", _go_type(f"list {inner}"))
        items = []
        for index, item in enumerate(value):
            # To Go null is an empty item; it hardly ever is to whoever wrote it, but the rules will tell.
            read = self.value(_zero(inner) if item is None else item, inner, f"{path}[{index}]", target)
            if read is not _WRONG:
                items.append(read)
        return items

    def _map(self, value: Any, inner: str, path: str, target: str) -> Any:
        if not isinstance(value, dict):
            return self._wrong(value, path, target, "a mapping", _go_type(f"map {inner}"))
        pairs = {}
        for key, item in value.items():
            read = self.value(_zero(inner) if item is None else item, inner, f"{path}[{shortened(key)}]", target)
            if read is not _WRONG:
                pairs[key] = read
        return pairs

    def _scalar(self, value: Any, type_: str, path: str, target: str) -> Any:
        match type_:
            case "string":
                ok = isinstance(value, str)
            case "bool":
                ok = isinstance(value, bool)
            case "int32" | "int64":
                value = _whole(value)
                limit = _INTEGERS[type_]
                ok = _is_number(value) and isinstance(value, int) and -limit <= value < limit
            case "double":
                ok = _is_number(value)
            case "int_or_string":
                return self._int_or_string(value, path)
            case "quantity":
                return self._quantity(value, path)
            case "time" | "micro_time":
                return self._time(value, type_, path)
            case _:
                return self._bytes(value, path, target)
        return value if ok else self._wrong(value, path, target, _WORDS[type_], _GO_TYPES.get(type_, type_))

    def _int_or_string(self, value: Any, path: str) -> Any:
        value = _whole(value)
        if isinstance(value, str) or (_is_number(value) and isinstance(value, int) and -(1 << 31) <= value < 1 << 31):
            return value
        text = f"json: cannot unmarshal {_kind(value)} into Go value of type int32"
        return self._refuse(value, path, _WORDS["int_or_string"], text)

    def _quantity(self, value: Any, path: str) -> Any:
        if isinstance(value, str) or _is_number(value):
            try:
                parse_nano(value)
            except QuantityError as error:
                return self._refuse(value, path, _WORDS["quantity"], str(error))
            return value
        text = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        return self._refuse(value, path, _WORDS["quantity"], text)

    def _time(self, value: Any, type_: str, path: str) -> Any:
        if not isinstance(value, str):
            text = f"json: cannot unmarshal {_kind(value)} into Go value of type string"
            return self._refuse(value, path, _WORDS[type_], text)
        pattern = _TIME if type_ == "time" else _MICRO_TIME
        if pattern.fullmatch(value) and _is_moment(value):
            return value
        layout = "2006-01-02T15:04:05Z07:00" if type_ == "time" else "2006-01-02T15:04:05.000000Z07:00"
        text = f"parsing time {quote(shortened(value))} as {quote(layout)}: cannot parse {quote(shortened(value))}"
        return self._refuse(value, path, _WORDS[type_], text)

    def _bytes(self, value: Any, path: str, target: str) -> Any:
        if isinstance(value, list) and all(_is_byte(one) for one in value):
            return b64encode(bytes(value)).decode()  # to Go they are bytes
        if not isinstance(value, str):
            return self._wrong(value, path, target, _WORDS["bytes"], "[]uint8")
        try:
            b64decode(value.replace("\n", "").replace("\r", ""), validate=True)
        except ValueError:
            return self._refuse(value, path, _WORDS["bytes"], "illegal base64 data at input byte 0")
        return value

    def _wrong(self, value: Any, path: str, target: str, words: str, go_type: str) -> Any:
        text = f"json: cannot unmarshal {_kind(value)} into Go struct field {target} of type {go_type}"
        return self._refuse(value, path, words, text)

    def _refuse(self, value: Any, path: str, words: str, decoder_text: str) -> Any:
        shown = repr(value) if isinstance(value, str) else json.dumps(value)
        text = f"must be {words}, not {shortened(shown)}"
        self._found.wrong.append(WrongType(shortened(path), text, decoder_text))
        return _WRONG


_WRONG: Final = object()
"""In place of a value of the wrong type."""


def _whole(value: Any) -> Any:
    """Numbers as Go's JSON has them after YAML: 1.0 is 1."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1 << 63 else value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_byte(value: Any) -> bool:
    return type(value) is int and 0 <= value < 256


def _is_moment(text: str) -> bool:
    try:
        datetime.fromisoformat(re.sub(r"[.,]\d+", "", text))
    except ValueError:
        return False
    return True


def _zero(type_: str) -> Any:
    if type_.startswith("list "):
        return []
    return _ZERO.get(type_, {} if type_ not in _WORDS else "")


def _kind(value: Any) -> str:
    """What Go's decoder calls a value."""
    match value:
        case bool():
            return "bool"
        case int() | float():
            return f"number {shortened(str(value), 40)}" if isinstance(value, float) or abs(value) >> 31 else "number"
        case str():
            return "string"
        case dict():
            return "object"
    return "array"


def _go_type(type_: str) -> str:
    container, _, inner = type_.partition(" ")
    if container == "list":
        return f"[]{_go_type(inner)}"
    if container == "map":
        return "v1.ResourceList" if inner == "quantity" else f"map[string]{_go_type(inner)}"
    if type_ in _WORDS:
        return {"quantity": "resource.Quantity", "int_or_string": "intstr.IntOrString"}.get(
            type_, _GO_TYPES.get(type_, type_)
        )
    _, version, name = type_.split(".")
    return f"{version}.{name}"
