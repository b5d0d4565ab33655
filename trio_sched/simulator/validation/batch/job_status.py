"""Rules of the status of Jobs. Source: ``ValidateJobStatusUpdate`` of Kubernetes' pkg/apis/batch/validation.

Most of them hold for what is changed only: a change of the spec may have made the former status wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from trio_sched.documents.json_values import Json
from trio_sched.simulator.validation.batch.jobs import count_of_indexes
from trio_sched.simulator.validation.meta.field_problems import FieldProblem, bad_value, duplicate, required
from trio_sched.simulator.validation.meta.metadata import same
from trio_sched.simulator.validation.meta.numbers import negative_problems

_CONDITIONS: Final = "status.conditions"
_LASTING: Final = ("Failed", "Complete", "FailureTarget")
"""Conditions that stay true."""
_CONTRADICTIONS: Final = (
    ("Complete", "Failed", "cannot set Complete=True and Failed=true conditions"),
    ("Complete", "FailureTarget", "cannot set Complete=True and FailureTarget=true conditions"),
    ("SuccessCriteriaMet", "Failed", "cannot set SuccessCriteriaMet=True and Failed=true conditions"),
    ("SuccessCriteriaMet", "FailureTarget", "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"),
)


def job_status_problems(old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with the new status of a Job."""
    before, status, spec = old.get("status") or {}, new.get("status") or {}, new.get("spec") or {}
    had, has = _true_conditions(before), _true_conditions(status)
    changed = {name for name in {*before, *status} if not same(before.get(name), status.get(name))} | (had ^ has)
    if _is_finished(had) != _is_finished(has):
        changed.add("finished")
    if (before.get("failedIndexes") is None) != (status.get("failedIndexes") is None):
        changed.add("failedIndexes")  # an empty text is not the same as none
    yield from negative_problems(status, "status", "active", "succeeded", "failed", "ready", "terminating")
    yield from _uncounted_problems(status.get("uncountedTerminatedPods") or {})
    yield from _condition_problems(had, has, changed, spec)
    yield from _time_problems(before, status, has, changed, spec)
    if _is_finished(has):
        yield from _finished_problems(status, changed, spec)
    if changed & {"ready", "active"} and status.get("ready", 0) > status.get("active", 0):
        yield bad_value("status.ready", status.get("ready"), "cannot set more ready pods than active")
    for name in ("failed", "succeeded"):
        is_scaled_down = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
        if status.get(name, 0) < before.get(name, 0) and not (name == "succeeded" and is_scaled_down):
            yield bad_value(f"status.{name}", status.get(name, 0), f"cannot decrease the {name} counter")
    yield from _index_problems(status, changed, spec)


def _true_conditions(status: Json) -> set[str]:
    return {one.get("type") or "" for one in status.get("conditions") or () if one.get("status") == "True"}


def _is_finished(conditions: set[str]) -> bool:
    return not conditions.isdisjoint(("Complete", "Failed"))


def _uncounted_problems(uncounted: Json) -> Iterator[FieldProblem]:
    seen: set[str] = set()
    for name in ("succeeded", "failed"):
        for index, uid in enumerate(uncounted.get(name) or ()):
            path = f"status.uncountedTerminatedPods.{name}[{index}]"
            if not uid:
                yield bad_value(path, uid, "must not be empty")
            elif uid in seen:
                yield duplicate(path, uid)
            seen.add(uid)


def _condition_problems(had: set[str], has: set[str], changed: set[str], spec: Json) -> Iterator[FieldProblem]:
    for one, other, detail in _CONTRADICTIONS:
        if {one, other} <= has and (one == "SuccessCriteriaMet" or changed & {one, other}):
            yield bad_value(_CONDITIONS, sorted(has), detail)
    if changed & {"Failed", "failedIndexes"} and "Failed" in has and "FailureTarget" not in has:
        detail = "cannot set Failed=True condition without the FailureTarget=true condition"
        yield bad_value(_CONDITIONS, sorted(has), detail)
    if "Complete" in has and "SuccessCriteriaMet" not in has:
        if changed & {"Complete", "SuccessCriteriaMet"}:
            detail = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
            yield bad_value(_CONDITIONS, sorted(has), detail)
        if spec.get("successPolicy") is not None:
            detail = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
            yield bad_value(_CONDITIONS, sorted(has), detail)
    for type_ in _LASTING:
        if type_ in had and type_ not in has:
            yield bad_value(_CONDITIONS, sorted(has), f"cannot disable the terminal {type_}=True condition")
    if "SuccessCriteriaMet" in had - has:
        yield bad_value(_CONDITIONS, sorted(has), "cannot disable the SuccessCriteriaMet=True condition")
    if "Complete" in had and "SuccessCriteriaMet" in has - had:
        detail = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        yield bad_value(_CONDITIONS, sorted(has), detail)


