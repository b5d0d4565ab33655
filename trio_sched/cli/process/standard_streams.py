"""Standard output that does not lose anything in silence, and standard error that nothing depends on."""

import errno
import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, TextIO

from trio_sched.cli.process.exit_code import ExitCode

_STDIN, _STDOUT, _STDERR = 0, 1, 2
_ENCODING: Final = "utf-8"


class OutputError(Exception):
    """The standard output cannot be written.

    No `OSError`, because click and rich handle those in ways of their own; *cause* is the one.
    """

    def __init__(self, cause: OSError) -> None:
        super().__init__(f"cannot write to standard output: {cause.strerror}")
        self.cause = cause

    def report(self) -> ExitCode:
        """Say so, unless it is only that the reader has gone; returns the exit code."""
        if self.cause.errno == errno.EPIPE:
            return ExitCode.BROKEN_PIPE
        print(f"error: {self}", file=sys.stderr)
        return ExitCode.FAILURE


@contextmanager
def standard_error() -> Iterator[None]:
    """While in the block, writing to ``sys.stderr`` never fails, and no standard descriptor is closed.

    A stream that is not the process's own (a test's) is left alone; here and in `standard_output`.
    """
    _open_closed_descriptors()
    before = sys.stderr
    if before is sys.__stderr__:
        sys.stderr = _stream(before, Descriptor(_STDERR), line_buffering=True)
    try:
        yield
    finally:
        sys.stderr = before


@contextmanager
def standard_output() -> Iterator[None]:
    """While in the block, writing to ``sys.stdout`` raises `OutputError` where it fails, or was closed to begin with.

    Raises:
        OutputError: what the block has written cannot be written.
    """
    before = sys.stdout
    if before is sys.__stdout__:
        closed = OSError(errno.EBADF, os.strerror(errno.EBADF)) if before is None else None
        sys.stdout = _stream(before, _Output(_STDOUT, closed), line_buffering=os.isatty(_STDOUT))
    try:
        yield
        sys.stdout.flush()
    finally:
        sys.stdout = before


def _open_closed_descriptors() -> None:
    """Open what the process was started without, or else the next socket would be its standard output."""
    for descriptor in (_STDIN, _STDOUT, _STDERR):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _stream(former: TextIO | None, file: "Descriptor", *, line_buffering: bool) -> TextIO:
    """A text stream on *file* with the encoding of *former*; characters beyond it are escaped."""
    encoding = former.encoding if former is not None else _ENCODING
    return io.TextIOWrapper(
        io.BufferedWriter(file), encoding=encoding, errors="backslashreplace", line_buffering=line_buffering
    )


class Descriptor(io.RawIOBase):
    """An open file descriptor to which everything that can be written is written; what cannot be is dropped."""

    def __init__(self, descriptor: int, problem: OSError | None = None) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._problem = problem
        self._reported = False

    def fileno(self) -> int:
        """The descriptor."""
        return self._descriptor

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, data: Any) -> int:
        """Write *data*, or drop it."""
        if self._problem is None:
            try:
                return self._write_now(data)
            except OSError as error:
                self._problem = error
        self._report(self._problem)
        return len(data)

    def _write_now(self, data: Any) -> int:
        while True:
            try:
                return os.write(self._descriptor, data)
            except BlockingIOError:  # whoever shares the terminal or pipe has made it non-blocking
                select.select([], [self._descriptor], [])

    def _report(self, problem: OSError) -> None:
        """Standard error: there is nobody left to tell."""


class _Output(Descriptor):
    """The standard output: the first write that fails is an error, the rest is dropped."""

    def _report(self, problem: OSError) -> None:
        if not self._reported:
            self._reported = True
            raise OutputError(problem) from problem
