"""Objects of a scenario that are created later: an annotation has the seconds after the beginning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import trio
from attrs import define, field

from trio_sched.simulator.api_server import ApiServer
from trio_sched.simulator.scenario import ManifestError, populate

Json = dict[str, Any]

ARRIVE_SECONDS = "trio-sched.dev/arrive-seconds"
"""Annotation: how long after the beginning the object is created."""


@define(eq=False)
class Arrivals:
    """The objects that are still to be created, the next first."""

    waiting: list[tuple[float, Json]] = field(factory=list)

    async def run(self, server: ApiServer) -> None:
        """Create each object when its time has come.

        Raises:
            ManifestError: the server refuses one.
        """
        began = trio.current_time()
        while self.waiting:
            seconds, _manifest = self.waiting[0]
            await trio.sleep_until(began + seconds)
            now = [manifest for due, manifest in self.waiting if due == seconds]
            populate(server, now)
            self.waiting = [later for later in self.waiting if later[0] != seconds]


def split_arrivals(manifests: Sequence[Json]) -> tuple[list[Json], Arrivals]:
    """Those of *manifests* that exist from the beginning, and those that are created later.

    Raises:
        ManifestError: an annotation is no number of seconds.
    """
    first: list[Json] = []
    later: list[tuple[float, Json]] = []
    for manifest in manifests:
        text = (manifest["metadata"].get("annotations") or {}).get(ARRIVE_SECONDS)
        if text is None:
            first.append(manifest)
        else:
            later.append((_seconds(manifest, text), manifest))
    return first, Arrivals(sorted(later, key=lambda arrival: arrival[0]))


def _seconds(manifest: Json, text: object) -> float:
    try:
        seconds = float(str(text))
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        what = f"{manifest['kind']} {manifest['metadata'].get('name')}"
        raise ManifestError(what, 0, 0, f"annotation {ARRIVE_SECONDS} is {text!r}, not a number of seconds")
    return seconds
