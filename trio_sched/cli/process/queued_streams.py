"""Standard streams of the daemon, which never wait for whoever reads them."""

import os
import select
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import TextIO, cast

from trio_sched.cli.process.standard_streams import Descriptor
from trio_sched.daemon.limits import MAX_UNWRITTEN_LOG_BYTES
from trio_sched.daemon.logs.log_queue import LineQueue, QueuedStream, drain_logs


@contextmanager
def queued_streams() -> Iterator[None]:
    """While in the block, nothing waits for whoever reads the standard streams, or for the disk that they are on.

    When it is left, what is not written yet is waited for, but not for long; and what Python itself says at the end of
    the process is not waited for either.
    """
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _queued(*before)
    queued = [stream for stream in (sys.stdout, sys.stderr) if isinstance(stream, QueuedStream)]
    if isinstance(sys.stderr, QueuedStream):
        sys.excepthook = partial(_print_exception, sys.stderr)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        is_read = drain_logs()
        for stream in queued:
            if not is_read or not select.select([], [stream], [], 0)[1]:
                _write_to_nowhere(stream.fileno())


def _print_exception(
    stream: TextIO, _type: type[BaseException], error: BaseException, _traceback: TracebackType | None
) -> None:
    traceback.print_exception(error, file=stream)
    drain_logs()


def _write_to_nowhere(descriptor: int) -> None:
    """Have what is written to *descriptor* lost, instead of waiting for a reader."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _queued(*streams: TextIO) -> Iterator[TextIO]:
    """Each of *streams* with a queue, if it is the process's own; two that write to one file share one."""
    queues: list[LineQueue] = []
    for stream in streams:
        raw = getattr(getattr(stream, "buffer", None), "raw", None)
        if not isinstance(raw, Descriptor):
            yield stream
            continue
        stream.flush()
        place = os.fstat(raw.fileno())
        found = next((one for one in queues if os.path.samestat(os.fstat(one.descriptor), place)), None)
        if found is None:
            queues.append(found := LineQueue(raw.fileno(), MAX_UNWRITTEN_LOG_BYTES))
        yield cast("TextIO", QueuedStream(found, raw.fileno()))
