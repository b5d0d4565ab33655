"""What a resize may change in a pod: the CPU and memory of its containers, and of the pod as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trio_sched.documents.json_values import Json
from trio_sched.objects.amounts.quantity import parse_nano
from trio_sched.simulator.pods.pod_defaults import quality_of_service
from trio_sched.simulator.validation.core.annotations import MIRROR
from trio_sched.simulator.validation.meta.field_problems import FieldProblem, bad_value, forbidden_field

_CONTAINERS: Final = ("containers", "initContainers")
_RESIZED: Final = ("cpu", "memory")
_ONLY: Final = "only cpu and memory resources are mutable"


def resized_spec(old: Json, sent: Json) -> Json:
    """The spec *old* with the resources of *sent*; *sent* itself if its containers are others, to be refused."""
    spec = {name: value for name, value in old.items() if name != "resources"}
    if sent.get("resources") is not None:
        spec["resources"] = sent["resources"]
    for field in _CONTAINERS:
        before, after = old.get(field) or [], sent.get(field) or []
        if [one.get("name") for one in before] != [one.get("name") for one in after]:
            return sent
        if before:
            spec[field] = [_resized(had, has) for had, has in zip(before, after, strict=True)]
    return spec


def _resized(old: Json, sent: Json) -> Json:
    container = {name: value for name, value in old.items() if name not in ("resources", "resizePolicy")}
    return container | {name: sent[name] for name in ("resources", "resizePolicy") if name in sent}


def resize_problems(old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with a resize.

    Source: ``ValidatePodResize`` of Kubernetes' pkg/apis/core/validation.
    """
    before, after = old["spec"], new["spec"]
    if MIRROR in (old["metadata"].get("annotations") or {}):
        yield forbidden_field("", "static pods cannot be resized")
        return
    if (before.get("os") or {}).get("name") == "windows":
        yield forbidden_field("", "windows pods cannot be resized")
        return
    former = (old.get("status") or {}).get("qosClass") or quality_of_service(before)
    if quality_of_service(after) != former:
        yield bad_value("spec", former, "Pod QOS Class may not change as a result of resizing")
    yield from _pod_level_problems(before.get("resources"), after.get("resources"))
    for field in _CONTAINERS:
        had, has = ([one.get("name") for one in spec.get(field) or ()] for spec in (before, after))
        if len(had) != len(has):
            yield forbidden_field(f"spec.{field}", f"{field} may not be added or removed on resize")
            return
        for index, (one, other) in enumerate(zip(had, has, strict=True)):
            if one != other:
                path = f"spec.{field}[{index}].name"
                yield forbidden_field(path, f"{field} may not be renamed or reordered on resize")
                return
        for index, (container, changed) in enumerate(zip(before.get(field) or (), after.get(field) or (), strict=True)):
            yield from _container_problems(field, index, container, changed)


def _pod_level_problems(before: Json | None, after: Json | None) -> Iterator[FieldProblem]:
    if before is None:
        return
    if after is None:
        yield forbidden_field("spec.resources", "pod-level resources cannot be removed")
        return
    for kind in ("requests", "limits"):
        if not (before.get(kind) or {}).keys() <= (after.get(kind) or {}).keys():
            yield forbidden_field(f"spec.resources.{kind}", f"pod-level resource {kind} cannot be removed")
    if _others(before) != _others(after):
        yield forbidden_field("spec", f"{_ONLY} at pod-level")


def _container_problems(field: str, index: int, old: Json, new: Json) -> Iterator[FieldProblem]:
    before, after = old.get("resources") or {}, new.get("resources") or {}
    for kind in ("requests", "limits"):
        if not (before.get(kind) or {}).keys() <= (after.get(kind) or {}).keys():
            yield forbidden_field(f"spec.{field}[{index}].resources.{kind}", f"resource {kind} cannot be removed")
    if _others(before) != _others(after) or (old.get("resizePolicy") or []) != (new.get("resizePolicy") or []):
        if field == "containers":
            yield forbidden_field("spec", _ONLY)
        else:
            path = f"spec.{field}[{index}]"
            yield forbidden_field(path, "only cpu and memory resources for init or sidecar containers are mutable")
    policies = [one.get("restartPolicy") for one in new.get("resizePolicy") or ()]
    if (
        field == "initContainers"
        and before != after
        and new.get("restartPolicy") != "Always"
        and "RestartContainer" in policies
    ):
        detail = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
        yield forbidden_field(f"spec.{field}[{index}]", detail)


def _others(resources: Json) -> Json:
    """What must stay, compared by value: the resources besides CPU and memory, and the claims."""
    amounts = {
        kind: {name: parse_nano(amount) for name, amount in (resources.get(kind) or {}).items() if name not in _RESIZED}
        for kind in ("requests", "limits")
    }
    return amounts | {"claims": resources.get("claims") or []}
