"""The two other things a scheduler does to pods: saying how they are, and making room."""

from typing import Any

import msgspec

from trio_sched.kube_client import verbs
from trio_sched.kube_client.connection import STRATEGIC_MERGE_PATCH, KubeClient
from trio_sched.kube_client.kinds import POD_KIND

_encode = msgspec.json.Encoder().encode


async def patch_pod_status(client: KubeClient, *, namespace: str, name: str, status: dict[str, Any]) -> None:
    """Merge *status*, a strategic merge patch of ``status`` alone, into the pod's.

    Raises:
        NotFound: the pod is gone.
        Conflict: it changed while the server was patching.
    """
    target = POD_KIND.path(name, namespace=namespace, subresource="status").encode()
    await client.call(b"PATCH", target, headers=STRATEGIC_MERGE_PATCH, body=_encode({"status": status}))


async def delete_pod(client: KubeClient, *, namespace: str, name: str, uid: str = "") -> None:
    """Delete a pod in its own time of grace; with *uid* only if it is still that one.

    Raises:
        NotFound: it is gone already.
        Conflict: another pod has that name by now.
    """
    await verbs.delete(client, POD_KIND, name, namespace=namespace, uid=uid)
