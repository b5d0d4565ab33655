"""Rules of resources: their names, quantities, requests and limits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

from trio_sched.documents.json_values import Json
from trio_sched.objects.amounts.quantity import NANO, parse_nano
from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    duplicate,
    forbidden_field,
    not_found_value,
    required,
    unsupported,
)

NameCheck = Callable[[str, str], Iterator[FieldProblem]]

_COMPUTE: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_STANDARD: Final = _COMPUTE | {
    *("requests.cpu", "requests.memory", "requests.ephemeral-storage"),
    *("limits.cpu", "limits.memory", "limits.ephemeral-storage"),
    *("pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps"),
    *("persistentvolumeclaims", "storage", "requests.storage", "services.nodeports", "services.loadbalancers"),
}
_QUOTA: Final = (_STANDARD - {"storage"}) | {"persistentvolumeclaims"}
_WHOLE: Final = frozenset(
    {"pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps"}
    | {"persistentvolumeclaims", "services.nodeports", "services.loadbalancers"}
)
"""What there can only be a whole number of, besides extended resources."""


def is_huge_page(name: str) -> bool:
    """Whether *name* is a size of huge pages."""
    return name.startswith("hugepages-")


def is_native(name: str) -> bool:
    """Whether *name* is a resource of Kubernetes itself."""
    return "/" not in name or "kubernetes.io/" in name


def is_extended(name: str) -> bool:
    """Whether *name* is an extended resource."""
    if is_native(name) or name.startswith("requests."):
        return False
    return names.qualified_name(f"requests.{name}") is None


def resource_name_problems(name: str, path: str) -> Iterator[FieldProblem]:
    """What is wrong with the name of any resource."""
    if problem := names.qualified_name(name):
        yield bad_value(path, name, problem)
    elif "/" not in name and name not in _STANDARD and not is_huge_page(name) and not name.startswith("requests.hugep"):
        yield bad_value(path, name, "must be a standard resource type or fully qualified")


def container_resource_problems(name: str, path: str) -> Iterator[FieldProblem]:
    """What is wrong with the name of a resource that containers request."""
    yield from resource_name_problems(name, path)
    if "/" not in name:
        if name not in _COMPUTE and not is_huge_page(name):
            yield bad_value(path, name, "must be a standard resource for containers")
    elif not is_native(name) and not is_extended(name):
        yield bad_value(path, name, "doesn't follow extended resource name standard")


def pod_resource_problems(name: str, path: str) -> Iterator[FieldProblem]:
    """What is wrong with the name of a resource that pods as a whole request."""
    found = list(resource_name_problems(name, path))
    yield from found
    if not found and name not in ("cpu", "memory") and not is_huge_page(name):
        yield unsupported(path, name, ("cpu", "hugepages-", "memory"))


def quota_resource_problems(name: str, path: str) -> Iterator[FieldProblem]:
    """What is wrong with the name of a resource that a quota limits."""
    found = list(resource_name_problems(name, path))
    yield from found
    is_huge = is_huge_page(name) or name.startswith("requests.hugepages-")
    if not found and "/" not in name and name not in _QUOTA and not is_huge:
        yield bad_value(path, name, "must be a standard resource for quota")


def quantity_problems(name: str, quantity: Any, path: str) -> Iterator[FieldProblem]:
    """What is wrong with the amount of a resource."""
    amount = parse_nano(quantity)
    if amount < 0:
        yield bad_value(path, str(quantity), "must be greater than or equal to 0")
    if (name in _WHOLE or is_extended(name)) and amount % NANO:
        yield bad_value(path, str(quantity), "must be an integer")


def requirement_problems(
    requirements: Json, path: str, claims: Collection[str], check_name: NameCheck = container_resource_problems
) -> Iterator[FieldProblem]:
    """What is wrong with requests, limits and claims.

    Args:
        requirements: the ``resources`` of a container or a pod.
        path: where they are.
        claims: the names of the pod's resource claims.
        check_name: which names of resources are fine.
    """
    requests, limits = requirements.get("requests") or {}, requirements.get("limits") or {}
    for kind, quantities in (("limits", limits), ("requests", requests)):
        for name, quantity in quantities.items():
            where = f"{path}.{kind}[{name}]"
            yield from check_name(name, where)
            yield from quantity_problems(name, quantity, where)
            if is_huge_page(name):
                yield from _huge_page_problems(name, quantity, where)
    for name, quantity in requests.items():
        can_overcommit = is_native(name) and not is_huge_page(name)
        if name not in limits:
            if not can_overcommit:
                yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
            continue
        request, limit = parse_nano(quantity), parse_nano(limits[name])
        if request != limit and not can_overcommit:
            detail = f"must be equal to {name} limit of {limits[name]}"
            yield bad_value(f"{path}.requests", str(quantity), detail)
        elif request > limit:
            detail = f"must be less than or equal to {name} limit of {limits[name]}"
            yield bad_value(f"{path}.requests", str(quantity), detail)
    every = {*requests, *limits}
    if any(map(is_huge_page, every)) and not every & {"cpu", "memory"}:
        yield forbidden_field(path, "HugePages require cpu or memory")
    if used := requirements.get("claims"):
        yield from _claim_problems(used, f"{path}.claims", claims)


def _huge_page_problems(name: str, quantity: Any, path: str) -> Iterator[FieldProblem]:
    try:
        size = parse_nano(name.removeprefix("hugepages-"))
    except ValueError:
        size = 0
    amount = parse_nano(quantity)
    if size <= 0 or amount % size or amount % NANO:
        yield bad_value(path, str(quantity), f"{quantity} is not positive integer multiple of {name}")


def _claim_problems(used: list[Json], path: str, claims: Collection[str]) -> Iterator[FieldProblem]:
    seen: set[str] = set()
    for index, claim in enumerate(used):
        name, request, where = claim.get("name") or "", claim.get("request") or "", f"{path}[{index}]"
        if not name:
            yield required(where)
            continue
        key = f"{name}/{request}" if request else name
        if request and (problem := names.dns_label(request)):
            yield bad_value(f"{where}.request", request, problem)
        if name in seen:
            yield duplicate(where, name)
        elif key in seen or (not request and any(other.startswith(f"{name}/") for other in seen)):
            yield duplicate(where, key)
        seen.add(key)
        if name not in claims:
            listed = f": {', '.join(sorted(claims))}" if claims else " which is empty"
            yield not_found_value(where, name, f"must be one of the names in pod.spec.resourceClaims{listed}")
