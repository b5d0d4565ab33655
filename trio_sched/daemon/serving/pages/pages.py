"""``/metrics`` and its neighbours: how they are sent."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from typing import Final

import trio
from attrs import define, field

from trio_sched.daemon.metrics.pages import Page
from trio_sched.daemon.serving.messages import Request, Response, plain

_GZIP_FROM: Final = 1024
"""Bytes below which compression gains nothing."""
_TOGETHER: Final = 64 * 1024
"""Up to so many bytes are sent at once."""


_Form = tuple[str, bool]
"""What the header ``Accept`` says, and whether the body is compressed."""


@define(eq=False)
class _Rendering:
    """A page that is made, for one request or several."""

    over: trio.Event = field(factory=trio.Event)
    response: Response | None = None


@define(eq=False)
class MetricsHandler:
    """Serves one page."""

    page: Page
    is_shown: Callable[[], bool] = lambda: True
    """Whether there is anything to show now; else the response is empty, and nothing is reset."""
    started: int = field(factory=lambda: int(time.time()))
    _lock: trio.Lock = field(init=False, factory=trio.Lock)
    """One at a time: each takes memory and turns of the event loop."""
    _waiting: dict[_Form, _Rendering] = field(init=False, factory=dict)
    """Those that have not begun, so that their bodies are as new as any request for them."""

    async def __call__(self, request: Request) -> Response:
        """The metrics; DELETE resets them."""
        if not self.is_shown():
            return Response()
        if request.method == "DELETE":
            self.page.reset()
            return plain("metrics reset\n", nosniff=False)
        form = request.header("accept"), accepts_gzip(request.header("accept-encoding"))
        while (shared := self._waiting.get(form)) is not None:
            await shared.over.wait()
            if shared.response is not None:
                return _copy(shared.response)
        return _copy(await self._render(form))

    async def _render(self, form: _Form) -> Response:
        """The page for this request and those that come until it is begun: a body can be many megabytes."""
        rendering = self._waiting[form] = _Rendering()
        try:
            try:
                await self._lock.acquire()
            finally:
                del self._waiting[form]
            try:
                rendering.response = await self._rendered(*form)
            finally:
                self._lock.release()
        finally:
            rendering.over.set()  # without a response if this request was given up: then another one takes its turn
        return rendering.response

    async def _rendered(self, accept: str, is_zipped: bool) -> Response:
        content_type, pieces = await self.page.render(accept)
        headers = [("content-type", content_type), ("process-start-time-unix", str(self.started))]
        if is_zipped and sum(map(len, pieces)) >= _GZIP_FROM:
            headers.append(("content-encoding", "gzip"))
            pieces = await trio.to_thread.run_sync(_compressed, pieces)
        if sum(map(len, pieces)) <= _TOGETHER:
            pieces = [b"".join(pieces)]
        return Response(headers=headers, body=pieces[0], rest=pieces[1:])


def _copy(response: Response) -> Response:
    """A response with the same body; who sends it may add headers."""
    return Response(headers=list(response.headers), body=response.body, rest=response.rest)


def _compressed(pieces: list[bytes]) -> list[bytes]:
    compress = zlib.compressobj(1, wbits=16 + zlib.MAX_WBITS)  # with the header of gzip
    return [*filter(None, map(compress.compress, pieces)), compress.flush()]


def accepts_gzip(header: str) -> bool:
    """Whether a client whose ``Accept-Encoding`` is *header* takes a compressed body."""
    for part in header.lower().split(","):
        name, _, parameters = part.partition(";")
        if name.strip() in ("gzip", "*"):
            return parameters.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
