"""SIGTERM and SIGINT: the first one stops the daemon in order, the second one ends the process at once."""

import logging
import os
import signal
from types import FrameType
from typing import Final

import trio

log = logging.getLogger(__name__)

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
SECOND_SIGNAL_EXIT_CODE: Final = 1


async def stop_on_signal(stop: trio.Event, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Set *stop* on the first signal; on the second the process exits at once. Never returns.

    Reports started once signals are caught.
    """
    with trio.open_signal_receiver(*STOP_SIGNALS) as signals:
        task_status.started()
        number = await anext(signals)
    # From here on the handler must not need the event loop: a second signal is sent because the loop is stuck.
    previous = {number: signal.signal(number, _exit_at_once) for number in STOP_SIGNALS}
    try:
        log.info("Requested to terminate, exiting", extra={"signal": signal.Signals(number).name})
        stop.set()
        await trio.sleep_forever()
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _exit_at_once(_number: int, _frame: FrameType | None) -> None:
    os._exit(SECOND_SIGNAL_EXIT_CODE)
