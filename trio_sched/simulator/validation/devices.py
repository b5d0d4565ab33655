"""Rules of device classes, resource claims, templates of claims, resource slices and taint rules.

Source: ``pkg/apis/resource/validation`` of Kubernetes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from trio_sched.cel.device_selector import compile_device_selector
from trio_sched.cel.errors import CompileError
from trio_sched.simulator.field_problems import (
    FieldProblem,
    bad_value,
    duplicate,
    forbidden_field,
    required,
    too_long,
    too_many,
    unsupported,
)
from trio_sched.simulator.validation import names
from trio_sched.simulator.validation.metadata import annotation_problems, label_problems
from trio_sched.simulator.validation.resources import is_extended
from trio_sched.simulator.validation.selectors import key_problems, node_selector_problems
from trio_sched.simulator.validation.shapes import Json
from trio_sched.simulator.validation.volumes import driver_name_problems

_MAX_REQUESTS: Final = 32
_MAX_ALTERNATIVES: Final = 8
_MAX_EXPRESSION: Final = 10 << 10
_MAX_ATTRIBUTES: Final = 32
_MAX_DEVICES: Final = 128
_MAX_DEVICES_WITH_MORE: Final = 64
"""Of slices whose devices have taints, counters or lists."""
_EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
_NAME_RULE: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)
_VALUES: Final = ("bool", "int", "string", "version", "bools", "ints", "strings", "versions")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_IDENTIFIER_RULE: Final = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters "
    "or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')"
)
_SEMVER: Final = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?"
    r"(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)

RequestNames = dict[str, set[str]]
"""The names of requests, with those of their alternatives."""


# --- claims ---------------------------------------------------------------------------------------------------------


def claim_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new claim."""
    yield from _claim_spec_problems(fields.get("spec") or {}, "spec")


