"""Writes log lines, several at once; and logs what is logged for every pod, without the cost of `logging`.

A line alone costs a system call, and a record of `logging` five times as much as the text that is made of it.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from typing import IO, Any, Protocol

import trio

from trio_sched.daemon.limits import LOG_BATCH_LINES, LOG_BATCH_SECONDS
from trio_sched.daemon.wake_up import WakeUp
from trio_sched.engine.queue.queued_pod import QueuedPodInfo


class LineFormatter(Protocol):
    """Makes lines from what a record contains."""

    def line(
        self, level: int, created: float, path: str, number: int, message: str, fields: Iterable[tuple[str, Any]]
    ) -> str:
        """The line, without its end.

        Args:
            level: as in `logging`.
            created: seconds since 1970.
            path: of the source file.
            number: of the line in it.
            message: complete.
            fields: names and values, in order.
        """
        ...

    def format(self, record: logging.LogRecord) -> str:
        """The line of *record*."""
        ...


class LineHandler(logging.Handler):
    """Writes lines to a stream: at once, or while `run` runs those below a warning in batches.

    Args:
        stream: where lines are written to.
        formatter: makes them.
        info_stream: where lines below *info_below* are written to instead.
        info_below: a level of `logging`.
        batch_seconds: how long a line waits for others.
        batch_characters: how much waits at most; 0: `LOG_BATCH_LINES` lines.
    """

    def __init__(
        self,
        stream: IO[str],
        formatter: LineFormatter,
        *,
        info_stream: IO[str] | None = None,
        info_below: int = logging.WARNING,
        batch_seconds: float = LOG_BATCH_SECONDS,
        batch_characters: int = 0,
    ) -> None:
        super().__init__()
        self.lines = formatter
        self._stream = stream
        self._info_stream = info_stream
        self._info_below = info_below
        self._batch_seconds = batch_seconds
        self._batch_characters = batch_characters
        self._unwritten: list[str] = []
        self._unwritten_characters = 0
        self._wake_up: WakeUp | None = None
        self._thread = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line of *record*."""
        try:
            line = self.lines.format(record)
        except Exception:  # the fields are objects of anybody, plugins included
            self.handleError(record)
        else:
            self.write(line, record.levelno)

    def write(self, line: str, level: int) -> None:
        """Write *line* and what was logged before it; below a warning it may wait for others."""
        if self._info_stream is not None and level >= self._info_below:
            _write_to(self._stream, [line])
            return
        self._unwritten.append(line)
        in_batches = self._wake_up is not None and threading.get_ident() == self._thread
        if level >= logging.WARNING or not in_batches or self._is_full(line):
            self.flush()
        elif len(self._unwritten) == 1 and self._wake_up is not None:
            self._wake_up.set()

    def _is_full(self, line: str) -> bool:
        if not self._batch_characters:
            return len(self._unwritten) >= LOG_BATCH_LINES
        self._unwritten_characters += len(line) + 1
        return self._unwritten_characters >= self._batch_characters

    def flush(self) -> None:
        """Write what is not written yet; also called when the interpreter exits."""
        lines, self._unwritten, self._unwritten_characters = self._unwritten, [], 0
        if lines:
            _write_to(self._stream if self._info_stream is None else self._info_stream, lines)

    async def run(self) -> None:
        """Write in batches until cancelled."""
        self._thread, self._wake_up = threading.get_ident(), WakeUp()
        try:
            while True:
                await self._wake_up.wait()
                await trio.sleep(self._batch_seconds)
                self.flush()
        finally:
            self._wake_up = None
            self.flush()


def _write_to(stream: IO[str], lines: list[str]) -> None:
    lines.append("")
    try:
        stream.write("\n".join(lines))
        stream.flush()
    except Exception:  # closed, full, or nobody reads it: there is no other place to say so
        pass


def line_handler(log: logging.Logger) -> LineHandler | None:
    """The handler of *log*, if that is the only one and nothing is filtered."""
    found: LineHandler | None = None
    logger: logging.Logger | None = log
    while logger is not None:
        for handler in logger.handlers:
            if found is not None or not isinstance(handler, LineHandler) or handler.filters:
                return None
            found = handler
        logger = logger.parent if logger.propagate else None
    return None if log.filters else found


def log_line(log: logging.Logger, level: int, message: str, fields: Mapping[str, Any]) -> None:
    """Log as ``log.log(level, message, extra=fields)`` does, faster, for what is logged for every pod."""
    if not log.isEnabledFor(level):
        return
    handler = line_handler(log)
    if handler is None:
        log.log(level, message, extra=fields, stacklevel=2)
        return
    caller = sys._getframe(1)
    path, number = caller.f_code.co_filename, caller.f_lineno
    handler.write(handler.lines.line(level, time.time(), path, number, message, fields.items()), level)


def attempt_fields(info: QueuedPodInfo) -> dict[str, Any]:
    """What the line about the outcome of an attempt says besides the outcome: how many there were, and since when."""
    since = info.initial_attempt_timestamp
    elapsed = {} if since is None else {"secondsSinceFirstAttempt": round(trio.current_time() - since, 3)}
    return {"attempts": info.attempts} | elapsed
