"""Rules of device classes, resource claims, templates of claims and taint rules.

Source: ``pkg/apis/resource/validation`` of Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trio_sched.cel.errors import CompileError
from trio_sched.documents.json_values import Json
from trio_sched.simulator.validation.core.resources import is_extended
from trio_sched.simulator.validation.core.volumes import driver_name_problems
from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    duplicate,
    required,
    too_long,
    unsupported,
)
from trio_sched.simulator.validation.meta.metadata import template_metadata_problems
from trio_sched.simulator.validation.meta.selectors import key_problems
from trio_sched.simulator.validation.resource.device_parts import (
    EFFECTS,
    name_problems,
    names_again,
    qualified_problems,
    size_problems,
    taint_problems,
)

_MAX_REQUESTS: Final = 32
_MAX_ALTERNATIVES: Final = 8
_MAX_EXPRESSION: Final = 10 << 10
_NAME_RULE: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)
RequestNames = dict[str, set[str]]
"""The names of requests, with those of their alternatives."""


# --- claims ---------------------------------------------------------------------------------------------------------


def claim_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new claim."""
    yield from _claim_spec_problems(fields.get("spec") or {}, "spec")


def claim_changes(old: Json, new: Json) -> list[FieldProblem]:
    """What is wrong with a change of a claim or a template."""
    if old.get("spec") != new.get("spec"):
        return [bad_value("spec", new.get("spec"), "field is immutable")]
    return []


def template_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new template of claims."""
    spec = fields.get("spec") or {}
    yield from template_metadata_problems(spec.get("metadata") or {}, "spec.metadata")
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
    yield from size_problems(requests, _MAX_REQUESTS, f"{path}.devices.requests")
    yield from names_again(requests, f"{path}.devices.requests")
    for index, request in enumerate(requests):
        yield from _request_problems(request, f"{path}.devices.requests[{index}]")
    for kind in ("constraints", "config"):
        items = devices.get(kind) or []
        yield from size_problems(items, _MAX_REQUESTS, f"{path}.devices.{kind}")
        for index, item in enumerate(items):
            where = f"{path}.devices.{kind}[{index}]"
            yield from reference_problems(item.get("requests") or [], f"{where}.requests", known)
            yield from _constraint_problems(item, where) if kind == "constraints" else opaque_problems(item, where)


def _request_problems(request: Json, path: str) -> Iterator[FieldProblem]:
    yield from name_problems(request.get("name"), f"{path}.name")
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable") or []
    if exactly is None and not alternatives:
        yield required(path, "exactly one of `exactly` or `firstAvailable` is required")
    elif exactly is not None and alternatives:
        detail = "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set"
        yield bad_value(path, None, detail)
    elif exactly is not None:
        yield from _wanted_problems(exactly, f"{path}.exactly")
    else:
        yield from size_problems(alternatives, _MAX_ALTERNATIVES, f"{path}.firstAvailable")
        yield from names_again(alternatives, f"{path}.firstAvailable")
        for index, alternative in enumerate(alternatives):
            where = f"{path}.firstAvailable[{index}]"
            yield from name_problems(alternative.get("name"), f"{where}.name")
            yield from _wanted_problems(alternative, where)


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
    yield from size_problems(tolerations, 16, f"{path}.tolerations")
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
    if effect and effect not in EFFECTS:
        yield unsupported(f"{path}.effect", effect, EFFECTS)


def selector_problems(selectors: list[Json], path: str) -> Iterator[FieldProblem]:
    """What is wrong with the selectors of a request or a class."""
    yield from size_problems(selectors, _MAX_REQUESTS, path)
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
    # CEL takes a while to import, and few clusters need it.
    from trio_sched.cel.device_selector import compile_device_selector

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
    yield from qualified_problems(name, path)


def reference_problems(listed: list[str], path: str, known: RequestNames) -> Iterator[FieldProblem]:
    """Which names in a list are no names of requests, or are there twice."""
    for index, name in enumerate(listed):
        where, (request, slash, alternative) = f"{path}[{index}]", name.partition("/")
        if "/" in alternative:
            yield bad_value(where, name, _NAME_RULE)
            continue
        for part in (request, alternative) if slash else (request,):
            yield from name_problems(part, where)
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
    yield from size_problems(config, _MAX_REQUESTS, "spec.config")
    for index, one in enumerate(config):
        yield from opaque_problems(one, f"spec.config[{index}]")
    if name is not None and not is_extended(name):
        yield bad_value("spec.extendedResourceName", name, "must be a valid extended resource name")


def taint_rule_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new rule that taints devices."""
    spec = fields.get("spec") or {}
    selector = spec.get("deviceSelector") or {}
    for field in ("driver", "pool", "device"):
        if selector.get(field) == "":
            yield required(f"spec.deviceSelector.{field}")
    yield from taint_problems(spec.get("taint") or {}, "spec.taint")
