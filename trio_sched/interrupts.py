"""Tells a KeyboardInterrupt that came to the process from one that a plugin has raised by itself."""

from __future__ import annotations

import signal
from opcode import opmap
from typing import Final

_RAISE: Final = opmap["RAISE_VARARGS"]
"""The instruction of a ``raise`` statement."""
_HANDLERS: Final = ("trio.", "trio_sched.")
"""Modules with handlers of SIGINT."""


def raise_interrupt(error: BaseException) -> None:
    """Raise *error* again if it interrupts the process; else it is the failure of the plugin that was called.

    Raises:
        KeyboardInterrupt: it does.
    """
    if is_interrupt(error):
        raise error


def is_interrupt(error: BaseException) -> bool:
    """Whether *error* interrupts the process."""
    return issubclass(type(error), KeyboardInterrupt) and _is_of_signal(error)


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
