"""Limits of the HTTPS endpoints; whoever reaches the port can use up no more than this."""

from __future__ import annotations

from typing import Final

MAX_CONNECTIONS: Final = 512
"""Above it the oldest connection without a request under way is closed for a new one."""
ACCEPTS_PER_SECOND: Final = 500.0
ACCEPT_BURST: Final = 1000
"""Connections that are accepted; more than that wait in the listener."""
HANDSHAKES_PER_SECOND: Final = 100.0
HANDSHAKE_BURST: Final = 200
"""A handshake takes about a millisecond of the event loop; more of them wait their turn, once the client has begun."""
HANDSHAKE_SECONDS: Final = 10.0
IDLE_SECONDS: Final = 90.0
"""For a connection without a request, and for the header of a request to arrive."""
MAX_HEADER_BYTES: Final = 64 * 1024
MAX_BODY_BYTES: Final = 64 * 1024
BODY_SECONDS: Final = 10.0
SEND_SECONDS: Final = 10.0
"""A client that takes no more bytes for so long is cut off."""
RESPONSE_SECONDS: Final = 60.0
"""For a client to take the whole response."""
SEND_PIECE_BYTES: Final = 64 * 1024
MAX_STREAMS: Final = 100
"""HTTP/2 streams of one connection, unless a flag says otherwise."""
MAX_REQUESTS_PER_CONNECTION: Final = 1000
DRAIN_SECONDS: Final = 5.0
"""How long requests under way may take once the listener is closed."""
ACCEPT_PAUSE_SECONDS: Final = 0.1
"""After a failure to accept: the process has too many open files, for instance."""

RELOAD_SECONDS: Final = 60.0
"""How often files with certificates are read again."""

REVIEW_SECONDS: Final = 10.0
"""The timeout of one token or access review."""
REVIEW_TOTAL_SECONDS: Final = 30.0
"""The same with all tries."""
REVIEW_QPS: Final = 200.0
REVIEW_BURST: Final = 400
REVIEW_TRIES: Final = 5
REVIEW_RETRY_SECONDS: Final = 0.5
REVIEW_RETRY_FACTOR: Final = 1.5
REVIEW_RETRY_JITTER: Final = 0.2
MAX_REVIEWS_UNDER_WAY: Final = 256
MAX_CACHED_REVIEWS: Final = 8192
MAX_CACHED_ACCESS_BYTES: Final = 10_000
"""An access review with a longer user or path is not kept."""
LOOKUP_SECONDS: Final = 10.0
"""For the first look-up of the authentication settings in the cluster."""

LOG_INTERVAL_SECONDS: Final = 10.0
"""Reviews that fail are logged at most this often: who reaches the port must not be able to fill the log."""

RENDER_SLICE_SECONDS: Final = 0.005
"""Long pages are made in slices of this length, between which the scheduler goes on."""
MAX_PAGE_ITEMS: Final = 5_000
"""Pods and nodes that a page lists."""
MAX_PROFILE_SECONDS: Final = 300.0
PROFILE_SAMPLES_PER_SECOND: Final = 100
MAX_PROFILE_STACKS: Final = 20_000
MAX_STACK_FRAMES: Final = 200
MAX_LISTED_TASKS: Final = 2_000
MAX_HEAP_TYPES: Final = 300

LOOP_STUCK_SECONDS: Final = 180.0
"""The scheduling loop is reported when it has made no progress for so long although pods wait. An awaited hook may take
a minute of it, and as long again in the handle."""
EVENT_LOOP_LAG_SECONDS: Final = 30.0
"""The event loop is reported when it was blocked for so long altogether,"""
EVENT_LOOP_LAG_MEMORY_SECONDS: Final = 60.0
"""within the last so many seconds: a restart costs more than a short block."""
WATCH_DEAD_SECONDS: Final = 300.0
"""A watch of nodes or pods is reported when it has been broken for so long."""
LIVENESS_TICK_SECONDS: Final = 1.0
