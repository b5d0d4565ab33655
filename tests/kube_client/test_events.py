import httpx
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from recording_transport import RecordingTransport

from trio_sched.kube_client import events
from trio_sched.kube_client.connection import KubeClient
from trio_sched.objects.event import Event, EventSeries, ObjectReference
from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.pod import Pod

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


@given(texts=st.tuples(*[st.text(st.characters(exclude_categories=["Cs"]), max_size=20)] * 6))
def test_the_json_from_a_template_is_that_of_the_event(texts: tuple[str, ...]) -> None:
    name, namespace, pod_name, uid, version, note = texts
    pod = Pod(metadata=ObjectMeta(name=pod_name, namespace=namespace, uid=uid, resource_version=version))
    same = ObjectReference(kind="Pod", namespace=namespace, name=pod_name, uid=uid, api_version="v1")
    event = replace(
        EVENT,
        metadata=ObjectMeta(name=name, namespace="d"),
        regarding=replace(same, resource_version=version),
        note=note,
    )
    assert EVENT.event_time is not None
    body = events.EventTemplate.prepare(EVENT).body(
        name=name, namespace="d", event_time=EVENT.event_time, pod=pod, note=note
    )
    assert msgspec.json.decode(body, type=Event) == event
    assert {key: msgspec.json.decode(body)[key] for key in ("kind", "apiVersion")} == {
        "kind": "Event",
        "apiVersion": "events.k8s.io/v1",
    }
