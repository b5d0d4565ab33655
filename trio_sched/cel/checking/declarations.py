"""The functions, methods and operators of the dialect with their types; what they do is elsewhere.

Source: cel-go 0.26 with the libraries of Kubernetes 1.36.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from attrs import field, frozen

from trio_sched.cel.values.types import Type

_COMPARABLE: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_QUANTITY, _SEMVER, _URL, _IP, _CIDR, _FORMAT = (
    "kubernetes.Quantity",
    "kubernetes.Semver",
    "kubernetes.URL",
    "net.IP",
    "net.CIDR",
    "kubernetes.NamedFormat",
)


@frozen
class Overload:
    """One way to call a function."""

    is_method: bool
    arguments: tuple[Type, ...]
    """The target of a method is the first one."""
    result: Type
    is_generic: bool = field(init=False, eq=False, repr=False)
    """Whether type parameters are part of it."""

    @is_generic.default
    def _has_parameters(self) -> bool:
        return any(one.is_generic for one in (*self.arguments, self.result))


_OPERATORS: Final = """
_==_(A, A): bool        _!=_(A, A): bool        !_(bool): bool
_&&_(bool, bool): bool  _||_(bool, bool): bool  _?_:_(bool, A, A): A
-_(int): int            -_(double): double
_+_(int, int): int          _+_(uint, uint): uint       _+_(double, double): double
_+_(string, string): string _+_(bytes, bytes): bytes    _+_(list(A), list(A)): list(A)
_+_(timestamp, duration): timestamp _+_(duration, timestamp): timestamp _+_(duration, duration): duration
_-_(int, int): int          _-_(uint, uint): uint       _-_(double, double): double
_-_(timestamp, duration): timestamp _-_(timestamp, timestamp): duration _-_(duration, duration): duration
_*_(int, int): int          _*_(uint, uint): uint       _*_(double, double): double
_/_(int, int): int          _/_(uint, uint): uint       _/_(double, double): double
_%_(int, int): int          _%_(uint, uint): uint
@in(A, list(A)): bool       @in(A, map(A, B)): bool
_[_](list(A), int): A       _[_](map(A, B), A): B
_[_](opt(list(A)), int): opt(A)   _[_](opt(map(A, B)), A): opt(B)
_[?_](list(A), int): opt(A)       _[?_](map(A, B), A): opt(B)
_[?_](opt(list(A)), int): opt(A)  _[?_](opt(map(A, B)), A): opt(B)
"""
_LIBRARIES: Final = """
size(string): int   size(bytes): int   size(list(A)): int   size(map(A, B)): int
string.size(): int  bytes.size(): int  list(A).size(): int  map(A, B).size(): int

string.contains(string): bool   string.startsWith(string): bool   string.endsWith(string): bool
string.charAt(int): string      string.substring(int): string     string.substring(int, int): string
string.lowerAscii(): string     string.upperAscii(): string       string.trim(): string
string.replace(string, string): string                            string.replace(string, string, int): string
string.split(string): list(string)                                string.split(string, int): list(string)
string.indexOf(string): int     string.indexOf(string, int): int
string.lastIndexOf(string): int string.lastIndexOf(string, int): int
string.format(list(dyn)): string
list(string).join(): string     list(string).join(string): string strings.quote(string): string
string.matches(string): bool    matches(string, string): bool
string.find(string): string     string.findAll(string): list(string) string.findAll(string, int): list(string)

int(int): int      int(uint): int     int(double): int  int(string): int  int(timestamp): int  int(duration): int
uint(int): uint    uint(uint): uint   uint(double): uint                  uint(string): uint
double(int): double double(uint): double double(double): double           double(string): double
string(string): string string(bool): string string(int): string string(uint): string string(double): string
string(bytes): string string(timestamp): string string(duration): string
bytes(string): bytes bytes(bytes): bytes   bool(bool): bool bool(string): bool
timestamp(string): timestamp timestamp(int): timestamp timestamp(timestamp): timestamp
duration(string): duration duration(duration): duration duration(int): duration
dyn(A): dyn        type(A): type(A)

timestamp.getFullYear(): int     timestamp.getFullYear(string): int
timestamp.getMonth(): int        timestamp.getMonth(string): int
timestamp.getDate(): int         timestamp.getDate(string): int
timestamp.getDayOfMonth(): int   timestamp.getDayOfMonth(string): int
timestamp.getDayOfWeek(): int    timestamp.getDayOfWeek(string): int
timestamp.getDayOfYear(): int    timestamp.getDayOfYear(string): int
timestamp.getHours(): int        timestamp.getHours(string): int        duration.getHours(): int
timestamp.getMinutes(): int      timestamp.getMinutes(string): int      duration.getMinutes(): int
timestamp.getSeconds(): int      timestamp.getSeconds(string): int      duration.getSeconds(): int
timestamp.getMilliseconds(): int timestamp.getMilliseconds(string): int duration.getMilliseconds(): int

optional.of(A): opt(A)     optional.ofNonZeroValue(A): opt(A)  optional.none(): opt(A)
opt(A).hasValue(): bool    opt(A).value(): A    opt(A).or(opt(A)): opt(A)   opt(A).orValue(A): A
list(A).first(): opt(A)    list(A).last(): opt(A)
list(opt(A)).unwrapOpt(): list(A)  optional.unwrap(list(opt(A))): list(A)

