"""Parses a command line as Go programs do, flag by flag, with their error texts.

Not click: it abbreviates, takes the value of a switch from the next argument, and has error texts of its own; a
kube-scheduler command line must mean the same here.

Source: ``spf13/pflag`` (what is a flag, a value, a shorthand) and the flag types of Kubernetes.
"""

import ipaddress
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from trio_sched.documents.verbosity_text import parse_verbosity, parse_vmodule
from trio_sched.errors import TrioSchedError
from trio_sched.go.csv import CsvError, csv_line, read_csv_line
from trio_sched.go.durations import InvalidDuration, format_duration, parse_duration
from trio_sched.go.text import general_float, quote, round_to_float32, shortened
from trio_sched.objects.amounts.quantity import QuantityError, parse_nano, to_units

_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_INTEGER: Final = re.compile(
    r"([+-]?)(?:0[xX]((?:_?[0-9a-fA-F])+)|0[bB]((?:_?[01])+)|0[oO]((?:_?[0-7])+)|0((?:_?[0-7])+)|([1-9](?:_?[0-9])*|0))",
    re.ASCII,
)
_MAX_DIGITS: Final = 64
"""Even in base 2 more do not fit."""
_FLOAT: Final = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?:inf|infinity)|nan", re.I | re.A
)


NamedCertKey = tuple[str, str, tuple[str, ...]]
"""The paths of a certificate and its key, and the names that they are for; none: those in the certificate."""


class FlagError(TrioSchedError):
    """A command line that cannot be parsed; the text is what kube-scheduler prints after its usage.

    *unknown* is the name of the flag that does not exist; empty if something else is wrong.
    """

    def __init__(self, text: str, *, unknown: str = "") -> None:
        super().__init__(text)
        self.unknown = unknown


class ValueProblem(Exception):
    """A flag's value is none of its type; the text has the reason."""


@frozen
class FlagType:
    """What values a flag takes.

    *parse* turns the text of one occurrence into a value, *show* a value into the text that Go prints for it; with
    *many*, occurrences add up (each is a list or a mapping). *alone* is what the flag means without a value, None if it
    needs one.
    """

    name: str
    parse: Callable[[str], Any]
    show: Callable[[Any], str] = str
    many: bool = False
    alone: str | None = None


@frozen
class Flag:
    """One flag: its name, type, default, and what it does."""

    name: str
    type: FlagType
    default: Any
    help: str
    shorthand: str = ""

    @property
    def shown(self) -> str:
        """The flag as error messages name it."""
        return f"-{self.shorthand}, --{self.name}" if self.shorthand else f"--{self.name}"


@frozen
class ParsedFlags:
    """A parsed command line: the value of every flag, which were given, and what was no flag."""

    values: Mapping[str, Any]
    given: frozenset[str]
    arguments: tuple[str, ...]


def parse_go_flags(flags: Iterable[Flag], argv: Sequence[str]) -> ParsedFlags:
    """Parse *argv*; the first mistake ends it.

    Raises:
        FlagError: a flag is unknown, lacks its value, or has a wrong one.
    """
    parser = _Parser(list(flags))
    parser.parse(list(argv))
    values = {flag.name: parser.given.get(flag.name, flag.default) for flag in parser.by_name.values()}
    return ParsedFlags(values, frozenset(parser.given), tuple(parser.arguments))


