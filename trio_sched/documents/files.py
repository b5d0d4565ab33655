"""Reads files that an operator names, and decodes them; the file may be anything that a path can name."""

import codecs
import os
import select
import stat
import time
from io import FileIO
from pathlib import Path
from typing import Final, Protocol

from trio_sched.documents.errors import DocumentError

MAX_BYTES: Final = 32 << 20
"""The greatest size of a configuration or kubeconfig; an API server takes objects of 3 MiB."""
PIPE_WAIT_SECONDS: Final = 30.0
"""Within what time a pipe is to be written and closed."""

_CHUNK_BYTES: Final = 1 << 20
_UTF_16: Final = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class UnsuitableFile(OSError):
    """What a path names is not a file to read a document from; ``strerror`` says why."""

    def __init__(self, problem: str) -> None:
        super().__init__(0, problem)


def read_bytes(path: Path | str, *, max_bytes: int = MAX_BYTES, pipe_wait_seconds: float | None = None) -> bytes:
    """The content of the file or pipe *path*.

    Args:
        path: what an operator wrote.
        max_bytes: how large it may be.
        pipe_wait_seconds: within what time a pipe is to be written and closed; the caller waits so long. None for
            `PIPE_WAIT_SECONDS`.

    Raises:
        OSError: it cannot be read. An `UnsuitableFile` if it is a device, too large, or a pipe to which nothing is
            written or that is not closed.
    """
    if "\0" in str(path):
        raise UnsuitableFile("invalid argument")  # what the system says about a NUL; Python does not ask it
    # Without O_NONBLOCK, opening a pipe waits for somebody who writes to it, possibly for ever.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb", buffering=0) as file:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(21, "Is a directory")
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode) or file.isatty() or os.fspath(path) == os.devnull):
            raise UnsuitableFile("not a regular file or a pipe")
        os.set_blocking(descriptor, True)
        if stat.S_ISFIFO(mode):
            pipe = _Pipe(file, PIPE_WAIT_SECONDS if pipe_wait_seconds is None else pipe_wait_seconds)
            return read_stream(pipe, max_bytes=max_bytes)
        return read_stream(file, max_bytes=max_bytes)


def read_stream(file: _Readable, *, max_bytes: int) -> bytes:
    """Everything that is left in *file*.

    Raises:
        OSError: it cannot be read, or holds more than *max_bytes*.
    """
    chunks: list[bytes] = []
    size = 0
    while chunk := file.read(_CHUNK_BYTES):
        chunks.append(chunk)
        size += len(chunk)
        if size > max_bytes:
            raise UnsuitableFile(f"it is larger than {max_bytes} bytes")
    return b"".join(chunks)


class _Pipe:
    """A pipe that is to be written, and closed, within *seconds* from now."""

    def __init__(self, file: FileIO, seconds: float) -> None:
        self._file = file
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds
        self._began = False
        self._poll = select.poll()
        self._poll.register(file, select.POLLIN | select.POLLHUP)

    def read(self, size: int) -> bytes:
        """What is written next; empty at the end.

        Raises:
            UnsuitableFile: nothing comes, or no end.
        """
        if not self._poll.poll(max(0.0, self._deadline - time.monotonic()) * 1000):
            problem = (
                "whoever writes to this pipe does not close it" if self._began else "nothing is written to this pipe"
            )
            raise UnsuitableFile(f"{problem} for {self._seconds:g} s")
        self._began = True
        return self._file.read(size)


def decode_text(content: bytes) -> str:
    """*content* as text: UTF-8, or UTF-16 with a byte order mark, as YAML has it.

    Raises:
        DocumentError: it is neither; says at which byte.
    """
    encoding = _UTF_16.get(content[:2], "utf-8")
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        before = content[: error.start].decode(encoding, "replace")
        line, column = position_after(before)
        raise DocumentError(
            "yaml: invalid leading UTF-8 octet" if encoding == "utf-8" else "yaml: incomplete UTF-16 character",
            line=line,
            column=column,
            problem=f"byte 0x{content[error.start]:02x} is not {encoding.upper()}; is this a text file?",
        ) from error


def position_after(before: str) -> tuple[int, int]:
    """The line and column, both from 1, of the character that follows *before*."""
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
