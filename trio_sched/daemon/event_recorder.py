"""Tells people what happened to their pods: events, sent in the background, repeated ones as a series.

Source: the event broadcaster of Kubernetes 1.36 (keys, series, retries). Where it drops events silently, this one has
room for many more, and says when it drops.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from random import Random

import msgspec
import trio
from attrs import define, field

from trio_sched.daemon.work_pool import WorkPool
from trio_sched.kube_client import events
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.errors import AlreadyExists, ApiError, ConnectionFailed, CredentialsError, NotFound
from trio_sched.objects.event import CoreEvent, Event, EventSeries, EventSource, ObjectReference
from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.pod import Pod
from trio_sched.objects.timestamps import format_micro_time, format_time

log = logging.getLogger(__name__)

ROOM = 100_000
"""Events that may wait to be sent."""
TASKS = 8
TRIES = 12
RETRY_SECONDS = 10.0
NOTE_BYTES = 1024
SERIES_QUIET_SECONDS = 360.0
"""A series that has not gone on for so long is over."""
SERIES_REFRESH_SECONDS = 1800.0

_Key = tuple[str, str, str, str, str, str]


@define(eq=False)
class _Series:
    event: Event
    count: int
    last: float
    told: int
    told_at: float
    created: trio.Event = field(factory=trio.Event)
    """Set when the first event has been sent: what is not there cannot be patched."""


@define(eq=False)
class EventRecorder:
    """Records events about pods; returns at once, sends later."""

    client: KubeClient
    hostname: str
    wall_clock: Callable[[], datetime]
    random: Random
    pool: WorkPool = field(factory=lambda: WorkPool(TASKS))
    dropped: int = 0
    _in_core_shape: bool = False
    _last_stamp: int = 0
    _series: dict[_Key, _Series] = field(factory=dict)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Send what is recorded, until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._end_series)
            task_status.started()
            self._in_core_shape = not await self._has_events_v1()
            await self.pool.run()  # not before: an event in a shape that the server does not know would be lost

    async def _has_events_v1(self) -> bool:
        while True:
            try:
                return await events.has_events_v1(self.client)
            except (ApiError, ConnectionFailed, CredentialsError) as problem:
                log.warning("cannot ask for the shape of events, trying again: %s", problem)
                await trio.sleep(RETRY_SECONDS)

    def record(
        self, pod: Pod, *, type: str, reason: str, action: str, note: str, once: bool = False, by: str = ""
    ) -> None:
        """Record an event about *pod*.

        Args:
            pod: whom it is about.
            type: ``Normal`` or ``Warning``.
            reason: why, in one word.
            action: what was being done, in one word.
            note: the sentence; cut to 1,024 bytes.
            by: the profile that says so; without it the one that is responsible for the pod.
            once: it cannot happen again to this version of the pod, so no series is kept in mind for it.
        """
        if self.pool.unfinished >= ROOM:
            self.dropped += 1
            if self.dropped % 1000 == 1:
                log.warning("too many events wait to be sent; dropped so far: %d", self.dropped)
            return
        now = trio.current_time()
        event = self._event(pod, type, reason, action, note, by or pod.scheduler_name)
        if not once:
            key = (type, action, reason, event.reporting_controller, pod.uid, pod.metadata.resource_version)
            series = self._series.get(key)
            if series is not None:
                series.count += 1
                series.last = now
                if series.count == 2:
                    self._tell(series)
                return
            series = self._series[key] = _Series(event, 1, now, 1, now)
            self.pool.submit(partial(self._begin_series, series))
        else:
            self.pool.submit(partial(self._send, event))

    def record_leadership(self, *, namespace: str, name: str, component: str, note: str) -> None:
        """Record on a lease who leads now, or no longer does; always in the older shape, as kube-scheduler does."""
        moment = self.wall_clock()
        event = CoreEvent(
            metadata=ObjectMeta(name=f"{name}.{self._stamp(moment):x}", namespace=namespace),
            involved_object=ObjectReference(
                kind="Lease", namespace=namespace, name=name, api_version="coordination.k8s.io/v1"
            ),
            reason="LeaderElection",
            message=note,
            source=EventSource(component=component),
            first_timestamp=format_time(moment),
            last_timestamp=format_time(moment),
            count=1,
            type="Normal",
            reporting_component=component,
        )
        self.pool.submit(partial(self._try, partial(events.create_core_event, self.client, event)))

    def _stamp(self, moment: datetime) -> int:
        """Nanoseconds since 1970, never the same twice, because names of events must differ."""
        self._last_stamp = max(int(moment.timestamp() * 1_000_000) * 1000, self._last_stamp + 1)
        return self._last_stamp

    def _event(self, pod: Pod, type: str, reason: str, action: str, note: str, controller: str) -> Event:
        moment = self.wall_clock()
        return Event(
            metadata=ObjectMeta(name=f"{pod.name}.{self._stamp(moment):x}", namespace=pod.namespace or "default"),
            event_time=format_micro_time(moment),
            reporting_controller=controller,
            reporting_instance=f"{controller}-{self.hostname}",
            action=action,
            reason=reason,
            regarding=ObjectReference(
                kind="Pod",
                namespace=pod.namespace,
                name=pod.name,
                uid=pod.uid,
                api_version="v1",
                resource_version=pod.metadata.resource_version,
            ),
            note=cut_note(note),
            type=type,
        )

    async def _send(self, event: Event) -> None:
        await self._try(partial(self._create, event))

    async def _create(self, event: Event) -> None:
        if self._in_core_shape:
            await events.create_core_event(self.client, events.as_core_event(event))
        else:
            await events.create_event(self.client, event)

    async def _begin_series(self, series: _Series) -> None:
        try:
            await self._send(series.event)
        finally:
            series.created.set()

    def _tell(self, series: _Series) -> None:
        series.told, series.told_at = series.count, trio.current_time()
        last = format_micro_time(self.wall_clock())
        self.pool.submit(partial(self._send_series, series, EventSeries(series.count, last)))

    async def _send_series(self, begun: _Series, series: EventSeries) -> None:
        await begun.created.wait()  # jobs start in order, so somebody is at it
        event = begun.event

        async def send() -> None:
            try:
                await self._patch(event, series)
                return
            except NotFound:  # events are forgotten after an hour
                pass
            try:
                await self._create(msgspec.structs.replace(event, series=series))
            except AlreadyExists:  # or this one was still on its way
                await self._patch(event, series)

        await self._try(send)

    async def _patch(self, event: Event, series: EventSeries) -> None:
        if self._in_core_shape:
            await events.patch_core_series(self.client, events.as_core_event(event), series)
        else:
            await events.patch_series(self.client, event, series)

    async def _try(self, send: Callable[[], Awaitable[None]]) -> None:
        for _ in range(TRIES):
            try:
                await send()
                return
            except AlreadyExists:
                return
            except ApiError as problem:
                log.warning("Server rejected event (will not retry!): %s", problem)
                return
            except (ConnectionFailed, CredentialsError) as problem:
                log.debug("event not sent, trying again: %s", problem)
                await trio.sleep(RETRY_SECONDS * (1 + 0.25 * self.random.random()))
        log.warning("gave up sending an event after %d tries", TRIES)

    async def _end_series(self) -> None:
        """Tell the final count of series that have ended, now and then that of long ones, and forget single events."""
        while True:
            await trio.sleep(SERIES_QUIET_SECONDS)
            now = trio.current_time()
            for key, series in list(self._series.items()):
                is_over = now - series.last > SERIES_QUIET_SECONDS
                if series.count > series.told and (is_over or now - series.told_at > SERIES_REFRESH_SECONDS):
                    self._tell(series)
                if is_over:
                    del self._series[key]


def cut_note(note: str) -> str:
    """*note* in at most 1,024 bytes; a longer one ends in ``...``."""
    encoded = note.encode()
    if len(encoded) <= NOTE_BYTES:
        return note
    return encoded[: NOTE_BYTES - 4].decode(errors="ignore") + " ..."
