"""Rules of Events; those of ``events.k8s.io`` are stored in the shape of the core group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trio_sched.documents.json_values import Json
from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.meta.field_problems import FieldProblem, bad_value, required
from trio_sched.simulator.validation.meta.metadata import immutable

_LONGEST: Final = (("reportingInstance", 128), ("action", 128), ("reason", 128), ("message", 1024))


def event_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with an Event."""
    own, involved = fields["metadata"].get("namespace") or "", (fields.get("involvedObject") or {}).get("namespace")
    if not fields.get("eventTime"):
        permitted = (involved,) if involved else ("", "default")
    else:
        permitted = (own,) if involved else ("default", "kube-system")
        yield from _reporter_problems(fields)
    if own not in permitted:
        yield bad_value("involvedObject.namespace", involved or "", "does not match event.namespace")


def _reporter_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with what only events of the newer kind must have."""
    controller = fields.get("reportingComponent") or ""
    if not controller:
        yield required("reportingController")
    if problem := names.qualified_name(controller):
        yield bad_value("reportingController", controller, problem)
    for field, limit in _LONGEST:
        value = fields.get(field) or ""
        if not value and field != "message":
            yield required(field)
        if len(value.encode()) > limit:
            yield bad_value(field, "", f"can have at most {limit} characters")


def sent_event_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with an Event that is to be created as one of ``events.k8s.io``."""
    name, kind, series = fields["metadata"].get("name") or "", fields.get("type") or "", fields.get("series")
    if problem := names.subdomain(name):
        yield bad_value("metadata.name", name, problem)
    if series is not None and (series.get("count") or 0) < 2:
        yield bad_value("series.count", "", "should be at least 2")
    if series is not None and not series.get("lastObservedTime"):
        yield required("series.lastObservedTime")
    if not fields.get("eventTime"):
        yield required("eventTime")
    if kind not in ("Normal", "Warning"):
        yield bad_value("type", "", f"has invalid value: {kind}")
    for field in ("firstTimestamp", "lastTimestamp", "count"):
        if fields.get(field):
            yield bad_value(field, "", "needs to be unset")
    source = fields.get("source") or {}
    if source.get("component") or source.get("host"):
        yield bad_value("source", "", "needs to be unset")


def event_changes(old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with a change of an Event as one of ``events.k8s.io``: only a series may go on."""
    fixed = ("involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "type")
    more = ("eventTime", "action", "related", "reportingComponent", "reportingInstance")
    yield from immutable(old, new, *fixed, *more, path="")
