"""Posts JSON to a webhook, with a timeout for the whole call; redirects are followed as by Go's ``http.Client``."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urljoin, urlsplit

import trio
from attrs import define, field, frozen

from trio_sched.go import text as go_text
from trio_sched.go.errors import DEADLINE_EXCEEDED, TOO_MANY_REDIRECTS
from trio_sched.kube_client.connection import GZIP, JSON, header_lines, user_agent
from trio_sched.kube_client.errors import ConnectionFailed, KubeconfigError
from trio_sched.kube_client.http.caller import Caller
from trio_sched.kube_client.http.dialer import Dialer
from trio_sched.kube_client.http.http1 import Reply
from trio_sched.kube_client.http.pool import Pool
from trio_sched.kube_client.http.tls import TlsSource
from trio_sched.kube_client.server_url import check_parses, host_header_of, redacted
from trio_sched.kube_client.settings import ConnectionSettings, TlsSettings

if TYPE_CHECKING:
    import httpx

MAX_CONNECTIONS = 256
"""Waiting for a connection counts towards the timeout of the call, so there are many."""
MAX_REPLY_BYTES = 256 * 1024 * 1024
"""Decompressed: more than all nodes of the biggest clusters have, which an extender may send back whole."""
MAX_REQUESTS = 10
"""In one call: the first one and those that follow redirects."""
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
_KEPT_IN_PATHS = "/%:@!$&'()*+,;=-._~?"
_REPEATED_AS_GET = frozenset({301, 302, 303})
_REPEATED = frozenset({307, 308})


@frozen
class _Destination:
    """A URL, taken apart.

    Attributes:
        url: the whole of it.
        server: its scheme, host and port.
        target: its path and query.
        headers: header lines with the host and the credentials that the URL contains.
    """

    url: str = field(repr=False)
    server: str
    target: bytes
    headers: bytes = field(repr=False)

    @classmethod
    def parse(cls, url: str) -> _Destination:
        """The destination that *url* names.

        Raises:
            ValueError: it names none; the text is Go's, without the password.
        """
        scheme = url.partition(":")[0].lower() if _SCHEME.match(url) else ""
        if scheme not in ("http", "https"):
            raise ValueError(f"unsupported protocol scheme {go_text.quote(scheme)}")
        try:
            check_parses(url)
            parts = urlsplit(url)
        except KubeconfigError as problem:
            raise ValueError(str(problem)) from None
        except ValueError:  # whose text can contain the password
            raise ValueError(f"parse {go_text.quote(redacted(url))}: invalid host") from None
        if not parts.hostname:
            raise ValueError("http: no Host in request URL")
        try:
            host = host_header_of(url)
        except ValueError:
            raise ValueError(f"dial tcp: lookup {parts.hostname}: no such host") from None
        headers = [(b"Host", host)]
        if parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            headers.append((b"Authorization", b"Basic " + base64.b64encode(login.encode("utf-8", "replace"))))
        target = quote(parts.path or "/", safe=_KEPT_IN_PATHS).encode()
        if parts.query:
            target += b"?" + quote(parts.query, safe=_KEPT_IN_PATHS).encode()
        return cls(url, f"{scheme}://{parts.netloc.rpartition('@')[2]}", target, header_lines(headers))

    def redirected(self, reply: Reply) -> _Destination | None:
        """Where *reply* sends the request; None if nowhere. Credentials stay with a location that names no host.

        Raises:
            ValueError: the location is no URL.
        """
        location = (reply.header(b"location") or b"").decode("utf-8", "replace")
        if reply.status not in _REPEATED | _REPEATED_AS_GET or not location:
            return None
        try:
            # urljoin takes http:///path for a relative reference.
            joined = location if _SCHEME.match(location) else urljoin(self.url, location)
            if urlsplit(joined).scheme in ("http", "https"):
                check_parses(joined)
        except (KubeconfigError, ValueError) as problem:
            text = f": {problem}" if isinstance(problem, KubeconfigError) else ""
            shown = go_text.quote(redacted(location))
            raise ValueError(f"failed to parse Location header {shown}{text}") from None
        return _Destination.parse(joined)


@define(eq=False)
class JsonPoster:
    """Sends to one server, over keep-alive connections; made by :meth:`for_url`.

    Attributes:
        url: what the paths of requests are appended to, without a slash at its end and with ``xxxxx`` for a password.
        timeout_seconds: for a whole call, from waiting for a connection to the last byte of the response.
    """

    url: str
    timeout_seconds: float
    _base_url: str = field(repr=False)
    _tls: TlsSource
    _transport: httpx.AsyncBaseTransport | None
    _server: str = ""
    _caller: Caller | None = None

    @classmethod
    def for_url(
        cls,
        url: str,
        *,
        tls: TlsSettings | None = None,
        timeout_seconds: float = math.inf,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> JsonPoster:
        """A poster for *url*; nothing is sent yet. With an invalid URL every call fails.

        Args:
            url: with its scheme; slashes at its end are ignored.
            tls: the certificates if the scheme is https.
            timeout_seconds: see above.
            transport: sends the requests instead of network connections: to a server in this process.

        Raises:
            KubeconfigError: a certificate or key is not usable.
        """
        url = url.rstrip("/")
        tls_source = TlsSource(tls or TlsSettings())
        if tls is not None or url.startswith("https://"):
            tls_source.context()  # unusable certificates are an error at the start, not on the first request
        poster = cls(redacted(url), timeout_seconds, url, tls_source, transport)
        try:
            server = _Destination.parse(f"{url}/").server
        except ValueError:
            return poster
        poster._server, poster._caller = server, poster._open(server)
        return poster

    async def post(self, path: str, body: bytes) -> Reply:
        """Send *body* to *path* below the URL, and return the response whatever its status.

        Raises:
            ConnectionFailed: there is no complete response.
        """
        try:
            with trio.fail_after(self.timeout_seconds):
                return await self._post(f"{self._base_url}/{path}", body)
        except trio.TooSlowError as problem:
            raise ConnectionFailed(
                self.url, DEADLINE_EXCEEDED, may_have_reached_server=True, timed_out=True
            ) from problem

    def close(self) -> None:
        """Close all connections."""
        if isinstance(self._caller, Pool):
            self._caller.close()

    async def _post(self, url: str, body: bytes) -> Reply:
        method, headers, has_sent = b"POST", JSON + GZIP, False
        try:
            destination = _Destination.parse(url)
            for _ in range(MAX_REQUESTS):
                with self._caller_for(destination.server) as caller:
                    reply = await caller.request(method, destination.target, destination.headers + headers, body)
                has_sent = True
                redirected = destination.redirected(reply)
                if redirected is None:
                    return reply
                destination = redirected
                if reply.status in _REPEATED_AS_GET:
                    method, headers, body = b"GET", GZIP, b""
        except (ValueError, KubeconfigError) as problem:  # the latter for an invalid proxy
            await trio.lowlevel.checkpoint()
            raise ConnectionFailed(self.url, str(problem), may_have_reached_server=has_sent) from problem
        raise ConnectionFailed(self.url, TOO_MANY_REDIRECTS, may_have_reached_server=True)

    @contextmanager
    def _caller_for(self, server: str) -> Iterator[Caller]:
        """What sends requests to *server*; for another one than that of the URL just for this request."""
        if server == self._server and self._caller is not None:
            yield self._caller
            return
        caller = self._open(server)
        try:
            yield caller
        finally:
            if isinstance(caller, Pool):
                caller.close()

    def _open(self, server: str) -> Caller:
        if self._transport is not None:
            from trio_sched.kube_client.transport import HttpxCaller

            return HttpxCaller(self._transport, server, request_seconds=math.inf)
        return Pool(
            Dialer(ConnectionSettings(server=server, tls=self._tls.settings), self._tls),
            fixed_headers=header_lines([(b"User-Agent", user_agent("scheduler").encode())]),
            max_connections=MAX_CONNECTIONS,
            request_seconds=math.inf,  # the timeout of the call ends a request earlier
            max_body_bytes=MAX_REPLY_BYTES,
        )