list(A).slice(int, int): list(A)   list(A).reverse(): list(A)   list(A).distinct(): list(A)
list(list(A)).flatten(): list(A)   list(dyn).flatten(int): list(dyn)   lists.range(int): list(int)
list(int).sum(): int list(uint).sum(): uint list(double).sum(): double list(duration).sum(): duration
list(A).indexOf(A): int list(A).lastIndexOf(A): int
sets.contains(list(A), list(A)): bool sets.equivalent(list(A), list(A)): bool sets.intersects(list(A), list(A)): bool

quantity(string): Q  isQuantity(string): bool  sign(Q): int
Q.isInteger(): bool  Q.asInteger(): int  Q.asApproximateFloat(): double
Q.add(Q): Q  Q.add(int): Q  Q.sub(Q): Q  Q.sub(int): Q
Q.isGreaterThan(Q): bool  Q.isLessThan(Q): bool  Q.compareTo(Q): int
semver(string): V  semver(string, bool): V  isSemver(string): bool  isSemver(string, bool): bool
V.major(): int  V.minor(): int  V.patch(): int
V.isGreaterThan(V): bool  V.isLessThan(V): bool  V.compareTo(V): int
url(string): U  isURL(string): bool
U.getScheme(): string U.getHost(): string U.getHostname(): string U.getPort(): string U.getEscapedPath(): string
U.getQuery(): map(string, list(string))
ip(string): I  isIP(string): bool  ip.isCanonical(string): bool  string(I): string
I.family(): int I.isUnspecified(): bool I.isLoopback(): bool I.isLinkLocalMulticast(): bool
I.isLinkLocalUnicast(): bool I.isGlobalUnicast(): bool
cidr(string): C  isCIDR(string): bool  string(C): string
C.containsIP(string): bool C.containsIP(I): bool C.containsCIDR(string): bool C.containsCIDR(C): bool
C.ip(): I C.masked(): C C.prefixLength(): int
format.dns1123Label(): F format.dns1123LabelPrefix(): F format.dns1123Subdomain(): F
format.dns1123SubdomainPrefix(): F format.dns1035Label(): F format.dns1035LabelPrefix(): F
format.qualifiedName(): F format.labelValue(): F format.uri(): F format.uuid(): F format.byte(): F
format.date(): F format.datetime(): F format.named(string): opt(F)
F.validate(string): opt(list(string))
A.includes(B): bool
"""
_NAMESPACES: Final = frozenset({"", "optional", "strings", "lists", "sets", "ip", "format"})
_ABBREVIATIONS: Final = {
    "opt": "optional_type",
    "Q": _QUANTITY,
    "V": _SEMVER,
    "U": _URL,
    "I": _IP,
    "C": _CIDR,
    "F": _FORMAT,
    "A": "?A",
    "B": "?B",
}
_WORD: Final = re.compile(r"[\w.@?!=<>&|+*/%:\[\]-]+|[(),]")


@cache
def functions() -> dict[str, tuple[Overload, ...]]:
    """Name → overloads, in the order in which they are tried; built when first needed."""
    found: dict[str, list[Overload]] = {}
    for name, overload in _declared():
        found.setdefault(name, []).append(overload)
    return {name: tuple(overloads) for name, overloads in found.items()}


def _declared() -> Iterator[tuple[str, Overload]]:
    words = _WORD.findall(f"{_OPERATORS}{_LIBRARIES}")
    words.reverse()
    while words:
        word, target = words.pop(), None
        arguments = _in_parentheses(words)
        if words[-1].startswith("."):  # these were the parameters of the target's type
            target, word = Type(_ABBREVIATIONS.get(word, word), arguments), words.pop()[1:]
            arguments = _in_parentheses(words)
        elif word.rpartition(".")[0] not in _NAMESPACES:
            before, _, word = word.rpartition(".")
            target = Type(_ABBREVIATIONS.get(before, before))
        assert words.pop() == ":", word
        yield word, Overload(target is not None, arguments if target is None else (target, *arguments), _type(words))
    for sign in ("<", "<=", ">", ">="):
        for one in _COMPARABLE:
            for other in ("int", "uint", "double") if one in ("int", "uint", "double") else (one,):
                yield f"_{sign}_", Overload(False, (Type(one), Type(other)), Type("bool"))
    for one in _COMPARABLE:
        elements = Type("list", (Type(one),))
        yield "isSorted", Overload(True, (elements,), Type("bool"))
        yield "sort", Overload(True, (elements,), elements)
        for function in ("min", "max"):
            yield function, Overload(True, (elements,), Type(one))


def _in_parentheses(words: list[str]) -> tuple[Type, ...]:
    """The types from an opening parenthesis to the one that closes it; *words* are in reverse."""
    found: list[Type] = []
    assert words.pop() == "("
    while words[-1] != ")":
        found.append(_type(words))
        if words[-1] == ",":
            words.pop()
    words.pop()
    return tuple(found)


def _type(words: list[str]) -> Type:
    """The type that comes next."""
    name = words.pop()
    return Type(_ABBREVIATIONS.get(name, name), _in_parentheses(words) if words and words[-1] == "(" else ())
