"""Counts the failures of plugins that do not always fail closed, and decides what a failing call is answered with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from attrs import define, field, frozen

from trio_sched.engine.hooks.failure_policy import CLOSED, FailurePolicy, check_failure_policy, read_failure_policy
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.hooks.plugin_failures import PluginFailures

SKIP_SECONDS: Final = 60.0
"""How long a plugin is skipped before it is called again."""


@define(eq=False)
class FailureGuard:
    """Counts the failures of one plugin, and says whether a failing call gets a neutral answer."""

    plugin: str
    policy: FailurePolicy
    clock: Callable[[], float]
    failures: PluginFailures
    """Gets the failures that nobody else sees, because the answer was neutral."""
    _in_a_row: dict[str, int] = field(factory=dict, init=False)
    """Failures by hook, since its last success."""
    epoch: int = field(default=0, init=False)
    """Grows with every neutral answer: part of the signatures of pods, so that none of these is kept."""
    _skipped_until: float | None = field(default=None, init=False)
    _is_on_trial: bool = field(default=False, init=False)
    """Whether it has been skipped, and the hook that failed has not succeeded since: then one failure is enough."""

    def is_skipping(self) -> bool:
        """Whether the plugin is not to be called now."""
        until = self._skipped_until
        if until is None:
            return False
        if self.clock() < until:
            return True
        self._skipped_until = None
        self._is_on_trial = True
        self.epoch += 1
        self.failures.note_skipped(self.plugin, None)
        return False

    def failed(self, failed: HookFailed, pod: str = "", *, has_neutral: bool = True) -> bool:
        """A call has failed; whether its answer is a neutral one."""
        self.epoch += 1
        hook = failed.hook.hook
        count = self._in_a_row[hook] = self._in_a_row.get(hook, 0) + 1
        after = self.policy.skip_after
        if after and (count >= after or self._is_on_trial) and self._skipped_until is None:
            self._skipped_until = self.clock() + SKIP_SECONDS
            self.failures.note_skipped(self.plugin, count)
        is_neutral = self.policy.is_open and has_neutral
        if is_neutral:
            self.failures.add(failed, pod)
        return is_neutral

    def succeeded(self, hook: str) -> None:
        """A call of *hook* has not failed."""
        if self._in_a_row and self._in_a_row.pop(hook, 0) and self._is_on_trial:
            self._is_on_trial = False


@frozen(eq=False)
class FailureGuards:
    """Makes the guards of the plugins of a configuration."""

    policies: Mapping[str, FailurePolicy]
    """By plugin; they win over what the class says."""
    clock: Callable[[], float]
    failures: PluginFailures
    _made: dict[str, FailureGuard] = field(factory=dict, init=False)

    def guard(self, plugin: str, source: str, declared: object, hooks: Iterable[str]) -> FailureGuard | None:
        """The guard of *plugin*, one for all profiles; None if it fails closed.

        Args:
            plugin: its name.
            source: where it comes from.
            declared: its attribute ``on_failure``, or None.
            hooks: what it implements.

        Raises:
            BadPlugin: it can only fail closed.
        """
        policy = self.policies.get(plugin)
        if policy is None:
            policy = CLOSED if declared is None else read_failure_policy(declared)
        check_failure_policy(plugin, source, policy, hooks)
        if policy.is_closed:
            return None
        if plugin not in self._made:
            self._made[plugin] = FailureGuard(plugin, policy, self.clock, self.failures)
        return self._made[plugin]
