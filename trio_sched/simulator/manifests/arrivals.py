"""Objects of a scenario that are created later: an annotation has the seconds after the beginning."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import trio
from attrs import define, field

from trio_sched.go.text import shortened
from trio_sched.simulator.endpoints.api_server import ApiServer
from trio_sched.simulator.manifests.manifests import Manifest, ManifestError, ManifestProblem
from trio_sched.simulator.manifests.scenario import populate

ARRIVE_SECONDS = "trio-sched.dev/arrive-seconds"
"""Annotation: how long after the beginning the object is created."""


@define(eq=False)
class Arrivals:
    """The objects that are still to be created, the next first."""

    waiting: list[tuple[float, Manifest]] = field(factory=list)

    async def run(self, server: ApiServer, no_room: Callable[[ManifestProblem], None] | None = None) -> None:
        """Create each object when its time has come; see `populate`.

        Raises:
            ManifestError: the server refuses one.
        """
        began = trio.current_time()
        while self.waiting:
            seconds, _manifest = self.waiting[0]
            await trio.sleep_until(began + seconds)
            now = [manifest for due, manifest in self.waiting if due == seconds]
            populate(server, now, no_room)
            self.waiting = [later for later in self.waiting if later[0] != seconds]


def split_arrivals(manifests: Sequence[Manifest]) -> tuple[list[Manifest], Arrivals]:
    """Those of *manifests* that exist from the beginning, and those that are created later.

    Raises:
        ManifestError: an annotation is no number of seconds.
    """
    first: list[Manifest] = []
    later: list[tuple[float, Manifest]] = []
    problems: list[ManifestProblem] = []
    for manifest in manifests:
        text = (manifest.fields["metadata"].get("annotations") or {}).get(ARRIVE_SECONDS)
        seconds = 0.0 if text is None else _seconds(text)
        if text is None:
            first.append(manifest)
        elif seconds is None:
            path = f"metadata.annotations[{ARRIVE_SECONDS}]"
            problems.append(manifest.problem(f"must be a number of seconds, not {shortened(repr(text))}", path))
        else:
            later.append((seconds, manifest))
    if problems:
        raise ManifestError(problems)
    return first, Arrivals(sorted(later, key=lambda arrival: arrival[0]))


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None
