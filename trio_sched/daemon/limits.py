"""Limits of the daemon: how much at once, how long, how often. Those of single connections are in ``kube_client``."""

from __future__ import annotations

from typing import Final

# --- the scheduling loop
SLICE_SECONDS: Final = 0.005
"""The loop goes on for so long before other tasks run: a checkpoint for every pod would cost too much."""
SLICE_PODS: Final = 16
"""Pods after which the loop looks at the clock of its slice at the latest."""

# --- requests to the API server
MAX_PARALLEL_BINDS: Final = 32
MAX_PARALLEL_STATUS_PATCHES: Final = 8

# --- the queue
FLUSH_SECONDS: Final = 30.0
"""How often the queue is searched for pods that have waited for an event too long."""
MIN_TIMER_SECONDS: Final = 0.05
"""The shortest pause of the queue's timers."""

# --- the end
DRAIN_SECONDS: Final = 10.0
"""How long a stop waits for binds and events that are under way."""
