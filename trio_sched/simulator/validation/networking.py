"""Rules of Ingresses, their classes, and NetworkPolicies."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Final

from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    forbidden_field,
    required,
    too_long,
    unsupported,
)
from trio_sched.simulator.validation.meta.metadata import immutable
from trio_sched.simulator.validation.meta.selectors import label_selector_problems
from trio_sched.simulator.validation.meta.shapes import Json

_PATH_TYPES: Final = ("Exact", "ImplementationSpecific", "Prefix")
_PATH_TABOO: Final = re.compile(r"//|/\./|/\.\./|%2[fF]|/\.\.?$")
_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_POLICY_TYPES: Final = ("Ingress", "Egress")
_CLASS_ANNOTATION: Final = "kubernetes.io/ingress.class"
_MAX_CONTROLLER: Final = 250


def ingress_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with an Ingress."""
    spec = fields.get("spec") or {}
    rules, default, class_name = spec.get("rules") or [], spec.get("defaultBackend"), spec.get("ingressClassName")
    if not rules and default is None:
        yield bad_value("spec", rules, "either `defaultBackend` or `rules` must be specified")
    if default is not None:
        yield from _backend_problems(default, "spec.defaultBackend")
    for index, rule in enumerate(rules):
        yield from _rule_problems(rule, f"spec.rules[{index}]")
    for index, entry in enumerate(spec.get("tls") or ()):
        for number, host in enumerate(entry.get("hosts") or ()):
            yield from _host_problems(host, f"spec.tls[{index}].hosts[{number}]")
        secret = entry.get("secretName")
        if secret and (problem := names.subdomain(secret)):
            yield bad_value(f"spec.tls[{index}].secretName", secret, problem)
    if class_name is not None and (problem := names.subdomain(class_name)):
        yield bad_value("spec.ingressClassName", class_name, problem)


def sent_ingress_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with an Ingress that is to be created, though one that exists may be so."""
    annotated = (fields["metadata"].get("annotations") or {}).get(_CLASS_ANNOTATION)
    named = (fields.get("spec") or {}).get("ingressClassName")
    if None not in (annotated, named) and annotated != named:
        detail = "must match `ingressClassName` when both are specified"
        yield bad_value(f"annotations.{_CLASS_ANNOTATION}", annotated, detail)


def _host_problems(host: str, path: str) -> Iterator[FieldProblem]:
    if problem := names.wildcard_subdomain(host) if "*" in host else names.subdomain(host):
        yield bad_value(path, host, problem)


def _rule_problems(rule: Json, path: str) -> Iterator[FieldProblem]:
    if host := rule.get("host"):
        if names.ip_address(host) is None:
            yield bad_value(f"{path}.host", host, "must be a DNS name, not an IP address")
        yield from _host_problems(host, f"{path}.host")
    if (http := rule.get("http")) is None:
        return
    if not http.get("paths"):
        yield required(f"{path}.http.paths")
    for index, one in enumerate(http.get("paths") or ()):
        yield from _path_problems(one, f"{path}.http.paths[{index}]")


def _path_problems(entry: Json, path: str) -> Iterator[FieldProblem]:
    kind, text = entry.get("pathType"), entry.get("path") or ""
    if kind is None:
        yield required(f"{path}.pathType", "pathType must be specified")
        return
    if kind not in _PATH_TYPES:
        yield unsupported(f"{path}.pathType", kind, _PATH_TYPES)
    else:
        is_free = kind == "ImplementationSpecific"
        if not text.startswith("/") and (text or not is_free):
            yield bad_value(f"{path}.path", text, "must be an absolute path")
        if not is_free and (found := _PATH_TABOO.search(text)):
            yield bad_value(f"{path}.path", text, f"must not contain '{found[0]}'")
    yield from _backend_problems(entry.get("backend") or {}, f"{path}.backend")


def _backend_problems(backend: Json, path: str) -> Iterator[FieldProblem]:
    resource, service = backend.get("resource"), backend.get("service")
    if resource is not None and service is not None:
        yield bad_value(path, "", "cannot set both resource and service backends")
    elif resource is not None:
        yield from _reference_problems(resource, f"{path}.resource")
    elif service is None:
        yield bad_value(path, "", "resource or service backend is required")
    else:
        name, port = service.get("name") or "", service.get("port") or {}
        if not name:
            yield required(f"{path}.service.name")
        elif problem := names.dns_label(name):
            yield bad_value(f"{path}.service.name", name, problem)
        if port.get("name") and port.get("number"):
            yield bad_value(path, "", "cannot set both port name & port number")
        elif port.get("name"):
            if problem := names.port_name(port["name"]):
                yield bad_value(f"{path}.service.port.name", port["name"], problem)
        elif port.get("number"):
            if problem := names.port_number(port["number"]):
                yield bad_value(f"{path}.service.port.number", port["number"], problem)
        else:
            yield required(path, "port name or number is required")


def _reference_problems(reference: Json, path: str) -> Iterator[FieldProblem]:
    group = reference.get("apiGroup")
    if group is not None and (problem := names.subdomain(group)):
        yield bad_value(f"{path}.apiGroup", group, problem)
    for field in ("kind", "name"):
        value = reference.get(field)
        if not value:
            yield required(f"{path}.{field}")
        elif problem := names.path_segment(value):
            yield bad_value(f"{path}.{field}", value, problem)


def ingress_class_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with an IngressClass."""
    spec = fields.get("spec") or {}
    controller, parameters, path = spec.get("controller") or "", spec.get("parameters"), "spec.parameters"
    if len(controller) > _MAX_CONTROLLER:
        yield too_long("spec.controller", _MAX_CONTROLLER)
    if not controller:
        yield required("spec.controller")
    elif problem := names.domain_prefixed_path(controller):
        yield bad_value("spec.controller", controller, problem)
    if parameters is None:
        return
    yield from _reference_problems(parameters, path)
    scope, namespace = parameters.get("scope"), parameters.get("namespace")
    if scope not in ("Cluster", "Namespace"):
        yield unsupported(f"{path}.scope", scope, ("Cluster", "Namespace"))
    elif scope == "Cluster":
        if namespace is not None:
            yield forbidden_field(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'")
    elif namespace is None:
        yield required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'")
    elif problem := names.dns_label(namespace):
        yield bad_value(f"{path}.namespace", namespace, problem)


def ingress_class_changes(old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with a change of an IngressClass."""
    yield from immutable(old.get("spec") or {}, new.get("spec") or {}, "controller")


def network_policy_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a NetworkPolicy."""
    spec = fields.get("spec") or {}
    yield from label_selector_problems(spec.get("podSelector"), "spec.podSelector")
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction) or ()):
            path = f"spec.{direction}[{index}]"
            for number, port in enumerate(rule.get("ports") or ()):
                yield from _policy_port_problems(port, f"{path}.ports[{number}]")
            for number, peer in enumerate(rule.get(peers) or ()):
                yield from _peer_problems(peer, f"{path}.{peers}[{number}]")
    types = spec.get("policyTypes") or []
    if len(types) > len(_POLICY_TYPES):
        yield bad_value("spec.policyTypes", types, "may not specify more than two policyTypes")
        return
    for index, one in enumerate(types):
        if one not in _POLICY_TYPES:
            yield unsupported(f"spec.policyTypes[{index}]", one, _POLICY_TYPES)


