"""``--plugin-failure-policy``: what becomes of pods when a plugin fails, by plugin."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trio_sched.config.resolved_profile import ResolvedProfile
from trio_sched.engine.hooks.failure_policy import FailurePolicy, check_failure_policy, read_failure_policy
from trio_sched.engine.registry.plugin_registry import PluginRegistry, hooks_of
from trio_sched.errors import TrioSchedError, nearest_name

FLAG = "--plugin-failure-policy"


class FailurePolicyError(TrioSchedError):
    """The flag is wrong; the text names it, and the entry."""

    def __init__(self, entry: str, problem: str) -> None:
        super().__init__(f"{FLAG}={entry}: {problem}")


def read_failure_policies(
    entries: Sequence[str], profiles: Iterable[ResolvedProfile], registry: PluginRegistry
) -> dict[str, FailurePolicy]:
    """The policies in *entries*, each ``NAME=POLICY``; of several for a name the last counts.

    Raises:
        FailurePolicyError: an entry is malformed, or names a plugin that no profile enables.
        PluginError: a plugin cannot be loaded, or can only fail closed.
    """
    enabled = {name for profile in profiles for name in profile.plugins} if entries else set()
    policies: dict[str, FailurePolicy] = {}
    for entry in entries:
        name, equals, text = entry.partition("=")
        if not equals or not name:
            raise FailurePolicyError(entry, "write NAME=closed, NAME=open or NAME=skip:N")
        if name not in enabled:
            near = nearest_name(name, enabled)
            hint = f"; did you mean {near!r}?" if near else ""
            raise FailurePolicyError(entry, f"no profile enables a plugin named {name!r}{hint}")
        try:
            policies[name] = read_failure_policy(text)
        except ValueError as error:
            raise FailurePolicyError(entry, str(error)) from None
        plugin = registry.load(name)
        check_failure_policy(name, registry.source(name), policies[name], hooks_of(plugin))
    return policies
