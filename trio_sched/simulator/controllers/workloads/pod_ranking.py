"""Which pods a ReplicaSet deletes first. Source: ``ActivePodsWithRanks`` of kube-controller-manager."""

import math
from collections import Counter
from collections.abc import Iterable
from functools import cmp_to_key
from typing import Final

from trio_sched.documents.json_values import Json
from trio_sched.simulator.kubelets.pod_states import is_active, is_ready, ready_since, unix_time
from trio_sched.simulator.pods.pod_phase import phase_of
from trio_sched.simulator.storage.object_store import StoredObject
from trio_sched.simulator.validation.core.annotations import deletion_cost

_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}


def first_to_delete(pods: list[StoredObject], related: Iterable[StoredObject], now: float) -> list[StoredObject]:
    """*pods*, those to delete first at the front.

    Args:
        pods: the active pods of a ReplicaSet.
        related: those of all ReplicaSets with the same controller.
        now: the cluster's time; ages are compared by their order of magnitude.
    """
    per_node = Counter(pod.fields["spec"].get("nodeName") or "" for pod in related if is_active(pod.fields))

    def compare(one: StoredObject, other: StoredObject) -> int:
        return _compare(one.fields, other.fields, per_node, now)

    return sorted(pods, key=cmp_to_key(compare))


def _compare(one: Json, other: Json, per_node: Counter[str], now: float) -> int:
    standing, other_standing = _standing(one, per_node), _standing(other, per_node)
    if standing != other_standing:
        return -1 if standing < other_standing else 1
    by_age = _compare_ages(ready_since(one), ready_since(other), one, other, now)
    if by_age is not None:
        return by_age
    if _restarts(one) != _restarts(other):
        return -1 if _restarts(one) > _restarts(other) else 1
    first, second = (unix_time(fields["metadata"].get("creationTimestamp")) for fields in (one, other))
    return _compare_ages(first, second, one, other, now) or 0


def _standing(fields: Json, per_node: Counter[str]) -> tuple[float, ...]:
    node = fields["spec"].get("nodeName") or ""
    return (
        1 if node else 0,
        _PHASES.get(phase_of(fields), 0),
        1 if is_ready(fields) else 0,
        deletion_cost(fields["metadata"].get("annotations") or {}) or 0,
        -per_node[node],
    )


def _restarts(fields: Json) -> tuple[int, int]:
    status = fields.get("status") or {}
    always = {one.get("name") for one in fields["spec"].get("initContainers") or () if one.get("restartPolicy")}
    sidecars = [one for one in status.get("initContainerStatuses") or () if one.get("name") in always]
    regular = status.get("containerStatuses") or ()
    return tuple(max((one.get("restartCount", 0) for one in group), default=0) for group in (regular, sidecars))  # type: ignore[return-value]


def _compare_ages(one: float | None, other: float | None, first: Json, second: Json, now: float) -> int | None:
    """The younger one first; None if both moments are the same."""
    if one == other:
        return None
    if one is None or other is None:
        return -1 if one is None else 1
    difference = _magnitude(now - one) - _magnitude(now - other)
    if difference:
        return -1 if difference < 0 else 1
    return -1 if first["metadata"]["uid"] < second["metadata"]["uid"] else 1


def _magnitude(seconds: float) -> int:
    return int(math.log2(seconds * 1e9)) if seconds > 0 else -1