class _Parser:
    """The parsing of one command line."""

    def __init__(self, flags: list[Flag]) -> None:
        self.by_name = {flag.name: flag for flag in flags}
        self._by_shorthand = {flag.shorthand: flag for flag in flags if flag.shorthand}
        self.given: dict[str, Any] = {}
        self.arguments: list[str] = []

    def parse(self, rest: list[str]) -> None:
        while rest:
            word = rest.pop(0)
            if word == "--":
                self.arguments += rest
                return
            if word.startswith("--"):
                self._long(word, rest)
            elif word.startswith("-") and word != "-":
                self._short(word[1:], rest)
            else:
                self.arguments.append(word)

    def _long(self, word: str, rest: list[str]) -> None:
        name, separator, value = word[2:].partition("=")
        if not name or name.startswith("-"):
            raise FlagError(f"bad flag syntax: {shortened(word)}")
        flag = self.by_name.get(name.replace("_", "-"))
        if flag is None:
            raise FlagError(f"unknown flag: --{shortened(name)}", unknown=name)
        if not separator:
            if flag.type.alone is not None:
                value = flag.type.alone
            elif rest:
                value = rest.pop(0)
            else:
                raise FlagError(f"flag needs an argument: {word}")
        self._set(flag, value)

    def _short(self, letters: str, rest: list[str]) -> None:
        while letters:
            letter, following = letters[0], letters[1:]
            flag = self._by_shorthand.get(letter)
            if flag is None:
                # A single dash before a long name is Go's own style, which kube-scheduler does not have.
                unknown = letters.partition("=")[0] if len(letters) > 1 else ""
                raise FlagError(
                    f"unknown shorthand flag: {_quote_letter(letter)} in -{shortened(letters)}", unknown=unknown
                )
            if following.startswith("=") and len(following) > 1:
                return self._set(flag, following[1:])
            if flag.type.alone is not None:
                self._set(flag, flag.type.alone)
                letters = following
                continue
            if following:
                return self._set(flag, following)
            if not rest:
                raise FlagError(f"flag needs an argument: {_quote_letter(letter)} in -{shortened(letters)}")
            return self._set(flag, rest.pop(0))

    def _set(self, flag: Flag, text: str) -> None:
        try:
            value = flag.type.parse(text)
        except ValueProblem as problem:
            raise FlagError(
                f"invalid argument {quote(shortened(text))} for {quote(flag.shown)} flag: {problem}"
            ) from problem
        if flag.type.many and flag.name in self.given:
            before = self.given[flag.name]
            value = before | value if isinstance(value, dict) else (*before, *value)
        self.given[flag.name] = value


def _quote_letter(letter: str) -> str:
    return r"'\''" if letter == "'" else f"'{letter}'"


def _number_problem(function: str, text: str, what: str = "invalid syntax") -> ValueProblem:
    return ValueProblem(f"strconv.{function}: parsing {quote(shortened(text))}: {what}")


def parse_bool(text: str) -> bool:
    """Read a truth value: ``true``, ``T``, ``1``, … or ``false``, ``F``, ``0`` and so on.

    Raises:
        ValueProblem: it is neither.
    """
    if text not in _TRUE | _FALSE:
        raise _number_problem("ParseBool", text)
    return text in _TRUE


