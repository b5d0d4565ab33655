"""What would help, at the end of the message of a pending pod's condition; with ``explainInCondition: true``.

An explanation takes longer than an attempt, so the condition is written without it first, as always, and again once it
is there. While the pod is refused for the same reasons, what was found is written with them at once.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final, NoReturn

import trio
from attrs import define, field, frozen

from trio_sched.errors import TrioSchedError
from trio_sched.objects.pod import Pod
from trio_sched.verbosity import V3

log = logging.getLogger(__name__)

MAX_PODS: Final = 1_000
"""Pods whose remedies are known; of those beyond it, the one that was asked about first is forgotten."""
MAX_WAITING: Final = 100
"""Pods that wait to be explained; others are asked about again after their next attempt."""
PAUSE_SECONDS: Final = 1.0
"""Between two explanations, which take a processor each."""

FindRemedy = Callable[[Pod], Awaitable[str]]
"""Returns the title of the first change that lets a pod run; empty if none does."""
Write = Callable[[Pod, str], None]
"""Writes the message into the condition of a pod."""


@frozen
class _Known:
    message: str
    remedy: str


@define(eq=False)
class ConditionRemedies:
    """Finds remedies in the background, one after the other.

    Attributes:
        find: finds one; what it raises of this project's errors is logged, and the condition stays as it is.
        write: is called once one was found.
    """

    find: FindRemedy
    write: Write
    _known: OrderedDict[str, _Known] = field(factory=OrderedDict, init=False)
    """By the UID of the pod."""
    _waiting: OrderedDict[str, tuple[Pod, str]] = field(factory=OrderedDict, init=False)
    _is_waiting: trio.Event = field(factory=trio.Event, init=False)

    def message_for(self, pod: Pod, message: str) -> str:
        """*message*, which says why *pod* was refused, with what would help if that is known; else it is looked for."""
        known = self._known.get(pod.uid)
        if known is not None and known.message == message:
            return _joined(message, known.remedy)
        if pod.uid in self._waiting or len(self._waiting) < MAX_WAITING:
            self._waiting[pod.uid] = pod, message
            self._is_waiting.set()
        return message

    def forget(self, pending: set[str]) -> None:
        """Forget all pods but those whose UIDs are *pending*."""
        for by_uid in (self._known, self._waiting):
            for uid in [uid for uid in by_uid if uid not in pending]:
                del by_uid[uid]

    async def run(self) -> NoReturn:
        """Find remedies for as long as this replica leads."""
        while True:
            await self._is_waiting.wait()
            self._is_waiting = trio.Event()
            while self._waiting:
                _uid, (pod, message) = self._waiting.popitem(last=False)
                try:
                    self._learn(pod, message, await self.find(pod))
                except TrioSchedError as problem:
                    log.log(V3, "No remedy for the condition: %s", problem, extra={"pod": pod.key})
                await trio.sleep(PAUSE_SECONDS)

    def _learn(self, pod: Pod, message: str, remedy: str) -> None:
        self._known[pod.uid] = _Known(message, remedy)
        self._known.move_to_end(pod.uid)
        if len(self._known) > MAX_PODS:
            self._known.popitem(last=False)
        if remedy:
            self.write(pod, _joined(message, remedy))


def _joined(message: str, remedy: str) -> str:
    return f"{message} Would run: {remedy}." if remedy else message
