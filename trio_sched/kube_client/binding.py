"""Puts a pod on a node: the one write that scheduling is about."""

from urllib.parse import quote

import msgspec

from trio_sched.kube_client.connection import JSON, KubeClient

_encode = msgspec.json.Encoder().encode


def binding_body(*, namespace: str, name: str, uid: str, node: str) -> bytes:
    """The Binding for the pod *uid*, which must still be the one called *name*."""
    return _encode(
        {
            "kind": "Binding",
            "apiVersion": "v1",
            "metadata": {"name": name, "namespace": namespace, "uid": uid},
            "target": {"kind": "Node", "name": node},
        }
    )


async def bind(client: KubeClient, *, namespace: str, name: str, uid: str, node: str) -> None:
    """Assign a pod to *node*, once; it is never tried again from here unless the server asks for it.

    Raises:
        Conflict: it is assigned already (even to this node), gated, being deleted, or another pod by now.
        NotFound: it is gone.
        ConnectionFailed: if ``may_have_reached_server``, the pod may be bound: look it up, or bind again and take a
            Conflict that names this node for a yes.
    """
    target = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}/binding".encode()
    body = binding_body(namespace=namespace, name=name, uid=uid, node=node)
    await client.call(b"POST", target, headers=JSON, body=body)
