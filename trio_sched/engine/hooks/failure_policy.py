"""What becomes of a pod when a plugin fails: it fails too, or the plugin counts as having nothing to say.

``closed`` is the framework's own rule: a failing call costs the pod its attempt. ``open``: the call gets a neutral
answer (`guarded_hooks` says which). ``skip:N``: closed, but after N failures in a row the plugin is not called for a
while, and its answers are neutral; then it is called again, and the first failure has it skipped once more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from attrs import frozen

from trio_sched.engine.hooks.plugin_errors import BadPlugin

NEVER_NEUTRAL: Final = ("queue_sort", "bind")
"""Hooks without a neutral answer: plugins that have one always fail closed."""
_SKIP: Final = re.compile(r"skip:([1-9][0-9]{0,5})", re.ASCII)


@frozen
class FailurePolicy:
    """One of the rules."""

    is_open: bool = False
    """Whether every failing call gets a neutral answer."""
    skip_after: int = 0
    """After how many failures in a row the plugin is skipped; 0: never."""

    @property
    def is_closed(self) -> bool:
        """Whether it is the framework's own rule."""
        return not self.is_open and not self.skip_after

    @property
    def text(self) -> str:
        """As `read_failure_policy` reads it."""
        if self.skip_after:
            return f"skip:{self.skip_after}"
        return "open" if self.is_open else "closed"


CLOSED: Final = FailurePolicy()


def read_failure_policy(text: object) -> FailurePolicy:
    """The rule that *text* names.

    Raises:
        ValueError: it names none.
    """
    if text == "closed":
        return CLOSED
    if text == "open":
        return FailurePolicy(is_open=True)
    if isinstance(text, str) and (match := _SKIP.fullmatch(text)):
        return FailurePolicy(skip_after=int(match[1]))
    raise ValueError(f"{text!r} is no failure policy; use 'closed', 'open', or 'skip:N' with a number of failures")


def check_failure_policy(plugin: str, source: str, policy: FailurePolicy, hooks: Iterable[str]) -> None:
    """Whether a plugin with *hooks* can have *policy*.

    Raises:
        BadPlugin: it cannot.
    """
    if policy.is_closed:
        return
    for hook in NEVER_NEUTRAL:
        if hook in hooks:
            problem = f"it has {hook!r}, for which there is no neutral answer, so it can only fail closed"
            raise BadPlugin(plugin, source, f"{problem}; take it out of --plugin-failure-policy and on_failure")
