"""What signals do to the daemon: stop it in order, end it at once, have it reload its configuration, or nothing.

The first SIGTERM or SIGINT stops it in order, a further one ends the process. SIGHUP reloads the configuration; where
there is none to reload, or a terminal may be what was hung up, it stops the daemon, too. SIGUSR2 has the cache compared
and dumped. SIGUSR1 is logged.
"""

import logging
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from types import FrameType
from typing import Final

import trio

log = logging.getLogger(__name__)

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""The first of these stops the daemon."""
EXIT_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
"""After it, these end the process; not SIGHUP, of which a closed terminal and its shell send one each."""
HARMLESS_SIGNALS: Final = (signal.SIGUSR1, signal.SIGUSR2)
SECOND_SIGNAL_EXIT_CODE: Final = 1
NO_ACTIONS: Final[Mapping[signal.Signals, Callable[[], None]]] = {}


async def stop_on_signal(
    stop: trio.Event,
    actions: Mapping[signal.Signals, Callable[[], None]] = NO_ACTIONS,
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Set *stop* on the first signal; on the second the process exits at once. Never returns.

    Args:
        stop: set on the first signal.
        actions: what is called on SIGHUP, SIGUSR1 and SIGUSR2; without an action SIGHUP stops as well, and the others
            are logged.
        task_status: see below.

    Reports started once signals are caught. A SIGHUP that the process has been started to ignore, by nohup for
    instance, stays ignored.
    """
    received = [
        number
        for number in (*STOP_SIGNALS, *HARMLESS_SIGNALS)
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN
    ]
    with trio.open_signal_receiver(*received) as signals:
        _exit_on_the_second_one()
        task_status.started()
        number = await _first_stop_signal(signals, actions)
    # From here on the handlers must not need the event loop: a second signal is sent because the loop is stuck.
    handlers = {one: _exit_at_once if one in EXIT_SIGNALS else _do_nothing for one in received}
    previous = {one: signal.signal(one, handler) for one, handler in handlers.items()}
    try:
        log.info("Requested to terminate, exiting", extra={"signal": number.name})
        stop.set()
        await trio.sleep_forever()
    finally:
        for one, former in previous.items():
            signal.signal(one, former)


def _exit_on_the_second_one() -> None:
    """Count the signals that end the process where they arrive: nothing reads them while a plugin holds the loop."""
    receivers = {one: signal.getsignal(one) for one in EXIT_SIGNALS}
    is_asked = False

    def count(number: int, frame: FrameType | None) -> None:
        nonlocal is_asked
        if is_asked:
            _exit_at_once(number, frame)
        is_asked = True
        receive = receivers[signal.Signals(number)]
        assert callable(receive)  # the receiver has just been opened
        receive(number, frame)

    for one in EXIT_SIGNALS:
        signal.signal(one, count)


async def _first_stop_signal(
    signals: AsyncIterator[int], actions: Mapping[signal.Signals, Callable[[], None]]
) -> signal.Signals:
    """The first signal that stops; for those before it, what *actions* say is done."""
    while True:
        number = signal.Signals(await anext(signals))
        action = actions.get(number)
        if action is not None:
            log.info("Signal received", extra={"signal": number.name})
            action()
            continue
        if number in STOP_SIGNALS:
            return number
        log.info("Signal has no effect", extra={"signal": number.name})


def _exit_at_once(_number: int, _frame: FrameType | None) -> None:
    os._exit(SECOND_SIGNAL_EXIT_CODE)


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    pass
