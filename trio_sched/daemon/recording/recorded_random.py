"""The random generator of a scheduler that is recorded: it notes what it has drawn."""

from __future__ import annotations

from random import Random
from typing import Any, Final

_NOTHING: Final[list[tuple[int, int | float]]] = []
"""Never changed: most decisions draw nothing."""


class RecordedRandom(Random):
    """Draws from another generator, and keeps the numbers until they are taken."""

    def __init__(self, source: Random) -> None:
        self._source = Random()  # the base class seeds itself, which must not reach *source*
        super().__init__(0)
        self._source = source
        self._drawn: list[tuple[int, int | float]] = []

    def take(self) -> list[tuple[int, int | float]]:
        """What was drawn since this was called last; see `trio_sched.recording.records.Decided.drawn`."""
        if not self._drawn:
            return _NOTHING
        drawn, self._drawn = self._drawn, []
        return drawn

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        """A number of a range; of the first *start* if that is all that is given."""
        number = self._source.randrange(start, stop, step)
        self._drawn.append((start if stop is None else 0, number))
        return number

    def getrandbits(self, k: int) -> int:
        """A number of *k* bits; what `random.Random` draws by other methods is made of these, and of `random`."""
        number = self._source.getrandbits(k)
        self._drawn.append((0, number))
        return number

    def random(self) -> float:
        """A number from 0 up to 1."""
        number = self._source.random()
        self._drawn.append((0, number))
        return number

    def seed(self, a: Any = None, version: int = 2) -> None:
        """Seed the generator that is drawn from."""
        self._source.seed(a, version)

    def getstate(self) -> tuple[Any, ...]:
        """The state of the generator that is drawn from."""
        return self._source.getstate()

    def setstate(self, state: tuple[Any, ...]) -> None:
        """Set the state of the generator that is drawn from."""
        self._source.setstate(state)
