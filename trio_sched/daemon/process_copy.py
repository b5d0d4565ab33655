"""Runs a function in a copy of the process, where it may change everything that is in memory.

The system copies a page of memory when either process writes to it, so the copy is made within milliseconds, the event
loop goes on meanwhile, and whatever the function does or fails at, it does to the copy.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import warnings
from collections.abc import Callable
from typing import Final, NoReturn

import trio

from trio_sched.errors import TrioSchedError

_CHUNK: Final = 1 << 16
_MAX_RESULT: Final = 64 << 20
_LAST_FILE: Final = 1 << 16
"""Descriptors below this one are closed in the copy."""
_NICENESS: Final = 10
"""Where processors are scarce, whoever asks waits, and not the pods."""


class CopyFailed(TrioSchedError):
    """There is no result: the copy could not be made, failed, or took too long."""


async def run_in_copy(function: Callable[[], bytes], *, timeout_seconds: float) -> bytes:
    """What *function* returns in a copy of the process.

    Args:
        function: must not wait, log, or start threads: of the threads, the copy has this one only.
        timeout_seconds: after that the copy is ended.

    Raises:
        CopyFailed: there is no result.
    """
    reading, writing = os.pipe()
    try:
        pid = _fork()
    except OSError as problem:
        os.close(reading)
        os.close(writing)
        raise CopyFailed(f"the process cannot be copied: {problem}") from problem
    if pid == 0:
        _run(function, writing)
    os.close(writing)
    received = bytearray()
    try:
        with trio.move_on_after(timeout_seconds) as limit:
            async with trio.lowlevel.FdStream(reading) as stream:
                async for chunk in stream:
                    received += chunk
                    if len(received) > _MAX_RESULT:
                        raise CopyFailed(f"the result is larger than {_MAX_RESULT} bytes")
    finally:
        with trio.CancelScope(shield=True):
            os.kill(pid, signal.SIGKILL)
            # Freeing the memory of the copy takes a while, and the event loop goes on meanwhile.
            _pid, status = await trio.to_thread.run_sync(os.waitpid, pid, 0)
    if limit.cancelled_caught:
        raise CopyFailed(f"it took longer than {timeout_seconds:g} s")
    if not received.endswith(_END):
        how = f"was ended by signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "failed"
        raise CopyFailed(bytes(received).decode(errors="replace") or f"the copy of the process {how}")
    return bytes(received[: -len(_END)])


_END: Final = b"\0end"
"""After the whole result, so that a part of one is none."""


def _fork() -> int:
    with warnings.catch_warnings():
        # Python warns that other threads may hold locks; the copy takes none of theirs.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _run(function: Callable[[], bytes], writing: int) -> NoReturn:
    """The life of the copy."""
    try:
        os.nice(_NICENESS)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, signal.SIG_DFL)
        os.closerange(3, writing)
        os.closerange(writing + 1, _LAST_FILE)
        logging.disable()
        gc.disable()
        try:
            result = function() + _END
        except BaseException as error:  # whatever plugins raise
            result = f"{type(error).__name__}: {error}".encode(errors="replace")
        while result:
            result = result[os.write(writing, result[:_CHUNK]) :]
    finally:
        os._exit(0)
