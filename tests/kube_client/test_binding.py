import httpx
import pytest
from recording_transport import RecordingTransport

from trio_sched.kube_client import binding
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.errors import (
    Conflict,
)


async def test_a_bind_names_pod_uid_and_node(client: KubeClient, server: RecordingTransport) -> None:
    await binding.bind(client, namespace="shop", name="cart", uid="u-1", node="n1")
    assert server.asked == [
        (
            "POST",
            "/api/v1/namespaces/shop/pods/cart/binding",
            "application/json",
            {
                "kind": "Binding",
                "apiVersion": "v1",
                "metadata": {"name": "cart", "namespace": "shop", "uid": "u-1"},
                "target": {"kind": "Node", "name": "n1"},
            },
        )
    ]


async def test_a_bind_can_name_the_version_of_the_pod(client: KubeClient, server: RecordingTransport) -> None:
    await binding.bind_version(client, namespace="shop", name="cart", uid="u-1", resource_version="7", node="n1")
    ((_, target, _, body),) = server.asked
    assert target == "/api/v1/namespaces/shop/pods/cart/binding"
    assert body["metadata"] == {"name": "cart", "namespace": "shop", "uid": "u-1", "resourceVersion": "7"}


async def test_a_refused_bind_has_the_message_of_the_server(client: KubeClient, server: RecordingTransport) -> None:
    text = 'Operation cannot be fulfilled on pods/binding "hi": pod hi is already assigned to node "n2"'
    body = {"kind": "Status", "status": "Failure", "message": text, "reason": "Conflict", "code": 409}
    server.answer = httpx.Response(409, json=body)
    with pytest.raises(Conflict) as caught:
        await binding.bind(client, namespace="d", name="hi", uid="u", node="n1")
    assert str(caught.value) == text
