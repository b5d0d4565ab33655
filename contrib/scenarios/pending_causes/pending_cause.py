"""A cluster with one pod that is pending, and what has to be said of it."""

from collections.abc import Sequence
from typing import Any

from attrs import frozen

from trio_sched.documents.json_values import Json


@frozen(kw_only=True)
class PendingCause:
    """One cluster."""

    name: str
    objects: Sequence[Json]
    pod: str = "asked"
    reasons: frozenset[str]
    """The codes of the cause."""
    words: tuple[str, ...]
    """They are in the first three lines."""
    remedy: str = ""
    """The beginning of the title of the first change; empty: none is shown."""


def cause_of(
    name: str, reasons: Sequence[str], words: Sequence[str], remedy: str, *objects: Json, **more: Any
) -> PendingCause:
    """One cluster, of *objects*."""
    return PendingCause(
        name=name, objects=objects, reasons=frozenset(reasons), words=tuple(words), remedy=remedy, **more
    )
