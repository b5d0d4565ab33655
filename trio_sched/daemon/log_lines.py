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
    """Writes lines to a stream: at once, or while `run` runs those below a warning in batches."""

    def __init__(self, stream: IO[str], formatter: LineFormatter) -> None:
        super().__init__()
        self.lines = formatter
        self._stream = stream
        self._unwritten: list[str] = []
        self._wake_up: WakeUp | None = None
        self._thread = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line of *record*."""
        try:
            line = self.lines.format(record)
        except Exception:  # the fields are objects of anybody, plugins included
            self.handleError(record)
        else:
            self.write(line, at_once=record.levelno >= logging.WARNING)

    def write(self, line: str, *, at_once: bool) -> None:
        """Write *line*, and what was logged before it; not *at_once* it may wait for others."""
        self._unwritten.append(line)
        in_batches = self._wake_up is not None and threading.get_ident() == self._thread
        if at_once or not in_batches or len(self._unwritten) >= LOG_BATCH_LINES:
            self.flush()
        elif len(self._unwritten) == 1 and self._wake_up is not None:
            self._wake_up.set()

    def flush(self) -> None:
        """Write what is not written yet; also called when the interpreter exits."""
        lines, self._unwritten = self._unwritten, []
        if not lines:
            return
        lines.append("")
        try:
            self._stream.write("\n".join(lines))
            self._stream.flush()
        except (OSError, ValueError):  # closed, full, or nobody reads it: there is no other place to say so
            pass

    async def run(self) -> None:
        """Write in batches until cancelled."""
        self._thread, self._wake_up = threading.get_ident(), WakeUp()
        try:
            while True:
                await self._wake_up.wait()
                await trio.sleep(LOG_BATCH_SECONDS)
                self.flush()
        finally:
            self._wake_up = None
            self.flush()


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


def log_info(log: logging.Logger, message: str, fields: Mapping[str, Any]) -> None:
    """The same as ``log.info(message, extra=fields)``, for what is logged for every pod."""
    if not log.isEnabledFor(logging.INFO):
        return
    handler = line_handler(log)
    if handler is None:
        log.info(message, extra=fields, stacklevel=2)
        return
    caller = sys._getframe(1)
    path, number = caller.f_code.co_filename, caller.f_lineno
    handler.write(handler.lines.line(logging.INFO, time.time(), path, number, message, fields.items()), at_once=False)
