"""Tells a KeyboardInterrupt that came to the process from one that a plugin has raised by itself."""

from __future__ import annotations

import signal

_HANDLERS = ("trio.", "trio_sched.")
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
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        return True  # which raises it at any line
    traceback = error.__traceback__
    if traceback is None:
        return False
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return str(traceback.tb_frame.f_globals.get("__name__", "")).startswith(_HANDLERS)
