"""Rules of the status of pods. Source: ``ValidatePodStatusUpdate`` of Kubernetes' pkg/apis/core/validation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from trio_sched.documents.json_values import Json
from trio_sched.simulator.validation.core.annotations import pod_annotation_changes
from trio_sched.simulator.validation.core.security import ID_RULE, MAX_ID
from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    duplicate,
    forbidden_field,
    required,
    too_long,
    unsupported,
)

_SYSTEM_CONDITIONS: Final = ("PodScheduled", "Ready", "Initialized")
_STATUSES_OF_CONTAINERS: Final = (
    ("containerStatuses", "containers"),
    ("initContainerStatuses", "initContainers"),
    ("ephemeralContainerStatuses", ""),
)
"""Lists of the status, and those of the spec that say whether the container is restarted and what it may use."""
_HEALTH: Final = ("Healthy", "Unhealthy", "Unknown")
_LONGEST_MESSAGE: Final = 1024


def pod_status_problems(old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with the new status of a pod, whose spec is that of *old*."""
    before, status, spec = old.get("status") or {}, new.get("status") or {}, old.get("spec") or {}
    noted, notes = (fields["metadata"].get("annotations") or {} for fields in (old, new))
    yield from pod_annotation_changes(noted, notes)
    yield from _condition_problems(status.get("conditions") or [])
    nominated = status.get("nominatedNodeName")
    if nominated and nominated != before.get("nominatedNodeName"):
        if problem := names.subdomain(nominated):
            yield bad_value("status.nominatedNodeName", nominated, problem)
        if spec.get("nodeName"):
            detail = "may not be set on pods that are already bound to a node"
            yield forbidden_field("status.nominatedNodeName", detail)
    if status.get("observedGeneration", 0) < 0:
        yield bad_value("status.observedGeneration", status["observedGeneration"], "must be a non-negative integer")
    if status.get("qosClass") and status["qosClass"] != before.get("qosClass"):
        yield bad_value("status.qosClass", status["qosClass"], "field is immutable")
    for name, containers in _STATUSES_OF_CONTAINERS:
        found, known = status.get(name) or [], {one["name"]: one for one in spec.get(containers) or ()}
        yield from _transition_problems(before.get(name) or [], found, spec, known, name)
        for index, one in enumerate(found):
            yield from _user_problems((one.get("user") or {}).get("linux"), spec, f"status.{name}[{index}].user.linux")
            path = f"status.{name}[{index}].allocatedResourcesStatus"
            yield from _health_problems(one, known.get(one.get("name")), path, may_have=bool(containers))
    claims = {claim.get("name") for claim in spec.get("resourceClaims") or ()}
    yield from _claim_problems(status.get("resourceClaimStatuses") or [], claims, "status.resourceClaimStatuses")
    if (extended := status.get("extendedResourceClaimStatus")) is not None:
        yield from _extended_claim_problems(extended, spec, "status.extendedResourceClaimStatus")
    addresses, first = status.get("podIPs") or [], status.get("podIP")
    if first and (not addresses or addresses[0].get("ip") != first):
        addresses = [{"ip": first}]  # the older field counts where they differ
    yield from _address_problems(addresses, "status.podIPs")
    hosts = status.get("hostIPs") or []
    if hosts and (hosts[0].get("ip") or "") != (status.get("hostIP") or ""):
        yield bad_value("status.hostIPs[0].ip", hosts[0].get("ip") or "", "must be equal to `hostIP`")
    yield from _address_problems(hosts, "status.hostIPs")


def _condition_problems(conditions: list[Json]) -> Iterator[FieldProblem]:
    for index, condition in enumerate(conditions):
        path, type_ = f"status.conditions[{index}]", condition.get("type") or ""
        if condition.get("observedGeneration", 0) < 0:
            detail = "must be a non-negative integer"
            yield bad_value(f"{path}.observedGeneration", condition["observedGeneration"], detail)
        if type_ not in _SYSTEM_CONDITIONS and (problem := names.qualified_name(type_)):
            yield bad_value(f"{path}.Type", type_, problem)


def _transition_problems(
    before: list[Json], after: list[Json], spec: Json, containers: Mapping[str | None, Json], name: str
) -> Iterator[FieldProblem]:
    """Which containers are said to run again that are never restarted."""
    later = {one.get("name"): one for one in reversed(after)}  # of two of a name, the first counts
    for index, status in enumerate(before):
        ended = (status.get("state") or {}).get("terminated")
        if ended is None:
            continue
        found = later.get(status.get("name"))
        if found is None or (found.get("state") or {}).get("terminated") is not None:
            continue
        container = containers.get(status.get("name"))
        if container is None or not _is_restarted(container, spec, ended.get("exitCode", 0)):
            yield forbidden_field(f"status.{name}[{index}].state", "may not be transitioned to non-terminated state")


