"""Rules of Services."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from trio_sched.simulator.validation.core.service_addresses import address_problems
from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    duplicate,
    forbidden_field,
    required,
    unsupported,
)
from trio_sched.simulator.validation.meta.metadata import label_problems
from trio_sched.simulator.validation.meta.selectors import key_problems
from trio_sched.simulator.validation.meta.shapes import Json

_RANGES: Final = "service.beta.kubernetes.io/load-balancer-source-ranges"
_TOPOLOGY_HINTS: Final = "service.kubernetes.io/topology-aware-hints"
_TOPOLOGY_MODE: Final = "service.kubernetes.io/topology-mode"
_FOR_LOAD_BALANCERS: Final = "may only be used when `type` is 'LoadBalancer'"
_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_FIXED: Final = "may not change once set"
_DISTRIBUTIONS: Final = ("PreferClose", "PreferSameZone", "PreferSameNode")


def service_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new Service."""
    spec = fields.get("spec") or {}
    kind, ports = spec.get("type") or "", spec.get("ports") or []
    addresses = spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else [])
    is_headless = addresses[:1] == ["None"]
    if not ports and not is_headless and kind != "ExternalName":
        yield required("spec.ports")
    if kind not in _TYPES:
        yield unsupported("spec.type", kind, _TYPES)
    if kind in ("LoadBalancer", "NodePort") and is_headless:
        yield bad_value("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")
    if kind == "ExternalName":
        yield from _external_name_problems(spec, addresses)
    yield from _port_problems(ports, kind)
    yield from label_problems(spec.get("selector") or {}, "spec.selector")
    yield from _affinity_problems(spec)
    if kind != "ExternalName":
        yield from address_problems(spec, addresses)
    for index, address in enumerate(spec.get("externalIPs") or ()):
        if problem := names.ip_address(address):
            yield bad_value(f"spec.externalIPs[{index}]", address, problem)
    annotations = fields["metadata"].get("annotations") or {}
    yield from _load_balancer_problems(spec, kind)
    yield from _source_range_problems(spec.get("loadBalancerSourceRanges") or [], annotations.get(_RANGES), kind)
    hints, mode = annotations.get(_TOPOLOGY_HINTS), annotations.get(_TOPOLOGY_MODE)
    if None not in (hints, mode) and hints != mode:
        detail = f"must match annotations[{_TOPOLOGY_HINTS}] when both are specified"
        yield bad_value(f"metadata.annotations[{_TOPOLOGY_MODE}]", mode, detail)
    yield from _traffic_problems(spec, kind)


