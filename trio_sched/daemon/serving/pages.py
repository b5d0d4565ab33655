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


@define(eq=False)
class MetricsHandler:
    """Serves one page."""

    page: Page
    is_shown: Callable[[], bool] = lambda: True
    """Whether there is anything to show now; else the response is empty, and nothing is reset."""
    started: int = field(factory=lambda: int(time.time()))
    _rendering: trio.Lock = field(init=False, factory=trio.Lock)
    """One at a time: each takes memory and turns of the event loop."""

    async def __call__(self, request: Request) -> Response:
        """The metrics; DELETE resets them."""
        if not self.is_shown():
            return Response()
        if request.method == "DELETE":
            self.page.reset()
            return plain("metrics reset\n", nosniff=False)
        async with self._rendering:
            content_type, pieces = await self.page.render(request.header("accept"))
            if not content_type:
                return Response()
            headers = [("content-type", content_type), ("process-start-time-unix", str(self.started))]
            if sum(map(len, pieces)) >= _GZIP_FROM and _accepts_gzip(request.header("accept-encoding")):
                headers.append(("content-encoding", "gzip"))
                pieces = await trio.to_thread.run_sync(_compressed, pieces)
            if sum(map(len, pieces)) <= _TOGETHER:
                pieces = [b"".join(pieces)]
            return Response(headers=headers, body=pieces[0], rest=pieces[1:])


def _compressed(pieces: list[bytes]) -> list[bytes]:
    compress = zlib.compressobj(1, wbits=16 + zlib.MAX_WBITS)  # with the header of gzip
    return [*filter(None, map(compress.compress, pieces)), compress.flush()]


def _accepts_gzip(header: str) -> bool:
    for part in header.lower().split(","):
        name, _, parameters = part.partition(";")
        if name.strip() in ("gzip", "*"):
            return parameters.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
