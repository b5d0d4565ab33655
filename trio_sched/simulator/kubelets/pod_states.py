"""What controllers read from the status of pods."""

from collections.abc import Iterable
from typing import Any

from trio_sched.documents.json_values import Json
from trio_sched.simulator.pods.pod_phase import is_finished
from trio_sched.simulator.storage.clock import parse_timestamp


def is_terminating(fields: Json) -> bool:
    """Whether an object is being deleted."""
    return "deletionTimestamp" in fields["metadata"]


def is_active(fields: Json) -> bool:
    """Whether a pod runs or will run, and is not being deleted."""
    return not is_finished(fields) and not is_terminating(fields)


def condition_of(fields: Json, kind: str) -> Json | None:
    """The condition *kind* of an object, if it has one."""
    conditions: Iterable[Json] = (fields.get("status") or {}).get("conditions") or ()
    return next((one for one in conditions if one.get("type") == kind), None)


def is_ready(fields: Json) -> bool:
    """Whether a pod, or a node, is ready."""
    condition = condition_of(fields, "Ready")
    return condition is not None and condition.get("status") == "True"


def is_unreachable(node: Json) -> bool:
    """Whether the kubelet of a node has stopped telling of it."""
    return (condition_of(node, "Ready") or {}).get("status") == "Unknown"


def ready_since(fields: Json) -> float | None:
    """Since when a pod is ready, as a Unix time; None if it is not."""
    condition = condition_of(fields, "Ready")
    if condition is None or condition.get("status") != "True":
        return None
    return unix_time(condition.get("lastTransitionTime"))


def unix_time(timestamp: Any) -> float | None:
    """A timestamp as a Unix time; None if it is none."""
    moment = parse_timestamp(timestamp) if isinstance(timestamp, str) else None
    return None if moment is None else moment.timestamp()


def unavailable_for(fields: Json, min_ready_seconds: float, now: float) -> float | None:
    """How long it takes until a pod is available: zero if it is, None if it is not even ready."""
    if not is_ready(fields):
        return None
    if not min_ready_seconds:
        return 0.0
    since = ready_since(fields)
    return 0.0 if since is None else max(since + min_ready_seconds - now, 0.0)


def is_available(fields: Json, min_ready_seconds: float, now: float) -> bool:
    """Whether a pod has been ready for *min_ready_seconds*."""
    return unavailable_for(fields, min_ready_seconds, now) == 0.0
