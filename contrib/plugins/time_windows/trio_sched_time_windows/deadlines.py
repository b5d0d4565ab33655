"""Until when a pod may wait, and which pods may: annotations and labels that both plugins read."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from trio_sched.plugin_api import Handle, LabelMatcher, LabelSelector, Pod, compile_selector, parse_time

START_BY: Final = "time-windows.trio-sched.dev/start-by"
"""Annotation: the moment after which the pod does not wait any more, as in ``2026-03-01T06:00:00Z``."""


@frozen
class Limit:
    """Until when a pod waits at most."""

    ends_at: float
    """In seconds since 1970."""
    problem: str = ""
    """What is wrong with the annotation, and how to write it."""


def limit_of(pod: Pod, max_delay_seconds: float, now: float) -> Limit:
    """By its annotation, else *max_delay_seconds* after the pod was created."""
    created = parse_time(pod.metadata.creation_timestamp or "")
    latest = (now if created is None else created) + max_delay_seconds
    written = (pod.metadata.annotations or {}).get(START_BY)
    if written is None:
        return Limit(latest)
    moment = parse_time(written)
    if moment is None:
        shown = written[:63]
        return Limit(latest, f"annotation {START_BY} {shown!r} is no time: write it like 2026-03-01T06:00:00Z")
    return Limit(moment)


def matcher(selector: LabelSelector | None) -> LabelMatcher:
    """Which pods wait; without a selector none."""
    return compile_selector(selector)


def report_bad_annotation(handle: Handle, pod: Pod, problem: str) -> None:
    """Tell the user of *pod*; it is scheduled as if the annotation were not there."""
    handle.record_event(pod, "Warning", "BadAnnotation", "Scheduling", f"ignored: {problem}"[:1000])
