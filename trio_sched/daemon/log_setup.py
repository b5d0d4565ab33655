"""Logging in the formats of kube-scheduler: klog's text lines, or JSON; always to stderr.

Messages go through `logging.getLogger(__name__)`, fields come with ``extra=``. In the text format a message without
fields is a bare sentence and one with fields is in quotes, so that log parsers made for klog work.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import IO, Any, Final, Literal

import msgspec

from trio_sched.daemon.limits import MAX_LOG_TEXT_CHARACTERS
from trio_sched.daemon.log_lines import LineHandler
from trio_sched.documents.errors import shortened
from trio_sched.documents.go_text import printable

LogFormat = Literal["text", "json"]

DEBUG_FROM: Final = 4
"""The verbosity from which on debug lines are logged; kube-scheduler logs its internal decisions from there on."""
OTHERS_DEBUG_FROM: Final = 6
"""The same for httpx, hypercorn and other libraries; below it they log warnings and errors only."""

_LETTERS: Final = ((logging.CRITICAL, "F"), (logging.ERROR, "E"), (logging.WARNING, "W"))
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_file_name = lru_cache(maxsize=256)(os.path.basename)
_encode = msgspec.json.Encoder(enc_hook=str).encode


def set_up_logging(log_format: LogFormat, verbosity: int, stream: IO[str] | None = None) -> None:
    """Write everything that is logged, Python's warnings included, to *stream*.

    Args:
        log_format: klog's text lines, or JSON.
        verbosity: ``-v``; from 4 on, debug lines of trio-sched are logged, from 6 on those of libraries.
        stream: stderr unless given.
    """
    formatter = JsonFormatter() if log_format == "json" else TextFormatter()
    handler = LineHandler(sys.stderr if stream is None else stream, formatter)
    root = logging.getLogger()
    for former in list(root.handlers):
        root.removeHandler(former)
    root.addHandler(handler)
    set_verbosity(verbosity)
    logging.captureWarnings(True)
    logging.raiseExceptions = False  # a log that cannot be written must not fill stderr with tracebacks about it


def set_verbosity(level: int) -> None:
    """Log as ``-v`` *level* says from now on."""
    logging.getLogger().setLevel(logging.DEBUG if level >= OTHERS_DEBUG_FROM else logging.WARNING)
    ours = logging.DEBUG if level >= DEBUG_FROM else logging.INFO
    for package in ("trio_sched", "plugins_builtin"):
        logging.getLogger(package).setLevel(ours)


class TextFormatter(logging.Formatter):
    """``Lmmdd hh:mm:ss.uuuuuu PID file.py:line] "message" key="value"``.

    Control characters are escaped: much of what is logged was said by servers and plugins, and is read on a terminal.
    """

    def __init__(self) -> None:
        super().__init__()
        self._process = f"{os.getpid():>7}"
        self._second = -1
        self._second_text = ""

    def format(self, record: logging.LogRecord) -> str:
        """One line; values of several lines are indented below it."""
        return self.line(
            record.levelno, record.created, record.pathname, record.lineno, record.getMessage(), _fields(record)
        )

    def line(
        self, level: int, created: float, path: str, number: int, message: str, fields: Iterable[tuple[str, Any]]
    ) -> str:
        """See `LineFormatter.line`."""
        second = int(created)
        if second != self._second:
            self._second, self._second_text = second, time.strftime("%m%d %H:%M:%S", time.localtime(second))
        micros = int((created - second) * 1_000_000)
        head = f"{_letter(level)}{self._second_text}.{micros:06d} {self._process} {_file_name(path)}:{number}] "
        shown = "".join([f" {key}={_text_value(value)}" for key, value in fields])
        if not shown and "\n" not in message:
            return head + printable(shortened(message, MAX_LOG_TEXT_CHARACTERS))
        return f"{head}{_text_value(message)}{shown}"


class JsonFormatter(logging.Formatter):
    """One JSON object per line: ``ts`` in milliseconds, ``caller``, ``msg``, then the fields."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        return self.line(
            record.levelno, record.created, record.pathname, record.lineno, record.getMessage(), _fields(record)
        )

    def line(
        self, level: int, created: float, path: str, number: int, message: str, fields: Iterable[tuple[str, Any]]
    ) -> str:
        """See `LineFormatter.line`."""
        folder, file = os.path.split(path)
        line: dict[str, Any] = {
            "ts": round(created * 1000, 4),
            "caller": f"{os.path.basename(folder)}/{file}:{number}",
            "msg": message,
        }
        if level < logging.ERROR:
            line["v"] = 0 if level >= logging.INFO else DEBUG_FROM
        for key, value in fields:
            line.setdefault(key, value)
        written = _json(line)
        if len(written) > MAX_LOG_TEXT_CHARACTERS:
            written = _json({key: _shortened(value) for key, value in line.items()})
        return written


def _letter(level: int) -> str:
    if level < logging.WARNING:
        return "I"
    return next((letter for lowest, letter in _LETTERS if level >= lowest), "I")


def _fields(record: logging.LogRecord) -> Iterator[tuple[str, Any]]:
    for key, value in vars(record).items():
        if key not in _STANDARD:
            yield key, value
    if record.exc_info and record.exc_info[1] is not None:
        yield "err", "".join(traceback.format_exception(record.exc_info[1])).rstrip()


def _shortened(value: Any) -> Any:
    if isinstance(value, BaseException):
        value = str(value)
    return shortened(value, MAX_LOG_TEXT_CHARACTERS) if isinstance(value, str) else value


def _text_value(value: Any) -> str:
    if isinstance(value, str):
        value = shortened(value, MAX_LOG_TEXT_CHARACTERS)
        if "\n" in value:
            return "<\n\t" + "\n\t".join(map(printable, value.split("\n"))) + "\n >"
        return _json(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, BaseException):
        return _text_value(str(value))
    return _json(value)


def _json(value: Any) -> str:
    try:
        return _encode(value).decode()
    except UnicodeEncodeError:  # half of a surrogate pair: from the name of a file, or from a plugin
        return json.dumps(value, default=str, separators=(",", ":"))
