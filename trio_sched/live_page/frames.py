"""Snapshots at times that lie behind: compressed, and few enough however long what they are of has lasted."""

from __future__ import annotations

import math
import zlib
from bisect import bisect_right
from typing import Final

from attrs import define, field, frozen

_FIRST_STEP_SECONDS: Final = 0.25
_LEVEL: Final = 1


@frozen
class Frame:
    """A snapshot, and when the cluster was so."""

    time: float
    """Seconds since 1970."""
    snapshot: bytes
    """A JSON object without ``time``."""


@define(eq=False)
class Frames:
    """At most one snapshot for each step of time; where they are too many or too large, the step doubles.

    Of the snapshots of a step the last one is kept.
    """

    most: int = 600
    most_bytes: int = 64 << 20
    """The most that the compressed snapshots take together; the last one is kept however large it is."""
    step: float = field(init=False, default=_FIRST_STEP_SECONDS)
    """In seconds."""
    size: int = field(init=False, default=0)
    """What the compressed snapshots take together, in bytes."""
    _times: list[float] = field(init=False, factory=list)
    _zipped: list[bytes] = field(init=False, factory=list)

    def __len__(self) -> int:
        return len(self._times)

    @property
    def begin(self) -> float:
        """The time of the first snapshot, of which there must be one."""
        return self._times[0]

    @property
    def end(self) -> float:
        """That of the last one."""
        return self._times[-1]

    def are_in_one_step(self, time: float, other: float) -> bool:
        """Whether one snapshot at most is kept of both times."""
        return time // self.step == other // self.step

    def add(self, time: float, snapshot: bytes) -> None:
        """The cluster is as *snapshot* says, see `Frame`; no call before was with a later *time*."""
        zipped = zlib.compress(snapshot, _LEVEL)
        self._times.append(time)
        self._zipped.append(zipped)
        self.size += len(zipped)
        if len(self) > 1 and self.are_in_one_step(self._times[-2], time):
            self._keep_last_of_steps()
        while len(self) > 1 and (len(self) > self.most or self.size > self.most_bytes):
            self.step *= 2
            self._keep_last_of_steps()

    def at(self, time: float) -> Frame | None:
        """The last snapshot at or before *time*; None if there is none.

        Its time is *time* where nothing can have changed between the two, else the last one of which that is known.
        """
        number = bisect_right(self._times, time) - 1
        if number < 0:
            return None
        own, following = self._times[number], number + 1
        changes_from = self._times[following] // self.step * self.step if following < len(self) else math.inf
        return Frame(max(own, min(time, changes_from, self.end)), zlib.decompress(self._zipped[number]))

    def _keep_last_of_steps(self) -> None:
        times = self._times
        kept = [n for n in range(len(times)) if n + 1 == len(times) or not self.are_in_one_step(times[n], times[n + 1])]
        self._times, self._zipped = [times[n] for n in kept], [self._zipped[n] for n in kept]
        self.size = sum(map(len, self._zipped))
