"""The background tasks of plugins: their hooks ``run``."""

from __future__ import annotations

from collections.abc import Sequence

import trio
from attrs import define, field

from trio_sched.daemon.hook_calls import run_in_background
from trio_sched.engine.bound_hooks import BoundHook
from trio_sched.engine.hook_failure import describe_error
from trio_sched.errors import TrioSchedError


class PluginTaskFailed(TrioSchedError):
    """The background task of a plugin has failed; its error is the cause."""

    def __init__(self, plugin: str, cause: BaseException) -> None:
        super().__init__(plugin)
        self.plugin, self.cause = plugin, cause

    def __str__(self) -> str:
        return f"background task of plugin {self.plugin!r} failed: {describe_error(self.cause)}"


@define(eq=False)
class BackgroundTasks:
    """Those of the plugins of one configuration."""

    hooks: Sequence[BoundHook]
    is_on_trial: bool = False
    """Whether a failure ends these tasks only; otherwise `run` raises it."""
    failure: PluginTaskFailed | None = field(default=None, init=False)
    """The first one while on trial."""
    _scope: trio.CancelScope = field(factory=trio.CancelScope, init=False)

    async def run(self) -> None:
        """Run them until they return, or `cancel`.

        Raises:
            PluginTaskFailed: one of them failed; in a group.
        """
        with self._scope:
            async with trio.open_nursery() as nursery:
                for hook in self.hooks:
                    nursery.start_soon(self._run, hook, name=f"background task of plugin {hook.plugin}")

    def cancel(self) -> None:
        """End them."""
        self._scope.cancel()

    async def _run(self, hook: BoundHook) -> None:
        error = (await run_in_background(hook)).error
        if error is None:
            return
        failure = PluginTaskFailed(hook.plugin, error)
        if not self.is_on_trial:
            raise failure from error
        self.failure = self.failure or failure
        self.cancel()
