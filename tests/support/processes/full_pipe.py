"""A pipe that nobody reads."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


def fill(write_end: int) -> int:
    """Fill the pipe; returns with how many bytes."""
    filled = 0
    os.set_blocking(write_end, False)
    try:
        while True:
            filled += os.write(write_end, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(write_end, True)
    return filled


@contextmanager
def full_pipe() -> Iterator[int]:
    """The end that is written to."""
    read_end, write_end = os.pipe()
    try:
        fill(write_end)
        yield write_end
    finally:
        os.close(read_end)
        os.close(write_end)
