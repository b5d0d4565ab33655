"""Creates events, in whichever shape the server takes them. When to tell what is the event recorder's business."""

from urllib.parse import quote

import msgspec

from trio_sched.kube_client.connection import JSON, STRATEGIC_MERGE_PATCH, KubeClient
from trio_sched.kube_client.errors import Forbidden, NotFound
from trio_sched.objects.event import CoreEvent, Event, EventSeries, EventSource

_encode = msgspec.json.Encoder().encode


async def has_events_v1(client: KubeClient) -> bool:
    """Whether the server knows ``events.k8s.io/v1``; if not, core/v1 it must be.

    Raises:
        ApiError: it would not say.
        ConnectionFailed: it did not say.
    """
    try:
        await client.call(b"GET", b"/apis/events.k8s.io/v1")
    except (NotFound, Forbidden):  # a server that hides its discovery from us will know the older shape in any case
        return False
    return True


async def create_event(client: KubeClient, event: Event) -> None:
    """Create *event* as ``events.k8s.io/v1``.

    Raises:
        AlreadyExists: an event of that name is there.
    """
    await client.call(b"POST", _path("/apis/events.k8s.io/v1", event), headers=JSON, body=event_body(event))


async def create_core_event(client: KubeClient, event: CoreEvent) -> None:
    """Create *event* as ``v1``.

    Raises:
        AlreadyExists: an event of that name is there.
    """
    body = _with_type(b"v1", _encode(event))
    await client.call(b"POST", _path("/api/v1", event), headers=JSON, body=body)


async def patch_series(client: KubeClient, event: Event, series: EventSeries) -> None:
    """Say that what *event* tells has gone on.

    Raises:
        NotFound: the server has forgotten the event; create it anew.
    """
    await _patch_series(client, "/apis/events.k8s.io/v1", event, series)


async def patch_core_series(client: KubeClient, event: CoreEvent, series: EventSeries) -> None:
    """Say that what *event*, a ``v1`` one, tells has gone on.

    Raises:
        NotFound: the server has forgotten the event; create it anew.
    """
    await _patch_series(client, "/api/v1", event, series)


def event_body(event: Event) -> bytes:
    """*event* as it goes over the wire."""
    return _with_type(b"events.k8s.io/v1", _encode(event))


def as_core_event(event: Event) -> CoreEvent:
    """The same news in the older shape."""
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
    target = _path(root, event) + b"/" + quote(event.metadata.name, safe="").encode()
    await client.call(b"PATCH", target, headers=STRATEGIC_MERGE_PATCH, body=_encode({"series": series}))


def _path(root: str, event: Event | CoreEvent) -> bytes:
    return f"{root}/namespaces/{quote(event.metadata.namespace, safe='')}/events".encode()


def _with_type(api_version: bytes, encoded: bytes) -> bytes:
    """Put kind and version in front, which no struct of ours carries."""
    return b'{"kind":"Event","apiVersion":"' + api_version + b'",' + encoded[1:]


def _whole_seconds(micro_time: str) -> str:
    return micro_time.partition(".")[0].rstrip("Z") + "Z"
