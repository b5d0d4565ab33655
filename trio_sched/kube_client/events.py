"""Creates and patches events, as ``events.k8s.io/v1`` or in the older API version ``v1``."""

from __future__ import annotations

from functools import lru_cache

from attrs import frozen

from trio_sched.documents.json_values import encode
from trio_sched.kube_client.connection import JSON, STRATEGIC_MERGE_PATCH, KubeClient
from trio_sched.kube_client.errors import Forbidden, NotFound
from trio_sched.kube_client.kinds import path_segment
from trio_sched.objects.event import CoreEvent, Event, EventSeries, EventSource
from trio_sched.objects.pod import Pod


async def has_events_v1(client: KubeClient) -> bool:
    """Whether the server serves ``events.k8s.io/v1``; every server serves ``v1``.

    Raises:
        ApiError: the server refused to answer.
        ConnectionFailed: there was no complete answer.
    """
    try:
        await client.call(b"GET", b"/apis/events.k8s.io/v1")
    except (NotFound, Forbidden):  # without permission to read the discovery the older version works in any case
        return False
    return True


async def create_event(client: KubeClient, event: Event) -> None:
    """Create *event* as ``events.k8s.io/v1``.

    Raises:
        AlreadyExists: there is an event of that name.
    """
    await client.call(b"POST", _path("/apis/events.k8s.io/v1", event), headers=JSON, body=event_body(event))


async def create_core_event(client: KubeClient, event: CoreEvent) -> None:
    """Create *event* as ``v1``.

    Raises:
        AlreadyExists: there is an event of that name.
    """
    body = _with_type(b"v1", encode(event))
    await client.call(b"POST", _path("/api/v1", event), headers=JSON, body=body)


async def patch_series(client: KubeClient, event: Event, series: EventSeries) -> None:
    """Set the series of *event*.

    Raises:
        NotFound: the server has deleted the event, as it does after an hour; create it again.
    """
    await _patch_series(client, "/apis/events.k8s.io/v1", event, series)


async def patch_core_series(client: KubeClient, event: CoreEvent, series: EventSeries) -> None:
    """Set the series of *event*, a ``v1`` one.

    Raises:
        NotFound: the server has deleted the event, as it does after an hour; create it again.
    """
    await _patch_series(client, "/api/v1", event, series)


@frozen(kw_only=True)
class EventTemplate:
    """The JSON of ``events.k8s.io/v1`` events about pods that differ in pod, moment and note; made by :meth:`prepare`.

    Encoding an `Event` with all its parts takes five times as long.
    """

    _same: bytes

    @classmethod
    def prepare(cls, event: Event) -> EventTemplate:
        """A template for events like *event*."""
        same = {
            "reportingController": event.reporting_controller,
            "reportingInstance": event.reporting_instance,
            "action": event.action,
            "reason": event.reason,
            "type": event.type,
        }
        return cls(same=encode(same)[1:-1])

    def body(self, *, name: str, namespace: str, event_time: str, pod: Pod, note: str) -> bytes:
        """The event called *name* about *pod*."""
        metadata = pod.metadata
        return b"".join(
            (
                b'{"kind":"Event","apiVersion":"events.k8s.io/v1","metadata":{"name":',
                encode(name),
                b',"namespace":',
                encode(namespace),
                b'},"eventTime":"',
                event_time.encode(),
                b'",',
                self._same,
                b',"regarding":{"kind":"Pod","namespace":',
                encode(metadata.namespace),
                b',"name":',
                encode(metadata.name),
                b',"uid":',
                encode(metadata.uid),
                b',"apiVersion":"v1","resourceVersion":',
                encode(metadata.resource_version),
                b'},"note":',
                encode(note),
                b"}",
            )
        )


@lru_cache(maxsize=1024)  # namespaces are few and are asked about for every pod
def event_path(namespace: str) -> bytes:
    """Where ``events.k8s.io/v1`` events of *namespace* are created."""
    return f"/apis/events.k8s.io/v1/namespaces/{path_segment(namespace)}/events".encode()


def event_body(event: Event) -> bytes:
    """*event* as JSON, with its kind and version."""
    return _with_type(b"events.k8s.io/v1", encode(event))


def as_core_event(event: Event) -> CoreEvent:
    """*event* in the older API version."""
    return CoreEvent(
        metadata=event.metadata,
        involved_object=event.regarding,
        reason=event.reason,
        message=event.note,
        source=EventSource(component=event.reporting_controller),
        first_timestamp=event.event_time and _whole_seconds(event.event_time),
        last_timestamp=event.event_time and _whole_seconds(event.event_time),
        count=1,
        type=event.type,
        event_time=event.event_time,
        series=event.series,
        action=event.action,
        reporting_component=event.reporting_controller,
        reporting_instance=event.reporting_instance,
    )


async def _patch_series(client: KubeClient, root: str, event: Event | CoreEvent, series: EventSeries) -> None:
    target = _path(root, event) + b"/" + path_segment(event.metadata.name).encode()
    await client.call(b"PATCH", target, headers=STRATEGIC_MERGE_PATCH, body=encode({"series": series}))


def _path(root: str, event: Event | CoreEvent) -> bytes:
    return f"{root}/namespaces/{path_segment(event.metadata.namespace)}/events".encode()


def _with_type(api_version: bytes, encoded: bytes) -> bytes:
    """Put kind and version in front, which the structs do not have."""
    return b'{"kind":"Event","apiVersion":"' + api_version + b'",' + encoded[1:]


def _whole_seconds(micro_time: str) -> str:
    return micro_time.partition(".")[0].rstrip("Z") + "Z"
