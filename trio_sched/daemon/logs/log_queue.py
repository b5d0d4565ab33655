"""Writes logs from a thread of its own: a pipe that nobody reads and a disk that hangs hold up nothing else.

A non-blocking descriptor would not do: that is a property of the open file, which the shell and others may share, and
files on disks have it not.
"""

from __future__ import annotations

import io
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

_DRAIN_SECONDS: Final = 1.0
"""How long the end of a process waits for its log."""

_queues: Final[list[LineQueue]] = []


def dropped_lines() -> int:
    """How many lines this process has dropped."""
    return sum(queue.dropped for queue in _queues)


def drain_logs() -> bool:
    """Wait until all that this process has logged is written, but not for long; returns whether it is."""
    end = time.monotonic() + _DRAIN_SECONDS
    return all([queue.drain(max(0.0, end - time.monotonic())) for queue in _queues])


class LineQueue:
    """What waits to be written to a file descriptor; lines that find no room are dropped and counted.

    Where lines were dropped, a line that says how many stands in the output. They are dropped until half of the room is
    there again, so that there are few such places.

    Args:
        descriptor: what is written to; it may be non-blocking.
        max_bytes: how much may wait.
    """

    def __init__(self, descriptor: int, max_bytes: int) -> None:
        self.descriptor = descriptor
        self.dropped = 0
        self.describe_dropped: Callable[[int], str] = "{} lines of the log were dropped".format
        """Makes the line that says how many were."""
        self._max_bytes = max_bytes
        self._waiting: deque[bytes] = deque()
        self._bytes = 0  # with those that are being written
        self._unreported = 0
        self._reported: list[int] = []  # what the lines say that wait
        self._changed = threading.Condition()  # reentrant: handlers of signals log, too
        self._thread: threading.Thread | None = None
        _queues.append(self)

    def put(self, data: bytes) -> None:
        """Have *data*, whole lines, written soon; never waits."""
        with self._changed:
            if not self._is_dropping():
                self._report()
                for part in (data,) if self._has_room(data) else data.splitlines(keepends=True):
                    if self._has_room(part):
                        self._append(part)
                    else:
                        self._drop(part)
            else:
                self._drop(data)
            self._changed.notify_all()
            if self._thread is None:
                self._start()

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="log", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # there are too many already, which the log is to say: then this is the one that waits
            self._write_waiting()
        else:
            self._thread = thread

    def drain(self, timeout_seconds: float) -> bool:
        """Wait until everything is written; returns whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._bytes, timeout_seconds)

    def _is_dropping(self) -> bool:
        return self._unreported > 0 and self._bytes > self._max_bytes // 2

    def _has_room(self, data: bytes) -> bool:
        return self._bytes + len(data) <= self._max_bytes

    def _append(self, data: bytes) -> None:
        self._waiting.append(data)
        self._bytes += len(data)

    def _drop(self, data: bytes) -> None:
        lines = data.count(b"\n")
        self.dropped += lines
        self._unreported += lines

    def _report(self) -> None:
        if self._unreported:
            count, self._unreported = self._unreported, 0
            self._reported.append(count)
            self._append(f"{self.describe_dropped(count)}\n".encode("utf-8", "backslashreplace"))

    def _run(self) -> None:
        is_written = True
        while True:
            with self._changed:
                if not self._waiting and is_written:
                    self._report()
                while not self._waiting:
                    self._changed.wait()
            is_written = self._write_waiting()

    def _write_waiting(self) -> bool:
        with self._changed:
            data = b"".join(self._waiting)
            self._waiting.clear()
            reported, self._reported = self._reported, []
        is_written = self._write(data)
        with self._changed:
            self._bytes -= len(data)
            if not is_written:
                self._drop(data)
                self.dropped -= len(reported)
                self._unreported += sum(reported) - len(reported)
            self._changed.notify_all()
        return is_written

    def _write(self, data: bytes) -> bool:
        """Write *data*; returns whether that was possible: the disk may be full, or the reader gone."""
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self.descriptor, rest) :]
            except BlockingIOError:  # whoever shares the terminal or pipe has made it non-blocking
                select.select([], [self.descriptor], [])
            except OSError:
                return False
        return True


class QueuedStream(io.TextIOBase):
    """A text stream whose writes go to a `LineQueue`, so they neither wait nor fail; a flush does not wait either.

    Args:
        queue: may be that of several streams.
        descriptor: the stream's own, if that is another one.
    """

    def __init__(self, queue: LineQueue, descriptor: int | None = None) -> None:
        super().__init__()
        self.queue = queue
        self._descriptor = queue.descriptor if descriptor is None else descriptor

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Always UTF-8."""
        return "utf-8"

    def write(self, text: str) -> int:
        """Have *text* written soon."""
        self.queue.put(text.encode("utf-8", "backslashreplace"))
        return len(text)

    def fileno(self) -> int:
        """The descriptor."""
        return self._descriptor

    def isatty(self) -> bool:
        """Whether that is a terminal."""
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        """Always."""
        return True
