"""The HTTP client of plugins: checks and limits requests, and sends them with httpx, in threads; with redirects.

httpx is imported when the first request is made. Where time is simulated but the servers are real, requests are sent
without a thread; in tests pretend endpoints answer them.
"""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import trio
from attrs import define, field

from trio_sched.daemon.limits import (
    HTTP_CLOSE_SECONDS,
    MAX_HTTP_BODY_BYTES,
    MAX_HTTP_CLIENTS,
    MAX_HTTP_REDIRECTS,
    MAX_HTTP_SECONDS,
    MAX_PARALLEL_HTTP,
)
from trio_sched.plugin_api.http import HttpFailed, HttpRequest, HttpResponse

if TYPE_CHECKING:
    import httpx

    from trio_sched.daemon.plugins.bounded_http import Deadline

DEFAULT_SECONDS: Final = 10.0
_USER_AGENT: Final = "trio-sched"


class HttpTransport(Protocol):
    """Carries the requests of plugins."""

    async def send(self, request: HttpRequest, ca_file: str, timeout_seconds: float) -> HttpResponse:
        """Send *request*, follow redirects, read the response.

        Raises:
            HttpFailed: there is no complete response.
        """
        ...

    async def close(self) -> None:
        """End all connections."""
        ...


@define(eq=False)
class PluginHttp:
    """See `trio_sched.plugin_api.http.Http`."""

    transport: HttpTransport

    async def close_on_exit(self) -> None:
        """Wait until cancelled, then end all connections."""
        try:
            await trio.sleep_forever()
        finally:
            with trio.move_on_after(HTTP_CLOSE_SECONDS, shield=True):
                await self.transport.close()

    async def get(
        self,
        url: str,
        *,
        params: Mapping[str, str | int | float] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_seconds: float = DEFAULT_SECONDS,
        ca_file: str = "",
    ) -> HttpResponse:
        """GET *url*."""
        return await self._send(make_request("GET", url, params, headers), ca_file, timeout_seconds)

    async def post(
        self,
        url: str,
        *,
        json: Any = None,
        content: bytes | str | None = None,
        params: Mapping[str, str | int | float] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_seconds: float = DEFAULT_SECONDS,
        ca_file: str = "",
    ) -> HttpResponse:
        """POST to *url*."""
        body, content_type = _body(json, content)
        request = make_request("POST", url, params, {**content_type, **(headers or {})}, body)
        return await self._send(request, ca_file, timeout_seconds)

    async def _send(self, request: HttpRequest, ca_file: str, timeout_seconds: float) -> HttpResponse:
        if type(timeout_seconds) not in (int, float) or not 0 < timeout_seconds <= MAX_HTTP_SECONDS:
            raise ValueError(f"handle.http: timeout_seconds must be a positive number of seconds: {timeout_seconds!r}")
        if not isinstance(ca_file, str):
            raise ValueError(f"handle.http: ca_file must be the path of a file, not {ca_file!r}")
        with trio.move_on_after(timeout_seconds):
            response = await self.transport.send(request, ca_file, timeout_seconds)
            if len(response.body) > MAX_HTTP_BODY_BYTES:
                raise body_too_large(request)
            return response
        raise _too_late(request, timeout_seconds)


def make_request(
    method: str,
    url: str,
    params: Mapping[str, str | int | float] | None,
    headers: Mapping[str, str] | None,
    body: bytes = b"",
) -> HttpRequest:
    """A request, checked.

    Raises:
        ValueError: it cannot be sent.
    """
    if not isinstance(url, str):
        raise ValueError(f"handle.http: a URL must be a text, not {url!r}")
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable or not url.isprintable() or " " in url:
        raise ValueError(f"handle.http: {shown_url(url)!r} is no URL; write http://host/path or https://host/path")
    if params is not None:
        if not isinstance(params, Mapping):
            raise ValueError("handle.http: params must be a dict of texts and numbers")
        query = "&".join(filter(None, (parts.query, urlencode({str(name): value for name, value in params.items()}))))
        parts = parts._replace(query=query)
    if headers is not None and not isinstance(headers, Mapping):
        raise ValueError("handle.http: headers must be a dict of texts")
    lower: dict[str, str] = {}
    for name, value in (headers or {}).items():
        if not isinstance(name, str) or not isinstance(value, str) or not (name + value).isprintable() or not name:
            raise ValueError(f"handle.http: header {name!r} must be a printable text with a printable text as value")
        lower[name.lower()] = value
    return HttpRequest(
        method=method,
        url=urlunsplit(parts._replace(fragment="")),
        path=parts.path or "/",
        params=dict(parse_qsl(parts.query, keep_blank_values=True)),
        headers=lower,
        body=body,
    )


def _body(value: Any, content: bytes | str | None) -> tuple[bytes, dict[str, str]]:
    if value is not None and content is not None:
        raise ValueError("handle.http.post takes json or content, not both")
    if isinstance(content, str):
        return content.encode("utf-8", "replace"), {}
    if isinstance(content, bytes | bytearray | memoryview):
        return bytes(content), {}
    if content is not None:
        raise ValueError(f"handle.http.post: content must be bytes or a text, not {type(content).__name__}")
    if value is None:
        return b"", {}
    try:
        return json.dumps(value).encode(), {"content-type": "application/json"}
    except (TypeError, ValueError, RecursionError) as problem:
        raise ValueError(f"handle.http.post: json cannot be encoded: {problem}") from None


