"""Posts for whose responses nobody waits, many at once over connections of their own.

A request that is sent alone wakes up the other side, and its response wakes up this one; for events, which are as many
as binds, that costs more than the requests themselves. So posts are collected for a moment and sent in one piece, and
their responses, which come in the same order, are read when the next ones are sent.

Source: RFC 9112, section 9.3.2 (pipelining). The server carries out the posts of one connection one after the other.
"""

from __future__ import annotations

import logging
import ssl
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import httptools
import trio
from attrs import define, field

from trio_sched.go.errors import EOF, MALFORMED_RESPONSE, describe_failure
from trio_sched.kube_client.connection import JSON, KubeClient
from trio_sched.kube_client.errors import ConnectionFailed, CredentialsError
from trio_sched.kube_client.http import request_log
from trio_sched.kube_client.http.http1 import MAX_HEADER_BYTES, Headers, Http1Connection, ProtocolViolation, Reply
from trio_sched.kube_client.http.pool import IDLE_SECONDS
from trio_sched.verbosity import V4

log = logging.getLogger(__name__)

CONNECTIONS = 2
COLLECT_SECONDS = 0.2
"""How long posts are collected before they are sent together."""
HURRIED_SECONDS = 0.025
"""How long posts are collected if one of them is to be sent soon, or somebody waits for all of them."""
POST_OVERHEAD_BYTES = 250
"""What a post takes besides its body."""
MAX_IN_FLIGHT = 150
"""Posts to which one connection has no response yet."""
_BROKEN = (OSError, ssl.SSLError, trio.ClosedResourceError, trio.TooSlowError, ProtocolViolation)


class Post(NamedTuple):
    """A request: path and query, and JSON."""

    target: bytes
    body: bytes
    submitted_at: float
    on_done: Callable[[], None] | None = None
    """Called when it has got a response, unless that goes to ``on_refused``."""

    @property
    def size(self) -> int:
        """About how many bytes of memory it takes."""
        return POST_OVERHEAD_BYTES + len(self.body)


