import io
import json
import logging
import re
import sys
import warnings
from collections.abc import Iterator

import pytest
import trio
from restored_logging import restored_logging
from trio.testing import MockClock, wait_all_tasks_blocked

from trio_sched.daemon.logs.log_lines import line_handler
from trio_sched.daemon.logs.log_setup import (
    JsonFormatter,
    LogFormat,
    LogSettings,
    TextFormatter,
    set_up_logging,
    set_verbosity,
    set_vmodule,
)
from trio_sched.daemon.logs.plugin_log import plugin_log
from trio_sched.verbosity import V0, verbosity_of

log = logging.getLogger("trio_sched.daemon.test_log_setup")


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    with restored_logging():
        yield


def record(message: str, level: int = logging.INFO, **fields: object) -> logging.LogRecord:
    made = logging.LogRecord("trio_sched.x", level, "/somewhere/daemon/thing.py", 7, message, (), None)
    made.created = 1_000_000_000.25
    vars(made).update(fields)
    return made


def text(message: str, level: int = logging.INFO, **fields: object) -> str:
    return TextFormatter().format(record(message, level, **fields))


def test_a_line_begins_as_klogs_do() -> None:
    assert re.fullmatch(r"I\d{4} \d\d:\d\d:\d\d\.250000 +\d+ thing\.py:7\] Sync completed", text("Sync completed"))
    assert text("x", logging.WARNING)[0] == "W"
    assert text("x", logging.ERROR)[0] == "E"
    assert text("x", logging.CRITICAL)[0] == "F"
    assert text("x", logging.DEBUG)[0] == "I"


def test_fields_follow_the_message_and_only_text_is_quoted() -> None:
    line = text("Bound", pod="a/b", tries=3, hot=True, share=0.5, err=ValueError('no "x"'), names=["a", "b"])
    assert line.endswith(r'] "Bound" pod="a/b" tries=3 hot=true share=0.5 err="no \"x\"" names=["a","b"]')


def test_values_of_several_lines_are_indented() -> None:
    for value in ("one\ntwo", "one\ntwo\n"):
        assert text("Failed", err=value).endswith('] "Failed" err=<\n\tone\n\ttwo\n >')
    assert text("Fai\nled", err="one").endswith(r'] "Fai\nled" err="one"')
    assert text("Fai\nled").endswith("] <\n\tFai\n\tled\n >")


def test_texts_are_quoted_as_klog_quotes_them() -> None:
    """Source: strconv.Quote of Go, which klog calls for messages and values."""
    line = text("a\x1bb", pod='we"ird\\', esc="\x1b[31m", lines="x\u2028y\x7f\x9b", turned="\u202eabc", tab="a\tb")
    assert line.endswith(
        r'] "a\x1bb" pod="we\"ird\\" esc="\x1b[31m" lines="x\u2028y\x7f\u009b" turned="\u202eabc" tab="a\tb"'
    )


def test_lists_and_the_names_of_fields_and_files_do_not_control_the_terminal_either() -> None:
    made = record("Said", **{"na\nme": ["\u202eabc", "x\x7f"]})
    made.pathname = "/plugins/my\x1bplugin.py"
    line = TextFormatter().format(made)
    assert line.isprintable()
    assert r'my\x1bplugin.py:7] "Said" na\nme=["\u202eabc","x\x7f"]' in line


@pytest.mark.parametrize("fields", [{}, {"pod": "a/b"}], ids=["bare", "with fields"])
@pytest.mark.parametrize("message", ["no\rE0101 \x1b[31mé", "two\nlines\r \x1b[31mé"], ids=["a line", "lines"])
def test_what_others_said_cannot_control_the_terminal(message: str, fields: dict[str, object]) -> None:
    line = text(message, **fields).replace("\n\t", "").replace("\n >", "")
    assert line.isprintable()
    assert "\\r" in line
    assert "é" in line


@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()], ids=["text", "json"])
def test_texts_of_megabytes_are_cut(formatter: logging.Formatter) -> None:
    longest = "x" * 65_536
    whole = formatter.format(record(longest, pod=longest, tries=3))
    assert whole.count("x") >= 2 * 65_536
    assert "…" not in whole
    huge = "y" * 5_000_000
    cut = formatter.format(record(huge, pod=huge, err=ValueError(huge), tries=3))
    assert cut.count("y" * 65_536 + "… (5000000 characters)") == 3
    assert len(cut) < 200_000
    assert "tries" in cut


def test_a_line_with_bytes_that_are_not_utf_8_is_not_lost() -> None:
    assert text("no such file caf\udce9").endswith(r"] no such file caf\xe9")
    assert text("no such file", path="caf\udce9", tries=3).endswith(r'] "no such file" path="caf\xe9" tries=3')
    assert json.loads(JsonFormatter().format(record("caf\udce9")))["msg"] == "caf\udce9"


def test_an_exception_is_logged_with_its_traceback() -> None:
    made = record("Failed", logging.ERROR)
    try:
        raise ValueError("no")
    except ValueError:
        made.exc_info = sys.exc_info()
    assert "\tValueError: no\n >" in TextFormatter().format(made)
    assert json.loads(JsonFormatter().format(made))["err"].endswith("ValueError: no")


def test_json_has_klogs_keys() -> None:
    line = json.loads(JsonFormatter().format(record("Bound", pod="a/b", object=object)))
    assert line == {
        "ts": 1_000_000_000_250.0,
        "caller": "daemon/thing.py:7",
        "msg": "Bound",
        "v": 0,
        "pod": "a/b",
        "object": "<class 'object'>",
    }
    assert "v" not in json.loads(JsonFormatter().format(record("Failed", logging.ERROR)))


@pytest.mark.parametrize("verbosity", [0, 1, 2, 4, 10, 25])
def test_lines_up_to_the_verbosity_are_logged_and_say_theirs(verbosity: int) -> None:
    stream = io.StringIO()
    set_up_logging(LogSettings(format="json", verbosity=verbosity), stream)
    for level in range(11):
        log.log(V0 - level, "x")
    assert [json.loads(line)["v"] for line in stream.getvalue().splitlines()] == list(range(min(verbosity, 10) + 1))


def test_plugins_are_shown_from_info_on_even_if_the_scheduler_is_not() -> None:
    stream = io.StringIO()
    set_up_logging(LogSettings(), stream)
    logging.getLogger("trio_sched").setLevel(logging.WARNING)  # as `trio-sched simulate` does
    log.info("of the scheduler")
    plugin_log("Mine", "default-scheduler").info("data is %d s old", 7, extra={"source": "x"})
    plugin_log("Mine", "default-scheduler").debug("details")
    logging.getLogger().handlers[0].flush()
    assert "of the scheduler" not in stream.getvalue()
    assert "details" not in stream.getvalue()
    assert stream.getvalue().endswith('"data is 7 s old" plugin="Mine" profile="default-scheduler" source="x"\n')


def test_libraries_that_log_headers_log_nothing_but_warnings_at_any_verbosity() -> None:
    stream = io.StringIO()
    set_up_logging(LogSettings(verbosity=10), stream)
    for name in ("httpx", "httpcore.http11", "hpack.hpack", "h2.connection", "hypercorn.error"):
        logging.getLogger(name).info("Authorization: Bearer abc")
        logging.getLogger(name).debug("Authorization: Bearer abc")
    assert stream.getvalue() == ""


@pytest.mark.parametrize(("verbosity", "shown"), [(5, ""), (6, "info"), (10, "debug info")])
def test_packages_of_others_log_more_from_level_6_on(verbosity: int, shown: str) -> None:
    stream = io.StringIO()
    set_up_logging(LogSettings(format="json", verbosity=verbosity), stream)
    logging.getLogger("somebodys_plugin").debug("debug")
    logging.getLogger("somebodys_plugin").info("info")
    assert " ".join(json.loads(line)["msg"] for line in stream.getvalue().splitlines()) == shown


def verbosities(*names: str) -> list[int]:
    return [verbosity_of(logging.getLogger(f"trio_sched.{name}").getEffectiveLevel()) for name in names]


def test_the_verbosity_of_files_can_be_higher_than_that_of_the_others() -> None:
    patterns = (("binding_cycle", 5), ("*/kube_client/w*", 6), ("b*", 3), ("watch", 9))
    set_up_logging(LogSettings(verbosity=2, vmodule=patterns), io.StringIO())
    names = ("daemon.pods.binding_cycle", "daemon.pods.binder", "kube_client.watch", "daemon.supervisor")
    assert verbosities(*names) == [5, 3, 6, 2]
    set_verbosity(4)
    assert verbosities(*names) == [5, 4, 6, 4]
    set_verbosity(0)
    assert verbosities(*names) == [5, 3, 6, 0]
    set_vmodule((("supervisor", 1),))
    assert verbosities(*names) == [0, 0, 0, 1]


@pytest.mark.parametrize(
    ("log_format", "errors"), [("text", ["careful", "broken"]), ("json", ["broken"])], ids=["text", "json"]
)
def test_split_streams_have_errors_apart(log_format: LogFormat, errors: list[str]) -> None:
    error_stream, info_stream = io.StringIO(), io.StringIO()
    set_up_logging(LogSettings(format=log_format, split_stream=True), error_stream, info_stream)
    log.info("fine")
    log.warning("careful")
    log.error("broken")
    words = ["fine", "careful", "broken"]
    assert [word for word in words if word in error_stream.getvalue()] == errors
    assert [word for word in words if word in info_stream.getvalue()] == [w for w in words if w not in errors]


async def test_a_buffer_of_the_info_stream_is_written_when_it_is_full_or_old(autojump_clock: MockClock) -> None:
    info_stream = io.StringIO()
    settings = LogSettings(split_stream=True, info_buffer_bytes=1000, flush_seconds=30.0)
    set_up_logging(settings, io.StringIO(), info_stream)
    handler = line_handler(log)
    assert handler is not None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(handler.run)
        await wait_all_tasks_blocked()
        log.info("a")
        await trio.sleep(29)
        assert info_stream.getvalue() == ""
        await trio.sleep(2)
        assert info_stream.getvalue().count("\n") == 1
        for _ in range(4):
            log.info("b" * 300)
        assert info_stream.getvalue().count("b" * 300) >= 3
        nursery.cancel_scope.cancel()


def test_libraries_log_from_warnings_on_and_python_warnings_are_captured() -> None:
    stream = io.StringIO()
    set_up_logging(LogSettings(), stream)
    logging.getLogger("httpx").warning("careful")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(False)
        logging.captureWarnings(True)
        warnings.warn("deprecated", UserWarning, stacklevel=1)
    assert "careful" in stream.getvalue()
    assert "UserWarning: deprecated" in stream.getvalue()


def test_setting_up_twice_logs_everything_once() -> None:
    stream = io.StringIO()
    set_up_logging(LogSettings(), io.StringIO())
    set_up_logging(LogSettings(), stream)
    log.info("once")
    assert stream.getvalue().count("once") == 1