def _integer(bits: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        match = _INTEGER.fullmatch(text)
        if match is None:
            raise _number_problem("ParseInt", text)
        sign, hexadecimal, binary, octal, old_octal, decimal = match.groups()
        digits = hexadecimal or binary or octal or old_octal or decimal
        digits = digits.replace("_", "").lstrip("0") or "0"
        base = 16 if hexadecimal else 2 if binary else 8 if octal or old_octal else 10
        if len(digits) > _MAX_DIGITS:
            raise _number_problem("ParseInt", text, "value out of range")
        number = int(digits, base)
        number = -number if sign == "-" else number
        if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
            raise _number_problem("ParseInt", text, "value out of range")
        return number

    return parse


def _float32(text: str) -> float:
    if not _FLOAT.fullmatch(text):
        raise _number_problem("ParseFloat", text)
    number = float(text)
    if math.isfinite(number) and abs(number) >= 3.4028235677973366e38:
        raise _number_problem("ParseFloat", text, "value out of range")
    return round_to_float32(number) if math.isfinite(number) else number


def _duration(text: str) -> int:
    try:
        return parse_duration(text)
    except InvalidDuration as error:
        raise ValueProblem(str(error)) from error


def _ip(text: str) -> str:
    if not text:
        return ""
    try:
        address = ipaddress.ip_address("" if "%" in text else text.strip())  # Go knows no zones here
    except ValueError:
        raise ValueProblem(f"failed to parse IP: {quote(shortened(text))}") from None
    return str(getattr(address, "ipv4_mapped", None) or address)


def _strings(text: str) -> tuple[str, ...]:
    try:
        return tuple(read_csv_line(text)) if text else ()
    except CsvError as error:
        raise ValueProblem(str(error)) from error


def _int32s(text: str) -> tuple[int, ...]:
    return tuple(map(_integer(32), text.split(",")))


def _mapping(text: str) -> dict[str, str]:
    parts = [text.strip('"')] if text.count("=") == 1 else _strings(text)
    mapping = {}
    for part in parts:
        key, separator, value = part.partition("=")
        if not separator:
            raise ValueProblem(f"{shortened(part)} must be formatted as key=value")
        mapping[key] = value
    return mapping


def _level(text: str) -> int:
    try:
        return parse_verbosity(text)
    except ValueError as error:
        raise ValueProblem(str(error)) from error


def _verbosity_patterns(text: str) -> tuple[tuple[str, int], ...]:
    try:
        return parse_vmodule(text)
    except ValueError as error:
        raise ValueProblem(str(error)) from error


def _quantity(text: str) -> int:
    try:
        return to_units(parse_nano(text))
    except QuantityError as error:
        raise ValueProblem(str(error)) from error


def _named_cert_key(text: str) -> tuple[NamedCertKey, ...]:
    files, colon, listed = text.partition(":")
    names = tuple(name.strip() for name in listed.split(",")) if colon else ()
    if colon and not listed.strip():
        raise ValueProblem("empty names list is not allowed")
    paths = files.split(",")
    if len(paths) != 2:
        raise ValueProblem("expected comma separated certificate and key file paths")
    return ((paths[0].strip(), paths[1].strip(), names),)


def _show_list(values: Iterable[str], separator: str = ",") -> str:
    return f"[{separator.join(values)}]"


def _show_strings(values: Iterable[str]) -> str:
    return f"[{csv_line(values)}]"


def _show_settings(values: Iterable[str]) -> str:
    settings = (setting.strip() for value in values for setting in value.split(","))
    return ",".join(sorted(setting if ":" in setting else f":{setting}" for setting in settings if setting))


def _show_named_cert_keys(values: Iterable[NamedCertKey]) -> str:
    pairs = (f"{certificate},{key}{':' if names else ''}{','.join(names)}" for certificate, key, names in values)
    return _show_list(pairs, ";")


STRING: Final = FlagType("string", str)
BOOL: Final = FlagType("", parse_bool, lambda value: "true" if value else "false", alone="true")
INT: Final = FlagType("int", _integer(64))
INT32: Final = FlagType("int32", _integer(32))
FLOAT32: Final = FlagType("float32", _float32, lambda value: general_float(value, bits=32))
DURATION: Final = FlagType("duration", _duration, format_duration)
IP: Final = FlagType("ip", _ip, lambda value: value or "<nil>")
STRINGS: Final = FlagType("strings", _strings, _show_strings, many=True)
INT32S: Final = FlagType("int32Slice", _int32s, lambda values: _show_list(map(str, values)), many=True)
MAPPING: Final = FlagType(
    "stringToString", _mapping, lambda values: _show_strings(f"{k}={v}" for k, v in sorted(values.items())), many=True
)
SETTINGS: Final = FlagType("colonSeparatedMultimapStringString", lambda text: (text,), _show_settings, many=True)
LEVEL: Final = FlagType("Level", _level)
PATTERNS: Final = FlagType(
    "pattern=N,...", _verbosity_patterns, lambda values: ",".join(f"{pattern}={level}" for pattern, level in values)
)
QUANTITY: Final = FlagType("quantity", _quantity)
NAMED_CERT_KEY: Final = FlagType("namedCertKey", _named_cert_key, _show_named_cert_keys, many=True)
