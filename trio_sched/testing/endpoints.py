"""Pretend HTTP servers for tests: functions that respond to the requests which plugins make with ``handle.http``."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import trio
from attrs import define, evolve

from trio_sched.daemon.plugins.plugin_http import shown_url
from trio_sched.plugin_api.http import HttpFailed, HttpRequest, HttpResponse

Response = HttpResponse | dict[str, Any] | list[Any] | str | bytes | None
"""What an endpoint returns; a dict or a list is sent as JSON, None is an empty response."""
Endpoint = Callable[[HttpRequest], Response | Awaitable[Response]]
"""Responds to a request; may be ``async``, sleep, and raise `HttpFailed`."""


@define(eq=False)
class PretendEndpoints:
    """Carries the requests of plugins to *endpoints*, by the beginning of the URL; the longest that fits counts."""

    endpoints: Mapping[str, Endpoint]
    how_to_add: str
    """Says how a test adds one."""

    async def send(self, request: HttpRequest, ca_file: str, timeout_seconds: float) -> HttpResponse:
        """Call the endpoint.

        Raises:
            HttpFailed: there is none, it raises, or it returns what is no response.
        """
        await trio.lowlevel.checkpoint()
        fitting = [base for base in self.endpoints if _fits(base, request.url)]
        shown = shown_url(request.url)
        if not fitting:
            known = ", ".join(self.endpoints) or "none"
            problem = f"there is no pretend endpoint at this URL (there are: {known}); {self.how_to_add}"
            raise HttpFailed(request.method, shown, problem)
        try:
            returned: Any = self.endpoints[max(fitting, key=len)](request)
            if inspect.isawaitable(returned):
                returned = await returned
        except HttpFailed:
            raise
        except Exception as problem:
            raise HttpFailed(request.method, shown, f"the pretend endpoint failed: {problem!r}") from problem
        response = _response(request, returned)
        return response if response.url else evolve(response, url=shown)

    async def close(self) -> None:
        """There is nothing to close."""


def _fits(base: str, url: str) -> bool:
    wanted, found = urlsplit(base), urlsplit(url)
    prefix = wanted.path.rstrip("/")
    same_server = (wanted.scheme, wanted.netloc.lower()) == (found.scheme, found.netloc.rpartition("@")[2].lower())
    return same_server and (found.path == prefix or found.path.startswith(f"{prefix}/") or not prefix)


def _response(request: HttpRequest, returned: Any) -> HttpResponse:
    if isinstance(returned, HttpResponse):
        return returned
    if isinstance(returned, dict | list):
        body = json.dumps(returned).encode()
        return HttpResponse(headers={"content-type": "application/json"}, body=body)
    if returned is None or isinstance(returned, str | bytes):
        return HttpResponse(body=returned.encode() if isinstance(returned, str) else returned or b"")
    problem = f"the pretend endpoint returned {type(returned).__name__}; return HttpResponse, a dict, text or bytes"
    raise HttpFailed(request.method, shown_url(request.url), problem)
