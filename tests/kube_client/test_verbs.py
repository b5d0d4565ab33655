import httpx
import msgspec
import pytest
from recording_transport import RecordingTransport

from trio_sched.kube_client import verbs
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.errors import (
    UndecodableObject,
)
from trio_sched.kube_client.kinds import LEASE_KIND, NODE_KIND, POD_KIND


async def test_verbs_have_their_paths(client: KubeClient, server: RecordingTransport) -> None:
    body = msgspec.json.encode({"metadata": {"name": "n/1"}})
    assert (await verbs.create(client, NODE_KIND, body)).name == "n/1"
    await verbs.update(client, NODE_KIND, "n/1", body)
    await verbs.patch(client, POD_KIND, "p", b"{}", namespace="d", subresource="status")
    await verbs.delete(client, LEASE_KIND, "l", namespace="d")
    await verbs.get(client, POD_KIND, "p", namespace="d")
    assert [(method, target, kind) for method, target, kind, _ in server.asked] == [
        ("POST", "/api/v1/nodes", "application/json"),
        ("PUT", "/api/v1/nodes/n%2F1", "application/json"),
        ("PATCH", "/api/v1/namespaces/d/pods/p/status", "application/merge-patch+json"),
        ("DELETE", "/apis/coordination.k8s.io/v1/namespaces/d/leases/l", "application/json"),
        ("GET", "/api/v1/namespaces/d/pods/p", None),
    ]


async def test_what_is_not_of_its_kind_is_named(client: KubeClient, server: RecordingTransport) -> None:
    server.answer = httpx.Response(200, json={"metadata": {"name": "p", "namespace": "d"}, "spec": {"nodeName": []}})
    with pytest.raises(UndecodableObject, match=r"^pods d/p left out: Expected str, got array - at spec\.nodeName$"):
        await verbs.get(client, POD_KIND, "p", namespace="d")
