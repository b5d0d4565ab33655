"""The scheduler of a recording as it was at any time: the recording is replayed up to there, and stands still."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Final, TypeVar, cast

import trio
from attrs import define, evolve, field

from trio_sched.daemon.assembly import Assembly
from trio_sched.errors import TrioSchedError
from trio_sched.recording.records import Record
from trio_sched.replaying.replay import ReplayPlan, advance, replay

T = TypeVar("T")

_MS_DIGITS: Final = 3


class NotReplayed(TrioSchedError):
    """The recording cannot be replayed up to that time any more."""


class _Stopped(BaseException):
    """Nobody asks this replay any more."""


@define(eq=False)
class PastScheduler:
    """Replays the recording of a plan again, up to the times that are asked for.

    Attributes:
        plan: which recording, and what with.
        end: the time of the last record, in POSIX seconds.
    """

    plan: ReplayPlan
    end: float
    _replay: _StandingReplay | None = field(default=None, init=False)
    _turn: trio.Lock = field(factory=trio.Lock, init=False)

    async def look(self, time: float, ask: Callable[[Assembly], T], *, changes: bool = False) -> T:
        """What *ask* returns of the scheduler as it was.

        Args:
            time: POSIX seconds.
            ask: is called in another thread.
            changes: whether it may change something, so that this replay does not go on to later times.

        Raises:
            NotReplayed: the recording is gone, or cannot be read any more.
            Exception: what *ask* raised.
        """
        async with self._turn:
            if self._replay is not None and not self._replay.reaches(time):
                self.close()
            if self._replay is None:
                self._replay = _StandingReplay(self.plan, self.end)
                self._replay.start()
            try:
                return await trio.to_thread.run_sync(self._replay.look, time, ask, changes, abandon_on_cancel=True)
            except trio.Cancelled:
                self.close()  # else the next question would wait for its answer, however long that takes
                raise

    def close(self) -> None:
        """End the replay."""
        if self._replay is not None:
            self._replay.stop()
            self._replay = None


@define(eq=False)
class _StandingReplay:
    """One replay, in a thread of its own, which stands still whenever nobody asks for a later time."""

    plan: ReplayPlan
    end: float
    _time: float = field(default=-math.inf, init=False)
    """Where it stands: the time of the last record that was taken, or that of a question after it."""
    _is_changed: bool = field(default=False, init=False)
    _is_stopped: bool = field(default=False, init=False)
    _is_over: bool = field(default=False, init=False)
    _asked: SimpleQueue[tuple[float, Callable[[Assembly], Any]] | None] = field(factory=SimpleQueue, init=False)
    _answers: SimpleQueue[tuple[Any, Exception | None]] = field(factory=SimpleQueue, init=False)
    """What was returned, or raised."""
    _question: tuple[float, Callable[[Assembly], Any]] | None = field(default=None, init=False)

    def start(self) -> None:
        """Begin, and wait for the first question."""
        threading.Thread(target=self._run, name="replay of a recording", daemon=True).start()

    def stop(self) -> None:
        """End the thread at the next record."""
        self._is_stopped = True
        self._asked.put(None)

    def reaches(self, time: float) -> bool:
        """Whether it has not gone beyond *time*."""
        return not self._is_over and (time == self._time if self._is_changed else time >= self._time)

    def look(self, time: float, ask: Callable[[Assembly], T], changes: bool) -> T:
        """What *ask* returns at *time*; see `PastScheduler.look`."""
        self._asked.put((time, ask))
        self._is_changed |= changes
        answer, error = self._answers.get()
        if error is not None:
            raise error
        return cast("T", answer)

    def before(self, assembly: Assembly, record: Record, time: float) -> None:
        """See `Observer`."""
        if self._is_stopped:
            raise _Stopped
        time = max(round(time, _MS_DIGITS), self._time)
        while self._next_question()[0] < time:
            self._answer(assembly)
        self._time = time

    def ended(self, assembly: Assembly) -> None:
        """See `Observer`."""
        while self._time >= self.end:
            self._answer(assembly)

    def _next_question(self) -> tuple[float, Callable[[Assembly], Any]]:
        """The question that has no answer yet."""
        if self._question is None:
            self._question = self._asked.get()
            if self._question is None:
                raise _Stopped
        return self._question

    def _answer(self, assembly: Assembly) -> None:
        (time, ask), self._question = self._next_question(), None
        advance(trio.current_time() + time - self._time)
        self._time = max(time, self._time)
        try:
            self._answers.put((ask(assembly), None))
        except Exception as error:  # whatever plugins raise
            self._answers.put((None, error))

    def _run(self) -> None:
        problem = "it ends earlier than it did"
        try:
            replay(evolve(self.plan, observer=self, progress=lambda _decisions: None))
        except BaseException as error:  # also what plugins raise
            problem = str(error) or type(error).__name__
        self._is_over = True
        self._answers.put((None, NotReplayed(f"the recording cannot be replayed any more: {problem}")))
