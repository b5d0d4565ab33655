"""The last attempts of pending pods: when, what had woken the pod, and why it was not scheduled."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Container
from typing import Final

from attrs import define, field, frozen

MAX_PODS: Final = 5_000
"""Pods whose attempts are kept: those that were tried last."""
MAX_ATTEMPTS: Final = 5
"""Attempts that are kept of each."""
_MAX_TEXT: Final = 300
_MAX_TEXTS: Final = 2_000


@frozen
class Attempt:
    """One attempt that did not place the pod."""

    at: float
    """In seconds of the scheduler's clock."""
    woken_by: str
    """The label of the event that had brought it into the active queue."""
    message: str
    """Cut to 300 characters."""


@define(eq=False)
class AttemptHistory:
    """The attempts of all pods together; without the pods themselves."""

    _of_pods: OrderedDict[str, deque[Attempt]] = field(factory=OrderedDict, init=False)
    """By UID, the pod that was tried last at the end."""
    _texts: dict[str, str] = field(factory=dict, init=False)
    """Equal messages are one text: pods of one workload fail alike."""

    def add(self, uid: str, at: float, woken_by: str, message: str) -> None:
        """The pod *uid* was not scheduled."""
        message = message if len(message) <= _MAX_TEXT else f"{message[:_MAX_TEXT]}…"
        if len(self._texts) >= _MAX_TEXTS:
            self._texts.clear()
        message = self._texts.setdefault(message, message)
        attempts = self._of_pods.pop(uid, None) or deque(maxlen=MAX_ATTEMPTS)
        attempts.append(Attempt(at, woken_by, message))
        self._of_pods[uid] = attempts
        if len(self._of_pods) > MAX_PODS:
            self._of_pods.popitem(last=False)

    def of(self, uid: str) -> list[Attempt]:
        """The attempts of one pod, the last one at the end."""
        return list(self._of_pods.get(uid, ()))

    def keep(self, pending: Container[str]) -> None:
        """Forget all pods but those whose UIDs are *pending*."""
        for uid in [uid for uid in self._of_pods if uid not in pending]:
            del self._of_pods[uid]
        kept = (attempt.message for attempts in self._of_pods.values() for attempt in attempts)
        self._texts = {message: message for message in kept}  # texts name objects, which may be gone

    def __len__(self) -> int:
        return len(self._of_pods)