def _is_restarted(container: Json, spec: Json, exit_code: int) -> bool:
    policy = container.get("restartPolicy")
    for rule in container.get("restartPolicyRules") or () if policy else ():
        codes = rule.get("exitCodes") or {}
        listed = exit_code in (codes.get("values") or ())
        if listed == (codes.get("operator") == "In") and rule.get("action") == "Restart":
            return True
    policy = policy or spec.get("restartPolicy") or "Always"
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def _user_problems(user: Json | None, spec: Json, path: str) -> Iterator[FieldProblem]:
    if user is None:
        return
    if (spec.get("os") or {}).get("name") == "windows":
        yield forbidden_field(path, "cannot be set for a windows pod")
        return
    groups = {f"supplementalGroups[{index}]": group for index, group in enumerate(user.get("supplementalGroups") or ())}
    for name, number in {"uid": user.get("uid", 0), "gid": user.get("gid", 0), **groups}.items():
        if not 0 <= number <= MAX_ID:
            yield bad_value(f"{path}.{name}", number, ID_RULE)


def _health_problems(status: Json, container: Json | None, path: str, *, may_have: bool) -> Iterator[FieldProblem]:
    """What is wrong with the health of the devices of a container, which need not be in the spec.

    Args:
        status: of the container.
        container: the container.
        path: where the health is.
        may_have: whether containers of its kind have devices.
    """
    resources = status.get("allocatedResourcesStatus") or []
    if resources and not may_have:
        yield forbidden_field(path, "must not be specified in container status")
        return
    for index, resource in enumerate(resources):
        where, name = f"{path}[{index}]", resource.get("name") or ""
        if container is not None and (problem := _resource_problem(name, container.get("resources") or {})):
            yield bad_value(f"{where}.name", name, problem)
        seen: set[str] = set()
        for number, device in enumerate(resource.get("resources") or ()):
            place, id_, message = f"{where}.resources[{number}]", device.get("resourceID") or "", device.get("message")
            if device.get("health") not in _HEALTH:
                yield unsupported(f"{place}.health", device.get("health") or "", _HEALTH)
            if message == "":
                yield required(f"{place}.message", "must be non-empty if specified")
            elif message is not None and len(message.encode()) > _LONGEST_MESSAGE:
                yield too_long(f"{place}.message", _LONGEST_MESSAGE)
            if id_ in seen:
                yield duplicate(f"{place}.resourceID", id_)
            seen.add(id_)


def _resource_problem(name: str, resources: Json) -> str | None:
    if not name.startswith("claim:"):
        known = name in (resources.get("requests") or {})
        return None if known else "must match one of the container's resource requests"
    claims = {
        "/".join(filter(None, (f"claim:{one['name']}", one.get("request")))) for one in resources.get("claims") or ()
    }
    form = "'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty"
    return None if name in claims else f"must match one of the container's resource claims in a format {form}"


def _claim_problems(statuses: list[Json], claims: set[str | None], path: str) -> Iterator[FieldProblem]:
    seen: set[str] = set()
    for index, status in enumerate(statuses):
        name, claim = status.get("name") or "", status.get("resourceClaimName")
        if name not in claims:
            detail = "must match the name of an entry in `spec.resourceClaims`"
            yield bad_value(f"{path}[{index}].name", name, detail)
        if name in seen:
            yield duplicate(f"{path}[{index}].name", name)
        seen.add(name)
        if claim is not None and (problem := names.subdomain(claim)):
            yield bad_value(f"{path}[{index}].resourceClaimName", claim, problem)


def _extended_claim_problems(status: Json, spec: Json, path: str) -> Iterator[FieldProblem]:
    containers = {one["name"]: one for kind in ("initContainers", "containers") for one in spec.get(kind) or ()}
    mappings, claim = status.get("requestMappings") or [], status.get("resourceClaimName") or ""
    if not mappings:
        yield required(f"{path}.requestMappings", "at least one request mapping is required")
    seen: set[tuple[str, ...]] = set()
    for index, mapping in enumerate(mappings):
        where = f"{path}.requestMappings[{index}]"
        key = tuple(mapping.get(field) or "" for field in ("containerName", "resourceName", "requestName"))
        container = containers.get(key[0])
        if container is None:
            detail = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
            yield bad_value(f"{where}.containerName", key[0], detail)
        elif key[1] not in ((container.get("resources") or {}).get("requests") or {}):
            entry = "spec.initContainers.resources.requests or spec.containers.resources.requests"
            detail = f"must match the extended resource name of an entry in {entry}"
            yield bad_value(f"{where}.resourceName", key[1], detail)
        if problem := names.dns_label(key[2]):
            yield bad_value(f"{path}.requestName", key[2], problem)
        if key in seen:
            yield duplicate(f"{where}.containerName", key[0])
        seen.add(key)
    if not claim:
        yield required(f"{path}.resourceClaimName")
    elif problem := names.subdomain(claim):
        yield bad_value(f"{path}.resourceClaimName", claim, problem)


def _address_problems(addresses: list[Json], path: str) -> Iterator[FieldProblem]:
    for index, address in enumerate(addresses):
        if problem := names.ip_address(address.get("ip") or ""):
            yield bad_value(f"{path}[{index}]", address.get("ip") or "", problem)
    families = {":" in (address.get("ip") or "") for address in addresses}
    if len(addresses) > 1 and (len(addresses) > 2 or len(families) < 2):
        yield bad_value(path, addresses, "may specify no more than one IP for each IP family")
