"""Addresses and ports of nodes that Services get: each is given out once, and kept as long as the type needs it.

Source: ``pkg/registry/core/service`` of Kubernetes: ``storage/alloc.go``, ``strategy.go``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trio_sched.errors import TrioSchedError
from trio_sched.simulator.admission.service_families import fill_families
from trio_sched.simulator.errors.status_errors import internal_error, invalid
from trio_sched.simulator.storage.cluster_state import ClusterState
from trio_sched.simulator.storage.resource_types import ResourceType
from trio_sched.simulator.validation.meta.field_problems import FieldProblem, bad_value
from trio_sched.simulator.validation.meta.shapes import Json, dicts

_FIRST_PORT: Final = 30000
_LAST_PORT: Final = 32767
_FIRST_DRAWN_PORT: Final = 30086
"""The ports before it are left to those who ask for one, as long as there are others."""
_ADDRESSES: Final = 65_535
_STRIDE: Final = 40_507
"""Has no divisor in common with the number of addresses."""
_DRAWS: Final = 20
"""How often a port is drawn before those that are free are listed."""
_ALLOCATED: Final = "already allocated"


def admit_service(state: ClusterState, resource: ResourceType, fields: Json) -> None:
    """Give a new Service what it needs and doesn't ask for.

    Raises:
        ApiError: 422, it asks for an address or a port that it cannot have.
    """
    spec = fields["spec"]
    problems = [*_address_problems(state, spec), *_port_problems(state, spec, None)]
    if problems:
        raise invalid(resource, fields["metadata"].get("name") or "", problems[:1])
    _allocate(state, spec)
    fill_families(spec)
    fields["status"] = {"loadBalancer": {}}


def admit_service_change(state: ClusterState, old: Json, new: Json) -> None:
    """A changed Service keeps what it has, loses what its new type has no use for, and gets what is missing.

    Raises:
        ApiError: 422, it asks for a port that it cannot have.
    """
    before, after = old.get("spec") or {}, new["spec"]
    _keep(before, after)
    _match_addresses(before, after)
    fill_families(after, before)
    problems = list(_port_problems(state, after, old))
    if problems:
        raise invalid(state.types.core("services"), old["metadata"]["name"], problems[:1])
    _allocate(state, after)
    _drop(before, after)


def _specs(state: ClusterState) -> Iterator[Json]:
    for stored in state.store.collection("services").objects.values():
        yield stored.fields.get("spec") or {}


def _ports_in_use(state: ClusterState) -> set[int]:
    """The ports of nodes of all stored Services."""
    used: set[int] = set()
    for spec in _specs(state):
        used.update(port["nodePort"] for port in dicts(spec.get("ports")) if port.get("nodePort"))
        if spec.get("healthCheckNodePort"):
            used.add(spec["healthCheckNodePort"])
    return used


def _address_problems(state: ClusterState, spec: Json) -> Iterator[FieldProblem]:
    """Addresses are not held against a range: the files may be of a cluster with any."""
    asked = spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else [])
    if asked in ([], ["None"]):
        return
    used = {address for other in _specs(state) for address in other.get("clusterIPs") or ()} - {"None"}
    for address in asked:
        if address in used:
            detail = f"failed to allocate IP {address}: provided IP is {_ALLOCATED}"
            yield bad_value("spec.clusterIPs", asked, detail)


def _port_problems(state: ClusterState, spec: Json, old: Json | None) -> Iterator[FieldProblem]:
    """The ports that a Service cannot have; *old* is it as it is stored, if it is."""
    asked = {port["nodePort"] for port in dicts(spec.get("ports")) if port.get("nodePort")}
    held = {port.get("nodePort") for port in dicts(((old or {}).get("spec") or {}).get("ports"))}
    if not _needs_ports(spec) or asked <= held:
        return
    used = _ports_in_use(state)
    for index, port in enumerate(dicts(spec.get("ports"))):
        number = port.get("nodePort") or 0
        if not number or number in held:
            continue
        if not _FIRST_PORT <= number <= _LAST_PORT:
            detail = f"provided port is not in the valid range. The range of valid ports is {_FIRST_PORT}-{_LAST_PORT}"
            yield bad_value(f"spec.ports[{index}].nodePort", number, detail)
        elif number in used:
            yield bad_value(f"spec.ports[{index}].nodePort", number, f"provided port is {_ALLOCATED}")


def _needs_ports(spec: Json) -> bool:
    return spec.get("type") in ("LoadBalancer", "NodePort")


def _gets_ports(spec: Json) -> bool:
    """Whether it gets ports that it doesn't ask for."""
    return _needs_ports(spec) and spec.get("allocateLoadBalancerNodePorts") is not False


