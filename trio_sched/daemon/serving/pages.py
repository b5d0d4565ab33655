"""``/metrics`` and its neighbours: how they are sent."""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable
from functools import partial
from typing import Final

import trio
from attrs import define, field

from trio_sched.daemon.metrics.pages import Page
from trio_sched.daemon.serving.messages import Request, Response, plain

_GZIP_FROM: Final = 1024
"""Bytes below which compression gains nothing."""


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
            content_type, body = await self.page.render(request.header("accept"))
            response = Response(body=body)
            if not content_type:
                return response
            response.headers += [("content-type", content_type), ("process-start-time-unix", str(self.started))]
            if len(body) >= _GZIP_FROM and _accepts_gzip(request.header("accept-encoding")):
                response.body = await trio.to_thread.run_sync(partial(gzip.compress, body, compresslevel=1, mtime=0))
                response.headers.append(("content-encoding", "gzip"))
            return response


def _accepts_gzip(header: str) -> bool:
    for part in header.lower().split(","):
        name, _, parameters = part.partition(";")
        if name.strip() in ("gzip", "*"):
            return parameters.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
