"""``/ui``: the live page, its files, and what it asks for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

import trio
from attrs import define, evolve, field

from trio_sched.daemon.assembly import Assembly
from trio_sched.daemon.serving.messages import JSON, NOSNIFF, Handler, Header, Request, Response
from trio_sched.daemon.serving.pages.explain_page import ExplainPage
from trio_sched.daemon.serving.pages.live.live_facts import LiveFacts
from trio_sched.daemon.serving.pages.live.live_history import LiveHistory
from trio_sched.daemon.serving.pages.live.live_streams import LiveStreams
from trio_sched.daemon.serving.pages.live.stream_events import json_line
from trio_sched.daemon.serving.pages.pages import accepts_gzip
from trio_sched.daemon.slices import Slices
from trio_sched.live_page.live_state import LiveState
from trio_sched.live_page.pods_and_nodes import MOST_FOUND, PodSearch, node_details
from trio_sched.live_page.static_files import PAGE, StaticFile, static_files

ROOT: Final = "/ui"
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
_HEADERS: Final[tuple[Header, ...]] = (NOSNIFF, ("content-security-policy", _POLICY))
_EVENTS: Final = ("content-type", "text/event-stream")
_GZIP: Final = ("content-encoding", "gzip")
_VARIES: Final = ("vary", "Accept-Encoding")
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
        pages: dict[str, Callable[[Request], Awaitable[Response]]] = {
            "stream": self._stream,
            "node": self._node,
            "pod": self._pod,
            "pods": self._pods,
            "history": self._history,
        }
        files = {name: partial(_file, file) for name, file in static_files().items()}
        return {
            ROOT: files[PAGE],
            f"{ROOT}/": _redirect,
            **{f"{ROOT}/{name}": handler for name, handler in (pages | files).items()},
        }

    async def _stream(self, request: Request) -> Response:
        if not self.assembly.synced.is_set():
            return _error("the caches are not filled yet; try again in a moment", 503)
        if self.streams.is_full:
            return _error(f"{self.streams.readers} pages are open already; close one of them", 429)
        is_zipped = accepts_gzip(request.header("accept-encoding"))
        headers = [_EVENTS, _VARIES, *_HEADERS, *([_GZIP] if is_zipped else [])]
        return Response(headers=headers, stream=self.streams.events(is_zipped=is_zipped))

    async def _node(self, request: Request) -> Response:
        details = node_details(self.assembly.scheduler.cache.table, request.parameter("name"))
        return _error("there is no such node", 404) if details is None else _json(details)

    async def _pod(self, request: Request) -> Response:
        if self.explain_page.is_busy:
            return _error("other pods are being explained; try again in a moment", 429)
        key = f"{request.parameter('namespace')}/{request.parameter('name')}"
        response = await self.explain_page.explain(evolve(request, query=urlencode({"pod": key})))
        if response.status != 200:
            return _error(response.body.decode().strip(), response.status)
        return Response(headers=[JSON, *_HEADERS], body=response.body)

    async def _pods(self, request: Request) -> Response:
        if self._searches.statistics().tasks_waiting >= _FEW:
            return _error("others are searching; try again in a moment", 429)
        limit = request.parameter("limit")
        most = (
            min(int(limit), MOST_FOUND) if limit.isascii() and limit.isdecimal() and len(limit) < 10 else _USUALLY_FOUND
        )
        search = PodSearch(self.assembly.scheduler, request.parameter("query"), most)
        async with self._searches:
            slices = Slices()
            for _ in search.run():
                await slices.pause_if_due()
        return _json({"pods": search.found, "more": search.more})

    async def _history(self, _request: Request) -> Response:
        return _json(self.history.shown())


async def _file(file: StaticFile, request: Request) -> Response:
    headers = [("content-type", file.media_type), ("etag", file.tag), _VARIES, *_HEADERS]
    known = {tag.strip().removeprefix("W/") for tag in request.header("if-none-match").split(",")}
    if file.tag in known or "*" in known:
        return Response(status=304, headers=headers)
    if accepts_gzip(request.header("accept-encoding")):
        return Response(headers=[*headers, _GZIP], body=file.zipped)
    return Response(headers=headers, body=file.content)


async def _redirect(_request: Request) -> Response:
    return Response(status=301, headers=[("location", f"..{ROOT}"), *_HEADERS])


def _json(data: dict[str, Any]) -> Response:
    return Response(headers=[JSON, *_HEADERS], body=json_line(data))


def _error(text: str, status: int) -> Response:
    return Response(status=status, headers=[JSON, *_HEADERS], body=json_line({"error": text}))