def template_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new template of claims."""
    spec = fields.get("spec") or {}
    metadata = spec.get("metadata") or {}
    yield from annotation_problems(metadata.get("annotations") or {}, "spec.metadata.annotations")
    yield from label_problems(metadata.get("labels") or {}, "spec.metadata.labels")
    for field in metadata.keys() - {"annotations", "labels"}:
        yield forbidden_field(f"spec.metadata.{field}", "cannot be set")
    yield from _claim_spec_problems(spec.get("spec") or {}, "spec.spec")


def request_names(spec: Json) -> RequestNames:
    """The names of the requests of a claim with *spec*."""
    return {
        request.get("name") or "": {one.get("name") or "" for one in request.get("firstAvailable") or ()}
        for request in (spec.get("devices") or {}).get("requests") or ()
    }


def _claim_spec_problems(spec: Json, path: str) -> Iterator[FieldProblem]:
    devices, known = spec.get("devices") or {}, request_names(spec)
    requests = devices.get("requests") or []
    yield from _size_problems(requests, _MAX_REQUESTS, f"{path}.devices.requests")
    yield from _names_again(requests, f"{path}.devices.requests")
    for index, request in enumerate(requests):
        yield from _request_problems(request, f"{path}.devices.requests[{index}]")
    for kind in ("constraints", "config"):
        items = devices.get(kind) or []
        yield from _size_problems(items, _MAX_REQUESTS, f"{path}.devices.{kind}")
        for index, item in enumerate(items):
            where = f"{path}.devices.{kind}[{index}]"
            yield from _reference_problems(item.get("requests") or [], f"{where}.requests", known)
            yield from _constraint_problems(item, where) if kind == "constraints" else opaque_problems(item, where)


def _size_problems(items: Any, limit: int, path: str) -> Iterator[FieldProblem]:
    if len(items) > limit:
        yield too_many(path, len(items), limit)


def _names_again(items: list[Json], path: str) -> Iterator[FieldProblem]:
    seen: set[str] = set()
    for index, item in enumerate(items):
        name = item.get("name") or ""
        if name in seen:
            yield duplicate(f"{path}[{index}].name", name)
        seen.add(name)


def _request_problems(request: Json, path: str) -> Iterator[FieldProblem]:
    yield from _name_problems(request.get("name"), f"{path}.name")
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable") or []
    if exactly is None and not alternatives:
        yield required(path, "exactly one of `exactly` or `firstAvailable` is required")
    elif exactly is not None and alternatives:
        detail = "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set"
        yield bad_value(path, None, detail)
    elif exactly is not None:
        yield from _wanted_problems(exactly, f"{path}.exactly")
    else:
        yield from _size_problems(alternatives, _MAX_ALTERNATIVES, f"{path}.firstAvailable")
        yield from _names_again(alternatives, f"{path}.firstAvailable")
        for index, alternative in enumerate(alternatives):
            where = f"{path}.firstAvailable[{index}]"
            yield from _name_problems(alternative.get("name"), f"{where}.name")
            yield from _wanted_problems(alternative, where)


def _name_problems(name: str | None, path: str) -> Iterator[FieldProblem]:
    if not name:
        yield required(path)
    elif problem := names.dns_label(name):
        yield bad_value(path, name, problem)


def _wanted_problems(wanted: Json, path: str) -> Iterator[FieldProblem]:
    class_name, mode, count = wanted.get("deviceClassName"), wanted.get("allocationMode"), wanted.get("count") or 0
    if not class_name:
        yield required(f"{path}.deviceClassName")
    elif problem := names.subdomain(class_name):
        yield bad_value(f"{path}.deviceClassName", class_name, problem)
    yield from selector_problems(wanted.get("selectors") or [], f"{path}.selectors")
    if mode not in ("All", "ExactCount"):
        yield unsupported(f"{path}.allocationMode", mode, ("All", "ExactCount"))
    elif mode == "ExactCount" and count <= 0:
        yield bad_value(f"{path}.count", count, "must be greater than zero")
    elif mode == "All" and count:
        yield bad_value(f"{path}.count", count, "must not be specified when allocationMode is 'All'")
    tolerations = wanted.get("tolerations") or []
    yield from _size_problems(tolerations, 16, f"{path}.tolerations")
    for index, toleration in enumerate(tolerations):
        yield from _toleration_problems(toleration, f"{path}.tolerations[{index}]")


def _toleration_problems(toleration: Json, path: str) -> Iterator[FieldProblem]:
    key, operator = toleration.get("key") or "", toleration.get("operator") or ""
    value, effect = toleration.get("value") or "", toleration.get("effect") or ""
    if key:
        yield from key_problems(key, f"{path}.key")
    match operator:
        case "Exists":
            if value:
                yield bad_value(f"{path}.value", value, "must be empty for operator `Exists`")
        case "Equal":
            if problem := names.label_value(value):
                yield bad_value(f"{path}.value", value, problem)
        case "":
            yield required(f"{path}.operator")
        case _:
            yield unsupported(f"{path}.operator", operator, ("Equal", "Exists"))
    if effect and effect not in _EFFECTS:
        yield unsupported(f"{path}.effect", effect, _EFFECTS)
    if toleration.get("tolerationSeconds") is not None and effect not in ("", "NoExecute"):
        detail = "may only be set for `NoExecute`"
        yield bad_value(f"{path}.tolerationSeconds", toleration["tolerationSeconds"], detail)


def selector_problems(selectors: list[Json], path: str) -> Iterator[FieldProblem]:
    """What is wrong with the selectors of a request or a class."""
    yield from _size_problems(selectors, _MAX_REQUESTS, path)
    for index, selector in enumerate(selectors):
        where = f"{path}[{index}].cel"
        if selector.get("cel") is None:
            yield required(where)
            continue
        expression = selector["cel"].get("expression") or ""
        if len(expression.encode()) > _MAX_EXPRESSION:
            yield too_long(f"{where}.expression", _MAX_EXPRESSION)
            continue
        problem = expression_problem(expression)
        if problem:
            yield bad_value(f"{where}.expression", expression, problem)


def expression_problem(expression: str) -> str | None:
    """What is wrong with an expression about a device; None if nothing is."""
    try:
        compile_device_selector(expression)
    except CompileError as error:
        return f"compilation failed: {error}"
    return None


def _constraint_problems(constraint: Json, path: str) -> Iterator[FieldProblem]:
    for field in ("matchAttribute", "distinctAttribute"):
        if constraint.get(field) is not None:
            yield from _full_name_problems(constraint[field], f"{path}.{field}")
            return
    detail = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
    yield required(path, detail)


def _full_name_problems(name: str, path: str) -> Iterator[FieldProblem]:
    if not name:
        yield required(path)
        return
    if "/" not in name:
        yield bad_value(path, name, "a fully qualified name must be a domain and a name separated by a slash")
    yield from _qualified_problems(name, path)


def _qualified_problems(name: str, path: str) -> Iterator[FieldProblem]:
    """What is wrong with the key of an attribute or a capacity."""
    if not name:
        yield required(path, "name required")
        return
    domain, slash, identifier = name.rpartition("/")
    if slash and not domain:
        yield required(path, "the domain must not be empty")
    elif slash and (problem := names.subdomain(domain)):
        yield bad_value(path, domain, problem)
    if slash and len(domain) > 63:
        yield too_long(path, 63)
    if not identifier:
        yield required(path, "the name must not be empty")
    elif not _IDENTIFIER.fullmatch(identifier):
        detail = (
            "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric "
        )
        rule = "characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is "
        yield bad_value(path, identifier, f"{detail}{rule}'[A-Za-z_][A-Za-z0-9_]*')")
    elif len(identifier) > 32:
        yield too_long(path, 32)


def _reference_problems(listed: list[str], path: str, known: RequestNames) -> Iterator[FieldProblem]:
    for index, name in enumerate(listed):
        where, (request, slash, alternative) = f"{path}[{index}]", name.partition("/")
        if "/" in alternative:
            yield bad_value(where, name, _NAME_RULE)
            continue
        for part in (request, alternative) if slash else (request,):
            yield from _name_problems(part, where)
        if request not in known or (slash and alternative not in known[request]):
            yield bad_value(where, name, _NAME_RULE)
        if name in listed[:index]:
            yield duplicate(where, name)


def opaque_problems(config: Json, path: str) -> Iterator[FieldProblem]:
    """What is wrong with a configuration for a driver."""
    opaque, where = config.get("opaque"), f"{path}.opaque"
    if opaque is None:
        yield required(where)
        return
    yield from driver_name_problems(opaque.get("driver") or "", f"{where}.driver")
    parameters = opaque.get("parameters")
    if parameters is None:
        yield required(f"{where}.parameters")
    elif not isinstance(parameters, dict):
        yield FieldProblem(
            "FieldValueInvalid",
            f"{where}.parameters",
            'Invalid value: "<value omitted>": must be a valid JSON object',
        )


# --- classes --------------------------------------------------------------------------------------------------------


def class_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new device class."""
    spec = fields.get("spec") or {}
    yield from selector_problems(spec.get("selectors") or [], "spec.selectors")
    config, name = spec.get("config") or [], spec.get("extendedResourceName")
    yield from _size_problems(config, _MAX_REQUESTS, "spec.config")
    for index, one in enumerate(config):
        yield from opaque_problems(one, f"spec.config[{index}]")
    if name is not None and not is_extended(name):
        yield bad_value("spec.extendedResourceName", name, "must be a valid extended resource name")


