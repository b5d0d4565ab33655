"""A pod in the queue, with everything that the queue records about it."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

from attrs import define, field

from trio_sched.engine.hooks.attempt_trace import AttemptTrace
from trio_sched.objects.pod import Pod


@define(eq=False)
class QueuedPodInfo:
    """One pod without a node; times are seconds of the scheduler's clock."""

    pod: Pod
    timestamp: float
    """When it last entered the queue; breaks ties between equal priorities."""
    attempts: int = 0
    attempt_began: float = 0.0
    """When the last attempt began."""
    unschedulable_count: int = 0
    consecutive_errors: int = 0
    initial_attempt_timestamp: float | None = None
    unschedulable_plugins: set[str] = field(factory=set)
    """Plugins that rejected it, until the next attempt has an outcome."""
    pending_plugins: set[str] = field(factory=set)
    moved_by: str = ""
    """The label of the event that brought it into the queue where it is, or was last."""
    gating_plugin: str = ""
    """The pre_enqueue plugin that keeps it back, if one does."""
    gating_message: str = ""
    """Why it does so; out of date while none does."""
    was_flushed: bool = False
    """It was moved because it had waited too long, not because of an event."""
    signature: tuple[Hashable, ...] | None = None
    """Set when a profile has signed this version of the pod."""
    signature_epoch: int = 0
    """The scheduler's signature epoch at that time."""
    backoff_expiry: float | None = None
    """Computed once per failure."""
    sort_key: Any = None
    key: str = field(init=False)
    """``namespace/name``."""
    uid: str = field(init=False)
    """The pod's UID."""
    added_at: float = field(init=False)
    """When it came into the queue for the first time."""
    trace: AttemptTrace | None = None
    """The trace of the attempt under way, or of the last one; None if that is not traced."""

    def __attrs_post_init__(self) -> None:
        self.key, self.uid = self.pod.key, self.pod.uid
        self.added_at = self.timestamp

    @property
    def failure_count(self) -> int:
        """What the backoff counts: errors in a row, else rejections."""
        return self.consecutive_errors if self.consecutive_errors > 0 else self.unschedulable_count

    @property
    def rejectors(self) -> set[str]:
        """Every plugin whose events may make it schedulable."""
        return self.unschedulable_plugins | self.pending_plugins

    @property
    def had_error(self) -> bool:
        """No plugin rejected it: it failed for another reason and waits in the error backoff queue."""
        return not self.unschedulable_plugins and not self.pending_plugins

    def replace_pod(self, pod: Pod) -> None:
        """A newer version of the pod, or another pod of its name."""
        self.pod, self.uid = pod, pod.uid
        self.signature = None

    @property
    def sort_time(self) -> float:
        """When its backoff ends, for ordering; minus infinity if it has none."""
        return -math.inf if self.backoff_expiry is None else self.backoff_expiry
