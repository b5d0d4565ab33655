"""Binds a pod to a node."""

from trio_sched.documents.json_values import encode
from trio_sched.kube_client.connection import JSON, KubeClient
from trio_sched.kube_client.kinds import path_segment


def binding_body(*, namespace: str, name: str, uid: str, node: str) -> bytes:
    """The Binding of the pod *name*, which the server refuses if the pod of that name has another UID by now."""
    return encode(
        {
            "kind": "Binding",
            "apiVersion": "v1",
            "metadata": {"name": name, "namespace": namespace, "uid": uid},
            "target": {"kind": "Node", "name": node},
        }
    )


async def bind(client: KubeClient, *, namespace: str, name: str, uid: str, node: str) -> None:
    """Bind a pod to *node*; the request is only repeated if the server asks for it with ``Retry-After``.

    Raises:
        Conflict: the pod is bound already (even to this node), gated, being deleted, or has another UID by now.
        NotFound: it does not exist.
        ConnectionFailed: if ``may_have_reached_server`` is set, the pod may be bound: look it up, or bind again, where
            a Conflict that names this node means that it is.
    """
    body = binding_body(namespace=namespace, name=name, uid=uid, node=node)
    await _send(client, namespace, name, body)


async def bind_version(
    client: KubeClient, *, namespace: str, name: str, uid: str, resource_version: str, node: str
) -> None:
    """Bind a pod to *node* if it is still at *resource_version*; see `bind`.

    Raises:
        Conflict: also if the pod has another version by now.
        NotFound: it does not exist.
        ConnectionFailed: see `bind`.
    """
    metadata = {"name": name, "namespace": namespace, "uid": uid, "resourceVersion": resource_version}
    target = {"kind": "Node", "name": node}
    body = encode({"kind": "Binding", "apiVersion": "v1", "metadata": metadata, "target": target})
    await _send(client, namespace, name, body)


async def _send(client: KubeClient, namespace: str, name: str, body: bytes) -> None:
    target = f"/api/v1/namespaces/{path_segment(namespace)}/pods/{path_segment(name)}/binding".encode()
    await client.call(b"POST", target, headers=JSON, body=body)
