import io
import logging
import os
import threading
from collections.abc import Iterator

import pytest
from full_pipe import fill
from restored_logging import restored_logging

from trio_sched.daemon.logs.log_queue import LineQueue, QueuedStream, dropped_lines
from trio_sched.daemon.logs.log_setup import LogFormat, LogSettings, set_up_logging

SECONDS = 20
ROOM = 10_000


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Both ends; what the reader has not read when the test ends is lost."""
    read_end, write_end = os.pipe()
    yield read_end, write_end
    os.close(read_end)  # a thread that still writes gets EPIPE


def read_exactly(read_end: int, length: int) -> bytes:
    found = b""
    while len(found) < length:
        found += os.read(read_end, length - len(found))
    return found


def lines(*numbers: int) -> bytes:
    return b"".join(b"line %6d\n" % number for number in numbers)


def test_what_is_put_is_written_in_order(pipe: tuple[int, int]) -> None:
    queue = LineQueue(pipe[1], ROOM)
    for number in range(3):
        queue.put(lines(number))
    assert queue.drain(SECONDS)
    assert os.read(pipe[0], ROOM) == lines(0, 1, 2)
    assert queue.dropped == 0


@pytest.mark.parametrize("is_blocking", [True, False])
def test_lines_that_nobody_reads_are_dropped_and_counted(pipe: tuple[int, int], is_blocking: bool) -> None:
    filled, before = fill(pipe[1]), dropped_lines()
    os.set_blocking(pipe[1], is_blocking)
    queue = LineQueue(pipe[1], ROOM)
    for number in range(2_000):
        queue.put(lines(number))
    kept = ROOM // len(lines(0))
    assert queue.dropped == dropped_lines() - before == 2_000 - kept
    assert not queue.drain(0.0)
    read_exactly(pipe[0], filled)
    report = b"%d lines of the log were dropped\n" % queue.dropped
    assert read_exactly(pipe[0], ROOM + len(report) - ROOM % len(lines(0))) == lines(*range(kept)) + report
    queue.put(lines(5_000))
    assert queue.drain(SECONDS)
    assert os.read(pipe[0], ROOM) == lines(5_000)


def test_of_a_batch_beyond_the_room_the_first_lines_are_written(pipe: tuple[int, int]) -> None:
    fill(pipe[1])
    queue = LineQueue(pipe[1], len(lines(0)) * 3)
    queue.put(lines(*range(5)))
    assert queue.dropped == 2


def test_once_lines_are_dropped_the_next_ones_are_until_half_of_the_room_is_there_again(pipe: tuple[int, int]) -> None:
    filled = fill(pipe[1])
    queue = LineQueue(pipe[1], 64)
    long, short = b"x" * 39 + b"\n", b"short\n"
    for line in (long, long, short):  # there is room for the last one, but less than half of all
        queue.put(line)
    assert queue.dropped == 2
    read_exactly(pipe[0], filled)
    assert queue.drain(SECONDS)
    queue.put(short)
    assert queue.drain(SECONDS)
    assert os.read(pipe[0], ROOM) == long + b"2 lines of the log were dropped\n" + short


def test_a_full_disk_loses_lines_and_says_so_when_there_is_room(pipe: tuple[int, int]) -> None:
    descriptor = os.open("/dev/full", os.O_WRONLY)
    queue = LineQueue(descriptor, ROOM)
    for number in range(3):
        queue.put(lines(number))
        assert queue.drain(SECONDS)
    assert queue.dropped == 3
    os.dup2(pipe[1], descriptor)
    queue.put(lines(3))
    assert queue.drain(SECONDS)
    assert os.read(pipe[0], ROOM) == b"3 lines of the log were dropped\n" + lines(3)
    assert queue.dropped == 3
    os.close(descriptor)


def test_a_reader_that_has_gone_is_no_error() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    queue = LineQueue(write_end, ROOM)
    queue.put(lines(1, 2))
    assert queue.drain(SECONDS)
    assert queue.dropped == 2
    os.close(write_end)


def test_lines_of_several_threads_stay_whole(pipe: tuple[int, int]) -> None:
    queue = LineQueue(pipe[1], 10**6)
    threads = [threading.Thread(target=lambda: [queue.put(lines(number)) for number in range(1_000)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    found = read_exactly(pipe[0], 4_000 * len(lines(0)))
    assert sorted(found.splitlines(keepends=True)) == sorted([lines(number) for number in range(1_000)] * 4)
    for thread in threads:
        thread.join()


def test_where_no_thread_can_be_started_lines_are_written_all_the_same(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    queue = LineQueue(pipe[1], ROOM)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        queue.put(lines(1))
        assert os.read(pipe[0], ROOM) == lines(1)
    queue.put(lines(2))
    assert queue.drain(SECONDS)
    assert os.read(pipe[0], ROOM) == lines(2)


def test_a_stream_takes_text_of_any_kind_and_never_fails(pipe: tuple[int, int]) -> None:
    stream = QueuedStream(LineQueue(pipe[1], ROOM))
    print("caf\udce9 \u20ac", file=stream)
    stream.flush()
    assert stream.queue.drain(SECONDS)
    assert os.read(pipe[0], ROOM) == rb"caf\udce9 " + "\u20ac\n".encode()
    assert (stream.fileno(), stream.isatty(), stream.writable(), stream.encoding) == (pipe[1], False, True, "utf-8")


@pytest.mark.parametrize(
    ("log_format", "said"),
    [
        ("text", '] "Dropped lines of the log, because they could not be written in time" lines=1\n'),
        ("json", '"msg":"Dropped lines of the log, because they could not be written in time","v":0,"lines":1}\n'),
    ],
)
def test_the_line_about_dropped_ones_is_in_the_format_of_the_log(
    pipe: tuple[int, int], log_format: LogFormat, said: str
) -> None:
    descriptor = os.open("/dev/full", os.O_WRONLY)
    stream = QueuedStream(LineQueue(descriptor, ROOM))
    with restored_logging():
        set_up_logging(LogSettings(format=log_format), stream, io.StringIO())  # type: ignore[arg-type]
        logging.getLogger("trio_sched").warning("lost")
        assert stream.queue.drain(SECONDS)
        os.dup2(pipe[1], descriptor)
        logging.getLogger("trio_sched").warning("written")
    assert stream.queue.drain(SECONDS)
    assert said in os.read(pipe[0], ROOM).decode()
    os.close(descriptor)
