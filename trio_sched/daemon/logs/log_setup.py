"""Logging in the formats of kube-scheduler: klog's text lines, or JSON; to stderr, or split into two streams.

Messages go through `logging.getLogger(__name__)`, fields come with ``extra=``, levels from `trio_sched.verbosity`. In
the text format a message without fields is a bare sentence and one with fields is in quotes, so that log parsers made
for klog work.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from pathlib import Path
from typing import IO, Any, Final, Literal

import msgspec
from attrs import define, frozen

import trio_sched
from trio_sched.daemon.limits import LOG_BATCH_SECONDS, MAX_LOG_TEXT_CHARACTERS
from trio_sched.daemon.logs.log_lines import LineFormatter, LineHandler
from trio_sched.daemon.logs.log_queue import QueuedStream
from trio_sched.daemon.logs.plugin_log import PLUGIN_LOGGERS
from trio_sched.go.text import printable, quote, shortened
from trio_sched.verbosity import level_of, verbosity_of

LogFormat = Literal["text", "json"]
VModule = tuple[tuple[str, int], ...]
"""Patterns of file names, without ``.py``, or of paths if they contain a slash; and the verbosity in these files."""

OTHERS_INFO_FROM: Final = 6
"""From this verbosity on, other packages log more than warnings and errors."""
OTHERS_DEBUG_FROM: Final = 10
_NEVER_VERBOSE: Final = ("httpx", "httpcore", "hpack", "h2", "h11", "hypercorn")
"""Libraries that log headers or addresses, and with these credentials."""

_ROOMS: Final = {name: Path(trio_sched.__file__).parents[1] / name for name in ("trio_sched", "plugins_builtin")}
_LETTERS: Final = ((logging.CRITICAL, "F"), (logging.ERROR, "E"), (logging.WARNING, "W"))
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_encode = msgspec.json.Encoder(enc_hook=str).encode


@frozen(kw_only=True)
class LogSettings:
    """What is logged, how and where to."""

    format: LogFormat = "text"
    verbosity: int = 0
    """``-v``."""
    vmodule: VModule = ()
    split_stream: bool = False
    """Whether lines below an error (in the text format: below a warning) go to stdout."""
    info_buffer_bytes: int = 0
    """How much of these may wait to be written; 0: as little as of others."""
    flush_seconds: float = LOG_BATCH_SECONDS
    """How long any line may wait."""


@define
class _Shown:
    """What is shown now: logging belongs to the process, and so does this."""

    verbosity: int = 0
    vmodule: VModule = ()


_shown = _Shown()


def set_up_logging(settings: LogSettings, stream: IO[str] | None = None, info_stream: IO[str] | None = None) -> None:
    """Write everything that is logged, Python's warnings included.

    Args:
        settings: what is shown, and how.
        stream: stderr unless given.
        info_stream: stdout unless given; used if the streams are split.
    """
    formatter = JsonFormatter() if settings.format == "json" else TextFormatter()
    handler = LineHandler(
        sys.stderr if stream is None else stream,
        formatter,
        info_stream=(info_stream or sys.stdout) if settings.split_stream else None,
        info_below=logging.ERROR if settings.format == "json" else logging.WARNING,
        batch_seconds=settings.flush_seconds if settings.info_buffer_bytes else LOG_BATCH_SECONDS,
        batch_characters=settings.info_buffer_bytes if settings.split_stream else 0,
    )
    for one in (stream or sys.stderr, info_stream or sys.stdout):
        if isinstance(one, QueuedStream):
            one.queue.describe_dropped = partial(_dropped_line, type(formatter)())
    root = logging.getLogger()
    for former in list(root.handlers):
        former.flush()
        root.removeHandler(former)
    root.addHandler(handler)
    for name in _NEVER_VERBOSE:
        logging.getLogger(name).setLevel(logging.WARNING)
    _shown.verbosity, _shown.vmodule = settings.verbosity, settings.vmodule
    _set_levels()
    logging.captureWarnings(True)
    logging.raiseExceptions = False  # a log that cannot be written must not fill stderr with tracebacks about it


def _dropped_line(formatter: LineFormatter, count: int) -> str:
    message, fields = "Dropped lines of the log, because they could not be written in time", {"lines": count}
    return formatter.line(logging.WARNING, time.time(), __file__, 1, message, fields.items())


def set_verbosity(verbosity: int) -> None:
    """Show from now on what ``-v`` *verbosity* shows; files that match ``--vmodule`` show as much, or more."""
    _shown.verbosity = verbosity
    _set_levels()


def set_vmodule(patterns: VModule) -> None:
    """Show from now on in files that match a pattern what its verbosity shows; the first that matches counts."""
    _shown.vmodule = patterns
    _set_levels()


def _set_levels() -> None:
    verbosity = _shown.verbosity
    others = logging.DEBUG if verbosity >= OTHERS_DEBUG_FROM else logging.INFO
    logging.getLogger().setLevel(others if verbosity >= OTHERS_INFO_FROM else logging.WARNING)
    for name, logger in list(logging.Logger.manager.loggerDict.items()):
        if name.partition(".")[0] in _ROOMS and isinstance(logger, logging.Logger):
            logger.setLevel(logging.NOTSET)
    for name in (*_ROOMS, PLUGIN_LOGGERS):
        logging.getLogger(name).setLevel(level_of(verbosity))
    for module, path in _modules() if _shown.vmodule else ():
        in_file = next((level for pattern, level in _shown.vmodule if _matches(pattern, path)), verbosity)
        if in_file > verbosity:
            logging.getLogger(module).setLevel(level_of(in_file))


def _modules() -> Iterator[tuple[str, str]]:
    """Every module, imported or not yet: its name and its path without the suffix."""
    for folder in _ROOMS.values():
        for file in folder.rglob("*.py"):
            path = file.with_suffix("")
            yield ".".join(path.relative_to(folder.parent).parts), path.as_posix()


def _matches(pattern: str, path: str) -> bool:
    return fnmatchcase(path if "/" in pattern else path.rpartition("/")[2], pattern)


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
        shown = "".join([f" {printable(key)}={_text_value(value)}" for key, value in fields])
        message = shortened(message, MAX_LOG_TEXT_CHARACTERS)
        if shown:
            return f"{head}{quote(message)}{shown}"
        return head + (_block(message) if "\n" in message else printable(message))


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
            line["v"] = verbosity_of(level)
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
        yield "err", "".join(traceback.format_exception(*record.exc_info)).rstrip()


def _shortened(value: Any) -> Any:
    if isinstance(value, BaseException):
        value = str(value)
    return shortened(value, MAX_LOG_TEXT_CHARACTERS) if isinstance(value, str) else value


def _text_value(value: Any) -> str:
    if isinstance(value, str):
        value = shortened(value, MAX_LOG_TEXT_CHARACTERS)
        return _block(value) if "\n" in value else quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, BaseException):
        return _text_value(str(value))
    return printable(shortened(_json(value), MAX_LOG_TEXT_CHARACTERS))


def _block(text: str) -> str:
    """*text* of several lines, each of which is indented."""
    return "<\n\t" + "\n\t".join(map(printable, text.removesuffix("\n").split("\n"))) + "\n >"


@lru_cache(maxsize=256)
def _file_name(path: str) -> str:
    return printable(os.path.basename(path))


def _json(value: Any) -> str:
    try:
        return _encode(value).decode()
    except UnicodeEncodeError:  # half of a surrogate pair: from the name of a file, or from a plugin
        return json.dumps(value, default=str, separators=(",", ":"))
