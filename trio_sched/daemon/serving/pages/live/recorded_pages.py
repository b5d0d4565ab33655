"""``/ui`` of what was recorded: the page, and the states between which it goes forward and back."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator
from typing import Any, Final

from attrs import define

from trio_sched.daemon.serving.messages import JSON, Handler, Request, Response
from trio_sched.daemon.serving.pages.live.live_responses import (
    EVENTS,
    HEADERS,
    error_response,
    files_and,
    json_response,
)
from trio_sched.daemon.serving.pages.live.stream_events import RETRY, json_line
from trio_sched.live_page.frames import Frame, Frames

_NOT_KNOWN: Final = "a recording is shown without details of single nodes and pods, and its pods cannot be searched"


@define(eq=False)
class RecordedPages:
    """The page, and everything below it.

    Attributes:
        frames: at least one.
        history: what ``/ui/history`` answers.
    """

    frames: Frames
    history: dict[str, Any]

    def handlers(self) -> dict[str, Handler]:
        """Handlers by exact path."""
        unknown = dict.fromkeys(("node", "pod", "pods"), _unknown)
        return files_and({"stream": self._stream, "frame": self._frame, "history": self._history, **unknown})

    async def _stream(self, _request: Request) -> Response:
        last = self.frames.at(self.frames.end)
        assert last is not None
        return Response(headers=[EVENTS, *HEADERS], stream=_only(self._shown(last)))

    async def _frame(self, request: Request) -> Response:
        text = request.parameter("time")
        try:
            time = float(text)
        except ValueError:
            time = math.nan
        if not math.isfinite(time):
            return error_response("time: give seconds since 1970", 400)
        frame = self.frames.at(time)
        if frame is None:
            return error_response(f"the recording begins at {self.frames.begin}, after that time", 404)
        return Response(headers=[JSON, *HEADERS], body=self._shown(frame))

    async def _history(self, _request: Request) -> Response:
        return json_response(self.history)

    def _shown(self, frame: Frame) -> bytes:
        """The snapshot of *frame* as JSON, with its time and the times that there are; not decoded for that."""
        times = {"time": frame.time, "timeline": {"begin": self.frames.begin, "end": self.frames.end}}
        return json_line(times)[:-1] + b"," + frame.snapshot[1:]


async def _unknown(_request: Request) -> Response:
    return error_response(_NOT_KNOWN, 501)


async def _only(snapshot: bytes) -> AsyncGenerator[bytes, None]:
    yield RETRY
    yield b"event: snapshot\ndata: %b\n\n" % snapshot