def shown_url(url: str) -> str:
    """*url* without what may be a secret: user and password, and the query."""
    try:
        parts = urlsplit(url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))[:500]
    except ValueError:
        return url.partition("?")[0].rpartition("@")[2][:500]


def body_too_large(request: HttpRequest) -> HttpFailed:
    """The failure of a request whose response has too large a body."""
    problem = f"the body of the response has more than {MAX_HTTP_BODY_BYTES >> 20} MiB"
    return HttpFailed(request.method, shown_url(request.url), problem)


@define(eq=False)
class BlockingTransport:
    """Sends over the network while nothing else runs: so a simulated clock stands still."""

    _clients: dict[str, httpx.Client] = field(factory=dict, init=False)
    """By the file of certificates."""
    _making: threading.Lock = field(factory=threading.Lock, init=False)
    _deadline: Deadline = field(init=False)

    async def send(self, request: HttpRequest, ca_file: str, timeout_seconds: float) -> HttpResponse:
        """See `HttpTransport`."""
        over, outcome = trio.Event(), list[HttpResponse | Exception]()

        async def exchange() -> None:
            try:
                outcome.append(self.exchange(request, ca_file, timeout_seconds))
            except Exception as problem:  # raised below, to the plugin
                outcome.append(problem)
            over.set()

        # In a task of its own: the plugin that waits for it must not be accused of blocking the event loop.
        trio.lowlevel.spawn_system_task(exchange)
        await over.wait()
        (response,) = outcome
        if isinstance(response, Exception):
            raise response
        return response

    def exchange(self, request: HttpRequest, ca_file: str, timeout_seconds: float) -> HttpResponse:
        """Send and wait.

        Raises:
            HttpFailed: there is no complete response.
        """
        import httpx

        from trio_sched.daemon.plugins.bounded_http import decompressed

        ends_at = time.monotonic() + timeout_seconds
        found = bytearray()
        try:
            client = self._client(ca_file)
            self._deadline.ends_at = ends_at
            with client.stream(
                request.method,
                request.url,
                headers=dict(request.headers),
                content=request.body or None,
                timeout=timeout_seconds,  # of every single wait
            ) as response:
                for piece in decompressed(response):
                    found += piece
                    if len(found) > MAX_HTTP_BODY_BYTES:
                        raise body_too_large(request)
                    if time.monotonic() > ends_at:
                        raise _too_late(request, timeout_seconds)
        except httpx.TimeoutException as problem:
            raise _too_late(request, timeout_seconds) from problem
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, ValueError, OSError) as problem:
            text = f"more than {MAX_HTTP_REDIRECTS} redirects" if isinstance(problem, httpx.TooManyRedirects) else ""
            text = text or str(problem) or type(problem).__name__
            raise HttpFailed(request.method, shown_url(request.url), text[:500]) from problem
        url = shown_url(str(response.url))
        return HttpResponse(status=response.status_code, headers=dict(response.headers), body=bytes(found), url=url)

    def _client(self, ca_file: str) -> httpx.Client:
        from trio_sched.daemon.plugins.bounded_http import Deadline, limit_waits

        with self._making:
            if not self._clients:
                self._deadline = Deadline()
            client = self._clients.get(ca_file)
            if client is None:
                if len(self._clients) >= MAX_HTTP_CLIENTS:
                    raise ValueError(f"more than {MAX_HTTP_CLIENTS} different ca_file are used")
                client = self._clients[ca_file] = _make_client(ca_file)
                limit_waits(client, self._deadline)
        return client

    async def close(self) -> None:
        """See `HttpTransport`."""
        for client in self._clients.values():
            client.close()
        self._clients.clear()


@define(eq=False)
class NetworkTransport:
    """Sends over the network in threads: what a plugin asks for must not hold up the scheduler in any way."""

    _blocking: BlockingTransport = field(factory=BlockingTransport, init=False)
    _limiter: trio.CapacityLimiter = field(factory=lambda: trio.CapacityLimiter(MAX_PARALLEL_HTTP), init=False)

    async def send(self, request: HttpRequest, ca_file: str, timeout_seconds: float) -> HttpResponse:
        """See `HttpTransport`."""
        exchange = partial(self._blocking.exchange, request, ca_file, timeout_seconds)
        # A thread that is abandoned ends soon, because its waits are limited too.
        return await trio.to_thread.run_sync(exchange, abandon_on_cancel=True, limiter=self._limiter)

    async def close(self) -> None:
        """See `HttpTransport`."""
        await self._blocking.close()


def _make_client(ca_file: str) -> httpx.Client:
    import httpx

    from trio_sched.daemon.plugins.bounded_http import ACCEPTED

    trusted: dict[str, Any] = {"verify": ssl.create_default_context(cafile=ca_file)} if ca_file else {}
    headers = {"user-agent": _USER_AGENT, "accept-encoding": ACCEPTED}
    return httpx.Client(headers=headers, follow_redirects=True, max_redirects=MAX_HTTP_REDIRECTS, **trusted)


def _too_late(request: HttpRequest, seconds: float) -> HttpFailed:
    return HttpFailed(request.method, shown_url(request.url), f"no response within {seconds:g} s")
