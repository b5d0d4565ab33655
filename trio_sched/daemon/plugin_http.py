"""HTTP for plugins: checks requests, limits them, and hands them to what carries them.

That is httpx in the daemon, imported when the first request is made; `BlockingTransport` where time is simulated but
the servers are real, and pretend endpoints in tests.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import trio
from attrs import define, field

from trio_sched.daemon.limits import HTTP_CLOSE_SECONDS, MAX_HTTP_BODY_BYTES, MAX_HTTP_CLIENTS, MAX_HTTP_REDIRECTS
from trio_sched.plugin_api.http import HttpFailed, HttpRequest, HttpResponse

if TYPE_CHECKING:
    import httpx

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
        if not isinstance(timeout_seconds, int | float) or not 0 < timeout_seconds < math.inf:
            raise ValueError(f"handle.http: timeout_seconds must be a positive number of seconds: {timeout_seconds!r}")
        if not isinstance(ca_file, str):
            raise ValueError(f"handle.http: ca_file must be the path of a file, not {ca_file!r}")
        with trio.move_on_after(timeout_seconds):
            response = await self.transport.send(request, ca_file, timeout_seconds)
            if len(response.body) > MAX_HTTP_BODY_BYTES:
                raise body_too_large(request)
            return response
        raise HttpFailed(request.method, shown_url(request.url), f"no response within {timeout_seconds:g} s")


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
    if params:
        if not isinstance(params, Mapping):
            raise ValueError("handle.http: params must be a dict of texts and numbers")
        query = "&".join(filter(None, (parts.query, urlencode({str(name): value for name, value in params.items()}))))
        parts = parts._replace(query=query)
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
    if content is not None:
        return bytes(content), {}
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
class NetworkTransport:
    """Sends over the network; one httpx client per file of certificates."""

    _clients: dict[str, httpx.AsyncClient] = field(factory=dict, init=False)
    _making: trio.Lock = field(factory=trio.Lock, init=False)

    async def send(self, request: HttpRequest, ca_file: str, timeout_seconds: float) -> HttpResponse:
        """See `HttpTransport`."""
        client = await self._client(request, ca_file)
        import httpx  # by now it is

        found = bytearray()
        try:
            async with client.stream(
                request.method, request.url, headers=dict(request.headers), content=request.body or None
            ) as response:
                async for piece in response.aiter_bytes():
                    found += piece
                    if len(found) > MAX_HTTP_BODY_BYTES:
                        raise body_too_large(request)
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, ValueError, OSError) as problem:
            raise _failed(request, problem) from problem
        return _response(response, bytes(found))

    async def _client(self, request: HttpRequest, ca_file: str) -> httpx.AsyncClient:
        client = self._clients.get(ca_file)
        if client is not None:
            return client
        async with self._making:
            client = self._clients.get(ca_file)
            if client is None:
                if len(self._clients) >= MAX_HTTP_CLIENTS:
                    problem = f"more than {MAX_HTTP_CLIENTS} different ca_file are used"
                    raise HttpFailed(request.method, shown_url(request.url), problem)
                try:  # importing httpx and reading certificates takes a tenth of a second
                    client = await trio.to_thread.run_sync(_make_client, ca_file, abandon_on_cancel=True)
                except Exception as problem:  # a proxy or a file of certificates of the environment, or of the plugin
                    raise _failed(request, problem) from problem
                self._clients[ca_file] = client
        return client

    async def close(self) -> None:
        """See `HttpTransport`."""
        for client in list(self._clients.values()):
            await client.aclose()
        self._clients.clear()


@define(eq=False)
class BlockingTransport:
    """Sends over the network while nothing else runs: so a simulated clock stands still."""

    _clients: dict[str, httpx.Client] = field(factory=dict, init=False)

    async def send(self, request: HttpRequest, ca_file: str, timeout_seconds: float) -> HttpResponse:
        """See `HttpTransport`."""
        import httpx

        await trio.lowlevel.checkpoint()
        found = bytearray()
        try:
            client = self._clients.get(ca_file)
            if client is None:
                if len(self._clients) >= MAX_HTTP_CLIENTS:
                    raise ValueError(f"more than {MAX_HTTP_CLIENTS} different ca_file are used")
                client = self._clients[ca_file] = httpx.Client(**_client_options(ca_file))
            with client.stream(
                request.method,
                request.url,
                headers=dict(request.headers),
                content=request.body or None,
                timeout=timeout_seconds,
            ) as response:
                for piece in response.iter_bytes():
                    found += piece
                    if len(found) > MAX_HTTP_BODY_BYTES:
                        raise body_too_large(request)
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, ValueError, OSError) as problem:
            raise _failed(request, problem) from problem
        return _response(response, bytes(found))

    async def close(self) -> None:
        """See `HttpTransport`."""
        for client in self._clients.values():
            client.close()
        self._clients.clear()


def _make_client(ca_file: str) -> httpx.AsyncClient:
    import httpx

    return httpx.AsyncClient(**_client_options(ca_file))


def _client_options(ca_file: str) -> dict[str, Any]:
    options: dict[str, Any] = {
        "headers": {"user-agent": _USER_AGENT},
        "follow_redirects": True,
        "max_redirects": MAX_HTTP_REDIRECTS,
        "timeout": None,  # there is one around it
    }
    if ca_file:
        import ssl

        options["verify"] = ssl.create_default_context(cafile=ca_file)
    return options


def _failed(request: HttpRequest, problem: Exception) -> HttpFailed:
    import httpx

    match problem:
        case httpx.TimeoutException():
            text = "no response in time"
        case httpx.TooManyRedirects():
            text = f"more than {MAX_HTTP_REDIRECTS} redirects"
        case _:
            text = str(problem) or type(problem).__name__
    return HttpFailed(request.method, shown_url(request.url), text[:500])


def _response(response: httpx.Response, body: bytes) -> HttpResponse:
    return HttpResponse(
        status=response.status_code, headers=dict(response.headers), body=body, url=shown_url(str(response.url))
    )
