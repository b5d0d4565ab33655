"""A limit on how long code of others may take that is called at once, in real time."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_AGAIN_SECONDS = 0.5
"""What catches the exception gets another one after this time."""


class TookTooLong(BaseException):
    """Raised at the line that is being executed when time is up; no ``Exception``, so that it is rarely caught."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds

    def __str__(self) -> str:
        return f"it took longer than {self.seconds:g} s"


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `TookTooLong` in the block once that many *seconds* are over; only the main thread can be interrupted.

    Raises:
        TookTooLong: time is up.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or not hasattr(signal, "setitimer") or signal.getitimer(signal.ITIMER_REAL)[0]:
        yield  # somebody else, a test with a timeout for instance, uses the timer
        return

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise TookTooLong(seconds)

    former = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