# --- slices ---------------------------------------------------------------------------------------------------------


def slice_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new resource slice."""
    spec = fields.get("spec") or {}
    pool = spec.get("pool") or {}
    yield from driver_name_problems(spec.get("driver") or "", "spec.driver")
    yield from _pool_problems(pool, "spec.pool")
    yield from _where_problems(spec, "spec")
    devices, counters = spec.get("devices") or [], spec.get("sharedCounters") or []
    if devices and counters:
        yield bad_value("spec", "", "only one of `sharedCounters` or `devices` is allowed")
    has_more = any(
        device.get("taints")
        or device.get("consumesCounters")
        or any(
            value.keys() & {"bools", "ints", "strings", "versions"}
            for value in (device.get("attributes") or {}).values()
        )
        for device in devices
    )
    yield from _size_problems(devices, _MAX_DEVICES_WITH_MORE if has_more else _MAX_DEVICES, "spec.devices")
    yield from _names_again(devices, "spec.devices")
    for index, device in enumerate(devices):
        yield from _device_problems(device, f"spec.devices[{index}]", is_alone=bool(spec.get("perDeviceNodeSelection")))
    yield from _size_problems(counters, 8, "spec.sharedCounters")
    yield from _names_again(counters, "spec.sharedCounters")
    for index, counter_set in enumerate(counters):
        yield from _name_problems(counter_set.get("name"), f"spec.sharedCounters[{index}].name")
        yield from _counter_problems(counter_set, f"spec.sharedCounters[{index}]")


def _has_more(device: Json) -> bool:
    """Whether a device has taints, counters or lists."""
    attributes = (device.get("attributes") or {}).values()
    lists = any(value.keys() & {"bools", "ints", "strings", "versions"} for value in attributes)
    return bool(device.get("taints") or device.get("consumesCounters") or lists)


def _counter_problems(value: Json, path: str) -> Iterator[FieldProblem]:
    counters = value.get("counters") or {}
    if not counters:
        yield required(f"{path}.counters")
    yield from _size_problems(counters, 32, f"{path}.counters")
    for name in counters:
        if problem := names.dns_label(name):
            yield bad_value(f"{path}.counters", name, problem)


def _pool_problems(pool: Json, path: str) -> Iterator[FieldProblem]:
    name, count, generation = pool.get("name") or "", pool.get("resourceSliceCount") or 0, pool.get("generation") or 0
    if not name:
        yield required(f"{path}.name")
    else:
        if len(name) > 253:
            yield too_long(f"{path}.name", 253)
        for part in name.split("/"):
            if problem := names.subdomain(part):
                yield bad_value(f"{path}.name", part, problem)
    if count <= 0:
        yield bad_value(f"{path}.resourceSliceCount", count, "must be greater than zero")
    if generation < 0:
        yield bad_value(f"{path}.generation", generation, "must be greater than or equal to zero")


def _where_problems(spec: Json, path: str) -> Iterator[FieldProblem]:
    given: list[str] = []
    node, selector = spec.get("nodeName"), spec.get("nodeSelector")
    if node == "":
        yield bad_value(f"{path}.nodeName", node, "must be either unset or set to a non-empty string")
    elif node is not None:
        given.append("`nodeName`")
        if problem := names.subdomain(node):
            yield bad_value(f"{path}.nodeName", node, problem)
    if selector is not None:
        given.append("`nodeSelector`")
        yield from node_selector_problems(selector, f"{path}.nodeSelector")
        if len(selector.get("nodeSelectorTerms") or ()) != 1:
            where, terms = f"{path}.nodeSelector.nodeSelectorTerms", selector.get("nodeSelectorTerms")
            yield bad_value(where, terms, "must have exactly one node selector term")
    for field in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(field):
            given.append(f"`{field}`")
        elif spec.get(field) is False:
            yield bad_value(f"{path}.{field}", False, "must be either unset or set to true")
    detail = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
    if not given:
        yield required(path, detail)
    elif len(given) > 1:
        yield bad_value(path, f"{{{', '.join(given)}}}", f"{detail}, but multiple fields are set")


def _device_problems(device: Json, path: str, *, is_alone: bool) -> Iterator[FieldProblem]:
    yield from _name_problems(device.get("name"), f"{path}.name")
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    if len(attributes) + len(capacity) > _MAX_ATTRIBUTES:
        detail = f"the total number of attributes and capacities must not exceed {_MAX_ATTRIBUTES}"
        yield bad_value(path, len(attributes) + len(capacity), detail)
    for key, attribute in attributes.items():
        yield from _qualified_problems(key, f"{path}.attributes")
        yield from _attribute_problems(attribute, f"{path}.attributes[{key}]")
    for key, value in capacity.items():
        yield from _qualified_problems(key, f"{path}.capacity")
        if value.get("requestPolicy") is not None and not device.get("allowMultipleAllocations"):
            detail = "allowMultipleAllocations must be true"
            yield forbidden_field(f"{path}.capacity[{key}].requestPolicy", detail)
    taints = device.get("taints") or []
    yield from _size_problems(taints, 16, f"{path}.taints")
    for index, taint in enumerate(taints):
        yield from taint_problems(taint, f"{path}.taints[{index}]")
    consumed = device.get("consumesCounters") or []
    yield from _size_problems(consumed, 2, f"{path}.consumesCounters")
    for index, one in enumerate(consumed):
        where = f"{path}.consumesCounters[{index}]"
        yield from _name_problems(one.get("counterSet"), f"{where}.counterSet")
        yield from _counter_problems(one, where)
    given = [field for field in ("nodeName", "nodeSelector", "allNodes") if device.get(field) is not None]
    if is_alone and len(given) != 1:
        detail = (
            "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set "
            "to true in the ResourceSlice spec"
        )
        yield required(path, detail)
    elif given and not is_alone:
        detail = (
            "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in "
            "the ResourceSlice spec"
        )
        yield bad_value(path, None, detail)


def _attribute_problems(attribute: Json, path: str) -> Iterator[FieldProblem]:
    given = [name for name in _VALUES if attribute.get(name) is not None]
    if len(given) != 1:
        yield bad_value(path, attribute if given else "", "exactly one value must be specified")
    for name in given:
        value = attribute[name]
        if isinstance(value, list) and not value:
            yield bad_value(f"{path}.{name}", value, "must not be empty if specified")
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str) and len(one.encode()) > 64:
                yield too_long(f"{path}.{name}", 64)
            if name.startswith("version") and not _SEMVER.fullmatch(one):
                yield bad_value(f"{path}.{name}", one, "must be a string compatible with semver.org spec 2.0.0")


def taint_problems(taint: Json, path: str) -> Iterator[FieldProblem]:
    """What is wrong with a taint of a device."""
    key, value, effect = taint.get("key") or "", taint.get("value") or "", taint.get("effect") or ""
    yield from key_problems(key, f"{path}.key")
    if value and (problem := names.label_value(value)):
        yield bad_value(f"{path}.value", value, problem)
    if not effect:
        yield required(f"{path}.effect")
    elif effect not in _EFFECTS:
        yield unsupported(f"{path}.effect", effect, _EFFECTS)


def taint_rule_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new rule that taints devices."""
    spec = fields.get("spec") or {}
    selector = spec.get("deviceSelector") or {}
    for field in ("driver", "pool", "device"):
        if selector.get(field) == "":
            yield required(f"spec.deviceSelector.{field}")
    yield from taint_problems(spec.get("taint") or {}, "spec.taint")
