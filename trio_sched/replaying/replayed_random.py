"""The random generator of a replay: it gives the numbers that were drawn when the recording was made."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from random import Random


class ReplayedRandom(Random):
    """Gives recorded numbers, and where these do not fit, because something else is drawn, numbers of its own."""

    def __init__(self) -> None:
        self._recorded: deque[tuple[int, int | float]] = deque()
        super().__init__(0)

    def load(self, drawn: Iterable[tuple[int, int | float]]) -> None:
        """Give these next, see `trio_sched.recording.records.Decided.drawn`, and then the same numbers each time."""
        self._recorded = deque(drawn)
        self.seed(0)

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        """A number of a range; of the first *start* if that is all that is given."""
        numbers = range(start) if stop is None else range(start, stop, step)
        if self._recorded:
            number = self._recorded.popleft()[1]
            if number in numbers:
                return int(number)
        return super().randrange(start, stop, step)

    def getrandbits(self, k: int) -> int:
        """A number of *k* bits."""
        if self._recorded:
            number = self._recorded.popleft()[1]
            if isinstance(number, int) and number.bit_length() <= k:
                return number
        return super().getrandbits(k)

    def random(self) -> float:
        """A number from 0 up to 1."""
        if self._recorded:
            number = self._recorded.popleft()[1]
            if isinstance(number, float):
                return number
        return super().random()
