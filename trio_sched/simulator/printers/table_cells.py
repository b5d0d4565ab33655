"""What the tables that kubectl prints are made of."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Final

from trio_sched.documents.json_values import Json
from trio_sched.simulator.printers.ages import since

RowMaker = Callable[[Json, datetime], list[Any]]
Table = tuple[list[Json], RowMaker]

WORKLOAD_WIDE: Final = ("Containers", "Images", "Selector")
"""The columns of workloads that are shown on demand."""


def columns(*names: str, wide: tuple[str, ...] = ()) -> list[Json]:
    """``columnDefinitions``; *wide* ones are shown on demand."""
    found: list[Json] = []
    for priority, group in ((0, names), (1, wide)):
        for name in group:
            found.append(
                {
                    "name": name,
                    "type": "string",
                    "format": "name" if name == "Name" else "",
                    "description": "",
                    "priority": priority,
                }
            )
    return found


def age(fields: Json, now: datetime) -> str:
    """How long an object has been there."""
    return since(fields["metadata"].get("creationTimestamp"), now)


def name(fields: Json) -> str:
    """The name of an object."""
    return str(fields["metadata"]["name"])


def joined(values: Iterable[str], empty: str = "<none>") -> str:
    """*values* with commas between them."""
    return ",".join(values) or empty


def template_columns(fields: Json, container_spec: Json | None = None) -> list[Any]:
    """The containers, images and selector of a workload; *container_spec* instead of its template's."""
    spec = fields.get("spec") or {}
    if container_spec is None:
        container_spec = (spec.get("template") or {}).get("spec") or {}
    containers = container_spec.get("containers") or []
    chosen = spec.get("selector") or {}
    labels = chosen.get("matchLabels", chosen if all(isinstance(v, str) for v in chosen.values()) else {})
    return [
        ",".join(container.get("name", "") for container in containers),
        ",".join(container.get("image", "") for container in containers),
        joined(f"{key}={value}" for key, value in sorted(labels.items())),
    ]
