"""Binds a pod to a node."""

from trio_sched.kube_client.connection import JSON, KubeClient
from trio_sched.kube_client.kinds import path_segment
from trio_sched.objects.copies import encode


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
    target = f"/api/v1/namespaces/{path_segment(namespace)}/pods/{path_segment(name)}/binding".encode()
    body = binding_body(namespace=namespace, name=name, uid=uid, node=node)
    await client.call(b"POST", target, headers=JSON, body=body)
