import errno
import io
import json
import logging
import threading
from collections.abc import Iterator

import pytest
import trio
from restored_logging import restored_logging
from trio.testing import MockClock, wait_all_tasks_blocked

from trio_sched.daemon.limits import LOG_BATCH_LINES, LOG_BATCH_SECONDS
from trio_sched.daemon.logs import log_lines
from trio_sched.daemon.logs.log_lines import LineHandler, line_handler, log_line
from trio_sched.daemon.logs.log_setup import LogSettings, set_up_logging

log = logging.getLogger("trio_sched.daemon.test_log_lines")


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    with restored_logging():
        yield


class Stream(io.StringIO):
    """Counts how often it is written to."""

    writes = 0

    def write(self, text: str) -> int:
        self.writes += 1
        return super().write(text)


def set_up(log_format: log_lines.Any = "text") -> tuple[Stream, LineHandler]:
    stream = Stream()
    set_up_logging(LogSettings(format=log_format), stream)
    handler = line_handler(log)
    assert handler is not None
    return stream, handler


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_fast_line_is_that_of_a_record(log_format: str) -> None:
    stream, _ = set_up(log_format)
    fields = {"pod": "a/b", "tries": 3, "reason": "one\ntwo \x1b[1m"}
    log.info("Bound \r pod", extra=fields); log_line(log, logging.INFO, "Bound \r pod", fields)  # fmt: skip # noqa: E702
    first, second = stream.getvalue().rstrip("\n").replace("\n\t", " ").replace("\n >", " >").split("\n")
    if log_format == "json":
        one, two = json.loads(first), json.loads(second)
        assert one.pop("ts") <= two.pop("ts")
        assert one == two
        assert one["caller"].startswith("logs/test_log_lines.py:")
    else:
        assert first.split("] ")[1] == second.split("] ")[1]
        assert first[:5] == second[:5]
        assert first.split("] ")[0].split()[-1] == second.split("] ")[0].split()[-1]


def test_a_level_that_is_off_costs_no_line() -> None:
    stream, _ = set_up()
    log.setLevel(logging.WARNING)
    try:
        log_line(log, logging.INFO, "Bound", {})
    finally:
        log.setLevel(logging.NOTSET)
    assert stream.getvalue() == ""


def test_other_handlers_and_filters_get_records(caplog: pytest.LogCaptureFixture) -> None:
    stream, _ = set_up()
    logging.getLogger("trio_sched").addHandler(caplog.handler)
    try:
        assert line_handler(log) is None
        log_line(log, logging.INFO, "Bound", {"pod": "a/b"})
    finally:
        logging.getLogger("trio_sched").removeHandler(caplog.handler)
    (record,) = caplog.records
    assert record.__dict__["pod"] == "a/b"
    assert (record.filename, record.funcName) == ("test_log_lines.py", "test_other_handlers_and_filters_get_records")
    assert '"Bound" pod="a/b"' in stream.getvalue()


async def test_lines_below_a_warning_are_written_together(autojump_clock: MockClock, nursery: trio.Nursery) -> None:
    stream, handler = set_up()
    nursery.start_soon(handler.run)
    await wait_all_tasks_blocked()
    for _ in range(3):
        log_line(log, logging.INFO, "Bound", {})
        log.info("plain")
    assert stream.writes == 0
    await trio.sleep(LOG_BATCH_SECONDS * 1.5)
    assert stream.writes == 1
    assert [line.split("] ")[1] for line in stream.getvalue().splitlines()] == ["Bound", "plain"] * 3
    log.info("next")
    await trio.sleep(LOG_BATCH_SECONDS * 1.5)
    assert stream.writes == 2


async def test_a_warning_and_too_many_lines_are_written_at_once(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    stream, handler = set_up()
    nursery.start_soon(handler.run)
    await wait_all_tasks_blocked()
    log.info("first")
    log.warning("second")
    assert [line.split("] ")[1] for line in stream.getvalue().splitlines()] == ["first", "second"]
    for _ in range(LOG_BATCH_LINES):
        log.info("many")
    assert stream.getvalue().count("many") == LOG_BATCH_LINES


async def test_nothing_is_lost_at_the_end_and_between(autojump_clock: MockClock) -> None:
    stream, handler = set_up()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(handler.run)
        await wait_all_tasks_blocked()
        log.info("before")
        nursery.cancel_scope.cancel()
    log.info("after")
    assert [line.split("] ")[1] for line in stream.getvalue().splitlines()] == ["before", "after"]


async def test_a_line_of_another_thread_is_written_at_once(autojump_clock: MockClock, nursery: trio.Nursery) -> None:
    stream, handler = set_up()
    nursery.start_soon(handler.run)
    await wait_all_tasks_blocked()
    thread = threading.Thread(target=log.info, args=("elsewhere",))
    thread.start()
    thread.join()
    assert "elsewhere" in stream.getvalue()


class Full(Stream):
    """Takes nothing for as long as the disk is full."""

    is_full = True

    def write(self, text: str) -> int:
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(text)


def test_a_stream_that_is_full_costs_the_line_only() -> None:
    stream = Full()
    set_up_logging(LogSettings(), stream)
    log.info("lost")
    log_line(log, logging.INFO, "lost", {})
    stream.is_full = False
    log.info("written")
    assert [line.split("] ")[1] for line in stream.getvalue().splitlines()] == ["written"]


def test_a_stream_that_is_closed_costs_the_line_only() -> None:
    stream, _ = set_up()
    stream.close()
    log.info("lost")
    log_line(log, logging.INFO, "lost", {})
    stream, _ = set_up()
    log.info("written")
    assert stream.writes == 1
