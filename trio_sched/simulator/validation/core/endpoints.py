"""Rules of Endpoints and EndpointSlices."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Final

from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    duplicate,
    required,
    too_many,
    unsupported,
)
from trio_sched.simulator.validation.meta.metadata import immutable
from trio_sched.simulator.validation.meta.selectors import key_problems
from trio_sched.simulator.validation.meta.shapes import Json

_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_ADDRESS_TYPES: Final = ("FQDN", "IPv4", "IPv6")
_MAX_ENDPOINTS: Final = 1000
_MAX_ADDRESSES: Final = 100
_MAX_PORTS: Final = 20_000
_MAX_HINTS: Final = 8


def endpoints_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with Endpoints."""
    for index, subset in enumerate(fields.get("subsets") or ()):
        path, ports = f"subsets[{index}]", subset.get("ports") or []
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            yield required(path, "must specify `addresses` or `notReadyAddresses`")
        for kind in ("addresses", "notReadyAddresses"):
            for number, address in enumerate(subset.get(kind) or ()):
                yield from _address_problems(address, f"{path}.{kind}[{number}]")
        for number, port in enumerate(ports):
            yield from _port_problems(port, f"{path}.ports[{number}]", needs_name=len(ports) > 1)


def _address_problems(address: Json, path: str) -> Iterator[FieldProblem]:
    yield from _ip_problems(address.get("ip") or "", f"{path}.ip")
    yield from _place_problems(address, path)


def _place_problems(endpoint: Json, path: str) -> Iterator[FieldProblem]:
    host, node = endpoint.get("hostname"), endpoint.get("nodeName")
    if host and (problem := names.dns_label(host)):
        yield bad_value(f"{path}.hostname", host, problem)
    if node is not None and (problem := names.subdomain(node)):
        yield bad_value(f"{path}.nodeName", node, problem)


def _ip_problems(text: str, path: str) -> Iterator[FieldProblem]:
    address = names.parse_address(text)
    if address is None:
        yield bad_value(path, text, str(names.ip_address(text)))
        return
    address = getattr(address, "ipv4_mapped", None) or address
    if address.is_unspecified:
        yield bad_value(path, text, f"may not be unspecified ({text})")
    if address.is_loopback:
        yield bad_value(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if address.is_link_local:
        yield bad_value(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    if address in _MULTICAST[address.version]:
        yield bad_value(path, text, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")


_MULTICAST: Final = {4: ipaddress.ip_network("224.0.0.0/24"), 6: ipaddress.ip_network("ff02::/16")}


def _port_problems(port: Json, path: str, *, needs_name: bool) -> Iterator[FieldProblem]:
    name, number = port.get("name") or "", port.get("port") or 0
    if needs_name and not name:
        yield required(f"{path}.name")
    elif name and (problem := names.dns_label(name)):
        yield bad_value(f"{path}.name", name, problem)
    if problem := names.port_number(number):
        yield bad_value(f"{path}.port", number, problem)
    yield from _protocol_problems(port, path)


def _protocol_problems(port: Json, path: str) -> Iterator[FieldProblem]:
    if port.get("protocol") not in _PROTOCOLS:
        yield unsupported(f"{path}.protocol", port.get("protocol"), _PROTOCOLS)
    if port.get("appProtocol") is not None:
        yield from key_problems(port["appProtocol"], f"{path}.appProtocol")


def slice_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with an EndpointSlice."""
    kind, endpoints, ports = fields.get("addressType") or "", fields.get("endpoints") or [], fields.get("ports") or []
    if not kind:
        yield required("addressType")
    elif kind not in _ADDRESS_TYPES:
        yield unsupported("addressType", kind, _ADDRESS_TYPES)
    if len(ports) > _MAX_PORTS:
        yield too_many("ports", len(ports), _MAX_PORTS)
    seen: set[str] = set()
    for index, port in enumerate(ports):
        path, name = f"ports[{index}]", port.get("name") or ""
        if name and (problem := names.dns_label(name)):
            yield bad_value(f"{path}.name", name, problem)
        if name in seen:
            yield duplicate(f"{path}.name", name)
        seen.add(name)
        yield from _protocol_problems(port, path)
    if len(endpoints) > _MAX_ENDPOINTS:
        yield too_many("endpoints", len(endpoints), _MAX_ENDPOINTS)
        return
    for index, endpoint in enumerate(endpoints):
        yield from _endpoint_problems(endpoint, kind, f"endpoints[{index}]")


def slice_changes(old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with a change of an EndpointSlice."""
    yield from immutable(old, new, "addressType", path="")


def _endpoint_problems(endpoint: Json, kind: str, path: str) -> Iterator[FieldProblem]:
    addresses = endpoint.get("addresses") or []
    if not addresses:
        yield required(f"{path}.addresses", "must contain at least 1 address")
    elif len(addresses) > _MAX_ADDRESSES:
        yield too_many(f"{path}.addresses", len(addresses), _MAX_ADDRESSES)
    for index, address in enumerate(addresses):
        where = f"{path}.addresses[{index}]"
        if kind == "FQDN":
            if problem := names.full_domain(address):
                yield bad_value(where, address, problem)
        elif kind in _ADDRESS_TYPES:
            found = list(_ip_problems(address, where))
            yield from found
            if not found and (":" in address) != (kind == "IPv6"):
                yield bad_value(f"{path}.addresses", address, f"must be an {kind} address")
    yield from _place_problems(endpoint, path)
    if endpoint.get("hostname") == "":
        yield bad_value(f"{path}.hostname", "", str(names.dns_label("")))
    hints = endpoint.get("hints") or {}
    for field, check in (("forZones", names.label_value), ("forNodes", names.subdomain)):
        listed = [hint.get("name") or "" for hint in hints.get(field) or ()]
        if len(listed) > _MAX_HINTS:
            yield too_many(f"{path}.hints.{field}", len(listed), _MAX_HINTS)
            return
        for index, name in enumerate(listed):
            where = f"{path}.hints.{field}[{index}].name"
            if name in listed[:index]:
                yield duplicate(where, name)
            if problem := check(name):
                yield bad_value(where, name, problem)
