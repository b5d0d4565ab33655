"""Claims as the API server of a virtual cluster has stored them."""

from typing import Any

from trio_sched.testing.cluster import VirtualCluster

CLAIMS = "resourceclaims.resource.k8s.io"


def claims(cluster: VirtualCluster) -> dict[str, dict[str, Any]]:
    """Name → claim."""
    stored = cluster.api.store.collection(CLAIMS).objects.values()
    return {one.fields["metadata"]["name"]: one.fields for one in stored}


def devices_of(claim: dict[str, Any]) -> list[str]:
    """``pool/device`` of each device of a claim that is allocated."""
    results = claim["status"]["allocation"]["devices"]["results"]
    return [f"{one['pool']}/{one['device']}" for one in results]
