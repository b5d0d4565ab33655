"""Tells what interrupts a plugin from what it has raised by itself: it is not the failure of a hook."""

from __future__ import annotations

import signal
from opcode import opmap
from typing import Final

_RAISE: Final = opmap["RAISE_VARARGS"]
"""The instruction of a ``raise`` statement."""
_HANDLERS: Final = ("trio.", "trio_sched.")
"""Modules with handlers of SIGINT."""


class HookInterrupted(BaseException):
    """Is raised in a hook of a plugin that does not return, by whoever limits how long hooks take."""


def raise_interrupt(error: BaseException) -> None:
    """Raise *error* again if it interrupts the plugin; else it is the failure of the plugin that was called.

    Raises:
        KeyboardInterrupt: it came to the process.
        HookInterrupted: the hook took too long.
    """
    if is_interrupt(error):
        raise error


def is_interrupt(error: BaseException) -> bool:
    """Whether *error* interrupts the plugin: a KeyboardInterrupt that came to the process, or the end of a limit."""
    kind = type(error)
    return issubclass(kind, HookInterrupted) or (issubclass(kind, KeyboardInterrupt) and _is_of_signal(error))


def _is_of_signal(error: BaseException) -> bool:
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is not None:
        frame = traceback.tb_frame
        if str(frame.f_globals.get("__name__", "")).startswith(_HANDLERS):
            return True
        if frame.f_code.co_code[traceback.tb_lasti] == _RAISE:
            return False
    # The handler of Python itself raises it at any other line.
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler
