import logging

import pytest

from trio_sched.daemon.logs.failure_log import log_plugin_failures
from trio_sched.daemon.logs.log_setup import TextFormatter
from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.hooks.plugin_calls import call_status_hook
from trio_sched.engine.hooks.plugin_failures import PluginFailures
from trio_sched.plugin_api import failure


def failing(answer: object) -> HookFailed:
    def reserve() -> object:
        if isinstance(answer, Exception):
            raise answer
        return answer

    with pytest.raises(HookFailed) as caught:
        call_status_hook(BoundHook("Teams", "reserve", reserve, "teams 1.0 (teams:Teams)"))
    return caught.value


def test_a_failure_is_one_line_with_the_traceback_from_the_plugin_on(caplog: pytest.LogCaptureFixture) -> None:
    failures = PluginFailures()
    for number in range(3):
        failures.add(failing(KeyError("team")), f"default/p{number}")
    log_plugin_failures(failures)
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.getMessage() == "plugin Teams failed at reserve: reserve raised KeyError: 'team'"
    line = TextFormatter().format(record)
    assert 'plugin="Teams" hook="reserve" distribution="teams 1.0 (teams:Teams)" pod="default/p0" times=3' in line
    assert "in reserve\n\t    raise answer\n" in line
    assert "plugin_calls.py" not in line


def test_nothing_is_logged_twice(caplog: pytest.LogCaptureFixture) -> None:
    failures = PluginFailures()
    failures.add(failing(False))
    log_plugin_failures(failures)
    log_plugin_failures(failures)
    assert len(caplog.records) == 1


def test_an_error_that_the_plugin_answers_with_is_no_failure_of_the_plugin() -> None:
    failures = PluginFailures()
    failures.add_status(failing(failure("no quota server")).status, "default/p")
    failures.add_status(None)
    assert not failures
