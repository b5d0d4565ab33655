"""The functions of Kubernetes' own types: quantities, versions, URLs, addresses, formats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from trio_sched.cel.errors import EvaluationError
from trio_sched.cel.library.named_formats import FORMATS, problems
from trio_sched.cel.runtime.activation import Activation
from trio_sched.cel.values.literals import INT_LIMIT, UINT_LIMIT
from trio_sched.cel.values.network import Cidr, Ip, parse_cidr, parse_ip
from trio_sched.cel.values.quantity import CelQuantity, parse_quantity, quantity_of
from trio_sched.cel.values.semver import Semver, parse_semver
from trio_sched.cel.values.urls import Url, is_request_uri, parse_url
from trio_sched.cel.values.values import NONE, CelMap, NamedFormat, Optional, Value


def _is(parse: Callable[[str], object]) -> Callable[[Activation, str], bool]:
    def check(_activation: Activation, text: str) -> bool:
        try:
            parse(text)
        except EvaluationError:
            return False
        return True

    return check


def _parsed(parse: Callable[[str], Value]) -> Callable[[Activation, str], Value]:
    return lambda _activation, text: parse(text)


# --- quantities ------------------------------------------------------------------------------------------------------


def _as_integer(_activation: Activation, quantity: CelQuantity) -> Value:
    if quantity.integer is None:
        raise EvaluationError("cannot convert value to integer")
    return quantity.integer


_QUANTITY: Final = "kubernetes.Quantity"
_QUANTITIES: Final[dict[str, Callable[..., Value]]] = {
    "quantity(string)": _parsed(parse_quantity),
    "isQuantity(string)": _is(parse_quantity),
    f"sign({_QUANTITY})": lambda _activation, quantity: quantity.sign,
    f"isInteger({_QUANTITY})": lambda _activation, quantity: quantity.integer is not None,
    f"asInteger({_QUANTITY})": _as_integer,
    f"asApproximateFloat({_QUANTITY})": lambda _activation, quantity: quantity.approximate_float,
    f"add({_QUANTITY}, {_QUANTITY})": lambda _activation, one, other: one.add(other),
    f"add({_QUANTITY}, int)": lambda _activation, one, other: one.add(quantity_of(other)),
    f"sub({_QUANTITY}, {_QUANTITY})": lambda _activation, one, other: one.subtract(other),
    f"sub({_QUANTITY}, int)": lambda _activation, one, other: one.subtract(quantity_of(other)),
    f"isGreaterThan({_QUANTITY}, {_QUANTITY})": lambda _activation, one, other: one.compare(other) > 0,
    f"isLessThan({_QUANTITY}, {_QUANTITY})": lambda _activation, one, other: one.compare(other) < 0,
    f"compareTo({_QUANTITY}, {_QUANTITY})": lambda _activation, one, other: one.compare(other),
}

# --- versions --------------------------------------------------------------------------------------------------------


def _signed(number: int) -> int:
    """An unsigned number of 64 bits as a signed one with the same bits."""
    return number - UINT_LIMIT if number >= INT_LIMIT else number


def _compared(one: Semver, other: Semver) -> int:
    return -1 if one < other else 0 if one == other else 1


_SEMVER: Final = "kubernetes.Semver"
_VERSIONS: Final[dict[str, Callable[..., Value]]] = {
    "semver(string)": _parsed(parse_semver),
    "semver(string, bool)": lambda _activation, text, normalize: parse_semver(text, normalize=normalize),
    "isSemver(string)": _is(parse_semver),
    "isSemver(string, bool)": lambda activation, text, normalize: _is(
        lambda text: parse_semver(text, normalize=normalize)
    )(activation, text),
    f"major({_SEMVER})": lambda _activation, version: _signed(version.major),
    f"minor({_SEMVER})": lambda _activation, version: _signed(version.minor),
    f"patch({_SEMVER})": lambda _activation, version: _signed(version.patch),
    f"isGreaterThan({_SEMVER}, {_SEMVER})": lambda _activation, one, other: _compared(one, other) > 0,
    f"isLessThan({_SEMVER}, {_SEMVER})": lambda _activation, one, other: _compared(one, other) < 0,
    f"compareTo({_SEMVER}, {_SEMVER})": lambda _activation, one, other: _compared(one, other),
}

# --- URLs ------------------------------------------------------------------------------------------------------------


def _query(_activation: Activation, url: Url) -> Value:
    return CelMap(dict(url.query))


_URL: Final = "kubernetes.URL"
_URLS: Final[dict[str, Callable[..., Value]]] = {
    "url(string)": _parsed(parse_url),
    "isURL(string)": lambda _activation, text: is_request_uri(text),
    f"getScheme({_URL})": lambda _activation, url: url.scheme,
    f"getHost({_URL})": lambda _activation, url: url.host,
    f"getHostname({_URL})": lambda _activation, url: url.hostname,
    f"getPort({_URL})": lambda _activation, url: url.port,
    f"getEscapedPath({_URL})": lambda _activation, url: url.escaped_path,
    f"getQuery({_URL})": _query,
}

# --- addresses -------------------------------------------------------------------------------------------------------


def _contains_ip(_activation: Activation, network: Cidr, text: str) -> Value:
    try:
        return network.contains_ip(parse_ip(text))
    except EvaluationError as error:
        raise EvaluationError("no such overload") from error


def _contains_cidr(_activation: Activation, network: Cidr, text: str) -> Value:
    return network.contains_cidr(_cidr(_activation, text))


def _cidr(_activation: Activation, text: str) -> Cidr:
    try:
        return parse_cidr(text)
    except EvaluationError as error:
        raise EvaluationError(f"network address parse error during conversion from string: {error}") from error


_IP, _CIDR = "net.IP", "net.CIDR"
_ADDRESSES: Final[dict[str, Callable[..., Value]]] = {
    "ip(string)": _parsed(parse_ip),
    "isIP(string)": _is(parse_ip),
    "ip.isCanonical(string)": lambda _activation, text: str(parse_ip(text)) == text,
    f"family({_IP})": lambda _activation, ip: ip.family,
    f"isUnspecified({_IP})": lambda _activation, ip: ip.is_unspecified,
    f"isLoopback({_IP})": lambda _activation, ip: ip.is_loopback,
    f"isLinkLocalMulticast({_IP})": lambda _activation, ip: ip.is_link_local_multicast,
    f"isLinkLocalUnicast({_IP})": lambda _activation, ip: ip.is_link_local_unicast,
    f"isGlobalUnicast({_IP})": lambda _activation, ip: ip.is_global_unicast,
    "cidr(string)": _cidr,
    "isCIDR(string)": _is(parse_cidr),
    f"containsIP({_CIDR}, string)": _contains_ip,
    f"containsIP({_CIDR}, {_IP})": lambda _activation, network, ip: network.contains_ip(ip),
    f"containsCIDR({_CIDR}, string)": _contains_cidr,
    f"containsCIDR({_CIDR}, {_CIDR})": lambda _activation, network, other: network.contains_cidr(other),
    f"ip({_CIDR})": lambda _activation, network: Ip(network.address),
    f"masked({_CIDR})": lambda _activation, network: network.masked,
    f"prefixLength({_CIDR})": lambda _activation, network: network.bits,
}

# --- formats ---------------------------------------------------------------------------------------------------------


def _validate(_activation: Activation, named: NamedFormat, text: str) -> Value:
    found = problems(named.key, text)
    return Optional(found) if found else NONE


def _constant(named: NamedFormat) -> Callable[[Activation], Value]:
    return lambda _activation: named


def _named(_activation: Activation, name: str) -> Value:
    found = FORMATS.get(name)
    return NONE if found is None else Optional(found)


_NAMED: Final[dict[str, Callable[..., Value]]] = {
    **{f"format.{key}()": _constant(named) for key, named in FORMATS.items()},
    "format.named(string)": _named,
    "validate(kubernetes.NamedFormat, string)": _validate,
}
FUNCTIONS: Final = {**_QUANTITIES, **_VERSIONS, **_URLS, **_ADDRESSES, **_NAMED}
