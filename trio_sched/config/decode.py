"""Decodes a `Tree` into the shape of a Go struct, strictly, with the errors of Kubernetes' JSON decoder.

The shape is data: a `GoType` per value. A decoded struct is a dictionary of the fields that were given; what is absent
or ``null`` is not in it. There are three grades of error: one in a value that has an unmarshaller of its own (a
duration) ends the decoding; of the wrong types the first is reported; unknown and duplicate fields (the strict errors)
are collected, and reported only if there is no other error.

Source: the strict mode of ``sigs.k8s.io/json``.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NoReturn, Protocol

from attrs import define, field, frozen

from trio_sched.config.durations import parse_duration
from trio_sched.config.errors import ConfigError, Finding
from trio_sched.documents.tree import Array, Number, Object, Tree, kind_of
from trio_sched.errors import nearest_name
from trio_sched.go.base64 import InvalidBase64, decode_base64
from trio_sched.go.text import quote, round_to_float32, shortened

Given = Mapping[str, Any]
"""A decoded struct: the fields that the file gives, by their names there."""

_MAX_STRICT_ERRORS: Final = 100
_INTEGER: Final = re.compile(r"-?[0-9]+", re.ASCII)
_MAX_DIGITS: Final = 20


class GoType(Protocol):
    """The type that a value must have."""

    @property
    def name(self) -> str:
        """The type as Go prints it."""

    def zero(self) -> Any:
        """The value of a list item that is ``null``."""

    def decode(self, tree: Tree, decoding: "Decoding") -> Any:
        """*tree* as a value of this type; if it is none, `Decoding.mismatch` has been called."""


@define(eq=False)
class Decoding:
    """The state of one decoding: the current field, and the errors so far."""

    strict_errors: list[str] = field(factory=list)
    first_error: ConfigError | None = None
    findings: list[Finding] | None = None
    """Every error with its path, if all of them are wanted: then none of them ends the decoding."""
    _struct: str = ""
    _fields: tuple[str, ...] = ()
    _path: str = ""

    def mismatch(self, kind: str, type_name: str) -> None:
        """Note that something of *kind* stands where a *type_name* should."""
        self._find(f"must be of type {type_name}, not {kind}")
        self.first_error = self.first_error or ConfigError.of(self._mismatch_text(kind, type_name))

    def stop(self, kind: str, type_name: str) -> NoReturn:
        """Like `mismatch`, from a value with an unmarshaller of its own: the decoding ends here.

        Raises:
            ConfigError: always.
        """
        if self.findings is not None:
            raise ConfigError.of(f"must be of type {type_name}, not {kind}")
        raise ConfigError.of(self._mismatch_text(kind, type_name))

    def failure(self, error: ConfigError) -> None:
        """Note *error* if it is the first."""
        self._find(str(error))
        self.first_error = self.first_error or error

    def _mismatch_text(self, kind: str, type_name: str) -> str:
        if not self._fields:
            return f"json: cannot unmarshal {kind} into Go value of type {type_name}"
        place = f"{self._struct}.{'.'.join(self._fields)}"
        return f"json: cannot unmarshal {kind} into Go struct field {place} of type {type_name}"

    def _find(self, message: str, path: str = "", suggestion: str = "") -> None:
        if self.findings is not None and len(self.findings) < _MAX_STRICT_ERRORS:
            self.findings.append(Finding(path or self._path, message, suggestion))

    def strict(self, what: str, key: str, known: Iterable[str] = ()) -> None:
        """Note that *key* is *what* (``unknown field``, ``duplicate field``) beside the *known* ones."""
        key = shortened(key)
        if self.findings is not None:
            self._find(what, f"{self._path}.{key}" if self._path else key, nearest_name(key, known) or "")
        text = f"{what} {quote(f'{self._path}.{key}' if self._path else key)}"
        if text not in self.strict_errors and len(self.strict_errors) < _MAX_STRICT_ERRORS:
            self.strict_errors.append(text)

    @contextmanager
    def field(self, struct: str, names: tuple[str, ...]) -> Iterator[None]:
        """While the field *names* (with the structs it is embedded in) of *struct* is decoded."""
        before = self._struct, self._fields, self._path
        self._struct, self._fields = struct, self._fields + names
        self._path = f"{self._path}.{names[-1]}" if self._path else names[-1]
        yield
        self._struct, self._fields, self._path = before

    @contextmanager
    def below(self, suffix: str) -> Iterator[None]:
        """While an item or an entry of a map is decoded: only the path of strict errors contains it."""
        before = self._path
        self._path = f"{before}{suffix}" if before else suffix.removeprefix(".")
        yield
        self._path = before


@frozen
class Bool:
    """``true`` or ``false``."""

    name: str = "bool"

    def zero(self) -> bool:
        """False."""
        return False

    def decode(self, tree: Tree, decoding: Decoding) -> bool | None:
        """The truth value."""
        if isinstance(tree, bool):
            return tree
        decoding.mismatch(kind_of(tree), self.name)
        return None


@frozen
class String:
    """Text; named string types have another *name*."""

    name: str = "string"

    def zero(self) -> str:
        """The empty text."""
        return ""

    def decode(self, tree: Tree, decoding: Decoding) -> str | None:
        """The text."""
        if isinstance(tree, str):
            return tree
        decoding.mismatch(kind_of(tree), self.name)
        return None


@frozen
class Integer:
    """A whole number of 32 or 64 bits."""

    bits: int

    @property
    def name(self) -> str:
        """``int32`` or ``int64``."""
        return f"int{self.bits}"

    def zero(self) -> int:
        """0."""
        return 0

    def decode(self, tree: Tree, decoding: Decoding) -> int | None:
        """The number, if it is written as a whole one and fits."""
        if not isinstance(tree, Number):
            decoding.mismatch(kind_of(tree), self.name)
            return None
        limit = 1 << (self.bits - 1)
        # Longer numbers fit nowhere, and Python refuses to read thousands of digits.
        fits = len(tree.text) <= _MAX_DIGITS and _INTEGER.fullmatch(tree.text) is not None
        if not fits or not -limit <= (number := int(tree.text)) < limit:
            decoding.mismatch(f"number {shortened(tree.text)}", self.name)
            return None
        return number


@frozen
class Float32:
    """A floating point number of 32 bits."""

    name: str = "float32"

    def zero(self) -> float:
        """0."""
        return 0.0

    def decode(self, tree: Tree, decoding: Decoding) -> float | None:
        """The nearest number that 32 bits can hold."""
        if not isinstance(tree, Number):
            decoding.mismatch(kind_of(tree), self.name)
            return None
        number = float(tree.text)
        if not math.isfinite(number) or not _fits_float32(number):
            decoding.mismatch(f"number {shortened(tree.text)}", self.name)
            return None
        return round_to_float32(number)


def _fits_float32(number: float) -> bool:
    try:
        round_to_float32(number)
    except OverflowError:
        return False
    return True


@frozen
class Bytes:
    """Bytes, written in base64."""

    name: str = "[]uint8"

    def zero(self) -> None:
        """No bytes."""

    def decode(self, tree: Tree, decoding: Decoding) -> bytes | None:
        """The bytes."""
        if not isinstance(tree, str):
            decoding.mismatch(kind_of(tree), self.name)
            return None
        try:
            return decode_base64(tree)
        except InvalidBase64 as error:
            decoding.failure(ConfigError.of(str(error)))
            return None


@frozen
class Duration:
    """A duration, in nanoseconds; it has an unmarshaller of its own, and only an *optional* one may be ``null``."""

    optional: bool = False
    name: str = "string"

    def zero(self) -> int:
        """0."""
        return 0

    def decode(self, tree: Tree, decoding: Decoding) -> int:
        """The nanoseconds.

        Raises:
            ConfigError: at once, if it is none.
        """
        if tree is None:
            return parse_duration("")
        if not isinstance(tree, str):
            decoding.stop(kind_of(tree), self.name)
        return parse_duration(tree)


@frozen
class Raw:
    """Anything, kept as it is."""

    name: str = "runtime.RawExtension"

    def zero(self) -> None:
        """Nothing."""

    def decode(self, tree: Tree, decoding: Decoding) -> Tree:
        """The value itself."""
        del decoding
        return tree


@frozen
class ListOf:
    """A list of items of one type."""

    item: GoType

    @property
    def name(self) -> str:
        """``[]`` before the type of the items."""
        return f"[]{self.item.name}"

    def zero(self) -> None:
        """No list."""

    def decode(self, tree: Tree, decoding: Decoding) -> tuple[Any, ...] | None:
        """The items; ``null`` among them is a zero value."""
        if not isinstance(tree, Array):
            decoding.mismatch(kind_of(tree), self.name)
            return None
        items = []
        for index, item in enumerate(tree.items):
            with decoding.below(f"[{index}]"):
                decoded = None if item is None else self.item.decode(item, decoding)
                is_malformed = decoded is None and decoding.findings is not None
                items.append(self.item.zero() if item is None or is_malformed else decoded)
        return tuple(items)


@frozen
class MapOf:
    """A mapping with free keys."""

    value: GoType

    @property
    def name(self) -> str:
        """``map[string]`` before the type of the values."""
        return f"map[string]{self.value.name}"

    def zero(self) -> None:
        """No mapping."""

    def decode(self, tree: Tree, decoding: Decoding) -> dict[str, Any] | None:
        """The entries."""
        if not isinstance(tree, Object):
            decoding.mismatch(kind_of(tree), self.name)
            return None
        entries: dict[str, Any] = {}
        for key, value in tree.pairs:
            if key in entries:
                decoding.strict("duplicate field", key)
            with decoding.below(f".{shortened(key)}"):
                entries[key] = self.value.zero() if value is None else self.value.decode(value, decoding)
        return entries


@frozen
class Struct:
    """A mapping with known fields; those of an embedded struct stand under ``embedded``, by its name."""

    name: str
    fields: Mapping[str, GoType]
    embedded: Mapping[str, Mapping[str, GoType]] = field(factory=dict)

    def zero(self) -> dict[str, Any]:
        """No field given."""
        return {}

    def _known(self) -> Iterator[str]:
        yield from self.fields
        for fields in self.embedded.values():
            yield from fields

    def _find(self, key: str) -> tuple[GoType, tuple[str, ...]] | None:
        if key in self.fields:
            return self.fields[key], (key,)
        for struct, fields in self.embedded.items():
            if key in fields:
                return fields[key], (struct, key)
        return None

    def decode(self, tree: Tree, decoding: Decoding) -> dict[str, Any] | None:
        """The fields that were given."""
        if not isinstance(tree, Object):
            decoding.mismatch(kind_of(tree), self.name)
            return None
        values: dict[str, Any] = {}
        seen: set[str] = set()
        struct_name = self.name.rpartition(".")[2]
        for key, value in tree.pairs:
            found = self._find(key)
            if found is None:
                decoding.strict("unknown field", key, self._known())
                continue
            if key in seen:
                decoding.strict("duplicate field", key)
            seen.add(key)
            type_, names = found
            if value is None and not (isinstance(type_, Duration) and not type_.optional):
                continue
            with decoding.field(struct_name, names):
                decoded = _decode_field(type_, value, decoding)
            if decoded is not None:
                values[key] = decoded
        return values


def _decode_field(type_: GoType, value: Tree, decoding: Decoding) -> Any:
    """The value of a field; None if it has none, and all errors are wanted."""
    try:
        return type_.decode(value, decoding)
    except ConfigError as error:
        if decoding.findings is None:
            raise
        decoding.failure(error)
        return None


def decode_with_findings(tree: Tree, type_: Struct) -> tuple[dict[str, Any], list[Finding]]:
    """Decode what can be decoded of *tree*, and return it with everything that is wrong."""
    findings: list[Finding] = []
    decoding = Decoding(findings=findings)
    value = {} if tree is None else type_.decode(tree, decoding)
    return value or {}, findings


def decode_strictly(tree: Tree, type_: Struct) -> tuple[dict[str, Any], list[str]]:
    """Decode *tree*, and return the value and the strict errors.

    Raises:
        ConfigError: something in it has the wrong type.
    """
    decoding = Decoding()
    value = {} if tree is None else type_.decode(tree, decoding)
    if decoding.first_error is not None:
        raise decoding.first_error
    return value or {}, decoding.strict_errors
