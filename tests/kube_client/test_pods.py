from recording_transport import RecordingTransport

from trio_sched.kube_client import pods
from trio_sched.kube_client.connection import KubeClient


async def test_pod_status_is_merged_strategically(client: KubeClient, server: RecordingTransport) -> None:
    status = {"conditions": [{"type": "PodScheduled", "status": "False"}], "nominatedNodeName": None}
    await pods.patch_pod_status(client, namespace="d", name="p", status=status)
    assert server.asked == [
        (
            "PATCH",
            "/api/v1/namespaces/d/pods/p/status",
            "application/strategic-merge-patch+json",
            {"status": status},
        )
    ]


async def test_pods_are_deleted_with_their_grace_period_and_by_uid_if_given(
    client: KubeClient, server: RecordingTransport
) -> None:
    await pods.delete_pod(client, namespace="d", name="p")
    await pods.delete_pod(client, namespace="d", name="p", uid="u")
    options = {"kind": "DeleteOptions", "apiVersion": "v1"}
    assert [(method, target, body) for method, target, _, body in server.asked] == [
        ("DELETE", "/api/v1/namespaces/d/pods/p", options),
        ("DELETE", "/api/v1/namespaces/d/pods/p", {**options, "preconditions": {"uid": "u"}}),
    ]
