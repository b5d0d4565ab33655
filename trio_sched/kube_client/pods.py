"""Writes the status of pods, evicts and deletes them."""

from typing import Any

from trio_sched.documents.json_values import encode
from trio_sched.kube_client import verbs
from trio_sched.kube_client.connection import JSON, STRATEGIC_MERGE_PATCH, KubeClient
from trio_sched.kube_client.kinds import POD_KIND
from trio_sched.objects.pod import Pod


async def patch_pod_status(client: KubeClient, *, namespace: str, name: str, status: dict[str, Any]) -> None:
    """Apply *status*, a strategic merge patch of ``status``, to the pod.

    Raises:
        NotFound: the pod does not exist.
        Conflict: it was changed while the server patched it.
    """
    target = POD_KIND.path(name, namespace=namespace, subresource="status").encode()
    await client.call(b"PATCH", target, headers=STRATEGIC_MERGE_PATCH, body=encode({"status": status}))


async def exchange_pod_status(
    client: KubeClient, *, namespace: str, name: str, status: dict[str, Any], resource_version: str = ""
) -> Pod:
    """Apply *status* as `patch_pod_status` does, and return the pod as it is then.

    Raises:
        NotFound: the pod does not exist.
        Conflict: it is not at *resource_version*, if that is given.
    """
    metadata = {"metadata": {"resourceVersion": resource_version}} if resource_version else {}
    return await verbs.patch(
        client,
        POD_KIND,
        name,
        encode({**metadata, "status": status}),
        namespace=namespace,
        subresource="status",
        patch_type=STRATEGIC_MERGE_PATCH,
    )


async def evict_pod(client: KubeClient, *, namespace: str, name: str, uid: str = "") -> None:
    """Delete a pod unless a disruption budget protects it; with *uid* only if it still has that UID.

    Raises:
        NotFound: it does not exist.
        TooManyRequests: a disruption budget protects it now.
        Conflict: the pod of that name has another UID by now.
    """
    eviction: dict[str, Any] = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
    }
    if uid:
        eviction["deleteOptions"] = {"preconditions": {"uid": uid}}
    target = POD_KIND.path(name, namespace=namespace, subresource="eviction").encode()
    await client.call(b"POST", target, headers=JSON, body=encode(eviction))


async def delete_pod(
    client: KubeClient, *, namespace: str, name: str, uid: str = "", resource_version: str = ""
) -> None:
    """Delete a pod with its own grace period; with *uid* or *resource_version* only if it still has these.

    Raises:
        NotFound: it does not exist.
        Conflict: the pod of that name has another UID, or version, by now.
    """
    await verbs.delete(client, POD_KIND, name, namespace=namespace, uid=uid, resource_version=resource_version)