def _policy_port_problems(entry: Json, path: str) -> Iterator[FieldProblem]:
    protocol, port, last = entry.get("protocol", "TCP"), entry.get("port"), entry.get("endPort")
    if protocol not in _PROTOCOLS:
        yield unsupported(f"{path}.protocol", protocol, _PROTOCOLS)
    if port is not None and (problem := names.port_name(port) if isinstance(port, str) else names.port_number(port)):
        yield bad_value(f"{path}.port", port, problem)
    if last is None:
        return
    if not isinstance(port, int):
        why = "not specified" if port is None else "non-numeric"
        yield bad_value(f"{path}.endPort", last, f"may not be specified when `port` is {why}")
        return
    if last < port:
        yield bad_value(f"{path}.endPort", port, "must be greater than or equal to `port`")
    if problem := names.port_number(last):
        yield bad_value(f"{path}.endPort", last, problem)


def _peer_problems(peer: Json, path: str) -> Iterator[FieldProblem]:
    selectors = [field for field in ("podSelector", "namespaceSelector") if peer.get(field) is not None]
    block = peer.get("ipBlock")
    for field in selectors:
        yield from label_selector_problems(peer[field], f"{path}.{field}")
    if block is not None:
        yield from _block_problems(block, f"{path}.ipBlock")
        if selectors:
            yield forbidden_field(path, "may not specify both ipBlock and another peer")
    elif not selectors:
        yield required(path, "must specify a peer")


def _block_problems(block: Json, path: str) -> Iterator[FieldProblem]:
    cidr = block.get("cidr") or ""
    if not cidr:
        yield required(f"{path}.cidr")
        return
    if problem := names.cidr(cidr):
        yield bad_value(f"{path}.cidr", cidr, problem)
        return
    for index, part in enumerate(block.get("except") or ()):
        where = f"{path}.except[{index}]"
        if problem := names.cidr(part):
            yield bad_value(where, part, problem)
        elif not _is_strictly_within(part, cidr):
            yield bad_value(where, part, "must be a strict subset of `cidr`")


def _is_strictly_within(part: str, whole: str) -> bool:
    inner, outer = _network(part), _network(whole)
    return inner.version == outer.version and inner.prefixlen > outer.prefixlen and inner.network_address in outer


def _network(cidr: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    address, _, bits = cidr.partition("/")
    return ipaddress.ip_network(f"{names.parse_address(address)}/{bits}", strict=False)
