"""Rules of metadata: names, labels, annotations, owners and finalizers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from trio_sched.documents.json_values import Json
from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    duplicate,
    forbidden_field,
    required,
)

_NAME_CHECKS: Final[Mapping[str, names.Check]] = {
    "namespaces": names.dns_label,
    "services": names.dns_label,
    "statefulsets": names.dns_label,
    **dict.fromkeys(("clusterroles", "clusterrolebindings", "roles", "rolebindings"), names.path_segment),
    **dict.fromkeys(("apiservices", "events", "poddisruptionbudgets"), names.path_segment),
}
_MAX_ANNOTATION_BYTES: Final = 256 << 10


def name_problem(plural: str, name: str) -> str | None:
    """What is wrong with *name* for a resource; None if nothing is."""
    return _NAME_CHECKS.get(plural, names.subdomain)(name)


def label_problems(labels: Mapping[str, str], path: str) -> Iterator[FieldProblem]:
    """What is wrong with a map of labels."""
    for key, value in labels.items():
        if problem := names.qualified_name(key):
            yield bad_value(path, key, problem)
        if problem := names.label_value(value):
            yield bad_value(path, value, problem)


def annotation_problems(annotations: Mapping[str, str], path: str) -> Iterator[FieldProblem]:
    """What is wrong with a map of annotations."""
    size = 0
    for key, value in annotations.items():
        if problem := names.qualified_name(key.lower()):
            yield bad_value(path, key, problem)
        size += len(key.encode()) + len(value.encode())
    if size > _MAX_ANNOTATION_BYTES:
        text = f"Too long: may not be more than {_MAX_ANNOTATION_BYTES} bytes"
        yield FieldProblem("FieldValueTooLong", path, text)


def template_metadata_problems(metadata: Json, path: str) -> Iterator[FieldProblem]:
    """What is wrong with the metadata of a template, which may have labels and annotations only."""
    yield from annotation_problems(metadata.get("annotations") or {}, f"{path}.annotations")
    yield from label_problems(metadata.get("labels") or {}, f"{path}.labels")
    for field, value in metadata.items():
        is_set = value != "" and (field, value) != ("generation", 0)  # all others are pointers and lists to Go
        if is_set and field not in ("annotations", "labels"):
            yield forbidden_field(f"{path}.{field}", "cannot be set")


def finalizer_problems(finalizers: Sequence[str], path: str) -> Iterator[FieldProblem]:
    """What is wrong with names of finalizers."""
    for index, finalizer in enumerate(finalizers):
        if problem := names.qualified_name(finalizer):
            yield bad_value(path, finalizer, problem)
        elif "/" not in finalizer and finalizer not in ("kubernetes", "orphan", "foregroundDeletion"):
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            yield bad_value(f"{path}[{index}]", finalizer, detail)


def metadata_problems(plural: str, metadata: Json) -> list[FieldProblem]:
    """What is wrong with an object's metadata, its name included."""
    problems: list[FieldProblem] = []
    prefix = metadata.get("generateName") or ""
    if prefix and (problem := name_problem(plural, f"{prefix.rstrip('-') or prefix}" if prefix != "-" else prefix)):
        problems.append(bad_value("metadata.generateName", prefix, problem))
    name = metadata.get("name") or ""
    if not name:
        problems.append(required("metadata.name", "name or generateName is required"))
    elif problem := name_problem(plural, name):
        problems.append(bad_value("metadata.name", name, problem))
    namespace = metadata.get("namespace")
    if namespace and (problem := names.dns_label(namespace)):
        problems.append(bad_value("metadata.namespace", namespace, problem))
    if labels := metadata.get("labels"):
        problems += label_problems(labels, "metadata.labels")
    if annotations := metadata.get("annotations"):
        problems += annotation_problems(annotations, "metadata.annotations")
    if owners := metadata.get("ownerReferences"):
        problems += _owner_problems(owners)
    if finalizers := metadata.get("finalizers"):
        problems += finalizer_problems(finalizers, "metadata.finalizers")
        if {"orphan", "foregroundDeletion"} <= set(finalizers):
            detail = "finalizer orphan and foregroundDeletion cannot be both set"
            problems.append(bad_value("metadata.finalizers", finalizers, detail))
    return problems


def _owner_problems(owners: list[Json]) -> Iterator[FieldProblem]:
    controllers = 0
    for index, owner in enumerate(owners):
        path = f"metadata.ownerReferences[{index}]"
        for wanted in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(wanted):
                yield bad_value(f"{path}.{wanted}", owner.get(wanted) or "", "must not be empty")
        if (owner.get("apiVersion"), owner.get("kind")) == ("v1", "Event"):
            yield bad_value(path, owner, "/v1, Kind=Event is disallowed from being an owner")
        controllers += owner.get("controller") is True
    if controllers > 1:
        detail = "Only one reference can have Controller set to true"
        yield bad_value("metadata.ownerReferences", owners, detail)


def unique(values: list[str], path: str) -> Iterator[FieldProblem]:
    """Every one of *values*, at *path* with its index, that was there before."""
    seen: set[str] = set()
    for index, value in enumerate(values):
        if value in seen:
            yield duplicate(f"{path}[{index}]", value)
        seen.add(value)


def immutable(old: Json, new: Json, *fields: str, path: str = "spec") -> Iterator[FieldProblem]:
    """Each of *fields* that differs between *old* and *new*, which are at *path*."""
    for field in fields:
        if not same(old.get(field), new.get(field)):
            yield bad_value(f"{path}.{field}" if path else field, new.get(field), "field is immutable")


def same(left: object, right: object) -> bool:
    """Whether two values are equal; what is empty equals what is left out."""
    if left == right:
        return True
    if isinstance(left, dict) and isinstance(right, dict):
        return all(same(left.get(name), right.get(name)) for name in {*left, *right})
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return left in _EMPTY and right in _EMPTY


_EMPTY: Final[tuple[object, ...]] = (None, {}, [], "", 0, False)
