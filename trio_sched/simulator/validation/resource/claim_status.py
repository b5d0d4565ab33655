"""Rules of the status of claims of devices.

It is checked as thoroughly as the API server checks it, because that is all there is between two schedulers and one
device. Source: ``validateResourceClaimStatusUpdate`` of Kubernetes' pkg/apis/resource/validation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from trio_sched.documents.json_values import Json
from trio_sched.simulator.validation.core.volumes import driver_name_problems
from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.meta.conditions import condition_problems
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    duplicate,
    forbidden_field,
    required,
    too_long,
    unsupported,
)
from trio_sched.simulator.validation.meta.selectors import node_selector_problems
from trio_sched.simulator.validation.resource.device_parts import (
    binding_problems,
    name_problems,
    pool_name_problems,
    size_problems,
)
from trio_sched.simulator.validation.resource.devices import opaque_problems, reference_problems, request_names

_MAX_RESERVED: Final = 256
_MAX_RESULTS: Final = 32
_MAX_CONFIG: Final = 64
_MAX_CONDITIONS: Final = 8
_MAX_ADDRESSES: Final = 16
_LONGEST: Final = (("interfaceName", 256), ("hardwareAddress", 128))
_SOURCES: Final = ("FromClaim", "FromClass")
_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def claim_status_problems(old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with a change of the status of a claim."""
    before, after = old.get("status") or {}, new.get("status") or {}
    allocation, was_allocated = after.get("allocation"), before.get("allocation")
    is_deleted = "deletionTimestamp" in new["metadata"]
    known = before.get("reservedFor") or [] if is_deleted else None
    yield from _reservation_problems(after.get("reservedFor") or [], known, is_allocated=allocation is not None)
    yield from _device_status_problems(after.get("devices") or [], allocation or {})
    if allocation is None:
        return
    if was_allocated is None:
        yield from _allocation_problems(allocation, new.get("spec") or {})
    elif was_allocated != allocation:
        yield bad_value("status.allocation", allocation, "field is immutable")


def _reservation_problems(
    consumers: list[Json], known: list[Json] | None, *, is_allocated: bool
) -> Iterator[FieldProblem]:
    """What is wrong with the consumers of a claim.

    Args:
        consumers: the consumers.
        known: the only ones that there may be, since the claim is being deleted; None: there may be others.
        is_allocated: whether there is anything to consume.
    """
    path = "status.reservedFor"
    yield from size_problems(consumers, _MAX_RESERVED, path)
    seen: set[str] = set()
    for index, consumer in enumerate(consumers):
        where = f"{path}[{index}]"
        for name in ("resource", "name", "uid"):
            if not consumer.get(name):
                yield required(f"{where}.{name}")
        if consumer.get("uid") in seen:
            yield duplicate(where, consumer.get("uid"))
        seen.add(consumer.get("uid") or "")
    if consumers and not is_allocated:
        yield forbidden_field(path, "may not be specified when `allocated` is not set")
    elif known is not None and any(consumer not in known for consumer in consumers):
        detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        yield forbidden_field(path, detail)


def _allocation_problems(allocation: Json, spec: Json) -> Iterator[FieldProblem]:
    path, requests = "status.allocation.devices", request_names(spec)
    devices = allocation.get("devices") or {}
    results, configs = devices.get("results") or [], devices.get("config") or []
    yield from size_problems(results, _MAX_RESULTS, f"{path}.results")
    for index, result in enumerate(results):
        where = f"{path}.results[{index}]"
        for problem in reference_problems([result.get("request") or ""], f"{where}.request", requests):
            yield FieldProblem(problem.reason, f"{where}.request", problem.message)
        yield from _device_name_problems(result, where)
        yield from binding_problems(result, where)
    yield from size_problems(configs, _MAX_CONFIG, f"{path}.config")
    for index, config in enumerate(configs):
        where, source = f"{path}.config[{index}]", config.get("source") or ""
        if not source:
            yield required(f"{where}.source")
        elif source not in _SOURCES:
            yield unsupported(f"{where}.source", source, _SOURCES)
        yield from reference_problems(config.get("requests") or [], f"{where}.requests", requests)
        yield from opaque_problems(config, where)
    if (selector := allocation.get("nodeSelector")) is not None:
        yield from node_selector_problems(selector, "status.allocation.nodeSelector")


def _device_name_problems(device: Json, path: str) -> Iterator[FieldProblem]:
    yield from driver_name_problems(device.get("driver") or "", f"{path}.driver")
    yield from pool_name_problems(device.get("pool") or "", f"{path}.pool")
    yield from name_problems(device.get("device"), f"{path}.device")
    share = device.get("shareID")
    if share is not None and not _UID.fullmatch(share):
        yield bad_value(f"{path}.shareID", share, "uid must be in RFC 4122 normalized form")


def _device_status_problems(devices: list[Json], allocation: Json) -> Iterator[FieldProblem]:
    """What is wrong with what drivers say of the devices of a claim."""
    allocated = {_id_of(result) for result in (allocation.get("devices") or {}).get("results") or ()}
    seen: set[tuple[str, ...]] = set()
    for index, device in enumerate(devices):
        path, id_ = f"status.devices[{index}]", _id_of(device)
        yield from _device_name_problems(device, path)
        if id_ not in allocated:
            yield bad_value(path, "/".join(id_), "must be an allocated device in the claim")
        if id_ in seen:
            yield duplicate(path, "/".join(id_))
        seen.add(id_)
        conditions = device.get("conditions") or []
        yield from size_problems(conditions, _MAX_CONDITIONS, f"{path}.conditions")
        yield from condition_problems(conditions, f"{path}.conditions")
        network = device.get("networkData") or {}
        for name, limit in _LONGEST:
            if len((network.get(name) or "").encode()) > limit:
                yield too_long(f"{path}.networkData.{name}", limit)
        yield from _interface_address_problems(network.get("ips") or [], f"{path}.networkData.ips")


def _id_of(device: Json) -> tuple[str, ...]:
    return tuple(device.get(name) or "" for name in ("driver", "pool", "device", "shareID"))


def _interface_address_problems(addresses: list[str], path: str) -> Iterator[FieldProblem]:
    yield from size_problems(addresses, _MAX_ADDRESSES, path)
    seen: set[str] = set()
    for index, address in enumerate(addresses):
        if names.cidr(address):
            detail = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
            yield bad_value(f"{path}[{index}]", address, detail)
        elif address in seen:
            yield duplicate(f"{path}[{index}]", address)
        seen.add(address)
