"""The background tasks of plugins: their hooks ``run``."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import trio
from attrs import define, field

from trio_sched.daemon.hooks.hook_calls import run_in_background
from trio_sched.daemon.limits import RESTART_TASK_SECONDS
from trio_sched.daemon.logs.failure_log import exception_to_log
from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.engine.hooks.hook_failure import describe_error
from trio_sched.errors import TrioSchedError

log = logging.getLogger(__name__)


class PluginTaskFailed(TrioSchedError):
    """The background task of a plugin has failed; its error is the cause."""

    def __init__(self, plugin: str, cause: BaseException) -> None:
        super().__init__(plugin)
        self.plugin, self.cause = plugin, cause

    def __str__(self) -> str:
        return f"background task of plugin {self.plugin!r} failed: {describe_error(self.cause)}"


@define(eq=False)
class BackgroundTasks:
    """Those of the plugins of one configuration; a plugin that does not fail closed has its own started again."""

    hooks: Sequence[BoundHook]
    leader_hooks: Sequence[BoundHook] = ()
    """Those of plugins that run on the leader only."""
    is_on_trial: bool = False
    """Whether a failure ends these tasks only; otherwise `run` raises it."""
    failure: PluginTaskFailed | None = field(default=None, init=False)
    """The first one while on trial."""
    _scope: trio.CancelScope = field(factory=trio.CancelScope, init=False)
    _leader_scope: trio.CancelScope = field(factory=trio.CancelScope, init=False)

    async def run(self) -> None:
        """Run those that every replica runs until they return, or `cancel`.

        Raises:
            PluginTaskFailed: one of them failed; in a group.
        """
        await self._run_all(self.hooks, self._scope)

    async def run_as_leader(self) -> None:
        """Run those of the leader until they return, or `cancel`; called once, when this replica begins to lead.

        Raises:
            PluginTaskFailed: one of them failed; in a group.
        """
        await self._run_all(self.leader_hooks, self._leader_scope)

    async def _run_all(self, hooks: Sequence[BoundHook], scope: trio.CancelScope) -> None:
        with scope:
            async with trio.open_nursery() as nursery:
                for hook in hooks:
                    nursery.start_soon(self._run, hook, name=f"background task of plugin {hook.plugin}")

    def cancel(self) -> None:
        """End them."""
        self._scope.cancel()
        self._leader_scope.cancel()

    async def _run(self, hook: BoundHook) -> None:
        while (error := (await run_in_background(hook)).error) is not None:
            failure = PluginTaskFailed(hook.plugin, error)
            if self.is_on_trial:
                _log(hook, failure, "the configuration before stays in force")
                self.failure = self.failure or failure
                self.cancel()
                return
            if hook.guard is None:
                _log(hook, failure, "it fails closed, so the scheduler ends")
                raise failure from error
            _log(hook, failure, f"it is started again in {RESTART_TASK_SECONDS:.0f} s")
            await trio.sleep(RESTART_TASK_SECONDS)


def _log(hook: BoundHook, failure: PluginTaskFailed, what_follows: str) -> None:
    log.error(
        "%s; %s",
        failure,
        what_follows,
        extra={"plugin": hook.plugin, "hook": hook.hook, "distribution": hook.source},
        exc_info=exception_to_log(failure.cause),
    )
