import httpx
import pytest
from recording_transport import RecordingTransport

from trio_sched.kube_client import events
from trio_sched.kube_client.connection import KubeClient
from trio_sched.objects.event import Event, EventSeries, ObjectReference
from trio_sched.objects.metadata import ObjectMeta

EVENT = Event(
    metadata=ObjectMeta(name="p.18e9", namespace="d"),
    event_time="2026-11-21T06:18:45.583937Z",
    reporting_controller="default-scheduler",
    reporting_instance="default-scheduler-host",
    action="Binding",
    reason="Scheduled",
    regarding=ObjectReference(kind="Pod", namespace="d", name="p", uid="u", api_version="v1", resource_version="9"),
    note="Successfully assigned d/p to n1",
    type="Normal",
)


async def test_events_go_out_in_the_newer_shape(client: KubeClient, server: RecordingTransport) -> None:
    await events.create_event(client, EVENT)
    method, target, content_type, body = server.asked[0]
    assert (method, target, content_type) == ("POST", "/apis/events.k8s.io/v1/namespaces/d/events", "application/json")
    assert body == {
        "kind": "Event",
        "apiVersion": "events.k8s.io/v1",
        "metadata": {"name": "p.18e9", "namespace": "d"},
        "eventTime": "2026-11-21T06:18:45.583937Z",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-host",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": {
            "kind": "Pod",
            "namespace": "d",
            "name": "p",
            "uid": "u",
            "apiVersion": "v1",
            "resourceVersion": "9",
        },
        "note": "Successfully assigned d/p to n1",
        "type": "Normal",
    }


async def test_events_go_out_in_the_older_shape(client: KubeClient, server: RecordingTransport) -> None:
    await events.create_core_event(client, events.as_core_event(EVENT))
    _, target, _, body = server.asked[0]
    assert target == "/api/v1/namespaces/d/events"
    assert (body["apiVersion"], body["involvedObject"]["name"], body["message"]) == ("v1", "p", EVENT.note)
    assert (body["firstTimestamp"], body["lastTimestamp"]) == ("2026-11-21T06:18:45Z",) * 2
    assert (body["count"], body["source"]) == (1, {"component": "default-scheduler"})


async def test_a_series_is_a_patch_of_the_first_event(client: KubeClient, server: RecordingTransport) -> None:
    series = EventSeries(count=2, last_observed_time="2026-11-21T06:20:00.000000Z")
    await events.patch_series(client, EVENT, series)
    await events.patch_core_series(client, events.as_core_event(EVENT), series)
    expected = {"series": {"count": 2, "lastObservedTime": "2026-11-21T06:20:00.000000Z"}}
    kind = "application/strategic-merge-patch+json"
    assert server.asked == [
        ("PATCH", "/apis/events.k8s.io/v1/namespaces/d/events/p.18e9", kind, expected),
        ("PATCH", "/api/v1/namespaces/d/events/p.18e9", kind, expected),
    ]


@pytest.mark.parametrize(("code", "known"), [(200, True), (404, False), (403, False)])
async def test_discovery_decides_the_shape_of_events(
    client: KubeClient, server: RecordingTransport, code: int, known: bool
) -> None:
    server.answer = httpx.Response(code, content=b"{}")
    assert await events.has_events_v1(client) is known
