"""The readers of the live page: the scheduler is looked at once for all of them, and never without one."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import AsyncGenerator, Callable
from typing import Any, Final

import trio
from attrs import define, field

from trio_sched.daemon.serving.limits import (
    LIVE_KEEP_ALIVE_SECONDS,
    LIVE_PERIOD_SECONDS,
    LIVE_STREAM_SECONDS,
    MAX_LIVE_STREAMS,
)
from trio_sched.daemon.serving.pages.live.stream_events import GZIP_HEADER, KEEP_ALIVE, RETRY, StreamEvent, zipped
from trio_sched.daemon.slices import Slices, in_slices
from trio_sched.live_page.live_state import LiveState

_KEPT_DELTAS: Final = 8
"""A reader that is further behind gets a snapshot."""


@define(eq=False)
class LiveStreams:
    """All readers, and what they read."""

    new_state: Callable[[int], LiveState]
    """Makes a state that has looked at nothing yet, and goes on from a sequence number."""
    ending: trio.Event
    """Ends the streams."""
    readers: int = field(init=False, default=0)
    refreshes: int = field(init=False, default=0)
    """How often the scheduler was looked at."""
    _sequence: int = field(init=False, default=0)
    _state: LiveState | None = field(init=False, default=None)
    _snapshot: StreamEvent | None = field(init=False, default=None)
    _deltas: deque[StreamEvent] = field(init=False, factory=lambda: deque(maxlen=_KEPT_DELTAS))
    _looking: trio.Lock = field(init=False, factory=trio.Lock)
    """Held while the state is not in one piece."""
    _come: trio.Event = field(init=False, factory=trio.Event)
    _refreshed: trio.Event = field(init=False, factory=trio.Event)
    """Set after the next refresh; replaced by a new event then."""

    @property
    def is_full(self) -> bool:
        """Whether there is no room for a further reader."""
        return self.readers >= MAX_LIVE_STREAMS

    async def run(self) -> None:
        """Look at the scheduler while there are readers; never returns."""
        try:
            while True:
                if not self.readers:
                    self._forget()
                    self._come = trio.Event()
                    await self._come.wait()
                began = trio.current_time()
                await self._refresh()
                await trio.sleep_until(began + LIVE_PERIOD_SECONDS)
        finally:
            self._forget()

    async def events(self, *, is_zipped: bool) -> AsyncGenerator[bytes, None]:
        """What one reader gets; ends when it has to come again."""
        if self.is_full:
            return
        until = trio.current_time() + LIVE_STREAM_SECONDS
        self.readers += 1
        self._come.set()
        try:
            yield GZIP_HEADER + zipped(RETRY) if is_zipped else RETRY
            sequence, sent_at = None, trio.current_time()
            while (now := trio.current_time()) < until and not self.ending.is_set():
                for event in await self._since(sequence):
                    sequence, sent_at = event.sequence, now
                    yield event.compress() if is_zipped else event.text
                if now - sent_at >= LIVE_KEEP_ALIVE_SECONDS:
                    sent_at = now
                    yield zipped(KEEP_ALIVE) if is_zipped else KEEP_ALIVE
                with trio.move_on_at(until):
                    await self._refreshed.wait()
        finally:
            self.readers -= 1

    async def _refresh(self) -> None:
        state = self._state or self.new_state(self._sequence)
        self.refreshes += 1
        delta: dict[str, Any] = {}
        slices = Slices()
        async with self._looking:
            for _ in state.refresh(delta):
                await slices.pause_if_due()
            self._state, self._sequence = state, state.sequence
        if delta:
            await slices.pause_if_due()
            self._deltas.append(StreamEvent.of("delta", delta))
        self._refreshed.set()
        self._refreshed = trio.Event()

    async def _since(self, sequence: int | None) -> list[StreamEvent]:
        """What a reader that knows the state up to *sequence*, None if nothing, has to get."""
        async with self._looking:
            state = self._state
            if state is None or sequence == state.sequence:
                return []
            if sequence is not None and (news := self._deltas_since(sequence)) is not None:
                return news
            if self._snapshot is None or self._deltas_since(self._snapshot.sequence) is None:
                await self._make_snapshot(state)
            assert self._snapshot is not None
            return [self._snapshot]

    def _deltas_since(self, sequence: int) -> list[StreamEvent] | None:
        """The deltas after *sequence*; None if they are not kept any more."""
        news = [delta for delta in self._deltas if delta.sequence > sequence]
        first = news[0].sequence if news else math.inf
        state = self._state
        is_complete = first == sequence + 1 or (state is not None and sequence == state.sequence)
        return news if is_complete else None

    async def _make_snapshot(self, state: LiveState) -> None:
        slices = Slices()
        data = state.snapshot()
        await slices.pause_if_due()
        snapshot = StreamEvent.of("snapshot", data)
        async for _ in in_slices(snapshot.compressing()):
            pass
        self._snapshot = snapshot

    def _forget(self) -> None:
        self._state = self._snapshot = None
        self._deltas.clear()
