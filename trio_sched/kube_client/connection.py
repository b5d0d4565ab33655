"""The client: one server, one identity, one rate limit.

Requests and responses are JSON. Kubernetes' own components use protobuf, whose schemas would have to be generated and
maintained for every kind; msgspec decodes a pod's JSON in about 10 µs, so that would gain nothing.
"""

from __future__ import annotations

import logging
import math
import platform
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from random import Random
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import trio
from attrs import define, field

import trio_sched
from trio_sched.kube_client.credentials.credentials import Credentials
from trio_sched.kube_client.errors import (
    ConnectionFailed,
    NotAnApiServer,
    ResponseTooLarge,
    error_from_html,
    error_from_redirect,
    error_from_reply,
    is_html,
)
from trio_sched.kube_client.heartbeat import Heartbeat
from trio_sched.kube_client.http import request_log
from trio_sched.kube_client.http.caller import ByteStream, Caller
from trio_sched.kube_client.http.dialer import Dialer
from trio_sched.kube_client.http.http1 import Headers, Reply
from trio_sched.kube_client.http.observer import RequestObserver
from trio_sched.kube_client.http.pool import MAX_CONNECTIONS, REQUEST_SECONDS, Pool
from trio_sched.kube_client.http.rate_limit import TokenBucket
from trio_sched.kube_client.http.tls import TlsSource
from trio_sched.kube_client.http.unacknowledged import UnacknowledgedRequests
from trio_sched.kube_client.reachability import Reachability
from trio_sched.kube_client.retry import MAX_RETRIES, retry_after_seconds
from trio_sched.kube_client.server_url import host_header_of
from trio_sched.kube_client.settings import ConnectionSettings
from trio_sched.verbosity import V0, V2, V3, V4

if TYPE_CHECKING:
    import httpx

log = logging.getLogger(__name__)

TLS_RELOAD_SECONDS = 300.0
BROKEN_READ_RETRY_SECONDS = 1
WEB_PAGE_LOG_INTERVAL_SECONDS = 60.0
MAX_ERROR_BYTES = 64 * 1024
THROTTLE_LOG_THRESHOLD_SECONDS = 1.0
THROTTLE_LOG_INTERVAL_SECONDS = 10.0
"""From ``-v=2`` on a tenth of it."""
SHORT_THROTTLE_SECONDS = 0.05

JSON = b"Content-Type: application/json\r\n"
STRATEGIC_MERGE_PATCH = b"Content-Type: application/strategic-merge-patch+json\r\n"
MERGE_PATCH = b"Content-Type: application/merge-patch+json\r\n"
GZIP = b"Accept-Encoding: gzip\r\n"
METADATA_ONLY = b"Accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json\r\n"


