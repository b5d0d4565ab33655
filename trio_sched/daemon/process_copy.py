"""Answers questions in copies of the process, which may change everything that is in memory.

The system copies a page of memory when either process writes to it, so a copy is made within milliseconds, the event
loop goes on meanwhile, and whatever an answer does or fails at, it does to the copy. Copying the tables of a large
process takes ten of these milliseconds, during which nothing else happens; so where much happens one copy is kept for a
moment, and each question is answered in a copy of that one.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import socket
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NoReturn

import trio
from attrs import define, field

from trio_sched.errors import TrioSchedError

KEPT_SECONDS: Final = 5.0
"""How old what a question is answered from may be while the process is busy."""
_BUSY_PER_SECOND: Final = 20.0
_CHUNK: Final = 1 << 16
_MAX_RESULT: Final = 64 << 20
_LAST_FILE: Final = 1 << 16
"""Descriptors below this one are closed in the copy."""
_NICENESS: Final = 10
"""Where processors are scarce, whoever asks waits, and not the pods."""
_PID_BYTES: Final = 8
_END: Final = b"\0end"
"""After the whole result, so that a part of one is none."""


class CopyFailed(TrioSchedError):
    """There is no result: the copy could not be made, failed, or took too long."""


@define(eq=False)
class ProcessCopy:
    """Answers questions in copies of the process as it is now, or was a moment ago.

    Attributes:
        answer: must not wait, log, or start threads: of the threads, the copy has this one only.
        count_done: how much the process has done so far; it is busy while this grows by twenty a second.
    """

    answer: Callable[[bytes], bytes]
    count_done: Callable[[], int]
    _kept: socket.socket | None = field(default=None, init=False)
    """Leads to the copy that is kept, and ends it once it is closed."""
    _end_kept: Callable[[], object] = field(default=lambda: None, init=False)
    _made_at: float = field(default=0.0, init=False)
    _done_before: int = field(default=0, init=False)
    """What was done when it was made."""

    @property
    def age_seconds(self) -> float:
        """In a copy: how long ago the process was as it is here."""
        return time.monotonic() - self._made_at

    async def ask(self, question: bytes, *, timeout_seconds: float, is_new: bool = False) -> bytes:
        """What `answer` returns for *question*.

        Args:
            question: any bytes.
            timeout_seconds: after that the answer is given up.
            is_new: ask the process as it is now.

        Raises:
            CopyFailed: there is no result.
        """
        if is_new or not self._is_recent():
            self.close()
        try:
            asking, receiving = self._announce()
        except OSError as problem:
            raise CopyFailed(f"the process cannot be copied: {problem}") from problem
        return await _received(question, asking, receiving, timeout_seconds)

    def _is_recent(self) -> bool:
        """Whether what is kept will do: it is not old, and another copy would hold up much."""
        seconds = self.age_seconds
        return seconds < KEPT_SECONDS and self.count_done() - self._done_before > seconds * _BUSY_PER_SECOND

    def _announce(self) -> tuple[int, int]:
        """Announce a question to the copy that is kept, or to a new one; see `_send`."""
        if self._kept is not None:
            try:
                return _send(self._kept)
            except OSError:  # it was ended: where memory is scarce, for instance
                self.close()
        self._kept = self._make()
        self._end_kept = weakref.finalize(self, self._kept.close)
        return _send(self._kept)

    def close(self) -> None:
        """End the copy that is kept, once it has passed on what it was asked."""
        if self._kept is not None:
            self._end_kept()
            self._kept = None

    def _make(self) -> socket.socket:
        ours, others = socket.socketpair()
        try:
            self._made_at, self._done_before = time.monotonic(), self.count_done()
            pid = _fork()
        except OSError:
            ours.close()
            others.close()
            raise
        if pid == 0:
            _keep(self.answer, others, self._made_at + KEPT_SECONDS + 1.0)  # who asks in the last instant is answered
        others.close()
        # Freeing the memory of the copy takes a while, and nobody waits for it.
        threading.Thread(target=os.waitpid, args=(pid, 0), name="end of a copy of the process", daemon=True).start()
        return ours


def _send(kept: socket.socket) -> tuple[int, int]:
    """Announce a question to the copy *kept*; returns the pipes to write it to, and to read the result from."""
    question, asking = os.pipe()
    receiving, result = os.pipe()
    try:
        socket.send_fds(kept, [b"?"], [question, result])
    except OSError:
        os.close(asking)
        os.close(receiving)
        raise
    finally:
        os.close(question)
        os.close(result)
    return asking, receiving


async def _received(question: bytes, asking: int, receiving: int, timeout_seconds: float) -> bytes:
    """Ask, and wait for the result; whoever works on it is ended if it is not waited for any more."""
    received = bytearray()
    is_over = False
    try:
        with trio.move_on_after(timeout_seconds) as limit:
            async with trio.lowlevel.FdStream(receiving) as stream:
                with suppress(trio.BrokenResourceError):  # nobody answers: told below
                    async with trio.lowlevel.FdStream(asking) as asked:
                        await asked.send_all(float(timeout_seconds).hex().encode() + b"\n" + question)
                async for chunk in stream:
                    received += chunk
                    if len(received) > _MAX_RESULT:
                        raise CopyFailed(f"the result is larger than {_MAX_RESULT} bytes")
                is_over = True
    finally:
        pid = int.from_bytes(received[:_PID_BYTES])
        if not is_over and pid:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    if limit.cancelled_caught:
        raise CopyFailed(f"it took longer than {timeout_seconds:g} s")
    text = bytes(received[_PID_BYTES:])
    if not text.endswith(_END):
        raise CopyFailed(text.decode(errors="replace") or "the copy of the process was ended")
    return text[: -len(_END)]


def _fork() -> int:
    with warnings.catch_warnings():
        # Python warns that other threads may hold locks; the copy takes none of theirs.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _keep(answer: Callable[[bytes], bytes], questions: socket.socket, until: float) -> NoReturn:
    """The life of the copy that is kept: it passes questions on to copies of itself, whose ends nobody waits for."""
    try:
        os.nice(_NICENESS)
        signal.set_wakeup_fd(-1)
        for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGALRM):
            signal.signal(one, signal.SIG_DFL)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        with open(os.devnull, "r+b", buffering=0) as nothing:
            for number in range(3):  # whoever reads what the process prints must not wait for its copies
                os.dup2(nothing.fileno(), number)
        os.closerange(3, questions.fileno())
        os.closerange(questions.fileno() + 1, _LAST_FILE)
        logging.disable()
        gc.disable()
        while (seconds := until - time.monotonic()) > 0:
            questions.settimeout(seconds)
            _message, files, _flags, _address = socket.recv_fds(questions, 1, 2)
            if not files:
                break
            question, result = files
            try:
                pid = _fork()
            except OSError as problem:
                os.write(result, bytes(_PID_BYTES) + f"the process cannot be copied: {problem}".encode())
            else:
                if pid == 0:
                    questions.close()
                    _work(answer, question, result)
            os.close(question)
            os.close(result)
    finally:
        os._exit(0)


def _work(answer: Callable[[bytes], bytes], question: int, writing: int) -> NoReturn:
    """The life of a copy that answers."""
    try:
        os.write(writing, os.getpid().to_bytes(_PID_BYTES))
        with open(question, "rb") as asked:
            seconds, _, text = asked.read().partition(b"\n")
        signal.setitimer(signal.ITIMER_REAL, 2 * float.fromhex(seconds.decode()))  # whoever asked may be gone
        try:
            result = answer(text) + _END
        except BaseException as error:  # whatever plugins raise
            result = f"{type(error).__name__}: {error}".encode(errors="replace")
        while result:
            result = result[os.write(writing, result[:_CHUNK]) :]
    finally:
        os._exit(0)
