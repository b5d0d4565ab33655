"""Changes of valid objects that single mutations don't make, with the field for which kube-apiserver refuses each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from attrs import frozen
from manifest_mutations import changed, valid_objects

from trio_sched.documents.json_values import Json


@frozen
class Change:
    """One field of a valid object set to another value.

    Attributes:
        object: kind and name of the object in ``valid_manifests.yaml``.
        place: the field, with slashes between its names and indexes.
        value: what it is set to.
        refused: the field that kube-apiserver names when it refuses that; empty if it does not.
    """

    object: str
    place: str
    value: Any
    refused: str

    def __str__(self) -> str:
        return f"{self.object} {self.place}: {self.value}"[:80]

    def fields(self) -> Json:
        """The object with the change."""
        [found] = [one for one in valid_objects() if f"{one['kind']} {one['metadata']['name']}" == self.object]
        steps = [int(step) if step.isdecimal() else step for step in self.place.split("/")]
        return changed(found, tuple(steps), self.value)


def changes() -> list[Change]:
    """Every change of ``manifest_changes.yaml``."""
    text = Path(__file__).with_name("manifest_changes.yaml").read_text(encoding="utf-8")
    return [
        Change(name, place, value, refused)
        for name, rows in yaml.load(text, yaml.CSafeLoader).items()  # every process reads it to collect tests
        for place, value, refused in rows
    ]