def user_agent(component: str) -> str:
    """The ``User-Agent`` header: ``trio-sched/v0.2.0 (linux/amd64) kubernetes/trio/<component>``."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine() or "unknown")
    return f"trio-sched/v{trio_sched.__version__} ({sys.platform}/{machine}) kubernetes/trio/{component}"


@define(eq=False)
class KubeClient:
    """Sends requests to one API server, with its own rate limit and credentials; made by :func:`connect`.

    Attributes:
        settings: of the server.
        pool: the connections; None if the requests go through a caller or transport that was passed in.
        request_seconds: the timeout of a whole request.
        observer: told about every request; None: nobody.
        check_write: called right before each request that is no GET is sent; raises `WriteNotPermitted` to prevent it.
        reachability: what is known of the server, by all clients of it.
    """

    settings: ConnectionSettings
    pool: Pool | None
    _caller: Caller
    _credentials: Credentials
    _limiter: TokenBucket
    _common_headers: bytes
    _waiting: UnacknowledgedRequests
    request_seconds: float
    reachability: Reachability
    _transport: httpx.AsyncBaseTransport | None = None
    observer: RequestObserver | None = None
    check_write: Callable[[], None] | None = None
    _http: httpx.AsyncClient | None = field(init=False, default=None)
    _prefix: bytes = field(init=False)
    _headers: bytes = field(init=False, default=b"")
    _headers_version: int = field(init=False, default=-1)
    _throttling_logged_at: float = field(init=False, default=-math.inf)
    _web_page_logged_at: float = field(init=False, default=-math.inf)

    def __attrs_post_init__(self) -> None:
        self._prefix = urlsplit(self.settings.server).path.rstrip("/").encode()

    @property
    def requests_in_flight(self) -> int:
        """How many requests have no response yet; not those that are sent by `PipelinedPosts`."""
        return len(self._waiting)

    @property
    def oldest_request_sent_at(self) -> float:
        """When the request was sent that has waited longest for its response; infinite if there is none."""
        return self._waiting.oldest_sent_at

    @property
    def http(self) -> httpx.AsyncClient:
        """For rare requests; with the same rate limit, credentials and *check_write*."""
        if self._http is None:
            from trio_sched.kube_client.transport import http_client

            sender = self._transport if self._transport is not None else self.pool
            assert sender is not None
            self._http = http_client(
                sender,
                self.settings.server,
                self._common_headers,
                self._credentials,
                self._limiter,
                self._observe,
                self.check_write,
            )
        return self._http

    async def aclose(self) -> None:
        """Close what was opened."""
        if self._http is not None:
            await self._http.aclose()
        if self.pool is not None:
            self.pool.close()

    def may_send(self) -> bool:
        """Take a token of the rate limit, if there is one."""
        if self._limiter.reserve(trio.current_time()) > 0.0:
            self._limiter.return_token()
            return False
        return True

    def path(self, target: bytes) -> bytes:
        """*target* with the path prefix of the server."""
        return self._prefix + target

    async def headers(self) -> bytes:
        """The header lines of every request.

        Raises:
            CredentialsError: there are no credentials.
        """
        return self.prepared_headers() or await self._refreshed_headers()

    async def call(self, method: bytes, target: bytes, *, headers: bytes = b"", body: bytes = b"") -> bytes:
        """Send a request and return the body of the response.

        Args:
            method: ``b"GET"``.
            target: path and query, without the server's path prefix.
            headers: more header lines; see :data:`JSON` and its neighbours.
            body: already encoded.

        Raises:
            ApiError: the server refused.
            ConnectionFailed: there is no complete response; says whether the request may have taken effect.
            CredentialsError: there are no credentials.
            WriteNotPermitted: see *check_write*.
        """
        reply = await self.request(method, target, headers=headers, body=body)
        if reply.status >= 300 or reply.body[:1] != b"{":
            self.check(method, target, reply)
        return reply.body

    async def request(self, method: bytes, target: bytes, *, headers: bytes = b"", body: bytes = b"") -> Reply:
        """Send a request and return the response whatever its status, after the retries that the server asks for.

        Reads are also retried when the connection broke, because they have no effect.

        Raises:
            ConnectionFailed: there is no complete response.
            CredentialsError: there are no credentials.
            WriteNotPermitted: see *check_write*.
        """
        path = self._prefix + target
        retries = 0
        while True:
            now = trio.current_time()
            delay = self._limiter.reserve(now)
            if delay > 0.0:
                if delay > SHORT_THROTTLE_SECONDS:
                    self._log_throttling(now, delay, method, target)
                await self._limiter.wait_until(now + delay)
            lines = (self.prepared_headers() or await self._refreshed_headers()) + headers
            if self.check_write is not None and method != b"GET":
                self.check_write()
            sent_at = trio.current_time()
            number, answered, status = self._waiting.begin(method, path, now=sent_at), False, 0
            received = 0
            record = request_log.begin(self.settings.server, method, path, lines, body)
            try:
                reply = await self._caller.request(method, path, lines, body)
                answered, status, received = True, reply.status, len(reply.body)
            except ConnectionFailed as problem:
                if record is not None:
                    record.failed(problem)
                broke_off = problem.may_have_reached_server and not problem.timed_out
                if isinstance(problem, ResponseTooLarge):
                    raise
                if method != b"GET" or not broke_off or retries >= MAX_RETRIES:
                    raise
                wait = BROKEN_READ_RETRY_SECONDS
            finally:
                self._waiting.end(number, answered=answered)
                self._observe(method, status, sent_at, waited=delay, sent=len(body), received=received)
            if answered:
                if record is not None:
                    record.replied(reply)
                if reply.status < 400:
                    return reply
                if reply.status == 401:
                    await self._credentials.refused(sent_at)
                asked = retry_after_seconds(reply)
                if asked is None or retries >= MAX_RETRIES:
                    return reply
                wait = asked
            retries += 1
            if self.observer is not None:
                self.observer.request_retried(method, status)
            log.log(V4, "retry %d of %s %s in %d s", retries, method.decode(), target.decode(), wait)
            if answered:
                await trio.sleep(wait)
            else:
                self.reachability.lost()
                await self.reachability.pause(wait)

    @asynccontextmanager
    async def stream(self, target: bytes, *, headers: bytes = b"") -> AsyncGenerator[ByteStream, None]:
        """GET *target* and read the response while it arrives; without rate limit, because it is for watches.

        Args:
            target: path and query, without the server's path prefix.
            headers: more header lines.

        Raises:
            ApiError: the server refused.
            ConnectionFailed: there is no connection, or no response.
            CredentialsError: there are no credentials.
        """
        prepared = self.prepared_headers() or await self._refreshed_headers()
        sent_at = trio.current_time()
        async with AsyncExitStack() as resources:
            number, answered = self._waiting.begin(b"GET", self._prefix + target, now=sent_at), False
            record = request_log.begin(self.settings.server, b"GET", self._prefix + target, prepared + headers)
            status = 0
            try:
                opened = self._caller.stream(b"GET", self._prefix + target, prepared + headers)
                stream = await resources.enter_async_context(opened)
                answered, status = True, stream.status
            except ConnectionFailed as problem:
                if record is not None:
                    record.failed(problem)
                raise
            finally:
                self._waiting.end(number, answered=answered)
                self._observe(b"GET", status, sent_at)
            if record is not None:
                record.answered(stream.status, stream.headers)
            if stream.status != 200 or is_html(_content_type(stream.headers), b""):
                reply = Reply(stream.status, stream.headers, await self._begin_of_body(stream))
                if stream.status == 401:
                    await self._credentials.refused(sent_at)
                self.check(b"GET", target, reply)
            yield stream

    def _observe(
        self, method: bytes, status: int, sent_at: float, *, waited: float = 0.0, sent: int = 0, received: int = 0
    ) -> None:
        if self.observer is not None:
            seconds = trio.current_time() - sent_at
            self.observer.request_done(
                method, status, seconds=seconds, waited_seconds=waited, sent_bytes=sent, received_bytes=received
            )

    async def _begin_of_body(self, stream: ByteStream) -> bytes:
        """What there is of the body within the timeout of a request, and up to :data:`MAX_ERROR_BYTES`."""
        body = b""
        with trio.move_on_after(self.request_seconds), suppress(ConnectionFailed):
            while len(body) < MAX_ERROR_BYTES and (piece := await stream.receive()):
                body += piece
        return body

    def check(self, method: bytes, target: bytes, reply: Reply) -> None:
        """Raise the error that *reply* stands for; none if it is a valid response."""
        request = f"{method.decode()} {self.settings.server}{target.partition(b'?')[0].decode()}"
        location = reply.header(b"location")
        if 300 <= reply.status < 400 and location:
            raise self._logged(error_from_redirect(reply.status, location.decode("utf-8", "replace"), request=request))
        if reply.status >= 300:
            asked_for = f"{method.decode()} {target.decode()}"
            pause = retry_after_seconds(reply) or 0
            raise error_from_reply(reply.status, reply.body, request=asked_for, retry_after_seconds=pause)
        if is_html(_content_type(reply.headers), reply.body):
            raise self._logged(error_from_html(reply.status, request=request))

    def _logged(self, problem: NotAnApiServer) -> NotAnApiServer:
        """Log *problem*, unless that was done lately for another request: all of them get the same."""
        now = trio.current_time()
        if now - self._web_page_logged_at >= WEB_PAGE_LOG_INTERVAL_SECONDS:
            self._web_page_logged_at = now
            log.error("%s", problem)
        return problem

    @property
    def list_headers(self) -> bytes:
        """The headers of requests for long lists: gzip, unless the kubeconfig disables compression."""
        return b"" if self.settings.disable_compression else GZIP

    def prepared_headers(self) -> bytes | None:
        """The header lines of every request, if they are known without waiting.

        Raises:
            CredentialsError: there are no credentials.
        """
        credentials = self._credentials
        current = credentials.current()
        if current is None:
            return None
        if credentials.version != self._headers_version:
            self._headers = self._common_headers + header_lines(current)
            self._headers_version = credentials.version
        return self._headers

    async def _refreshed_headers(self) -> bytes:
        current = await self._credentials.refresh()
        return self._common_headers + header_lines(current)

    def _log_throttling(self, now: float, delay: float, method: bytes, target: bytes) -> None:
        """Log a long delay, but not each of many; those that are not logged, and shorter ones, from ``-v=3`` on."""
        level = V3
        if delay > THROTTLE_LOG_THRESHOLD_SECONDS:
            interval = THROTTLE_LOG_INTERVAL_SECONDS / (10 if log.isEnabledFor(V2) else 1)
            if now - self._throttling_logged_at >= interval:
                self._throttling_logged_at, level = now, V0
        if not log.isEnabledFor(level):
            return
        fields = {
            "delay": f"{delay:.3f}s",
            "reason": "client-side throttling, not priority and fairness",
            "verb": method.decode(),
            "URL": _origin(self.settings.server) + (self._prefix + target).decode(),
        }
        log.log(level, "Waited before sending request", extra=fields)


@asynccontextmanager
async def connect(
    settings: ConnectionSettings,
    *,
    qps: float = 50.0,
    burst: int = 100,
    component: str = "scheduler",
    max_connections: int = MAX_CONNECTIONS,
    request_seconds: float = REQUEST_SECONDS,
    transport: httpx.AsyncBaseTransport | None = None,
    caller: Caller | None = None,
    reachability: Reachability | None = None,
    observer: RequestObserver | None = None,
    check_write: Callable[[], None] | None = None,
) -> AsyncGenerator[KubeClient, None]:
    """Open a client for the server of *settings*; nothing is sent before the first request.

    Args:
        settings: from :mod:`trio_sched.kube_client.kubeconfig.kubeconfig`.
        qps: requests per second on average; below zero means no limit.
        burst: requests at once.
        component: the end of the user agent: ``scheduler``, ``leader-election``.
        max_connections: requests in flight; more wait in a queue.
        request_seconds: the timeout of a whole request.
        transport: sends the requests instead of network connections: to an API server in this process. It stays open.
        caller: sends what goes through no httpx client, which is nearly everything; the rest needs *transport*, too.
        reachability: of the server, for all clients that are given it; there is a `Heartbeat` for them then, which ends
            with the first of them.
        observer: see `KubeClient`.
        check_write: likewise.

    Raises:
        KubeconfigError: a certificate, key or proxy is not usable.
    """
    tls = TlsSource(settings.tls)
    pool: Pool | None = None
    if caller is None and transport is not None:
        from trio_sched.kube_client.transport import HttpxCaller

        caller = HttpxCaller(transport, settings.server, request_seconds=request_seconds)
    elif caller is None:
        if settings.is_tls:
            tls.context()  # unusable certificates are an error at the start, not on the first request
        caller = pool = Pool(
            Dialer(settings, tls),
            fixed_headers=b"Host: " + host_header_of(settings.server) + b"\r\n",
            max_connections=max_connections,
            request_seconds=request_seconds,
        )
    credentials = Credentials(settings, tls if pool is not None and settings.is_tls else None)
    client = KubeClient(
        settings,
        pool,
        caller,
        credentials,
        TokenBucket(qps, burst),
        header_lines([(b"User-Agent", user_agent(component).encode()), (b"Accept", b"application/json")]),
        UnacknowledgedRequests(_origin(settings.server)),
        request_seconds,
        reachability or Reachability(),
        transport,
        observer,
        check_write,
    )
    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        if pool is not None:
            nursery.start_soon(pool.watchdog)
            nursery.start_soon(_reload_certificates, tls)
            nursery.start_soon(client._waiting.warn)
            if reachability is not None:
                reachability.clients.append(client)
                if len(reachability.clients) == 1:
                    nursery.start_soon(Heartbeat(reachability, Random()).run)
        try:
            yield client
        except Exception as problem:  # the nursery is an implementation detail: no group around the caller's error
            failure = problem
        finally:
            await client.aclose()
            nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def _reload_certificates(tls: TlsSource) -> None:
    """Read certificate files again when they were replaced; connections opened with the old ones are not reused."""
    while tls.settings.files:
        await trio.sleep(TLS_RELOAD_SECONDS)
        tls.reload_or_keep()


def _content_type(headers: Headers) -> bytes:
    return next((value for name, value in headers if name == b"content-type"), b"")


def _origin(server: str) -> str:
    """*server* without the path, which the targets of requests begin with."""
    return server.removesuffix(urlsplit(server).path)


def header_lines(headers: Headers) -> bytes:
    """*headers* as header lines."""
    return b"".join(name + b": " + value + b"\r\n" for name, value in headers)
