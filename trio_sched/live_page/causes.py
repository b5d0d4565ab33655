"""Why pods wait, in short: those that the same plugins refuse for the same reasons have the same cause."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, repeat
from typing import Any, Final

from attrs import define, field

from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.queue.scheduling_queue import SchedulingQueue
from trio_sched.go.text import shortened
from trio_sched.live_page.names import OTHERS
from trio_sched.objects.pod import Pod

_MOST_CAUSES: Final = 200
_MOST_TEXTS: Final = 2000
_MOST_CHARACTERS: Final = 300
_COUNTED_TOGETHER: Final = 250
"""Groups of pods that are counted in one refresh: with more of them the counts are some seconds old."""
_FIT_ERROR: Final = re.compile(r"0/\d+ nodes are available: ")
_NEXT_REASON: Final = re.compile(r", (?=\d+ )")
_NUMBER: Final = re.compile(r"\d+ ")

Cause = tuple[frozenset[str], str]
"""Plugins, and the reasons in short."""


def shortened_reason(message: str) -> str:
    """*message*, of a failed attempt, without how many nodes there are and how many fail for each reason."""
    begin = _FIT_ERROR.match(message)
    if begin is not None:
        # Behind the first sentence is what post_filters say.
        message = message[begin.end() :].partition(". ")[0].removesuffix(".")
        reasons = (_NUMBER.sub("", reason, count=1) for reason in _NEXT_REASON.split(message))
        message = ", ".join(sorted(dict.fromkeys(reasons)))
    return shortened(message, _MOST_CHARACTERS)


@define(eq=False)
class Causes:
    """The causes that were seen, each with a number and with how many pods wait for it."""

    queue: SchedulingQueue
    message_of: Callable[[Pod], str]
    """Returns what was said of the pod's last attempt; empty if nothing was."""
    counts_active: bool = False
    """Whether pods of the active queue are counted, too."""
    active: int = field(init=False, default=0)
    """How many of these have a cause, as of the last count."""
    _numbers: dict[Cause, int] = field(init=False, factory=dict)
    _short: dict[str, str] = field(init=False, factory=dict)
    """Messages that were shortened."""
    _counts: dict[int, int] = field(init=False, factory=dict)
    _counting: Iterator[None] | None = field(init=False, default=None)
    _sent: list[dict[str, Any]] = field(init=False, factory=list)

    def of(self, info: QueuedPodInfo) -> int | None:
        """The number of the cause for which the pod waits; None if nothing is known to keep it back."""
        if info.gating_plugin:
            return self._number((frozenset((info.gating_plugin,)), self._shortened(info.gating_message)))
        message = self.message_of(info.pod)
        return self._number((frozenset(info.rejectors), self._shortened(message))) if message else None

    def refresh(self, delta: dict[str, Any], counts: Mapping[int, int] | None = None) -> None:
        """Count some more pods, and put all causes into *delta* if they have changed.

        Args:
            delta: what has changed.
            counts: how many pods wait for each; None: as they are counted here, where all that the same plugins refuse
                have the reasons of one of them.
        """
        if self._counting is None:
            self._counting = self._count()
        if next(self._counting, self) is self:
            self._counting = None
        if counts is not None:
            self._counts = dict(counts)
        shown = self.shown()
        if shown != self._sent:
            self._sent = delta["causes"] = shown

    def shown(self) -> list[dict[str, Any]]:
        """All causes, in the order of their numbers."""
        return [
            {"id": number, "text": text, "plugins": sorted(plugins), "count": self._counts.get(number, 0)}
            for (plugins, text), number in self._numbers.items()
        ]

    def _count(self) -> Iterator[None]:
        backing_off = self.queue.backing_off
        groups = list(self.queue.unschedulable.groups())
        single = [*backing_off.pod_backoff_q.unordered(), *backing_off.pod_error_backoff_q.unordered()]
        active = self.queue.active.unordered() if self.counts_active else []
        alike = ((next(iter(group.pods.values()), None), len(group.pods)) for group in groups)
        counts: dict[int, int] = {}
        active_with_cause = 0
        for position, (info, pods) in enumerate(chain(alike, zip([*single, *active], repeat(1))), start=1):
            number = None if info is None else self.of(info)
            if number is not None:
                counts[number] = counts.get(number, 0) + pods
                active_with_cause += position > len(groups) + len(single)
            if position % _COUNTED_TOGETHER == 0:
                yield
        self._counts, self.active = counts, active_with_cause

    def _number(self, cause: Cause) -> int:
        found = self._numbers.get(cause)
        if found is not None:
            return found
        if len(self._numbers) >= _MOST_CAUSES - 1:
            cause = frozenset(), OTHERS
        return self._numbers.setdefault(cause, len(self._numbers))

    def _shortened(self, message: str) -> str:
        found = self._short.get(message)
        if found is None:
            if len(self._short) >= _MOST_TEXTS:
                self._short.clear()
            found = self._short[message] = shortened_reason(message)
        return found
