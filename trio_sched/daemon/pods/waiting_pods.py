"""Waiting pods: assumed, but not to be bound before every plugin whose permit returned Wait has allowed it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import trio
from attrs import define, field, frozen

from trio_sched.go.durations import format_duration
from trio_sched.objects.pod import Pod
from trio_sched.objects.timestamps import SECOND_NS
from trio_sched.plugin_api.status import Code, Status, unschedulable


@frozen
class PendingPermit:
    """A plugin that has not allowed a pod yet."""

    plugin: str
    message: str
    """Why, in its words; may be empty."""
    seconds_left: float
    """After these the pod is rejected."""


@define(eq=False)
class WaitingPod:
    """One pod and the plugins that have not allowed it yet; the first outcome stands."""

    pod: Pod
    timeout_seconds: dict[str, float]
    messages: Mapping[str, str] = field(factory=dict)
    """Why each plugin lets it wait, if it says so."""
    began: float = field(init=False)
    """Since when it waits, in trio's time."""
    _deadlines: dict[str, float] = field(init=False)
    _decided: trio.Event = field(factory=trio.Event)
    _outcome: Status | None = None

    def __attrs_post_init__(self) -> None:
        self.began = now = trio.current_time()
        self._deadlines = {plugin: now + seconds for plugin, seconds in self.timeout_seconds.items()}

    @property
    def pending_plugins(self) -> frozenset[str]:
        """The plugins that have not allowed it yet."""
        return frozenset(self._deadlines)

    def pending(self) -> Iterator[PendingPermit]:
        """The same by name, with why and for how long."""
        now = trio.current_time()
        for plugin, deadline in sorted(self._deadlines.items()):
            yield PendingPermit(plugin, self.messages.get(plugin, ""), max(0.0, deadline - now))

    @property
    def is_rejected(self) -> bool:
        """Whether there is an outcome, and it is not to be bound."""
        return self._outcome is not None

    def allow(self, plugin: str) -> None:
        """*plugin* allows it."""
        self._deadlines.pop(plugin, None)
        if not self._deadlines:
            self._decide(None)

    def reject(self, plugin: str, message: str) -> bool:
        """*plugin* rejects it; returns False if there was an outcome before.

        Raises:
            TypeError: *plugin* or *message* is not a string.
        """
        for name, value in (("plugin", plugin), ("message", message)):  # plugins call this; texts are made of both
            if not isinstance(value, str):
                raise TypeError(f"{name} must be a string, not {type(value).__name__}")
        return self._decide(unschedulable(message).by(plugin))

    def preempt(self, plugin: str, message: str) -> bool:
        """The pod is preempted; returns False if there was an outcome before."""
        return self._decide(Status(Code.ERROR, (), RuntimeError(message), plugin))

    def _decide(self, outcome: Status | None) -> bool:
        if self._decided.is_set():
            return False
        self._outcome = outcome
        self._decided.set()
        return True

    async def decided(self) -> Status | None:
        """Wait for the outcome; None if it is allowed."""
        while not self._decided.is_set():
            plugin = min(self._deadlines, key=lambda name: self._deadlines[name])
            with trio.move_on_at(self._deadlines[plugin]):
                await self._decided.wait()
            if not self._decided.is_set() and plugin in self._deadlines:
                waited = format_duration(round(self.timeout_seconds[plugin] * SECOND_NS))
                self.reject(plugin, f"rejected due to timeout after waiting {waited} at plugin {plugin}")
        return self._outcome


@define(eq=False)
class WaitingPods:
    """All of them, by UID."""

    by_uid: dict[str, WaitingPod] = field(factory=dict)

    def add(self, pod: Pod, timeout_seconds: dict[str, float], messages: Mapping[str, str] | None = None) -> WaitingPod:
        """Make *pod* wait; *messages* say why, by plugin."""
        waiting = self.by_uid[pod.uid] = WaitingPod(pod, timeout_seconds, messages or {})
        return waiting

    def reject_deleted(self, uid: str) -> bool:
        """The pod was deleted; returns whether it was waiting without an outcome."""
        waiting = self.by_uid.get(uid)
        return waiting is not None and waiting.reject("", "removed")

    async def wait_on_permit(self, uid: str) -> Status | None:
        """Wait for the outcome of the pod; None if it is allowed, or does not have to wait."""
        waiting = self.by_uid.get(uid)
        if waiting is None:
            return None
        try:
            return await waiting.decided()
        finally:
            del self.by_uid[uid]
