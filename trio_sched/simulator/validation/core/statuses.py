"""Rules of the status of workloads, budgets, quotas, claims of volumes and namespaces."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from trio_sched.objects.quantity import parse_nano
from trio_sched.simulator.raw_objects import Json
from trio_sched.simulator.validation.core.resources import is_native, quantity_problems, quota_resource_problems
from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    duplicate,
    required,
    too_long,
    unsupported,
)
from trio_sched.simulator.validation.meta.numbers import negative_problems
from trio_sched.simulator.validation.meta.selectors import key_problems

StatusProblems = Callable[[Json, Json], Iterator[FieldProblem]]
"""What is wrong with the new status of an object: its fields before and after."""

_CONDITION_STATUSES: Final = ("False", "True", "Unknown")
_REASON: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_REASON_RULE: Final = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or "
    "'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is "
    "'[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')"
)
_LONGEST_REASON: Final = 1024
_LONGEST_MESSAGE: Final = 32 * 1024
_RESIZE_STATUSES: Final = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)


def _status(fields: Json) -> Json:
    status: Json = fields.get("status") or {}
    return status


def counters(*numbers: str, at_most_replicas: tuple[str, ...] = (), ready: str = "readyReplicas") -> StatusProblems:
    """The rules of a status that counts.

    Args:
        numbers: what must not be negative.
        at_most_replicas: what must not be more than ``replicas``.
        ready: how messages call ``readyReplicas``.
    """

    def problems(old: Json, new: Json) -> Iterator[FieldProblem]:
        before, status = _status(old), _status(new)
        yield from negative_problems(status, "status", *numbers)
        for name in at_most_replicas:
            if status.get(name, 0) > status.get("replicas", 0):
                yield bad_value(f"status.{name}", status.get(name, 0), "cannot be greater than status.replicas")
        if at_most_replicas and status.get("availableReplicas", 0) > status.get("readyReplicas", 0):
            detail = f"cannot be greater than {ready}"
            yield bad_value("status.availableReplicas", status.get("availableReplicas", 0), detail)
        collisions, had = status.get("collisionCount"), before.get("collisionCount")
        if "collisionCount" in numbers and had is not None and (collisions is None or collisions < had):
            yield bad_value("status.collisionCount", collisions or 0, "cannot be decremented")

    return problems


DEPLOYMENT: Final = counters(
    *("observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas"),
    *("unavailableReplicas", "terminatingReplicas", "collisionCount"),
    at_most_replicas=("updatedReplicas", "readyReplicas", "availableReplicas"),
)
REPLICA_SET: Final = counters(
    *("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"),
    "terminatingReplicas",
    at_most_replicas=("fullyLabeledReplicas", "readyReplicas", "availableReplicas"),
)
STATEFUL_SET: Final = counters(
    *("replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas", "observedGeneration"),
    "collisionCount",
    at_most_replicas=("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"),
    ready="status.readyReplicas",
)
DAEMON_SET: Final = counters(
    *("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", "observedGeneration"),
    *("updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount"),
)


def budget_status_problems(_old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with the status of a PodDisruptionBudget."""
    status = _status(new)
    yield from condition_problems(status.get("conditions") or [], "status.conditions")
    counts = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    yield from negative_problems(status, "status", *counts)


def condition_problems(conditions: list[Json], path: str) -> Iterator[FieldProblem]:
    """What is wrong with conditions of the type that newer kinds share, ``meta.v1.Condition``."""
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        where, type_ = f"{path}[{index}]", condition.get("type") or ""
        reason, message = condition.get("reason") or "", condition.get("message") or ""
        if type_ in seen:
            yield duplicate(f"{where}.type", type_)
        seen.add(type_)
        yield from key_problems(type_, f"{where}.type")
        if condition.get("status") not in _CONDITION_STATUSES:
            yield unsupported(f"{where}.status", condition.get("status") or "", _CONDITION_STATUSES)
        if condition.get("observedGeneration", 0) < 0:
            detail = "must be greater than or equal to zero"
            yield bad_value(f"{where}.observedGeneration", condition["observedGeneration"], detail)
        if not condition.get("lastTransitionTime"):
            yield required(f"{where}.lastTransitionTime")
        if not reason:
            yield required(f"{where}.reason")
        elif not _REASON.fullmatch(reason):
            yield bad_value(f"{where}.reason", reason, _REASON_RULE)
        for name, text, limit in (("reason", reason, _LONGEST_REASON), ("message", message, _LONGEST_MESSAGE)):
            if len(text.encode()) > limit:
                yield too_long(f"{where}.{name}", limit)


def namespace_status_problems(_old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with the status of a namespace."""
    phase, is_deleted = _status(new).get("phase") or "Active", new["metadata"].get("deletionTimestamp") is not None
    if is_deleted and phase != "Terminating":
        yield bad_value("status.Phase", phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")
    elif not is_deleted and phase != "Active":
        yield bad_value("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty")


def quota_status_problems(_old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with the status of a ResourceQuota."""
    for part in ("hard", "used"):
        for name, quantity in (_status(new).get(part) or {}).items():
            yield from quota_resource_problems(name, f"status.{part}[{name}]")
            yield from quantity_problems(name, quantity, f"status.{part}[{name}]")


def volume_claim_status_problems(_old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with the status of a PersistentVolumeClaim."""
    status = _status(new)
    for name, quantity in (status.get("capacity") or {}).items():
        if parse_nano(quantity) < 0:
            yield bad_value(f"status.capacity[{name}]", quantity, "must be a valid resource quantity")
    path = "status.allocatedResourceStatuses"
    for name, state in (status.get("allocatedResourceStatuses") or {}).items():
        yield from _claimed_resource_problems(name, path)
        if state not in _RESIZE_STATUSES:
            yield unsupported(path, name, _RESIZE_STATUSES)
    path = "status.allocatedResources"
    for name, quantity in (status.get("allocatedResources") or {}).items():
        wrong = list(_claimed_resource_problems(name, path))
        yield from wrong or quantity_problems("storage", quantity, f"{path}[{name}]")


def _claimed_resource_problems(name: str, path: str) -> Iterator[FieldProblem]:
    if problem := names.qualified_name(name):
        yield bad_value(path, name, problem)
    elif is_native(name) and name != "storage":
        yield unsupported(path, name, ("storage",))
