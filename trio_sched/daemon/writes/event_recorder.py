"""Records events: sends them in the background, and repeated ones as a series.

Source: the event broadcaster of Kubernetes 1.36 (keys, series, retries). It drops events silently when its queue is
full; the queue here is longer, and drops are logged.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from functools import partial
from random import Random

import msgspec
import trio
from attrs import define, field

from trio_sched.daemon.limits import (
    EVENT_RETRY_JITTER,
    EVENT_RETRY_SECONDS,
    EVENT_TRIES,
    MAX_EVENT_NOTE_BYTES,
    MAX_EVENT_TEMPLATES,
    MAX_NAME_LENGTH,
    MAX_PARALLEL_EVENTS,
    MAX_UNSENT_EVENT_BYTES,
    MAX_UNSENT_EVENTS,
    MAX_UNSENT_PLUGIN_EVENT_BYTES,
    MAX_UNSENT_PLUGIN_EVENTS,
    SERIES_SWEEP_SECONDS,
)
from trio_sched.daemon.writes.cut_text import cut_text
from trio_sched.daemon.writes.event_series import Series, SeriesTable, held_bytes, size_of
from trio_sched.daemon.writes.scheduler_events import LeaseEvent, PodEvent, PodGroupEvent
from trio_sched.daemon.writes.work_pool import WorkPool
from trio_sched.kube_client import events
from trio_sched.kube_client.connection import JSON, KubeClient
from trio_sched.kube_client.errors import (
    AlreadyExists,
    ApiError,
    ConnectionFailed,
    CredentialsError,
    KubeClientError,
    NotFound,
    UndecodableObject,
    error_from_reply,
)
from trio_sched.kube_client.http.http1 import Reply
from trio_sched.kube_client.pipelined_posts import PipelinedPosts, Post
from trio_sched.objects.event import CoreEvent, Event, EventSeries, EventSource, ObjectReference
from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.timestamps import format_micro_time, format_time
from trio_sched.verbosity import V4

log = logging.getLogger(__name__)


@define(eq=False, kw_only=True)
class EventRecorder:
    """Records events; returns at once, sends later."""

    client: KubeClient
    hostname: str
    wall_clock: Callable[[], datetime]
    random: Random
    is_silent: bool = False
    """Whether nothing is recorded: a shadow has nothing to tell the cluster."""
    pool: WorkPool = field(factory=lambda: WorkPool(MAX_PARALLEL_EVENTS))
    dropped: int = 0
    """How many events found the queue full."""
    _posts: PipelinedPosts | None = field(init=False, default=None)
    """Sends what is recorded once; None if there is no network in between."""
    _in_core_shape: bool | None = None
    """Whether the server knows ``v1`` events only; None until it has said so."""
    _templates: dict[tuple[str, ...], events.EventTemplate] = field(init=False, factory=dict)
    _last_stamp: int = 0
    _pool_bytes: int = field(init=False, default=0)
    """About how much memory the jobs of the pool hold."""
    _series: SeriesTable = field(init=False, factory=SeriesTable)

    def __attrs_post_init__(self) -> None:
        if self.client.pool is not None:
            self._posts = PipelinedPosts(
                client=self.client,
                on_refused=self._post_refused,
                on_too_old=self._posts_too_old,
                retry_seconds=self._retry_seconds,
                max_age_seconds=EVENT_TRIES * EVENT_RETRY_SECONDS,
            )

    @property
    def unfinished(self) -> int:
        """How many events are recorded and not sent."""
        return self.pool.unfinished + (self._posts.unfinished if self._posts is not None else 0)

    @property
    def unfinished_bytes(self) -> int:
        """About how much memory they take."""
        return self._pool_bytes + (self._posts.unfinished_bytes if self._posts is not None else 0)

    async def drained(self) -> None:
        """Wait until all is sent, without waiting for more to send together."""
        while self.unfinished:
            if self._posts is not None:
                await self._posts.drained()
            await self.pool.drained()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Send what is recorded, until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._sweep_series)
            task_status.started()
            self._in_core_shape = not await self._has_events_v1()
            if self._posts is not None:
                nursery.start_soon(self._posts.run)
            await self.pool.run()  # not before: an event of an API version that the server does not know would be lost

    async def _has_events_v1(self) -> bool:
        while True:
            try:
                return await events.has_events_v1(self.client)
            except KubeClientError as problem:
                log.warning("cannot ask for the API version of events, trying again: %s", problem)
                await trio.sleep(EVENT_RETRY_SECONDS)

    def record_of_plugin(self, event: PodEvent) -> None:
        """Record an event of a plugin, which must leave room for those of the scheduler."""
        if not self._is_full(MAX_UNSENT_PLUGIN_EVENTS, MAX_UNSENT_PLUGIN_EVENT_BYTES):
            self.record(event)

    def _is_full(self, limit: int, limit_bytes: int) -> bool:
        if self.unfinished < limit and self.unfinished_bytes < limit_bytes:
            return False
        self.dropped += 1
        if self.dropped % 1000 == 1:
            log.warning("too many events wait to be sent; dropped so far: %d", self.dropped)
        return True

    def record(self, event: PodEvent) -> None:
        """Record *event*; a repetition for the same version of the pod is counted in a series.

        Events of a series differ in their text at most; the text of the first one stays.
        """
        if self.is_silent or self._is_full(MAX_UNSENT_EVENTS, MAX_UNSENT_EVENT_BYTES):
            return
        if event.once:
            moment = self.wall_clock()
            self._submit(event, self._name(event.pod.metadata.name, moment), moment, None)
            return
        now = trio.current_time()
        pod = event.pod
        key = (
            event.type,
            event.action,
            event.reason,
            event.reporting_controller,
            pod.metadata.uid,
            pod.metadata.resource_version,
        )
        series = self._series.repeated(key, now=now)
        if series is not None:
            if series.count == 2:
                self._submit_count(series)
            return
        moment = self.wall_clock()
        name = self._name(pod.metadata.name, moment)
        series = Series(self._as_event(event, name, moment), now, now)
        self._submit_counts(self._series.add(key, series))
        self._submit(event, name, moment, partial(self._series_created, series))

    def record_on_lease(self, event: LeaseEvent) -> None:
        """Record *event*; never as a part of a series."""
        lease = ObjectReference(
            kind="Lease",
            namespace=event.namespace,
            name=event.name,
            uid=event.uid,
            api_version="coordination.k8s.io/v1",
            resource_version=event.resource_version,
        )
        self._record_about(lease, event)

    def record_on_pod_group(self, event: PodGroupEvent) -> None:
        """Record *event*; never as a part of a series."""
        metadata = event.about
        group = ObjectReference(
            kind=event.kind,
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
            api_version=event.api_version,
            resource_version=metadata.resource_version,
        )
        self._record_about(group, event)

    def _record_about(self, involved: ObjectReference, event: LeaseEvent | PodGroupEvent) -> None:
        moment = self.wall_clock()
        core_event = CoreEvent(
            metadata=ObjectMeta(name=self._name(involved.name, moment), namespace=involved.namespace),
            involved_object=involved,
            reason=event.reason,
            message=cut_text(event.note, MAX_EVENT_NOTE_BYTES),
            source=EventSource(component=event.component),
            first_timestamp=format_time(moment),
            last_timestamp=format_time(moment),
            count=1,
            type=event.type,
            reporting_component=event.component,
        )
        self._submit_job(partial(events.create_core_event, self.client, core_event), held_bytes(core_event.message))

    def _name(self, subject: str, moment: datetime) -> str:
        """The name of an event about *subject*: with the nanoseconds since 1970, never the same twice."""
        self._last_stamp = max(int(moment.timestamp() * 1_000_000) * 1000, self._last_stamp + 1)
        suffix = f".{self._last_stamp:x}"
        return subject[: MAX_NAME_LENGTH - len(suffix)].rstrip("-.") + suffix

    def _as_event(self, event: PodEvent, name: str, moment: datetime) -> Event:
        pod, controller = event.pod, event.reporting_controller
        return Event(
            metadata=ObjectMeta(name=name, namespace=pod.metadata.namespace or "default"),
            event_time=format_micro_time(moment),
            reporting_controller=controller,
            reporting_instance=f"{controller}-{self.hostname}",
            action=event.action,
            reason=event.reason,
            regarding=event.regarding
            or ObjectReference(
                kind="Pod",
                namespace=pod.namespace,
                name=pod.name,
                uid=pod.uid,
                api_version="v1",
                resource_version=pod.metadata.resource_version,
            ),
            note=cut_text(event.note, MAX_EVENT_NOTE_BYTES),
            type=event.type,
        )

    def _submit(self, event: PodEvent, name: str, moment: datetime, on_done: Callable[[], None] | None) -> None:
        """Have *event* sent, and *on_done* called when it has been, or cannot be."""
        if self._in_core_shape is not False or event.regarding is not None:
            as_event = self._as_event(event, name, moment)
            self._submit_job(partial(self._create, as_event), size_of(as_event), on_done)
            return
        pod, namespace = event.pod, event.pod.namespace or "default"
        key = (event.reporting_controller, event.type, event.reason, event.action)
        template = self._templates.get(key)
        if template is None:
            if len(self._templates) >= MAX_EVENT_TEMPLATES:  # plugins can have a reason of its own for every event
                self._templates.clear()
            template = self._templates[key] = events.EventTemplate.prepare(self._as_event(event, name, moment))
        body = template.body(
            name=name,
            namespace=namespace,
            event_time=format_micro_time(moment),
            pod=pod,
            note=cut_text(event.note, MAX_EVENT_NOTE_BYTES),
        )
        target = events.event_path(namespace)
        if self._posts is not None:
            self._posts.submit(target, body, on_done, soon=not event.once)
        else:
            self._submit_post(target, body, on_done)

    def _submit_post(self, target: bytes, body: bytes, on_done: Callable[[], None] | None) -> None:
        self._submit_job(partial(self.client.call, b"POST", target, headers=JSON, body=body), len(body), on_done)

    def _submit_job(
        self, send: Callable[[], Awaitable[object]], size: int, on_done: Callable[[], None] | None = None
    ) -> None:
        """Have the pool send what takes *size* bytes of memory, and call *on_done* when it has, or cannot."""
        self._pool_bytes += size
        self.pool.submit(partial(self._run_job, send, size, on_done))

    async def _run_job(
        self, send: Callable[[], Awaitable[object]], size: int, on_done: Callable[[], None] | None
    ) -> None:
        try:
            await self._try(send)
        finally:
            self._pool_bytes -= size
        if on_done is not None:
            on_done()

    def _post_refused(self, post: Post, reply: Reply | None) -> None:
        if reply is None or reply.status in (401, 429) or reply.status >= 500:  # alone, with the retries of the client
            self._submit_post(post.target, post.body, post.on_done)
            return
        problem = error_from_reply(reply.status, reply.body, request=f"POST {post.target.decode()}")
        if not isinstance(problem, AlreadyExists):
            log.warning("Server rejected event (will not retry!): %s", problem)
        if post.on_done is not None:
            post.on_done()

    def _posts_too_old(self, posts: list[Post]) -> None:
        log.warning("gave up sending %d events after %d s", len(posts), EVENT_TRIES * EVENT_RETRY_SECONDS)
        for post in posts:
            if post.on_done is not None:
                post.on_done()

    def _retry_seconds(self) -> float:
        return EVENT_RETRY_SECONDS * (1 + EVENT_RETRY_JITTER * self.random.random())

    async def _create(self, event: Event) -> None:
        if self._in_core_shape:
            await events.create_core_event(self.client, events.as_core_event(event))
        else:
            await events.create_event(self.client, event)

    def _series_created(self, series: Series) -> None:
        series.is_created = True
        if series.is_count_due:
            self._submit_count(series)

    def _submit_count(self, series: Series) -> None:
        """Have the count of *series*, as it is now, sent."""
        if not series.is_created:
            series.is_count_due = True
            return
        series.sent_count, series.sent_at = series.count, trio.current_time()
        last_observed = format_micro_time(self.wall_clock())
        count = EventSeries(series.count, last_observed)
        self._submit_job(partial(self._send_count, series.event, count), series.size)

    async def _send_count(self, event: Event, count: EventSeries) -> None:
        try:
            await self._patch(event, count)
            return
        except NotFound:  # API servers delete events after an hour
            pass
        try:
            await self._create(msgspec.structs.replace(event, series=count))
        except AlreadyExists:  # the first one had been sent without a reply, and arrived only now
            await self._patch(event, count)

    async def _patch(self, event: Event, count: EventSeries) -> None:
        if self._in_core_shape:
            await events.patch_core_series(self.client, events.as_core_event(event), count)
        else:
            await events.patch_series(self.client, event, count)

    async def _try(self, send: Callable[[], Awaitable[object]]) -> None:
        for _ in range(EVENT_TRIES):
            try:
                await send()
                return
            except AlreadyExists:
                return
            except (ApiError, UndecodableObject) as problem:
                log.warning("Server rejected event (will not retry!): %s", problem)
                return
            except (ConnectionFailed, CredentialsError) as problem:
                log.log(V4, "event not sent, trying again: %s", problem)
                await trio.sleep(self._retry_seconds())
        log.warning("gave up sending an event after %d tries", EVENT_TRIES)

    async def _sweep_series(self) -> None:
        """Send the final count of series that are over, and from time to time that of long ones."""
        while True:
            await trio.sleep(SERIES_SWEEP_SECONDS)
            self._submit_counts(self._series.sweep(now=trio.current_time()))

    def _submit_counts(self, ended: Iterable[Series]) -> None:
        for series in ended:
            self._submit_count(series)
