"""Limits of the HTTPS endpoints; whoever reaches the port can use up no more than this."""

from __future__ import annotations

from typing import Final

MAX_CONNECTIONS: Final = 512
"""Above it a connection is ended for a new one."""
OTHER_FILES: Final = 256
"""What the scheduler itself may have open: connections of its clients, one for each watch, extenders, files."""
LEAST_SHARE_OF_FILES: Final = 8
"""Where fewer files are allowed, one of so many is for connections to the endpoints."""
ACCEPTS_PER_SECOND: Final = 1500.0
ACCEPT_BURST: Final = 1000
"""Connections that are accepted; more than that wait in the listener."""
HANDSHAKE_SECONDS: Final = 10.0
IDLE_SECONDS: Final = 90.0
"""For a connection without a request, and for the header of a request to arrive."""
MAX_HELLO_BYTES: Final = 16 * 1024
"""The longest first message of a client; with the keys of post-quantum mechanisms it is about 2 KiB."""
MAX_HANDSHAKE_BYTES: Final = 128 * 1024
"""The most that a client may send for a TLS handshake, its certificates included."""
MAX_HEADER_BYTES: Final = 32 * 1024
"""To decode so much takes up to 40 ms, in which nothing else runs."""
MAX_CONTINUATIONS: Final = 8
"""Frames that follow the first one of an HTTP/2 header; such a frame can have 16 KiB."""
MAX_SETTINGS: Final = 256
"""The most settings that an HTTP/2 client may send, all in all."""
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

# --- clients none of whose requests on a connection has been authenticated, all of them together
UNAUTHENTICATED_BYTES: Final = 12 << 20
"""Above it the connection ends that holds most. Python's allocator hardly gives anything back, so this is about what a
flood leaves behind."""
SILENT_CONNECTION_BYTES: Final = 32 * 1024
CONNECTION_BYTES: Final = 64 * 1024
REQUEST_BYTES: Final = 16 * 1024
"""What a connection before its handshake, one after it, and a request take by themselves; measured."""
MAX_UNANSWERED: Final = 10
"""Requests of a connection above which no more is read from it until one of them is answered,"""
UNANSWERED_SECONDS: Final = 5.0
"""or it has lasted so long; then the connection ends. To end a request costs time, too."""
HEADER_COPIES: Final = 3
"""A header is kept as it came, as text, and in parts."""
MAX_COUNTED_BYTES: Final = 1 << 20
"""The most of a response that is counted: metrics can be longer than all that is allowed, and be open to everybody."""
HANDSHAKE_SHARE: Final = 0.2
HANDSHAKE_BURST_SECONDS: Final = 0.2
"""The share of the event loop's time for handshakes, and how much at once: one takes about a millisecond."""
REQUEST_SHARE: Final = 0.25
REQUEST_BURST_SECONDS: Final = 0.05
"""The share of the event loop's time for what is sent afterwards, and how much at once."""
SILENCE_SECONDS: Final = 0.01
"""A client that is silent for so long is the first whose connection ends: others speak once they are connected."""
CROWD: Final = 16
"""With more connections than this, those from one address come after those from others."""
TURN_SECONDS: Final = 5.0
"""A connection that waits longer for its share is ended: there are too many, or it asks for too much."""

RELOAD_SECONDS: Final = 60.0
"""How often files with certificates are read again."""

REVIEW_SECONDS: Final = 10.0
"""The timeout of one token or access review."""
REVIEW_TOTAL_SECONDS: Final = 30.0
"""The timeout of a review with all tries."""
REVIEW_QPS: Final = 200.0
REVIEW_BURST: Final = 400
REVIEW_TRIES: Final = 5
REVIEW_RETRY_SECONDS: Final = 0.5
REVIEW_RETRY_FACTOR: Final = 1.5
REVIEW_RETRY_JITTER: Final = 0.2
MAX_REVIEWS_UNDER_WAY: Final = 256
MAX_ANONYMOUS_REVIEWS: Final = 64
"""The most access reviews under way for requests without credentials, so that there is room for others."""
MAX_KNOWN_TOKENS: Final = 256
"""Tokens that were good once are reviewed however many others are: anyone can send thousands of bad ones."""
MAX_CACHED_REVIEWS: Final = 8192
MAX_CACHED_ACCESS_BYTES: Final = 10_000
"""An access review with a longer user or path is not kept."""
LOOKUP_SECONDS: Final = 10.0
"""For the first look-up of the authentication settings in the cluster."""

LOG_INTERVAL_SECONDS: Final = 10.0
"""Reviews that fail are logged at most this often: who reaches the port must not be able to fill the log."""

MAX_PAGE_ITEMS: Final = 5_000
"""Pods and nodes that a page lists."""
MAX_LIVE_STREAMS: Final = 32
"""Readers of the live page at once; each costs what it takes to send to it, what is sent is made once for all."""
LIVE_STREAM_SECONDS: Final = 300.0
"""After so long a reader has to come again, so that it is asked again who it is and what it may do."""
LIVE_PERIOD_SECONDS: Final = 0.5
"""How often the live page looks at the scheduler while somebody reads."""
LIVE_KEEP_ALIVE_SECONDS: Final = 15.0
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
BUSY_TICKS: Final = 60
"""From the last so many ticks in which pods waited follows how long others will."""
