"""Rules of PodTemplates and of ControllerRevisions, which keep the templates of workloads."""

from __future__ import annotations

from collections.abc import Iterator

from trio_sched.documents.json_values import Json
from trio_sched.simulator.validation.core.pods import template_problems
from trio_sched.simulator.validation.meta.field_problems import FieldProblem, required
from trio_sched.simulator.validation.meta.metadata import immutable
from trio_sched.simulator.validation.meta.numbers import negative_problems


def pod_template_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a PodTemplate."""
    yield from template_problems(fields.get("template") or {}, "template")


def revision_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a ControllerRevision."""
    data = fields.get("data")
    if data is None:
        yield required("data", "data is mandatory")
    elif not isinstance(data, dict):
        yield required("data", "data must be a valid JSON object")
    yield from negative_problems(fields, "", "revision")


def revision_changes(old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with a change of a ControllerRevision."""
    yield from immutable(old, new, "data", path="")
