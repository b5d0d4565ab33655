"""Rules of resource slices.

Source: ``pkg/apis/resource/validation`` of Kubernetes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from trio_sched.documents.json_values import Json
from trio_sched.simulator.validation.core.volumes import driver_name_problems
from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    duplicate,
    forbidden_field,
    required,
    too_long,
)
from trio_sched.simulator.validation.meta.selectors import node_selector_problems
from trio_sched.simulator.validation.resource.device_capacities import request_policy_problems
from trio_sched.simulator.validation.resource.device_parts import (
    binding_problems,
    name_problems,
    names_again,
    pool_name_problems,
    qualified_problems,
    size_problems,
    taint_problems,
)

_MAX_ATTRIBUTES: Final = 32
_MAX_DEVICES: Final = 128
_MAX_DEVICES_WITH_MORE: Final = 64
"""The most devices of slices whose devices have taints, counters or lists."""
_VALUES: Final = ("bool", "int", "string", "version", "bools", "ints", "strings", "versions")
_SEMVER: Final = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?"
    r"(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)


def slice_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new resource slice."""
    spec = fields.get("spec") or {}
    pool = spec.get("pool") or {}
    yield from driver_name_problems(spec.get("driver") or "", "spec.driver")
    yield from _pool_problems(pool, "spec.pool")
    yield from _where_problems(spec, "spec")
    devices, counters = spec.get("devices"), spec.get("sharedCounters")
    if devices is not None and counters is not None:  # be they empty
        yield bad_value("spec", "", "only one of `sharedCounters` or `devices` is allowed")
    devices, counters = devices or [], counters or []
    yield from size_problems(
        devices, _MAX_DEVICES_WITH_MORE if any(map(_has_more, devices)) else _MAX_DEVICES, "spec.devices"
    )
    yield from names_again(devices, "spec.devices")
    for index, device in enumerate(devices):
        yield from _device_problems(device, f"spec.devices[{index}]", is_alone=bool(spec.get("perDeviceNodeSelection")))
    yield from size_problems(counters, 8, "spec.sharedCounters")
    yield from names_again(counters, "spec.sharedCounters")
    for index, counter_set in enumerate(counters):
        yield from name_problems(counter_set.get("name"), f"spec.sharedCounters[{index}].name")
        yield from _counter_problems(counter_set, f"spec.sharedCounters[{index}]")


def slice_changes(old: Json, new: Json) -> list[FieldProblem]:
    """What is wrong with a change of a resource slice."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    problems = [
        bad_value(f"spec.{name}", after.get(name), "field is immutable")
        for name in ("driver", "nodeName")
        if before.get(name) != after.get(name)
    ]
    if (before.get("pool") or {}).get("name") != (after.get("pool") or {}).get("name"):
        problems.append(bad_value("spec.pool.name", (after.get("pool") or {}).get("name"), "field is immutable"))
    return problems


def _has_more(device: Json) -> bool:
    """Whether a device has taints, counters or lists."""
    attributes = (device.get("attributes") or {}).values()
    lists = any(value.keys() & {"bools", "ints", "strings", "versions"} for value in attributes)
    return bool(device.get("taints") or device.get("consumesCounters") or lists)


def _counter_problems(value: Json, path: str) -> Iterator[FieldProblem]:
    counters = value.get("counters") or {}
    if not counters:
        yield required(f"{path}.counters")
    yield from size_problems(counters, 32, f"{path}.counters")
    for name in counters:
        if problem := names.dns_label(name):
            yield bad_value(f"{path}.counters", name, problem)


def _pool_problems(pool: Json, path: str) -> Iterator[FieldProblem]:
    name, count, generation = pool.get("name") or "", pool.get("resourceSliceCount") or 0, pool.get("generation") or 0
    yield from pool_name_problems(name, f"{path}.name")
    if count <= 0:
        yield bad_value(f"{path}.resourceSliceCount", count, "must be greater than zero")
    if generation < 0:
        yield bad_value(f"{path}.generation", generation, "must be greater than or equal to zero")


def _where_problems(spec: Json, path: str) -> Iterator[FieldProblem]:
    given: list[str] = []
    node, selector = spec.get("nodeName"), spec.get("nodeSelector")
    yield from _node_problems(node, f"{path}.nodeName", "must be either unset or set to a non-empty string")
    if node:
        given.append("`nodeName`")
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


def _node_problems(node: str | None, path: str, if_empty: str) -> Iterator[FieldProblem]:
    if node == "":
        yield bad_value(path, node, if_empty)
    elif node is not None and (problem := names.subdomain(node)):
        yield bad_value(path, node, problem)


def _own_node_problems(device: Json, path: str) -> Iterator[FieldProblem]:
    """What is wrong with where a device says that it is, in a slice whose devices are at places of their own."""
    node, selector, everywhere = (device.get(field) for field in ("nodeName", "nodeSelector", "allNodes"))
    yield from _node_problems(node, f"{path}.nodeName", "must not be empty")
    if selector is not None:
        yield from node_selector_problems(selector, f"{path}.nodeSelector")
    if everywhere is False:
        yield bad_value(f"{path}.allNodes", False, "must be either unset or set to true")
    given = [
        name
        for name, is_given in (("nodeName", node), ("nodeSelector", selector is not None), ("allNodes", everywhere))
        if is_given
    ]
    detail = (
        "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to "
        "true in the ResourceSlice spec"
    )
    if not given:
        yield required(path, detail)
    elif len(given) > 1:
        yield bad_value(path, f"{{{', '.join(f'`{name}`' for name in given)}}}", detail)


def _device_problems(device: Json, path: str, *, is_alone: bool) -> Iterator[FieldProblem]:
    yield from name_problems(device.get("name"), f"{path}.name")
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    if len(attributes) + len(capacity) > _MAX_ATTRIBUTES:
        detail = f"the total number of attributes and capacities must not exceed {_MAX_ATTRIBUTES}"
        yield bad_value(path, len(attributes) + len(capacity), detail)
    for key, attribute in attributes.items():
        yield from qualified_problems(key, f"{path}.attributes")
        yield from _attribute_problems(attribute, f"{path}.attributes[{key}]")
    for key, value in capacity.items():
        yield from qualified_problems(key, f"{path}.capacity")
        where, policy = f"{path}.capacity[{key}].requestPolicy", value.get("requestPolicy")
        if policy is not None and not device.get("allowMultipleAllocations"):
            yield forbidden_field(where, "allowMultipleAllocations must be true")
        elif policy is not None:
            yield from request_policy_problems(policy, value.get("value", "0"), where)
    taints = device.get("taints") or []
    yield from size_problems(taints, 16, f"{path}.taints")
    for index, taint in enumerate(taints):
        yield from taint_problems(taint, f"{path}.taints[{index}]")
    consumed = device.get("consumesCounters") or []
    yield from size_problems(consumed, 2, f"{path}.consumesCounters")
    for index, one in enumerate(consumed):
        where = f"{path}.consumesCounters[{index}]"
        yield from name_problems(one.get("counterSet"), f"{where}.counterSet")
        yield from _counter_problems(one, where)
        if one.get("counterSet") in [other.get("counterSet") for other in consumed[:index]]:
            yield duplicate(where, one.get("counterSet"))
    yield from binding_problems(device, path)
    if is_alone:
        yield from _own_node_problems(device, path)
    elif any(device.get(field) is not None for field in ("nodeName", "nodeSelector", "allNodes")):
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