@define(eq=False)
class PipelinedPosts:
    """Posts that are sent in the background.

    A post whose connection breaks before its response is sent again: so it must do no harm if it arrives twice.

    Args:
        client: with a pool; its rate limit and credentials apply.
        on_refused: called with a post and the response to it that is not a success, or None: what the server got first
            on a connection, and ended it. It is not sent again.
        on_too_old: called with what could not be sent for *max_age_seconds*.
        retry_seconds: returns how long to wait after the server could not be reached.
        max_age_seconds: see above.
    """

    client: KubeClient
    on_refused: Callable[[Post, Reply | None], None]
    on_too_old: Callable[[list[Post]], None]
    retry_seconds: Callable[[], float]
    max_age_seconds: float
    _waiting: deque[Post] = field(factory=deque, init=False)
    _in_flight: int = field(default=0, init=False)
    unfinished_bytes: int = field(default=0, init=False)
    """About how much memory is taken by what has no response yet."""
    _idle: list[trio.Event] = field(factory=list, init=False)
    """One event for each connection that has nothing to send; the one that had something last is woken first."""
    _hurry: trio.Event = field(factory=trio.Event, init=False)
    _waiters: int = field(default=0, init=False)
    """Tasks in :meth:`drained`."""
    _emptied: trio.Event | None = field(default=None, init=False)

    def submit(
        self, target: bytes, body: bytes, on_done: Callable[[], None] | None = None, *, soon: bool = False
    ) -> None:
        """Send *body* to *target*; returns at once.

        Args:
            target: path and query.
            body: JSON.
            on_done: called when it has got a response, unless that goes to ``on_refused``.
            soon: send it after `HURRIED_SECONDS`, with all that waits.

        Raises:
            WriteNotPermitted: see *check_write* of `KubeClient`.
        """
        if self.client.check_write is not None:
            self.client.check_write()
        if soon:
            self._hurry.set()
        self._waiting.append(Post(target, body, trio.current_time(), on_done))
        self.unfinished_bytes += POST_OVERHEAD_BYTES + len(body)
        idle = len(self._idle)
        if idle == CONNECTIONS or (idle and len(self._waiting) > MAX_IN_FLIGHT):
            self._idle.pop().set()

    @property
    def unfinished(self) -> int:
        """How many have no response yet."""
        return len(self._waiting) + self._in_flight

    async def drained(self) -> None:
        """Send everything without waiting for more, and wait until all of it has a response."""
        self._waiters += 1
        self._hurry.set()
        try:
            while self.unfinished:
                if self._emptied is None:
                    self._emptied = trio.Event()
                await self._emptied.wait()
        finally:
            self._waiters -= 1

    async def run(self) -> None:
        """Send what is submitted, until cancelled."""
        assert self.client.pool is not None
        async with trio.open_nursery() as nursery:
            for _ in range(CONNECTIONS):
                nursery.start_soon(self._run_connection)

    async def _run_connection(self) -> None:
        """Connect when there is something to send; again and again."""
        pool = self.client.pool
        assert pool is not None
        while True:
            await self.wait_for_posts()
            try:
                pipeline = await _Pipeline.open(self)
            except (ConnectionFailed, CredentialsError) as problem:
                await self._pause(problem)
                continue
            failure: Exception | None = None
            try:
                with pool.pipeline(pipeline.connection):
                    await pipeline.run()
            except (*_BROKEN, CredentialsError) as problem:
                failure = problem
            finally:
                pipeline.close()
                pipeline.observe_lost()
                self._take_back(pipeline.in_flight, refused=failure is not None and not pipeline.responses)
            if failure is not None and not pipeline.responses:  # else the server is there, and ended a connection
                await self._pause(failure)

    async def wait_for_posts(self) -> None:
        """Wait for a post, and then until there are more, or somebody waits for them."""
        while not self._waiting:
            woken = trio.Event()
            self._idle.append(woken)
            try:
                await woken.wait()
            finally:
                if not woken.is_set():
                    self._idle.remove(woken)
        await self.collect()

    async def collect(self) -> None:
        """Wait for more posts, and responses."""
        with trio.move_on_after(COLLECT_SECONDS):
            await self._hurry.wait()
            await trio.sleep(HURRIED_SECONDS)
        if self._hurry.is_set() and not self._waiters:
            self._hurry = trio.Event()

    def take(self) -> Post | None:
        """The next post to send, if there is one and the rate limit lets it pass."""
        if not self._waiting or not self.client.may_send():
            return None
        self._in_flight += 1
        return self._waiting.popleft()

    def done(self, post: Post, reply: Reply) -> None:
        """*post* has got a response."""
        self._in_flight -= 1
        self.unfinished_bytes -= post.size
        record = request_log.begin(self.client.settings.server, b"POST", self.client.path(post.target), b"", post.body)
        if record is not None:
            record.sent_at = post.submitted_at
            record.replied(reply)
        if reply.status >= 300:
            self.on_refused(post, reply)
        elif post.on_done is not None:
            post.on_done()
        self._tell_if_empty()

    def _take_back(self, in_flight: deque[Post], *, refused: bool) -> None:
        """Send what was *in_flight* again, but the first one not if it may be the reason why the connection broke."""
        self._in_flight -= len(in_flight)
        if refused and in_flight:
            first = in_flight.popleft()
            self.unfinished_bytes -= first.size
            self.on_refused(first, None)
        self._waiting.extendleft(reversed(in_flight))
        self._tell_if_empty()

    async def _pause(self, problem: Exception) -> None:
        log.log(V4, "not sent yet: %d posts; trying again: %s", len(self._waiting), describe_failure(problem))
        oldest = trio.current_time() - self.max_age_seconds
        too_old: list[Post] = []
        while self._waiting and self._waiting[0].submitted_at < oldest:
            too_old.append(self._waiting.popleft())
            self.unfinished_bytes -= too_old[-1].size
        if too_old:
            self.on_too_old(too_old)
            self._tell_if_empty()
        await trio.sleep(self.retry_seconds())

    def _tell_if_empty(self) -> None:
        if self._emptied is not None and not self.unfinished:
            self._emptied.set()
            self._emptied = None


