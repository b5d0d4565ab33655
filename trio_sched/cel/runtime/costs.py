"""What calls cost: the cost model of cel-go with that of the Kubernetes libraries, in the same floating point."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Final

from trio_sched.cel.checking.declarations import Overload
from trio_sched.cel.errors import COST_EXCEEDED, Aborted
from trio_sched.cel.runtime.activation import COST_LIMIT, WORK_LIMIT
from trio_sched.cel.values.network import Cidr, Ip
from trio_sched.cel.values.quantity import CelQuantity
from trio_sched.cel.values.semver import Semver
from trio_sched.cel.values.urls import Url
from trio_sched.cel.values.values import CelMap, NamedFormat, Value, go_type, size_of

_PER_CHARACTER: Final = 0.1
_PER_CHARACTER_OF_PATTERN: Final = 0.25
LIST: Final = 10
MAP: Final = 30
MESSAGE: Final = 40
_FORMATS: Final = {
    **dict.fromkeys(("dns1123Label", "dns1123LabelPrefix", "dns1035Label", "dns1035LabelPrefix"), 8),
    **dict.fromkeys(("dns1123Subdomain", "dns1123SubdomainPrefix", "qualifiedName"), 15),
    "labelValue": 10,
    **dict.fromkeys(("uuid", "date", "datetime"), 18),
    "byte": 21,
    "uri": 276,
}
"""What a pattern for them would cost."""
_UNITS: Final = frozenset({CelQuantity, Ip, Cidr, NamedFormat, Url, Semver})

Cost = Callable[..., int]
"""The cost of a call with these arguments; arguments that could not be evaluated are `FAILED`."""


def tenths(size: int) -> int:
    """A tenth of *size*, rounded up."""
    return ceil(size * _PER_CHARACTER)


def equality_cost(left: Value, right: Value) -> int:
    """The cost of ``left == right``."""
    return 1 if type(left) in _UNITS else inequality_cost(left, right)


def inequality_cost(left: Value, right: Value) -> int:
    """The cost of ``left != right``, and of ordering text."""
    return tenths(min(size_of(left), size_of(right)))


def _of_first(value: Value, *_others: Value) -> int:
    return tenths(size_of(value))


def _twice_of_first(value: Value, *_others: Value) -> int:
    return ceil(size_of(value) * 2 * _PER_CHARACTER)


def _joined(left: Value, right: Value) -> int:
    return tenths(size_of(left) + size_of(right))


def _searched(value: Value, part: Value) -> int:
    return tenths(size_of(value)) * tenths(size_of(part))


def _matched(value: Value, pattern: Value, *_others: Value) -> int:
    return ceil((1.0 + size_of(value)) * _PER_CHARACTER) * ceil(size_of(pattern) * _PER_CHARACTER_OF_PATTERN)


def _validated(named: Value, value: Value) -> int:
    if type(named) is not NamedFormat:
        return 1
    return ceil((1.0 + size_of(value)) * _PER_CHARACTER) * _FORMATS[named.key]


def traversal_cost(value: Value, *_others: Value) -> int:
    """The cost of looking at all parts of *value*.

    Raises:
        Aborted: they are too many.
    """
    cost = visited = 0
    left = [value]
    while left:
        one = left.pop()
        kind = type(one)
        if kind is list:
            left.extend(one)
        elif kind is CelMap:
            for entry in one.items():
                left.extend(entry)
        elif kind is str:
            length = len(one) if one.isascii() else len(one.encode("utf-8", "surrogatepass"))
            cost += int(length * _PER_CHARACTER)
        else:
            cost += int(len(one) * _PER_CHARACTER) if kind is bytes else 1
        visited += 1
        if visited > WORK_LIMIT or cost > COST_LIMIT:  # before all of a list that holds itself many times is looked at
            raise Aborted(COST_EXCEEDED)
    return cost


def _contains_ip(network: Value, other: Value) -> int:
    return ceil(size_of(network) * 2 * _PER_CHARACTER)


def _contains_cidr(network: Value, other: Value) -> int:
    return _contains_ip(network, other) + tenths(size_of(network)) + 1


def _flattened(value: Value, depth: Value = 1) -> int:
    if type(depth) is not int:
        raise Aborted(f"internal error: interface conversion: ref.Val is {go_type(depth)}, not types.Int")
    return max(int(size_of(value) * float(depth)), 0) + 1 + LIST


def self_comparison_cost(value: Value) -> int:
    """The cost of ``sort`` and ``distinct``.

    Raises:
        Aborted: it is no list.
    """
    if type(value) is not list:
        text = f"interface conversion: {go_type(value)} is not traits.Lister: missing method Add"
        raise Aborted(f"internal error: {text}")
    size = len(value)
    factor = 2.0
    if size and type(value[0]) in (str, bytes):
        factor += _PER_CHARACTER
    return int(float(size * size) * factor) + 1 + LIST


def _sets(factor: float) -> Cost:
    return lambda one, other: 1 + int(float(size_of(one) * size_of(other)) * factor)


_BY_NAME: Final[dict[str, Cost]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), traversal_cost),
    **dict.fromkeys(
        (
            *("url", "lowerAscii", "upperAscii", "substring", "trim", "cidr", "isIP", "isCIDR"),
            *("quantity", "isQuantity", "semver", "isSemver"),
        ),
        _of_first,
    ),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _twice_of_first),
    **dict.fromkeys(("find", "findAll"), _matched),
    "validate": _validated,
    "_==_": equality_cost,
    "_!=_": inequality_cost,
}
"""Function → cost, whatever it is called with."""
_BY_OVERLOAD: Final[dict[str, Cost]] = {
    **dict.fromkeys(
        (
            *("startsWith(string, string)", "endsWith(string, string)", "bytes(string)", "string(bytes)"),
            *("format(string, list)", "strings.quote(string)", "ip(string)"),
        ),
        _of_first,
    ),
    **dict.fromkeys(
        (f"_{sign}_({kind}, {kind})" for sign in ("<", "<=", ">", ">=") for kind in ("string", "bytes")),
        inequality_cost,
    ),
    "_+_(string, string)": _joined,
    "_+_(bytes, bytes)": _joined,
    "@in(?A, list)": lambda _element, among: size_of(among),
    "contains(string, string)": _searched,
    "containsIP(net.CIDR, string)": lambda network, other: _contains_ip(network, other) + tenths(size_of(other)),
    "containsCIDR(net.CIDR, string)": lambda network, other: _contains_cidr(network, other) + tenths(size_of(other)),
    "flatten(list)": _flattened,
    "flatten(list, int)": _flattened,
    "distinct(list)": self_comparison_cost,
    "sort(list)": self_comparison_cost,
    "sets.contains(list, list)": _sets(1),
    "sets.intersects(list, list)": _sets(1),
    "sets.equivalent(list, list)": _sets(2),
}
"""Function and types of its arguments → cost, if no other overload fits the types that are known beforehand."""
_WITHOUT_OVERLOAD: Final[dict[str, Cost]] = {
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
}
RESULT_COSTS: Final[dict[str, Callable[[Value], int]]] = {
    "join": lambda result: ceil(size_of(result) * 2 * _PER_CHARACTER),
    "lists.range": lambda result: size_of(result) + 1 + LIST,
    "slice": lambda result: size_of(result) + 1 + LIST,
    "reverse": lambda result: size_of(result) + 1 + LIST,
}
"""Functions whose cost depends on what they return; that of what fails is 1."""


def overload_key(name: str, overload: Overload) -> str:
    """A function and the types of its arguments, without the types of elements."""
    return f"{name}({', '.join(argument.name for argument in overload.arguments)})"


def cost_of(name: str, overloads: tuple[Overload, ...]) -> Cost | None:
    """What a call costs; None: always 1."""
    if name == "matches":  # only the method has a cost of its own
        return _matched if overloads[0].is_method else None
    found = _BY_NAME.get(name)
    if found is None and len(overloads) == 1:
        found = _BY_OVERLOAD.get(overload_key(name, overloads[0]))
    return found or _WITHOUT_OVERLOAD.get(name)