def _needs_health_port(spec: Json) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def _is_external(spec: Json) -> bool:
    return _needs_ports(spec) or (spec.get("type") == "ClusterIP" and bool(spec.get("externalIPs")))


def _allocate(state: ClusterState, spec: Json) -> None:
    if spec["type"] != "ExternalName" and not spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIP"] = _new_address(state)
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    if not _needs_ports(spec):
        return
    used = _ports_in_use(state) | {port["nodePort"] for port in dicts(spec.get("ports")) if port.get("nodePort")}
    if _gets_ports(spec):
        shared: dict[object, int] = {}  # TCP and UDP of one port get the same port of nodes
        for port in dicts(spec.get("ports")):
            if not port.get("nodePort"):
                port["nodePort"] = shared.get(port.get("port")) or _new_port(state, used)
                used.add(port["nodePort"])
            shared.setdefault(port.get("port"), port["nodePort"])
    if _needs_health_port(spec) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = _new_port(state, used)


def _new_address(state: ClusterState) -> str:
    """An address that looks random; the store's version makes it another one for every Service without a search."""
    number = state.store.version * _STRIDE % _ADDRESSES + 1
    return f"10.96.{number >> 8}.{number & 255}"


def _new_port(state: ClusterState, used: set[int]) -> int:
    """A random port that is not *used*.

    Raises:
        ApiError: 500, there is none left.
    """
    for _ in range(_DRAWS):
        number = state.rng.randint(_FIRST_DRAWN_PORT, _LAST_PORT)
        if number not in used:
            return number
    for first in (_FIRST_DRAWN_PORT, _FIRST_PORT):
        free = [number for number in range(first, _LAST_PORT + 1) if number not in used]
        if free:
            return state.rng.choice(free)
    raise internal_error(TrioSchedError("failed to allocate a nodePort: range is full"))


def _drop(before: Json, after: Json) -> None:
    """Remove what the new type has no use for, unless the change is about it: then it is refused."""
    if before.get("type") != "ExternalName" and after["type"] == "ExternalName":
        if all(before.get(name) == after.get(name) for name in ("clusterIP", "clusterIPs")):
            _remove(after, "clusterIP", "clusterIPs")
        for name in ("ipFamilies", "ipFamilyPolicy"):
            if before.get(name) == after.get(name):
                _remove(after, name)
    if _needs_ports(before) and not _needs_ports(after):
        held = {port.get("nodePort") or 0 for port in dicts(before.get("ports"))}
        if {port.get("nodePort") or 0 for port in dicts(after.get("ports"))} <= held | {0}:
            after["ports"] = [_without_node_port(port) for port in dicts(after.get("ports"))]
    for name, has_use in (
        ("healthCheckNodePort", _needs_health_port),
        ("allocateLoadBalancerNodePorts", _is_load_balancer),
        ("loadBalancerClass", _is_load_balancer),
        ("externalTrafficPolicy", _is_external),
    ):
        if has_use(before) and not has_use(after) and before.get(name) == after.get(name):
            _remove(after, name)


def _is_load_balancer(spec: Json) -> bool:
    return bool(spec.get("type") == "LoadBalancer")


def _remove(spec: Json, *names: str) -> None:
    for name in names:
        spec.pop(name, None)


def _without_node_port(port: Json) -> Json:
    return {name: value for name, value in port.items() if name != "nodePort"}


def _keep(before: Json, after: Json) -> None:
    """Take over what it has and the change leaves out."""
    if "ExternalName" not in (before.get("type"), after["type"]):
        for name in ("clusterIP", "clusterIPs"):
            if not after.get(name) and before.get(name):
                after[name] = before[name]
    if _gets_ports(before) and _gets_ports(after):
        asked = {port.get("nodePort") for port in dicts(after.get("ports"))}
        held = {port.get("name") or "": port.get("nodePort") for port in dicts(before.get("ports"))}
        for port in dicts(after.get("ports")):
            known = held.get(port.get("name") or "")
            if not port.get("nodePort") and known and known not in asked:
                port["nodePort"] = known
    if _needs_health_port(before) and _needs_health_port(after) and not after.get("healthCheckNodePort"):
        after["healthCheckNodePort"] = before.get("healthCheckNodePort") or 0


def _match_addresses(before: Json, after: Json) -> None:
    """Let ``clusterIPs`` follow ``clusterIP``, which clients that know one address only change alone."""
    was, is_now = before.get("clusterIP") or "", after.get("clusterIP") or ""
    all_before, all_after = before.get("clusterIPs") or [], after.get("clusterIPs") or []
    if was == is_now:
        if all_before and not all_after:
            after["clusterIPs"] = all_before
    elif all_before == all_after and is_now:
        after["clusterIPs"] = [is_now]
    elif all_before == all_after:
        _remove(after, "clusterIPs")
