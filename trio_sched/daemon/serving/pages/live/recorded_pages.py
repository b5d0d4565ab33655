"""``/ui`` of what was recorded: the page, and the states between which it goes forward and back."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable
from typing import Any, Final, Protocol, TypeVar

from attrs import define

from trio_sched.daemon.assembly import Assembly
from trio_sched.daemon.serving.messages import JSON, Handler, Request, Response
from trio_sched.daemon.serving.pages.explain_page import ExplainPage
from trio_sched.daemon.serving.pages.live.live_responses import (
    EVENTS,
    HEADERS,
    error_response,
    files_and,
    json_response,
)
from trio_sched.daemon.serving.pages.live.stream_events import RETRY, json_line
from trio_sched.errors import TrioSchedError
from trio_sched.live_page.frames import Frame, Frames
from trio_sched.live_page.pods_and_nodes import PodSearch, node_details

T = TypeVar("T")
_MOST_FOUND: Final = 200


class _NotShown(TrioSchedError):
    """What is asked for is not there.

    Attributes:
        status: of the response.
    """

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


class Past(Protocol):
    """The scheduler as it was."""

    async def look(self, time: float, ask: Callable[[Assembly], T], *, changes: bool = False) -> T:
        """What *ask* returns of it at *time*, POSIX seconds; *changes*: whether it may change something."""


@define(eq=False)
class RecordedPages:
    """The page, and everything below it.

    Attributes:
        frames: at least one.
        history: what ``/ui/history`` answers.
        past: the details of each time.
    """

    frames: Frames
    history: dict[str, Any]
    past: Past

    def handlers(self) -> dict[str, Handler]:
        """Handlers by exact path."""
        return files_and(
            {
                "stream": self._stream,
                "frame": self._frame,
                "history": self._history,
                "node": self._node,
                "pod": self._pod,
                "pods": self._pods,
            }
        )

    async def _stream(self, _request: Request) -> Response:
        last = self.frames.at(self.frames.end)
        assert last is not None
        return Response(headers=[EVENTS, *HEADERS], stream=_only(self._shown(last)))

    async def _frame(self, request: Request) -> Response:
        try:
            frame = self._frame_at(request)
        except _NotShown as problem:
            return error_response(str(problem), problem.status)
        return Response(headers=[JSON, *HEADERS], body=self._shown(frame))

    def _frame_at(self, request: Request) -> Frame:
        """The state at the time that *request* names.

        Raises:
            _NotShown: there is none.
        """
        try:
            time = float(request.parameter("time"))
        except ValueError:
            time = math.nan
        if not math.isfinite(time):
            raise _NotShown("time: give seconds since 1970", 400)
        frame = self.frames.at(time)
        if frame is None:
            raise _NotShown(f"the recording begins at {self.frames.begin}, after that time", 404)
        return frame

    async def _node(self, request: Request) -> Response:
        name = request.parameter("name")

        def details(assembly: Assembly) -> bytes:
            found = node_details(assembly.scheduler.cache.table, name)
            if found is None:
                raise _NotShown("there is no such node at that time", 404)
            return json_line(found)

        return await self._looked(request, details)

    async def _pod(self, request: Request) -> Response:
        key = f"{request.parameter('namespace')}/{request.parameter('name')}"

        def explained(assembly: Assembly) -> bytes:
            cache, page = assembly.scheduler.cache, ExplainPage(assembly)
            pod = cache.unassigned.get(key) or next((one.pod for one in cache if one.pod.key == key), None)
            if pod is None:
                raise _NotShown("there is no such pod at that time", 404)
            return json_line(page.explained(pod, (), page.waiting(pod)))

        return await self._looked(request, explained, changes=True)

    async def _pods(self, request: Request) -> Response:
        text = request.parameter("query")

        def found(assembly: Assembly) -> bytes:
            search = PodSearch(assembly.scheduler, text, _MOST_FOUND)
            for _ in search.run():
                pass
            return json_line({"pods": search.found, "more": search.more})

        return await self._looked(request, found)

    async def _looked(self, request: Request, ask: Callable[[Assembly], bytes], *, changes: bool = False) -> Response:
        """The JSON that *ask* makes of the scheduler at the time that *request* names, else at the end."""
        try:
            time = self._frame_at(request).time if request.parameter("time") else self.frames.end
            body = await self.past.look(time, ask, changes=changes)
        except _NotShown as problem:
            return error_response(str(problem), problem.status)
        except TrioSchedError as problem:
            return error_response(str(problem), 503)
        return Response(headers=[JSON, *HEADERS], body=body)

    async def _history(self, _request: Request) -> Response:
        return json_response(self.history)

    def _shown(self, frame: Frame) -> bytes:
        """The snapshot of *frame* as JSON, with its time and the times that there are; not decoded for that."""
        times = {"time": frame.time, "timeline": {"begin": self.frames.begin, "end": self.frames.end}}
        return json_line(times)[:-1] + b"," + frame.snapshot[1:]


async def _only(snapshot: bytes) -> AsyncGenerator[bytes, None]:
    yield RETRY
    yield b"event: snapshot\ndata: %b\n\n" % snapshot
