"""What plugins failed at, for the log: the engine does not log, so it appends here, and the daemon drains."""

from __future__ import annotations

from collections import Counter

from attrs import define, field

from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.plugin_api.status import Status
from trio_sched.tracebacks import forget_tracebacks


@define(eq=False)
class ReportedFailure:
    """The first failure of one plugin at one hook since the list was drained, and how many there were."""

    failed: HookFailed
    pod: str
    """``namespace/name`` of the pod it was about; empty if it was about none."""
    count: int = 1


@define(eq=False)
class PluginFailures:
    """Failures of plugins since the last `drain`; a hook that fails for thousands of pods takes one entry."""

    totals: Counter[tuple[str, str]] = field(factory=Counter)
    """(plugin, hook) → failures so far, drained or not."""
    skipped: dict[str, bool] = field(factory=dict)
    """Plugins that have been skipped because they failed too often: whether they still are."""
    _notices: list[tuple[str, int | None]] = field(factory=list)
    _by_hook: dict[tuple[str, str], ReportedFailure] = field(factory=dict)

    def __bool__(self) -> bool:
        return bool(self._by_hook or self._notices)

    def add(self, failed: HookFailed, pod: str = "") -> None:
        """*failed* happened while *pod* was dealt with."""
        key = failed.hook.plugin, failed.hook.hook
        self.totals[key] += 1
        known = self._by_hook.get(key)
        if known is None:
            self._by_hook[key] = ReportedFailure(failed, pod)
        else:
            known.count += 1
            forget_tracebacks(failed)

    def add_status(self, status: Status | None, pod: str = "") -> None:
        """Note the failure in *status*, unless the plugin itself returned Error."""
        if status is not None and isinstance(status.error, HookFailed) and not status.error.returned_error:
            self.add(status.error, pod)

    def note_skipped(self, plugin: str, failures: int | None) -> None:
        """*plugin* is skipped from now on, after so many *failures*; None: it is called again."""
        self.skipped[plugin] = failures is not None
        self._notices.append((plugin, failures))

    def drain_notices(self) -> list[tuple[str, int | None]]:
        """What `note_skipped` was told since the last time."""
        drained, self._notices = self._notices, []
        return drained

    def drain(self) -> list[ReportedFailure]:
        """Everything since the last time."""
        drained = list(self._by_hook.values())
        self._by_hook.clear()
        return drained
