"""Pods without a node, with what the queue records about them."""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from trio_sched.objects.pod import Pod


class QueueState(Enum):
    """Where a pod without a node is."""

    ACTIVE = "active"
    """It is tried when its turn comes."""
    BACKOFF = "backoff"
    """Its last attempt failed a moment ago."""
    UNSCHEDULABLE = "unschedulable"
    """It waits for an event, after plugins have rejected it."""
    GATED = "gated"
    """A pre_enqueue keeps it back."""
    IN_FLIGHT = "in flight"
    """It is being scheduled, waits on permit or for the response of an extender, or is being bound."""


@frozen(eq=False, kw_only=True)
class PendingPod:
    """A pod without a node; times are those of ``handle.now()``, in seconds."""

    pod: Pod
    """Its newest version."""
    state: QueueState
    added_at: float
    """When it came into the queue for the first time."""
    first_attempt_at: float | None = None
    """When it could be tried for the first time; None before it was tried."""
    attempts: int = 0
    """How often it was tried, an attempt under way included."""
    rejected_by: frozenset[str] = frozenset()
    """The plugins that rejected it in the last attempt, or keep it back."""
    backoff_ends_at: float | None = None
    """When its backoff ends; None while it is not in backoff."""
