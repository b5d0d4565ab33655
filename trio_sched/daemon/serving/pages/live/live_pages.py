"""``/ui``: the live page, its files, and what it asks for."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

import trio
from attrs import define, evolve, field

from trio_sched.daemon.assembly import Assembly
from trio_sched.daemon.serving.messages import JSON, Handler, Request, Response
from trio_sched.daemon.serving.pages.explain_page import ExplainPage
from trio_sched.daemon.serving.pages.live.live_facts import LiveFacts
from trio_sched.daemon.serving.pages.live.live_history import LiveHistory
from trio_sched.daemon.serving.pages.live.live_responses import (
    EVENTS,
    GZIP,
    HEADERS,
    VARIES,
    error_response,
    files_and,
    json_response,
)
from trio_sched.daemon.serving.pages.live.live_streams import LiveStreams
from trio_sched.daemon.serving.pages.pages import accepts_gzip
from trio_sched.daemon.slices import Slices
from trio_sched.live_page.live_state import LiveState
from trio_sched.live_page.pods_and_nodes import MOST_FOUND, PodSearch, node_details

_USUALLY_FOUND: Final = 200
_SEARCHES_AT_ONCE: Final = 2
_FEW: Final = 8
"""More searches than this do not wait for each other."""


@define(eq=False)
class LivePages:
    """The page, and everything below it."""

    assembly: Assembly
    explain_page: ExplainPage
    kind: str = "scheduler"
    """What is said to be shown: ``scheduler`` or ``simulation``."""
    facts: LiveFacts = field(init=False)
    streams: LiveStreams = field(init=False)
    history: LiveHistory = field(init=False)
    _searches: trio.CapacityLimiter = field(init=False, factory=lambda: trio.CapacityLimiter(_SEARCHES_AT_ONCE))

    def __attrs_post_init__(self) -> None:
        self.facts = LiveFacts(self.assembly, self.kind)
        self.history = LiveHistory(self.facts)
        self.streams = LiveStreams(lambda sequence: LiveState(self.facts.source(), sequence), self.assembly.ending)

    async def run(self) -> None:
        """Do what goes on without requests; never returns."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.streams.run)
            nursery.start_soon(self.history.run)

    def handlers(self) -> dict[str, Handler]:
        """Handlers by exact path."""
        return files_and(
            {
                "stream": self._stream,
                "node": self._node,
                "pod": self._pod,
                "pods": self._pods,
                "history": self._history,
            }
        )

    async def _stream(self, request: Request) -> Response:
        if not self.assembly.synced.is_set():
            return error_response("the caches are not filled yet; try again in a moment", 503)
        if self.streams.is_full:
            return error_response(f"{self.streams.readers} pages are open already; close one of them", 429)
        is_zipped = accepts_gzip(request.header("accept-encoding"))
        headers = [EVENTS, VARIES, *HEADERS, *([GZIP] if is_zipped else [])]
        return Response(headers=headers, stream=self.streams.events(is_zipped=is_zipped))

    async def _node(self, request: Request) -> Response:
        details = node_details(self.assembly.scheduler.cache.table, request.parameter("name"))
        return error_response("there is no such node", 404) if details is None else json_response(details)

    async def _pod(self, request: Request) -> Response:
        if self.explain_page.is_busy:
            return error_response("other pods are being explained; try again in a moment", 429)
        key = f"{request.parameter('namespace')}/{request.parameter('name')}"
        response = await self.explain_page.explain(evolve(request, query=urlencode({"pod": key})))
        if response.status != 200:
            return error_response(response.body.decode().strip(), response.status)
        return Response(headers=[JSON, *HEADERS], body=response.body)

    async def _pods(self, request: Request) -> Response:
        if self._searches.statistics().tasks_waiting >= _FEW:
            return error_response("others are searching; try again in a moment", 429)
        limit = request.parameter("limit")
        most = (
            min(int(limit), MOST_FOUND) if limit.isascii() and limit.isdecimal() and len(limit) < 10 else _USUALLY_FOUND
        )
        search = PodSearch(self.assembly.scheduler, request.parameter("query"), most)
        async with self._searches:
            slices = Slices()
            for _ in search.run():
                await slices.pause_if_due()
        return json_response({"pods": search.found, "more": search.more})

    async def _history(self, _request: Request) -> Response:
        return json_response(self.history.shown())
