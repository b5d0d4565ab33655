"""What the live page shows of a recording: its states and its history, looked at while it is replayed."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, Final

from attrs import define, evolve, field

from trio_sched.daemon.assembly import Assembly
from trio_sched.daemon.serving.pages.live.live_facts import LiveFacts
from trio_sched.daemon.serving.pages.live.recorded_pages import RecordedPages
from trio_sched.daemon.serving.pages.live.stream_events import json_line
from trio_sched.live_page.frames import Frames
from trio_sched.live_page.history import STEP_SECONDS, History
from trio_sched.live_page.live_state import LiveState
from trio_sched.live_page.pending_rows import ROUNDS
from trio_sched.live_page.rates import Buckets, Counters, RecentRates
from trio_sched.recording.records import Decided, GroupTried, Record
from trio_sched.recording.segments import NotARecording
from trio_sched.replaying.past_scheduler import PastScheduler
from trio_sched.replaying.replay import ReplayPlan, replay
from trio_sched.replaying.replayed_cluster import BadRecording
from trio_sched.replaying.results import ReplayResult

RECORDING: Final = "recording"
_UNKNOWN: Final = dict.fromkeys(
    ("bind_p50", "bind_p99", "preemptions_per_second", "leader", "configuration", "watches", "paused")
)
"""Entries of the summary about which a recording says nothing."""
_YEAR_10000: Final = 253_402_300_800.0
"""In POSIX seconds."""


@define(eq=False)
class RecordedStates:
    """Looks at the scheduler of a replay before time goes on.

    Attributes:
        name: what is shown, in words.
        frames: the states.
    """

    name: str
    frames: Frames = field(factory=Frames)
    _history: History = field(init=False, factory=History)
    _rates: RecentRates = field(init=False, factory=RecentRates)
    _totals: Counter[str] = field(init=False, factory=Counter)
    _time: float = field(init=False, default=-math.inf)
    """POSIX seconds of the last record."""
    _counted_at: float | None = field(init=False, default=None)
    """When a step of the history ended."""
    _assembly: Assembly | None = field(init=False, default=None)
    _state: LiveState = field(init=False)

    def before(self, assembly: Assembly, record: Record, time: float) -> None:
        """Look at the state before *record*, of *time*, if it is to be shown.

        Args:
            assembly: the parts of the scheduler.
            record: what happens next.
            time: POSIX seconds; a recording that goes back in time is shown as if it stood still.

        Raises:
            BadRecording: that is no time.
        """
        if not 0 <= time < _YEAR_10000:
            raise BadRecording(f"the recording has a record of a time that cannot be shown: {time}")
        time = max(round(time, 3), self._time)
        if assembly is not self._assembly:
            self._begin(assembly)
        elif not self.frames.are_in_one_step(self._time, time):
            self._look()
        self._time = time
        if self._counted_at is None or time - self._counted_at >= STEP_SECONDS:
            self._counted_at = time
            self._history.add(time, self._counters(time), assembly.scheduler.queue.sizes())
        if isinstance(record, Decided):
            self._count(record.node, record.plugins)
        elif isinstance(record, GroupTried):
            for node, plugins in record.places:
                self._count(node, plugins)

    def ended(self, assembly: Assembly) -> None:
        """Look at the state after the last record of a segment."""
        if assembly is self._assembly:
            self._look()

    def history(self) -> dict[str, Any]:
        """The last hour of the recording."""
        shown = self._history.shown()
        for name in ("preemptions", "bind_p50", "bind_p99"):
            shown["series"][name] = [None] * len(shown["seconds"])
        return {**shown, "plugins": [], "reloads": []}

    def _count(self, node: str, plugins: list[str]) -> None:
        """An attempt has ended on *node*, or was refused by *plugins*."""
        is_scheduled = bool(node and not plugins)
        self._totals["scheduled" if is_scheduled else "unschedulable" if plugins else "error"] += 1
        self._totals["binds"] += is_scheduled

    def _counters(self, time: float) -> Counters:
        return Counters(at=time, totals=dict(self._totals), bind_seconds=Buckets())

    def _begin(self, assembly: Assembly) -> None:
        self._assembly = assembly
        source = LiveFacts(assembly, RECORDING).source()
        self._state = LiveState(evolve(source, name=self.name, now=lambda: self._time, facts=self._facts))

    def _look(self) -> None:
        for _ in range(ROUNDS):  # between two states lie seconds: all rows are read
            for _ in self._state.refresh({}):
                pass
        snapshot = self._state.snapshot()
        del snapshot["time"]  # one state is shown for many times
        self.frames.add(self._time, json_line(snapshot))

    def _facts(self) -> dict[str, Any]:
        return {**self._rates.add(self._counters(self._time)), **_UNKNOWN}


def recorded_pages(plan: ReplayPlan, name: str = "") -> tuple[RecordedPages, ReplayResult]:
    """The live page of what *plan* replays, and what the replay has found.

    Args:
        plan: which recording, and what with.
        name: what is shown, in words; that it is this recording if not given.

    Raises:
        TrioSchedError: it is no recording, or cannot be scheduled with; possibly in an exception group.
    """
    states = RecordedStates(name or f"recording {plan.folder.resolve().name}")
    result = replay(evolve(plan, observer=states))
    if not len(states.frames):
        raise NotARecording(f"{plan.folder} has nothing to show: no record behind its beginning can be read")
    return RecordedPages(states.frames, states.history(), PastScheduler(plan, states.frames.end)), result
