"""Lets equal parts of the objects of a dump be one part: most pods of a workload differ in name and node only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from trio_sched.documents.json_values import Json, encode
from trio_sched.objects.sharing import SharedValues

_PARTS: Final = ("containers", "initContainers", "volumes", "tolerations", "affinity", "topologySpreadConstraints")


def part_sharer() -> Callable[[Json], None]:
    """A function that replaces parts of the pods that it is given by the equal ones of former pods.

    The pods must have their defaults already: nobody changes objects in the store, nor anything in them.
    """
    shared: SharedValues[Any] = SharedValues()

    def share(fields: Json) -> None:
        spec = fields.get("spec") or {}
        for name in _PARTS:
            part = spec.get(name)
            if part:
                spec[name] = shared.first(encode(part), part)
        metadata = fields["metadata"]
        for name in ("labels", "ownerReferences"):
            part = metadata.get(name)
            if part:
                metadata[name] = shared.first(encode(part), part)

    return share
