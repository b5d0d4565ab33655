"""Rules of Namespaces."""

from __future__ import annotations

from collections.abc import Iterator

from trio_sched.simulator.field_problems import FieldProblem
from trio_sched.simulator.validation.metadata import finalizer_problems
from trio_sched.simulator.validation.shapes import Json


def sent_namespace_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a Namespace that is to be created; its spec is the API server's afterwards."""
    yield from finalizer_problems((fields.get("spec") or {}).get("finalizers") or (), "spec.finalizers")
