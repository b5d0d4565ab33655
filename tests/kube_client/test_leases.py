import json
import sys

import httpx
import pytest
from recording_transport import RecordingTransport

from trio_sched.kube_client import leases
from trio_sched.kube_client.connection import KubeClient, connect
from trio_sched.kube_client.errors import UndecodableObject
from trio_sched.kube_client.settings import ConnectionSettings
from trio_sched.objects.lease import LeaseSpec

STORED = {
    "kind": "Lease",
    "apiVersion": "coordination.k8s.io/v1",
    "metadata": {
        "name": "kube-scheduler",
        "namespace": "kube-system",
        "resourceVersion": "7",
        "labels": {"team": "x"},
        "finalizers": ["keep.me/please"],
    },
    "spec": {"holderIdentity": "other", "leaseDurationSeconds": 15, "futureField": {"a": 1}},
}


async def test_updating_a_lease_keeps_unknown_fields(client: KubeClient, server: RecordingTransport) -> None:
    stored = leases.StoredLease.decode(json.dumps(STORED).encode())
    spec = LeaseSpec(holder_identity="me", lease_duration_seconds=15, renew_time="2026-11-21T06:20:00.000000Z")
    updated = await leases.update_lease(client, stored, spec, timeout_seconds=5)
    method, target, _, body = server.asked[0]
    assert (method, target) == (
        "PUT",
        "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler?timeout=5s",
    )
    assert body["metadata"] == STORED["metadata"]
    assert body["spec"] == {
        "futureField": {"a": 1},
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "renewTime": "2026-11-21T06:20:00.000000Z",
    }
    assert updated.lease.spec == spec
    assert updated.record != stored.record


async def test_a_released_lease_has_an_empty_holder_identity(client: KubeClient, server: RecordingTransport) -> None:
    stored = leases.StoredLease.decode(json.dumps(STORED).encode())
    await leases.update_lease(client, stored, LeaseSpec(holder_identity="", lease_duration_seconds=1))
    assert server.asked[0][3]["spec"]["holderIdentity"] == ""


async def test_a_lease_is_created_and_read_under_its_name(client: KubeClient, server: RecordingTransport) -> None:
    spec = LeaseSpec(holder_identity="me", lease_transitions=0)
    created = await leases.create_lease(client, namespace="kube-system", name="l", spec=spec, timeout_seconds=2.5)
    assert created.lease.metadata.name == "l"
    server.answer = httpx.Response(200, json=STORED)
    read = await leases.get_lease(client, namespace="kube-system", name="l", timeout_seconds=5)
    assert read.lease.spec.holder_identity == "other"
    assert [(method, target) for method, target, _, _ in server.asked] == [
        ("POST", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases?timeout=2.5s"),
        ("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/l?timeout=5s"),
    ]


async def test_a_lease_nested_as_deep_as_a_server_stores_it_is_updated() -> None:
    deep = b"[" * 9_000 + b"]" * 9_000
    body = b'{"metadata":{"name":"l","namespace":"d"},"spec":{"holderIdentity":"other","future":%s}}' % deep
    stored = leases.StoredLease.decode(body)
    assert stored.lease.spec.holder_identity == "other"
    sent = b""

    def answer(request: httpx.Request) -> httpx.Response:
        nonlocal sent
        sent = request.content
        return httpx.Response(200, content=sent)

    async with connect(ConnectionSettings(server="http://api.test"), transport=httpx.MockTransport(answer)) as other:
        await leases.update_lease(other, stored, LeaseSpec(holder_identity="me"))
    assert deep in sent or (sys.version_info >= (3, 12) and b"[" * 900 in sent)
    with pytest.raises(UndecodableObject, match="nested too deep"):
        leases.StoredLease.decode(body.replace(deep, b"[" * 60_000 + b"]" * 60_000))


def test_a_lease_of_another_shape_is_an_error_in_plain_words() -> None:
    with pytest.raises(UndecodableObject, match=r": Expected str \| null, got int - at spec\.holderIdentity$"):
        leases.StoredLease.decode(b'{"spec": {"holderIdentity": 5}}')


async def test_leases_are_listed_by_name_and_one_that_cannot_be_read_is_left_out(
    client: KubeClient, server: RecordingTransport
) -> None:
    bad = {"metadata": {"name": "bad"}, "spec": {"leaseDurationSeconds": "long"}}
    server.answer = httpx.Response(200, json={"kind": "LeaseList", "items": [STORED, bad]})
    found = await leases.list_leases(client, namespace="kube-system", timeout_seconds=5)
    assert list(found) == ["kube-scheduler"]
    assert found["kube-scheduler"].raw == STORED
    assert found["kube-scheduler"].lease.spec.holder_identity == "other"
    assert server.asked[0][1] == "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases?timeout=5s"


async def test_a_lease_is_written_with_more_annotations(client: KubeClient, server: RecordingTransport) -> None:
    stored = leases.StoredLease.decode(json.dumps(STORED).encode())
    stored = stored.with_annotations({"a": "1", "b": "1"}).with_annotations({"b": "2"})
    await leases.update_lease(client, stored, LeaseSpec(holder_identity="me"))
    assert server.asked[0][3]["metadata"] == {**STORED["metadata"], "annotations": {"a": "1", "b": "2"}}  # type: ignore[dict-item]
