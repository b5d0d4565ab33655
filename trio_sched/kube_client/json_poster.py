"""Posts JSON to a webhook, with a timeout for the whole call."""

from __future__ import annotations

import base64
import math
from urllib.parse import quote, unquote, urlsplit

import httpx
import trio
from attrs import define

from trio_sched.kube_client.connection import GZIP, JSON, header_lines, user_agent
from trio_sched.kube_client.dialer import Dialer
from trio_sched.kube_client.errors import ConnectionFailed
from trio_sched.kube_client.http1 import Headers, Reply
from trio_sched.kube_client.pool import Pool
from trio_sched.kube_client.settings import ConnectionSettings, TlsSettings
from trio_sched.kube_client.tls import TlsSource
from trio_sched.kube_client.transport import Caller, HttpxCaller

MAX_CONNECTIONS = 256
"""Waiting for a connection counts towards the timeout of the call, so there are many."""
TOO_SLOW = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
_KEPT_IN_PATHS = "/%:@!$&'()*+,;=-._~?"


@define(eq=False)
class JsonPoster:
    """Sends to one server, over keep-alive connections; made by :meth:`for_url`.

    Attributes:
        url: what the paths of requests are appended to, without a slash at its end.
        timeout_seconds: for a whole call, from waiting for a connection to the last byte of the response.
    """

    url: str
    timeout_seconds: float
    _path: str
    _caller: Caller | None
    _pool: Pool | None
    _problem: str

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
        try:
            parts = urlsplit(url)
            host, scheme = parts.hostname, parts.scheme
            port = parts.port or (443 if scheme == "https" else 80)
        except ValueError as problem:
            return cls(url, timeout_seconds, "", None, None, str(problem))
        if scheme not in ("http", "https"):
            return cls(url, timeout_seconds, "", None, None, f'unsupported protocol scheme "{scheme}"')
        if not host:
            return cls(url, timeout_seconds, "", None, None, "http: no Host in request URL")
        server = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
        if transport is not None:
            caller = HttpxCaller(transport, server, request_seconds=math.inf)
            return cls(url, timeout_seconds, parts.path, caller, None, "")
        identity: Headers = [
            (b"Host", parts.netloc.rpartition("@")[2].encode()),
            (b"User-Agent", user_agent("scheduler").encode()),
        ]
        if parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            identity.append((b"Authorization", b"Basic " + base64.b64encode(login.encode())))
        pool = Pool(
            Dialer(ConnectionSettings(server=server, tls=tls_source.settings), tls_source),
            fixed_headers=header_lines(identity),
            max_connections=MAX_CONNECTIONS,
            request_seconds=math.inf,  # the timeout of the call ends a request earlier
        )
        return cls(url, timeout_seconds, parts.path, pool, pool, "")

    async def post(self, path: str, body: bytes) -> Reply:
        """Send *body* to *path* below the URL, and return the response whatever its status.

        Raises:
            ConnectionFailed: there is no complete response.
        """
        if self._caller is None:
            await trio.lowlevel.checkpoint()
            raise ConnectionFailed(self.url, self._problem)
        target = quote(f"{self._path}/{path}", safe=_KEPT_IN_PATHS).encode()
        try:
            with trio.fail_after(self.timeout_seconds):
                return await self._caller.request(b"POST", target, JSON + GZIP, body)
        except trio.TooSlowError as problem:
            raise ConnectionFailed(self.url, TOO_SLOW, may_have_reached_server=True, timed_out=True) from problem

    def close(self) -> None:
        """Close all connections."""
        if self._pool is not None:
            self._pool.close()
