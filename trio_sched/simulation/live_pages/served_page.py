"""The live page of a simulated cluster's scheduler, beside the simulated API server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio
from attrs import define, field

from trio_sched.daemon.serving.messages import Request, refusal
from trio_sched.daemon.serving.pages.routes import Routes
from trio_sched.daemon.serving.sending import Message, Receive, Send, send_response, send_stream

if TYPE_CHECKING:
    from trio_sched.daemon.assembly import Assembly

PAGE_PATH: Final = "ui"


@define(eq=False)
class ServedPage:
    """The page as an ASGI application; whoever reaches the simulated API server may read it."""

    _routes: Routes | None = field(init=False, default=None)
    """None until there is a scheduler."""

    async def run(self, assembly: Assembly) -> None:
        """Serve the page of the scheduler that is *assembly*; never returns."""
        from trio_sched.daemon.serving.pages.explain_page import ExplainPage
        from trio_sched.daemon.serving.pages.live.live_pages import LivePages  # only where a port is served
        from trio_sched.daemon.serving.pages.liveness import Liveness

        liveness = Liveness(assembly)
        pages = LivePages(assembly, ExplainPage(assembly, liveness.attempts_per_second), kind="simulation")
        self._routes = Routes(exact=pages.handlers())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(liveness.run)
            nursery.start_soon(pages.run)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        path, query = scope["path"], scope["query_string"].decode("ascii", "replace")
        headers = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]]
        request = Request(method=scope["method"], path=path, target=path, query=query, headers=headers)
        if scope["method"] not in ("GET", "HEAD"):
            response = refusal("405 method not allowed", 405)
        elif self._routes is None:
            response = refusal("the scheduler has not started yet", 503)
        else:
            response = await self._routes(request)
        with_body = scope["method"] != "HEAD"
        await send_response(send, response, with_body=with_body)
        if response.stream is not None and with_body:
            await send_stream(receive, send, response.stream)