def service_changes(old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with the change of a Service."""
    before, after = old.get("spec") or {}, new["spec"]
    if "ExternalName" not in (before.get("type"), after.get("type")):
        yield from _address_changes(before, after)
    if before.get("type") == after.get("type") == "LoadBalancer":
        wanted = after.get("loadBalancerClass")
        if before.get("loadBalancerClass") != wanted:
            yield bad_value("spec.loadBalancerClass", wanted, _FIXED)
        had_check, has_check = (spec.get("externalTrafficPolicy") == "Local" for spec in (before, after))
        if had_check and has_check and before.get("healthCheckNodePort") != after.get("healthCheckNodePort"):
            yield forbidden_field("spec.healthCheckNodePort", "field is immutable")


def _address_changes(before: Json, after: Json) -> Iterator[FieldProblem]:
    """The first address stays; a second one may come, and go again."""
    old, new = before.get("clusterIPs") or [], after.get("clusterIPs") or []
    if len(old) > len(new):
        if not new:
            yield bad_value("spec.clusterIPs[0]", new, "primary clusterIP can not be unset")
        elif after.get("ipFamilyPolicy") != "SingleStack":
            detail = "must be set to 'SingleStack' when releasing the secondary clusterIP"
            yield bad_value("spec.ipFamilyPolicy", after.get("ipFamilyPolicy"), detail)
    compared = len(old) if len(old) == len(new) else 1
    for index, (was, is_now) in enumerate(zip(old[:compared], new, strict=False)):
        if was != is_now:
            yield bad_value(f"spec.clusterIPs[{index}]", new, _FIXED)


def _external_name_problems(spec: Json, addresses: list[str]) -> Iterator[FieldProblem]:
    for field, value in (
        ("clusterIPs", addresses),
        ("ipFamilies", spec.get("ipFamilies")),
        ("ipFamilyPolicy", spec.get("ipFamilyPolicy")),
    ):
        if value:
            yield forbidden_field(f"spec.{field}", "may not be set for ExternalName services")
    name = (spec.get("externalName") or "").removesuffix(".")
    if not name:
        yield required("spec.externalName")
    elif problem := names.subdomain(name):
        yield bad_value("spec.externalName", name, problem)


def _port_problems(ports: list[Json], kind: str) -> Iterator[FieldProblem]:
    seen_names: set[str] = set()
    seen: set[tuple[Any, Any]] = set()
    seen_on_nodes: set[tuple[Any, Any]] = set()
    for index, port in enumerate(ports):
        path, name, number = f"spec.ports[{index}]", port.get("name") or "", port.get("port") or 0
        protocol, target, on_node = (
            port.get("protocol") or "TCP",
            port.get("targetPort") or number,
            port.get("nodePort"),
        )
        if not name and len(ports) > 1:
            yield required(f"{path}.name")
        elif name and (problem := names.dns_label(name)):
            yield bad_value(f"{path}.name", name, problem)
        if name and name in seen_names:
            yield duplicate(f"{path}.name", name)
        seen_names.add(name)
        if problem := names.port_number(number):
            yield bad_value(f"{path}.port", number, problem)
        if protocol not in _PROTOCOLS:
            yield unsupported(f"{path}.protocol", protocol, _PROTOCOLS)
        if problem := names.port_name(target) if isinstance(target, str) else names.port_number(target):
            yield bad_value(f"{path}.targetPort", target, problem)
        if port.get("appProtocol") is not None:
            yield from key_problems(port["appProtocol"], f"{path}.appProtocol")
        if on_node and kind == "ClusterIP":
            yield forbidden_field(f"{path}.nodePort", "may not be used when `type` is 'ClusterIP'")
        if on_node and (protocol, on_node) in seen_on_nodes:
            yield duplicate(f"{path}.nodePort", on_node)
        seen_on_nodes.add((protocol, on_node))
        if (protocol, number) in seen:
            yield duplicate(path, {"protocol": protocol, "port": number})
        seen.add((protocol, number))


def _affinity_problems(spec: Json) -> Iterator[FieldProblem]:
    affinity, config = spec.get("sessionAffinity") or "", spec.get("sessionAffinityConfig")
    path = "spec.sessionAffinityConfig"
    if affinity not in ("ClientIP", "None"):
        yield unsupported("spec.sessionAffinity", affinity, ("ClientIP", "None"))
    elif affinity == "None":
        if config is not None:
            yield forbidden_field(path, "must not be set when session affinity is None")
    else:
        seconds = ((config or {}).get("clientIP") or {}).get("timeoutSeconds", 10_800)
        if not 0 < seconds <= 86_400:
            detail = "must be greater than 0 and less than 86400"
            yield bad_value(f"{path}.clientIP.timeoutSeconds", seconds, detail)


def _load_balancer_problems(spec: Json, kind: str) -> Iterator[FieldProblem]:
    if kind != "LoadBalancer":
        for field in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
            if spec.get(field) is not None:
                yield forbidden_field(f"spec.{field}", _FOR_LOAD_BALANCERS)
    elif spec.get("loadBalancerClass") is not None:
        yield from key_problems(spec["loadBalancerClass"], "spec.loadBalancerClass")


def _source_range_problems(ranges: list[str], annotated: str | None, kind: str) -> Iterator[FieldProblem]:
    """What is wrong with the networks that may reach a load balancer; those of the annotation count without others."""
    path = "spec.LoadBalancerSourceRanges"
    listed = [(f"{path}[{index}]", network) for index, network in enumerate(ranges)]
    if not ranges and annotated is not None:
        path = f"metadata.annotations[{_RANGES}]"
        listed = [(path, network) for network in annotated.split(",")] if annotated.strip() else []
    elif not ranges:
        return
    if kind != "LoadBalancer":
        yield forbidden_field(path, _FOR_LOAD_BALANCERS)
    for where, network in listed:
        if problem := names.cidr(network.strip()):
            yield bad_value(where, network.strip(), problem)


def _traffic_problems(spec: Json, kind: str) -> Iterator[FieldProblem]:
    external, health = spec.get("externalTrafficPolicy") or "", spec.get("healthCheckNodePort") or 0
    is_external = kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and bool(spec.get("externalIPs")))
    if external and not is_external:
        detail = "may only be set for externally-accessible services"
        yield bad_value("spec.externalTrafficPolicy", external, detail)
    elif external and external not in ("Cluster", "Local"):
        yield unsupported("spec.externalTrafficPolicy", external, ("Cluster", "Local"))
    if health and not (kind == "LoadBalancer" and external == "Local"):
        detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        yield bad_value("spec.healthCheckNodePort", health, detail)
    elif health and (problem := names.port_number(health)):
        yield bad_value("spec.healthCheckNodePort", health, problem)
    for field, choices in (
        ("internalTrafficPolicy", ("Cluster", "Local")),
        ("trafficDistribution", _DISTRIBUTIONS),
    ):
        if spec.get(field) is not None and spec[field] not in choices:
            yield unsupported(f"spec.{field}", spec[field], choices)
