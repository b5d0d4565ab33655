"""The custom resource: what it says, or what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from attrs import frozen

from trio_sched.plugin_api import (
    NOTHING,
    CustomObject,
    CustomResource,
    LabelMatcher,
    LabelSelector,
    LabelSelectorRequirement,
    Node,
    Pod,
    SelectorError,
    compile_selector,
    parse_time,
    selector_of_map,
)
from trio_sched_node_maintenance.durations import read_duration

MAINTENANCE: Final = CustomResource("maintenance.trio-sched.dev", "v1alpha1", "NodeMaintenance", namespaced=False)
"""Read as JSON, not as a type: what is wrong in one object is told on that object."""
RUN_SECONDS: Final = "maintenance.trio-sched.dev/expected-duration"
"""Annotation of a pod: how long it runs, as in ``90m``."""
_DAY: Final = 86_400.0
_MAX_SECONDS: Final = 366 * _DAY


class Policy(Enum):
    """What a maintenance means for pods that have no node yet."""

    AVOID = "Avoid"
    """Other nodes are better."""
    NO_NEW_PODS = "NoNewPods"
    """They go to other nodes."""
    ONLY_PODS_THAT_END = "OnlyPodsThatEnd"
    """They may run there if they end before it starts, by what they declare."""


class Phase(Enum):
    """Where it is in time."""

    SCHEDULED = "Scheduled"
    ACTIVE = "Active"
    OVER = "Over"
    INVALID = "Invalid"


class BadMaintenance(ValueError):
    """The object cannot be used; the text names the field and how to write it."""


@frozen
class Maintenance:
    """A maintenance of some nodes; times are seconds since 1970."""

    name: str
    nodes: frozenset[str]
    selector: LabelMatcher
    start: float
    end: float
    applies_from: float
    policy: Policy

    def covers(self, node: Node) -> bool:
        """Whether it is about *node*."""
        return node.name in self.nodes or self.selector.matches(node.labels)

    def phase(self, now: float) -> Phase:
        """Where it is in time at *now*."""
        return Phase.SCHEDULED if now < self.start else Phase.ACTIVE if now < self.end else Phase.OVER

    def applies(self, now: float) -> bool:
        """Whether its policy has an effect at *now*."""
        return self.applies_from <= now < self.end

    def keeps_away(self, run_seconds: float | None, now: float) -> bool:
        """Whether a pod that runs for *run_seconds*, None if that is not known, must not start there at *now*."""
        if self.policy is Policy.AVOID or not self.applies(now):
            return False
        if self.policy is Policy.NO_NEW_PODS or run_seconds is None:
            return True
        return now + run_seconds > self.start

    def changes_after(self, now: float) -> float | None:
        """When it begins to apply, starts or ends next."""
        return min((one for one in (self.applies_from, self.start, self.end) if one > now), default=None)


def run_seconds(pod: Pod) -> float | None:
    """How long *pod* runs at most, by its annotation, else by ``activeDeadlineSeconds``; None if it says nothing."""
    written = (pod.metadata.annotations or {}).get(RUN_SECONDS)
    found = None if written is None else read_duration(written)
    if found is not None:
        return found
    limit = pod.spec.active_deadline_seconds
    return None if limit is None else float(limit)


def read_maintenance(found: CustomObject) -> Maintenance:
    """What the object says.

    Raises:
        BadMaintenance: it cannot be used.
    """
    spec = found.spec
    start = _time(spec, "start")
    if start is None:
        raise BadMaintenance("spec.start is missing: write it like 2026-03-01T22:00:00Z")
    end, duration = _time(spec, "end"), _duration(spec, "duration")
    if (end is None) == (duration is None):
        raise BadMaintenance("give either spec.end or spec.duration, as in 2h30m")
    if end is None:
        end = start + (duration or 0.0)
    if end <= start:
        raise BadMaintenance("spec.end must be after spec.start")
    if end - start > _MAX_SECONDS:
        raise BadMaintenance("it is longer than a year: cordon the nodes instead")
    policy = _policy(spec)
    notice = _duration(spec, "notice")
    if notice is None:
        notice = _DAY if policy is Policy.ONLY_PODS_THAT_END else 0.0
    nodes, selector = _nodes(spec), _selector(spec)
    if not nodes and selector.is_nothing:
        raise BadMaintenance("spec.nodes and spec.nodeSelector select nothing: name nodes, or give labels")
    if selector.is_everything:
        raise BadMaintenance("spec.nodeSelector is empty, which would select all nodes: give labels")
    return Maintenance(found.name, nodes, selector, start, end, start - notice, policy)


def _time(spec: Mapping[str, Any], name: str) -> float | None:
    written = spec.get(name)
    if written is None:
        return None
    moment = parse_time(written) if isinstance(written, str) else None
    if moment is None:
        raise BadMaintenance(f"spec.{name} {str(written)[:63]!r} is no time: write it like 2026-03-01T22:00:00Z")
    return moment


def _duration(spec: Mapping[str, Any], name: str) -> float | None:
    written = spec.get(name)
    if written is None:
        return None
    seconds = read_duration(written) if isinstance(written, str) else None
    if seconds is None:
        raise BadMaintenance(f"spec.{name} {str(written)[:63]!r} is no duration: write it like 90m or 2h30m")
    return seconds


def _policy(spec: Mapping[str, Any]) -> Policy:
    try:
        return Policy(spec.get("policy", Policy.NO_NEW_PODS.value))
    except (ValueError, TypeError):
        known = ", ".join(one.value for one in Policy)
        raise BadMaintenance(f"spec.policy {str(spec.get('policy'))[:63]!r} is none of {known}") from None


def _nodes(spec: Mapping[str, Any]) -> frozenset[str]:
    written = spec.get("nodes")
    if written is None:
        return frozenset()
    if not isinstance(written, list) or not all(isinstance(one, str) for one in written):
        raise BadMaintenance("spec.nodes must be a list of names")
    return frozenset(written)


def _selector(spec: Mapping[str, Any]) -> LabelMatcher:
    written = spec.get("nodeSelector")
    if written is None:
        return NOTHING
    problem = BadMaintenance("spec.nodeSelector is no label selector: give matchLabels or matchExpressions")
    if not isinstance(written, Mapping):
        raise problem
    labels, expressions = written.get("matchLabels"), written.get("matchExpressions")
    if labels is not None and not (
        isinstance(labels, Mapping) and all(isinstance(one, str) for pair in labels.items() for one in pair)
    ):
        raise problem
    if expressions is not None and not isinstance(expressions, list):
        raise problem
    try:
        parts = [compile_selector(LabelSelector(match_labels=dict(labels or {}) or None))]
        parts += [_expression(one, problem) for one in expressions or ()]
    except SelectorError as wrong:
        raise BadMaintenance(f"spec.nodeSelector: {wrong}") from None
    return selector_of_map({}).both(*parts)


def _expression(written: Any, problem: BadMaintenance) -> LabelMatcher:
    if not isinstance(written, Mapping):
        raise problem
    key, operator, values = written.get("key"), written.get("operator"), written.get("values") or []
    if not isinstance(key, str) or not isinstance(operator, str) or not isinstance(values, list):
        raise problem
    if not all(isinstance(one, str) for one in values):
        raise problem
    return compile_selector(LabelSelector(match_expressions=(LabelSelectorRequirement(key, operator, tuple(values)),)))
