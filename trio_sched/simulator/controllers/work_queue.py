"""The steps that a simulated controller is to take, each at its time."""

import heapq
import logging
from collections.abc import Callable

import trio
from attrs import define, field

from trio_sched.simulator.errors.status_errors import ApiError

log = logging.getLogger(__name__)

Step = Callable[[str], None]
"""Is called with the key of an object, which may be gone by then."""


@define(eq=False)
class WorkQueue:
    """A work queue by time; of the times at which a step is planned for an object, only the earliest counts."""

    _due: list[tuple[float, int, Step, str]] = field(factory=list, init=False)
    _count: int = field(default=0, init=False)
    _planned: dict[tuple[Step, str], float] = field(factory=dict, init=False)
    _wake: trio.Event = field(factory=trio.Event, init=False)

    @property
    def is_busy(self) -> bool:
        """Whether steps are still to be taken."""
        return bool(self._planned)

    def plan(self, step: Step, key: str, wait_seconds: float) -> None:
        """Take *step* for the object *key* in *wait_seconds*, or earlier if it is planned already."""
        at = trio.current_time() + wait_seconds
        if self._planned.get((step, key), float("inf")) <= at:
            return
        self._planned[step, key] = at
        self._count += 1
        heapq.heappush(self._due, (at, self._count, step, key))
        self._wake.set()

    async def run(self) -> None:
        """Take the steps when they are due; never returns."""
        while True:
            self._wake = trio.Event()
            now = trio.current_time()
            while self._due and self._due[0][0] <= now:
                at, _number, step, key = heapq.heappop(self._due)
                if self._planned.get((step, key)) == at:
                    del self._planned[step, key]
                    self._take(step, key)
            with trio.move_on_at(self._due[0][0] if self._due else float("inf")):
                await self._wake.wait()

    def _take(self, step: Step, key: str) -> None:
        try:
            step(key)
        except ApiError as error:  # what one object asks for must not end the controllers of all
            log.warning("%s: a controller was refused what it tried: %s", key, error.message)
