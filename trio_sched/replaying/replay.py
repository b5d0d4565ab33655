"""Replays a recording from its first segment on, each record at its time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

import trio
from attrs import define, evolve, field, frozen

from trio_sched.daemon.assembly import Assembly
from trio_sched.daemon.memory import freeze_garbage_collector
from trio_sched.daemon.settings import DaemonSettings
from trio_sched.engine.hooks.failure_policy import read_failure_policy
from trio_sched.recording.folder import RecordingReader
from trio_sched.recording.records import (
    BINDS,
    Activated,
    Began,
    Changed,
    Configured,
    Decided,
    Existed,
    FirstList,
    Flushed,
    Forgotten,
    GroupTried,
    Missed,
    OnNodes,
    Permitted,
    PlacesReleased,
    Record,
    Requeued,
    Reserved,
    Skipped,
)
from trio_sched.recording.segments import NotARecording
from trio_sched.replaying.attempts import Attempts
from trio_sched.replaying.group_attempts import GroupAttempts
from trio_sched.replaying.queue_order import QueueOrder
from trio_sched.replaying.replayed_cluster import BadRecording, ReplayedCluster
from trio_sched.replaying.results import ReplayResult
from trio_sched.simulation.live.cluster_snapshot import assembled
from trio_sched.simulator import jumping_clock

_CLEANED_EVERY: Final = 100_000
"""So often, in records, is forgotten what may hold objects that are gone."""

SettingsOf = Callable[[Configured], DaemonSettings]
"""The settings to schedule with, given the recorded configuration."""


class Observer(Protocol):
    """Looks at the scheduler of a replay while it goes on."""

    def before(self, assembly: Assembly, record: Record, time: float) -> None:
        """*record*, of POSIX seconds *time*, is taken next."""

    def ended(self, assembly: Assembly) -> None:
        """All records of a segment were taken, or of those before the end of the replay."""


@frozen(kw_only=True)
class ReplayPlan:
    """What to replay, and how."""

    folder: Path
    settings_of: SettingsOf
    is_same_configuration: bool = True
    """Whether *settings_of* gives the recorded configuration; else it gives the same one each time."""
    from_seconds: float = -math.inf
    """POSIX seconds from which on decisions are compared; what was before is replayed all the same."""
    until_seconds: float = math.inf
    """POSIX seconds at which the replay ends."""
    progress: Callable[[int], None] = lambda _decisions: None
    """Is called with the number of decisions so far."""
    observer: Observer | None = None


def replay(plan: ReplayPlan) -> ReplayResult:
    """Replay the recording of *plan*, on a clock that is set to the time of each record.

    Raises:
        TrioSchedError: it is no recording, or cannot be scheduled with; possibly in an exception group.
    """
    freeze_garbage_collector()
    try:
        return trio.run(_Replay(plan).run, clock=jumping_clock())
    except OSError as error:
        raise NotARecording(f"{error.filename or plan.folder} cannot be read: {error.strerror or error}") from error


@define(eq=False)
class _Replay:
    plan: ReplayPlan
    result: ReplayResult = field(factory=ReplayResult, init=False)
    _reader: RecordingReader = field(init=False)
    _assembly: Assembly | None = field(default=None, init=False)
    _cluster: ReplayedCluster = field(init=False)
    _attempts: Attempts = field(init=False)
    _configuration: Configured | None = field(default=None, init=False)
    _offset: float = field(default=0.0, init=False)
    """POSIX seconds minus seconds of the recorded clock."""

    async def run(self) -> ReplayResult:
        """Replay everything."""
        self._reader = reader = RecordingReader(self.plan.folder)
        stack = AsyncExitStack()
        try:
            for continues, records in reader.segments():
                if not continues:
                    await stack.aclose()
                    stack = AsyncExitStack()
                    await self._begin(records, stack)
                else:
                    _skip_beginning(records)
                goes_on = await self._replay(records)
                if self.plan.observer is not None and self._assembly is not None:
                    self.plan.observer.ended(self._assembly)
                if not goes_on:
                    break
        finally:
            await stack.aclose()
        self.result.lost_bytes = reader.lost
        return self.result

    async def _begin(self, records: Iterator[Record], stack: AsyncExitStack) -> None:
        """Put a scheduler together that knows what existed when the segment began."""
        self._assembly = None
        began = next(records)
        assert isinstance(began, Began)
        try:
            begins = datetime.fromtimestamp(began.posix_seconds, UTC)
        except (ValueError, OverflowError, OSError) as problem:
            raise BadRecording(f"the recording begins at no time: {began.posix_seconds}") from problem
        self._offset = began.posix_seconds - began.now
        advance(began.now)
        configured = next(records, None)
        if not isinstance(configured, Configured):  # the segment is cut off
            return
        self._configuration = configured
        self._assembly = assembly = await stack.enter_async_context(
            assembled(with_failure_policies(self.plan.settings_of(configured), configured), begins)
        )
        self.result.beginnings += 1
        self._note_versions(configured, assembly)
        self._cluster = ReplayedCluster(assembly, self._reader.pods.decode, lambda uid: self._attempts.node_given(uid))
        self._attempts = Attempts(
            assembly=assembly,
            find_pod=self._cluster.pods.get,
            result=self.result,
            is_same_configuration=self.plan.is_same_configuration,
            is_counted=lambda now: self._posix(now) >= self.plan.from_seconds,
            posix=self._posix,
            order=QueueOrder(
                queue=assembly.scheduler.queue,
                result=self.result,
                is_counted=lambda now: self._is_ordered and self._posix(now) >= self.plan.from_seconds,
            ),
        )

    @property
    def _is_ordered(self) -> bool:
        """Whether the queue is expected to return pods in the recorded order: extenders get them in another one."""
        return self.plan.is_same_configuration and self._assembly is not None and self._assembly.extenders is None

    def _posix(self, now: float) -> float:
        return now + self._offset

    def _note_versions(self, configured: Configured, assembly: Assembly) -> None:
        for profile in assembly.loaded.prepared.profiles.values():
            for name, source in profile.sources.items():
                was = configured.plugins.get(name, source)
                note = f"plugin {name} was {was} when the recording was made, and is {source} now"
                if was != source and note not in self.result.notes:
                    self.result.notes.append(note)

    async def _replay(self, records: Iterator[Record]) -> bool:
        """Replay *records*; returns whether the time until which to replay has not come yet."""
        for record in records:
            if self._assembly is None or isinstance(record, Began):
                continue
            now = getattr(record, "now", None)
            if now is not None:
                if self._posix(now) > self.plan.until_seconds:
                    return False
                if self.plan.observer is not None:
                    self.plan.observer.before(self._assembly, record, self._posix(now))
                advance(now)
            if not isinstance(record, Flushed | Activated):  # no decision depends on these
                self._attempts.records += 1
                if self._attempts.records % _CLEANED_EVERY == 0:
                    self._forget_unused(self._assembly)
            await self._take(record, self._assembly)
        return True

    async def _take(self, record: Record, assembly: Assembly) -> None:
        attempts = self._attempts
        if isinstance(record, Changed):
            self.result.changes += self._cluster.changed(record)
        elif isinstance(record, Decided):
            attempts.decided(record)
            if record.binds:
                attempts.reserved(Reserved(record.now, record.uid, record.node, BINDS))
            self.plan.progress(self.result.decisions)
        elif isinstance(record, GroupTried):
            await GroupAttempts(attempts=attempts).tried(record)
            self.plan.progress(self.result.decisions)
        elif isinstance(record, PlacesReleased):
            GroupAttempts(attempts=attempts).released(record)
        elif isinstance(record, Reserved):
            attempts.reserved(record)
        elif isinstance(record, Requeued):
            await attempts.requeued(record)
        elif isinstance(record, Forgotten):
            attempts.forgotten(record)
        elif isinstance(record, Permitted):
            attempts.permitted(record)
        elif isinstance(record, Skipped):
            attempts.skipped(record)
        elif isinstance(record, Flushed):
            attempts.order.flushed(record)
        elif isinstance(record, Activated):
            attempts.order.activated(record, self._cluster.pods)
        elif isinstance(record, FirstList):
            self.result.changes += self._cluster.listed(record)
        elif isinstance(record, OnNodes):
            self._cluster.on_nodes(record)
        elif isinstance(record, Existed):
            self._cluster.existed(record)
            attempts.order.begins(self._cluster.pods.values())
        elif isinstance(record, Missed):
            self.result.missed += record.records
        elif isinstance(record, Configured):
            self._reconfigure(record, assembly)
        assembly.scheduler.plugin_failures.drain()  # they show in the decisions

    def _reconfigure(self, record: Configured, assembly: Assembly) -> None:
        """Schedule with a configuration that was loaded while the scheduler ran."""
        if not self.plan.is_same_configuration:
            return
        loaded = assembly.loader.load(with_failure_policies(self.plan.settings_of(record), record))
        assembly.put_in_force(loaded)
        self._cluster.watch_wanted()
        assembly.event_handlers.profiles_changed(self._cluster.pods.values(), now=record.now)

    def _forget_unused(self, assembly: Assembly) -> None:
        """As the daemon does every minute: level memory however long the recording is."""
        assembly.scheduler.forget_unused()
        assembly.preemption_executor.forget_ended()
        assembly.forget_attempts()


def with_failure_policies(settings: DaemonSettings, recorded: Configured) -> DaemonSettings:
    """*settings* with the *recorded* failure policies of the plugins that are enabled and have none in *settings*.

    Raises:
        BadRecording: one is no policy.
    """
    enabled = {name for profile in settings.profiles for name in profile.plugins}
    try:
        policies = {
            name: read_failure_policy(text) for name, text in recorded.failure_policies.items() if name in enabled
        }
    except ValueError as problem:
        raise BadRecording(f"the recording has a failure policy of a plugin that is none: {problem}") from problem
    return evolve(settings, failure_policies={**policies, **settings.failure_policies})


def _skip_beginning(records: Iterator[Record]) -> None:
    """Leave out what existed when the segment began: all of it is known."""
    for record in records:
        if isinstance(record, Existed):
            return


def advance(now: float) -> None:
    """Set trio's clock to *now*; it does not go back."""
    clock = trio.lowlevel.current_clock()
    jump = getattr(clock, "jump", None)
    seconds = now - trio.current_time()
    if jump is not None and 0 < seconds < math.inf:
        jump(seconds)
