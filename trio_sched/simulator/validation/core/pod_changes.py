"""What may change in a pod."""

from __future__ import annotations

from collections.abc import Iterator

from trio_sched.documents.json_values import Json
from trio_sched.simulator.validation.core.annotations import pod_annotation_changes
from trio_sched.simulator.validation.meta.field_problems import FieldProblem, bad_value, forbidden_field
from trio_sched.simulator.validation.meta.metadata import same

_IMMUTABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_MUTABLE = ("activeDeadlineSeconds", "tolerations", "schedulingGates")
_CONTAINERS = ("containers", "initContainers")


def pod_changes(old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with a change of a pod.

    Source: ``ValidatePodUpdate`` of Kubernetes' pkg/apis/core/validation.
    """
    noted, notes = (fields["metadata"].get("annotations") or {} for fields in (old, new))
    yield from pod_annotation_changes(noted, notes)
    before, after = old.get("spec") or {}, new.get("spec") or {}
    if before == after:
        return
    for field in _CONTAINERS:
        if len(before.get(field) or ()) != len(after.get(field) or ()):
            yield forbidden_field(f"spec.{field}", "pod updates may not add or remove containers")
            return
    yield from _deadline_problems(before, after)
    yield from _toleration_problems(before, after)
    yield from _gate_problems(before, after)
    before, after = _fixed(before), _fixed(after)
    if before.get("terminationGracePeriodSeconds", 0) < 0 and after.get("terminationGracePeriodSeconds") == 1:
        after["terminationGracePeriodSeconds"] = before["terminationGracePeriodSeconds"]
    if (old.get("spec") or {}).get("schedulingGates"):
        yield from _placement_problems(before, after)
        before, after = _without_placement(before), _without_placement(after)
    if not same(before, after):
        yield forbidden_field("spec", _IMMUTABLE)


def _deadline_problems(before: Json, after: Json) -> Iterator[FieldProblem]:
    path = "spec.activeDeadlineSeconds"
    had, has = (spec.get("activeDeadlineSeconds") for spec in (before, after))
    if had is None:
        return
    if has is None:
        yield bad_value(path, None, "must not update from a positive integer to nil value")
    elif has > had:
        yield bad_value(path, has, "must be less than or equal to previous value")


def _toleration_problems(before: Json, after: Json) -> Iterator[FieldProblem]:
    kept = [_without_seconds(toleration) for toleration in after.get("tolerations") or ()]
    if not all(_without_seconds(toleration) in kept for toleration in before.get("tolerations") or ()):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        yield forbidden_field("spec.tolerations", detail)


def _without_seconds(toleration: Json) -> Json:
    return {name: value for name, value in toleration.items() if name != "tolerationSeconds" and value}


def _gate_problems(before: Json, after: Json) -> Iterator[FieldProblem]:
    present = {gate.get("name") for gate in before.get("schedulingGates") or ()}
    for index, gate in enumerate(after.get("schedulingGates") or ()):
        name = gate.get("name") or ""
        if name not in present:
            detail = f"only deletion is allowed, but found new scheduling gate '{name}'"
            yield forbidden_field(f"spec.schedulingGates[{index}].name", detail)


def _placement_problems(before: Json, after: Json) -> Iterator[FieldProblem]:
    """A pod with gates may be restricted to fewer nodes, never moved to others."""
    selector = after.get("nodeSelector") or {}
    if not (before.get("nodeSelector") or {}).items() <= selector.items():
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield bad_value("spec.nodeSelector", selector, detail)
    path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    had, has = _required_terms(before), _required_terms(after)
    if had and len(had) != len(has):
        yield bad_value(path, has, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")
        return
    for index, (term, changed) in enumerate(zip(had, has, strict=False)):
        if not _only_added_to(term, changed):
            detail = "only additions are allowed (no mutations or deletions)"
            yield bad_value(f"{path}[{index}]", changed, detail)


def _required_terms(spec: Json) -> list[Json]:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms: list[Json] = required.get("nodeSelectorTerms") or []
    return terms


def _only_added_to(term: Json, changed: Json) -> bool:
    """Whether *changed* matches no node that *term* does not; an empty term matches none, and stays empty."""
    parts = [(term.get(name) or [], changed.get(name) or []) for name in ("matchExpressions", "matchFields")]
    if not any(had for had, _ in parts):
        return not any(has for _, has in parts)
    return all(same(had, has[: len(had)]) for had, has in parts)


def _fixed(spec: Json) -> Json:
    """*spec* without what may change in every pod."""
    fixed = {name: value for name, value in spec.items() if name not in _MUTABLE}
    for field in _CONTAINERS:
        if fixed.get(field):
            fixed[field] = [{**container, "image": ""} for container in fixed[field]]
    return fixed


def _without_placement(spec: Json) -> Json:
    affinity = {name: value for name, value in (spec.get("affinity") or {}).items() if name != "nodeAffinity"}
    return {**spec, "nodeSelector": {}, "affinity": affinity}
