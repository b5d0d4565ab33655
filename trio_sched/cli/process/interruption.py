"""Signals where no daemon handles them: while modules are imported, while files are read, in a simulation."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from trio_sched.cli.process.exit_code import ExitCode

_ENDING: Final = (signal.SIGTERM, signal.SIGHUP)
_HARMLESS: Final = (signal.SIGUSR1, signal.SIGUSR2)
_EXIT_CODES: Final = {
    signal.SIGHUP: ExitCode.HUNG_UP,
    signal.SIGINT: ExitCode.INTERRUPTED,
    signal.SIGTERM: ExitCode.TERMINATED,
}


class Interruption:
    """The signal that interrupts; SIGINT unless another one has come."""

    def __init__(self) -> None:
        self._number = signal.SIGINT

    @property
    def exit_code(self) -> ExitCode:
        """The exit code to report it with."""
        return _EXIT_CODES[self._number]

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """Handle SIGTERM or SIGHUP as what handles SIGINT now: trio raises it only where a task can take it.

        Raises:
            KeyboardInterrupt: usually, from that handler.
        """
        self._number = signal.Signals(number)
        handler = signal.getsignal(signal.SIGINT)
        if callable(handler):
            handler(signal.SIGINT, frame)  # trio's handler takes no other
        else:  # started with SIGINT ignored, as shells start what ends in "&"
            raise KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """While in the block, SIGTERM and SIGHUP interrupt as SIGINT does, and SIGUSR1 and SIGUSR2 do nothing.

    So that temporary files are removed; and process 1 of a container cannot be ended by a signal that has no handler.
    """
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    handlers = dict.fromkeys(_ENDING, interruption.interrupt) | dict.fromkeys(_HARMLESS, _do_nothing)
    handled = [number for number in handlers if signal.getsignal(number) == signal.SIG_DFL]
    for number in handled:
        signal.signal(number, handlers[number])
    try:
        yield interruption
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    pass
