"""Until when a pod may wait, and which pods may: annotations and labels that both plugins read."""

from __future__ import annotations

from typing import Final, Literal

from attrs import define, field, frozen

from trio_sched.plugin_api import Handle, LabelMatcher, LabelSelector, Pod, compile_selector, parse_time

_MAX_TOLD: Final = 20_000
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


@define(eq=False)
class Teller:
    """Records events about pods, each text once: pods are looked at again and again while they wait."""

    handle: Handle
    _told: dict[tuple[str, str], str] = field(factory=dict, init=False)
    """(UID, reason) → the text."""

    def waits(self, pod: Pod, reason: str, message: str) -> None:
        """*pod* has to wait."""
        self._tell(pod, "Normal", reason, message)

    def bad_annotation(self, pod: Pod, problem: str) -> None:
        """An annotation of *pod* is ignored."""
        self._tell(pod, "Warning", "BadAnnotation", f"ignored: {problem}")

    def _tell(self, pod: Pod, kind: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        if self._told.get((pod.uid, reason)) == message:
            return
        if len(self._told) >= _MAX_TOLD:
            self._told.clear()
        self._told[pod.uid, reason] = message
        self.handle.record_event(pod, kind, reason, "Scheduling", message[:1000])
