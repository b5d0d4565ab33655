"""Rules of Services: of their selector only, by which pods are spread; nobody gives out cluster IPs or node ports."""

from __future__ import annotations

from collections.abc import Iterator

from trio_sched.documents.json_values import Json
from trio_sched.simulator.validation.meta.field_problems import FieldProblem
from trio_sched.simulator.validation.meta.metadata import label_problems


def service_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new Service."""
    yield from label_problems((fields.get("spec") or {}).get("selector") or {}, "spec.selector")