def _time_problems(before: Json, status: Json, has: set[str], changed: set[str], spec: Json) -> Iterator[FieldProblem]:
    start, end = status.get("startTime"), status.get("completionTime")
    if changed & {"Complete", "completionTime"}:
        if end is not None and "Complete" not in has:
            detail = "cannot set completionTime when there is no Complete=True condition"
            yield bad_value("status.completionTime", end, detail)
        elif end is None and "Complete" in has:
            yield required("status.completionTime", "completionTime is required for Complete jobs")
    if changed & {"startTime", "completionTime"} and start and end and _moment(end) < _moment(start):
        yield bad_value("status.completionTime", end, "must be equal to or after `startTime`")
    if end and before.get("completionTime") and "completionTime" in changed:
        yield bad_value("status.completionTime", end, "field is immutable")
    is_resuming = "Suspended" in _true_conditions(before) and any(
        one.get("type") == "Suspended" and one.get("status") == "False" for one in status.get("conditions") or ()
    )
    if before.get("startTime") and "startTime" in changed and not spec.get("suspend") and not is_resuming:
        yield bad_value("status.startTime", start, "field is immutable for unsuspended job once set")


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _finished_problems(status: Json, changed: set[str], spec: Json) -> Iterator[FieldProblem]:
    for name in ("active", "terminating"):
        if changed & {"finished", name} and status.get(name, 0) > 0:
            yield bad_value(f"status.{name}", status[name], f"{name}>0 is invalid for finished job")
    is_suspended = bool(spec.get("suspend")) and spec.get("completions") == 0
    if changed & {"finished", "startTime"} and not status.get("startTime") and not is_suspended:
        yield required("status.startTime", "startTime is required for finished job")
    uncounted = status.get("uncountedTerminatedPods") or {}
    if changed & {"finished", "uncountedTerminatedPods"} and any(uncounted.values()):
        yield bad_value("status.uncountedTerminatedPods", uncounted, "must be empty for finished job")


def _index_problems(status: Json, changed: set[str], spec: Json) -> Iterator[FieldProblem]:
    completions, per_index = spec.get("completions"), spec.get("backoffLimitPerIndex")
    completed, failed = status.get("completedIndexes") or "", status.get("failedIndexes")
    for name, text in (("completedIndexes", completed), ("failedIndexes", failed)):
        if name not in changed or completions is None or (name == "failedIndexes" and per_index is None):
            continue
        if text and (error := count_of_indexes(text, completions)[1]):
            yield bad_value(f"status.{name}", text, f"error parsing {name}: {error}")
    if "completedIndexes" in changed and completed and spec.get("completionMode") != "Indexed":
        detail = "cannot set non-empty completedIndexes when non-indexed completion mode"
        yield bad_value("status.completedIndexes", completed, detail)
    if "failedIndexes" in changed and failed is not None and per_index is None:
        detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        yield bad_value("status.failedIndexes", failed, detail)
    if changed & {"failedIndexes", "completedIndexes"} and completions is not None and failed:
        overlap = _first_overlap(completed, failed, completions)
        if overlap is not None:
            detail = f"failedIndexes and completedIndexes overlap at index: {overlap}"
            yield bad_value("status.failedIndexes", failed, detail)


def _first_overlap(completed: str, failed: str, completions: int) -> int | None:
    """The first index that is in two texts like ``0-2,5``; what is wrong in them is passed over."""
    (first, second) = (_intervals(text, completions) for text in (completed, failed))
    one, other = next(first, None), next(second, None)
    while one is not None and other is not None:
        if one[0] <= other[1] and other[0] <= one[1]:
            return max(one[0], other[0])
        if one[0] <= other[0]:
            one = next(first, None)
        else:
            other = next(second, None)
    return None


def _intervals(text: str, completions: int) -> Iterator[tuple[int, int]]:
    for part in text.split(","):
        if part and not count_of_indexes(part, completions)[1]:
            start, _, end = part.partition("-")
            yield int(start), int(end or start)
