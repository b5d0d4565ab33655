"""Writes what plugins failed at to the log: with distribution, hook, pod, and the traceback from the plugin on."""

from __future__ import annotations

import logging

from trio_sched.engine.hooks.failure_guard import SKIP_SECONDS
from trio_sched.engine.hooks.hook_failure import describe_error, has_plain_text
from trio_sched.engine.hooks.plugin_failures import PluginFailures
from trio_sched.tracebacks import forget_tracebacks

log = logging.getLogger(__name__)


def log_plugin_failures(plugin_failures: PluginFailures) -> None:
    """Log every failure since the last time; a hook that failed often gets one line with the number of times."""
    if not plugin_failures:
        return
    for plugin, failures in plugin_failures.drain_notices():
        if failures is None:
            log.info("plugin %s is called again after it was skipped", plugin, extra={"plugin": plugin})
        else:
            text = "plugin %s is skipped for %.0f s after %d failures in a row; pods are scheduled without it"
            log.warning(text, plugin, SKIP_SECONDS, failures, extra={"plugin": plugin, "failures": failures})
    for reported in plugin_failures.drain():
        failed = reported.failed
        fields: dict[str, object] = {
            "plugin": failed.hook.plugin,
            "hook": failed.hook.hook,
            "distribution": failed.hook.source,
        }
        if reported.pod:
            fields["pod"] = reported.pod
        if reported.count > 1:
            fields["times"] = reported.count
        cause = failed.__cause__
        log.error(
            "plugin %s failed at %s: %s",
            failed.hook.plugin,
            failed.hook.hook,
            failed.problem,
            extra=fields,
            exc_info=None if cause is None else exception_to_log(cause),
        )
        forget_tracebacks(failed)


def exception_to_log(cause: BaseException) -> BaseException:
    """*cause*, or in its place one whose traceback can be printed, and is not as long as its text."""
    if has_plain_text(cause):
        return cause
    return RuntimeError(describe_error(cause)).with_traceback(cause.__traceback__)