class _Pipeline:
    """One connection, and the posts on it."""

    def __init__(self, posts: PipelinedPosts, connection: Http1Connection) -> None:
        self.connection = connection
        self.in_flight: deque[Post] = deque()
        """Sent, in this order, and without a response."""
        self._sent_at: deque[float] = deque()
        """When each of these was sent."""
        self.responses = 0
        self._posts = posts
        self._progress_at = trio.current_time()
        self._parser = httptools.HttpResponseParser(self)
        self._unparsed_bytes = 0
        self._headers: Headers = []
        self._body: list[bytes] = []
        self._is_last = False

    @classmethod
    async def open(cls, posts: PipelinedPosts) -> _Pipeline:
        """Connect.

        Raises:
            ConnectionFailed: the server cannot be reached.
        """
        pool = posts.client.pool
        assert pool is not None
        return cls(posts, await pool.dial())

    async def run(self) -> None:
        """Send and receive, until the connection has been idle for long or should be replaced.

        Raises:
            ProtocolViolation: what the server sent is no response, or it sent none.
            OSError: the connection broke.
            CredentialsError: there are no credentials.
        """
        posts = self._posts
        while not self._is_last:
            sent = await self._send()
            if self._is_last:
                return
            if not sent and not self.in_flight:
                with trio.move_on_after(IDLE_SECONDS) as idle:
                    await posts.wait_for_posts()
                if idle.cancelled_caught or self.connection.is_stale():
                    return
                continue
            await posts.collect()
            self._receive()
            await trio.lowlevel.checkpoint()  # reading the responses and writing what is next take milliseconds each

    async def _send(self) -> bool:
        """Send as many as may be in flight; returns whether there were any."""
        posts, client = self._posts, self._posts.client
        pool = client.pool
        assert pool is not None
        if not pool.is_current(self.connection):
            self._is_last = not self.in_flight  # replaced once it has brought the responses
            return False
        headers = await client.headers() + JSON
        messages: list[bytes] = []
        while len(self.in_flight) < MAX_IN_FLIGHT and (post := posts.take()) is not None:
            self.in_flight.append(post)
            messages.append(pool.message(b"POST", client.path(post.target), headers, post.body))
        if not messages:
            return False
        now = trio.current_time()
        self._sent_at.extend([now] * len(messages))
        if len(messages) == len(self.in_flight):
            self._progress_at = now
        with trio.fail_after(client.request_seconds):
            await self.connection.channel.send(b"".join(messages))
        return True

    def _receive(self) -> None:
        """Read the responses that are there."""
        while (received := self.connection.channel.receive_nowait()) is not None:
            if not received:
                self._is_last = True
                if self.in_flight:
                    raise ProtocolViolation(EOF)
                return
            self._unparsed_bytes += len(received)
            self._progress_at = self.connection.heard_at = trio.current_time()
            try:
                self._parser.feed_data(received)
            except (httptools.HttpParserError, httptools.HttpParserUpgrade) as problem:
                raise ProtocolViolation(f"{MALFORMED_RESPONSE}: {problem}") from problem
            if self._unparsed_bytes > MAX_HEADER_BYTES:
                raise ProtocolViolation(f"a response to an event is longer than {MAX_HEADER_BYTES} bytes")
        if self.in_flight and trio.current_time() - self._progress_at > self._posts.client.request_seconds:
            raise ProtocolViolation(f"no response within {self._posts.client.request_seconds:g} s")

    # Callbacks of the parser.

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header line."""
        self._headers.append((name.lower(), value))

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        self._body.append(body)

    def on_message_complete(self) -> None:
        """A response is complete."""
        reply = Reply(self._parser.get_status_code(), self._headers, b"".join(self._body))
        self._headers, self._body, self._unparsed_bytes = [], [], 0
        if reply.status < 200:  # 100 Continue and the like: the response is yet to come
            return
        if not self.in_flight:
            raise ProtocolViolation("a response without a request")
        self.responses += 1
        self._is_last = self._is_last or not self._parser.should_keep_alive()
        post = self.in_flight.popleft()
        self._observe(post, reply.status, len(reply.body))
        self._posts.done(post, reply)

    def close(self) -> None:
        """Close the connection, and let go of the parser, which refers to this object."""
        self.connection.close()
        del self._parser

    def observe_lost(self) -> None:
        """Tell the observer about the posts that will have no response."""
        for post in self.in_flight:
            self._observe(post, 0, 0)

    def _observe(self, post: Post, status: int, received_bytes: int) -> None:
        """Tell the observer about the next post; the response may have waited until the next ones were sent."""
        sent_at = self._sent_at.popleft() if self._sent_at else self._progress_at  # not sent when the connection broke
        observer = self._posts.client.observer
        if observer is not None:
            observer.request_done(
                b"POST",
                status,
                seconds=self._progress_at - sent_at,
                waited_seconds=0.0,
                sent_bytes=len(post.body),
                received_bytes=received_bytes,
            )
