"""Deployments of several pods, some of which are pending."""

from collections.abc import Sequence

from contrib.scenarios.manifests import HOST, bound_claim, deployment, node, pod, storage_class, uses, volume
from contrib.scenarios.pending_causes.pending_cause import PendingCause, cause_of

CAUSES_OF_WORKLOADS: Sequence[PendingCause] = (
    cause_of(
        "a deployment whose pods are too large, and too many for the largest request that fits",
        ["InsufficientMemory"],
        ["memory 6.0Gi", "4.0Gi (n1)"],
        "request memory ≤ 2.0Gi",
        node("n1", memory="4Gi"),
        node("n2", memory="4Gi"),
        pod("other", on="n2", requests={"memory": "2Gi"}),
        *deployment("asked", ["", "", ""], requests={"memory": "6Gi"}),
        pod="deployment/asked",
    ),
    cause_of(
        "a deployment of two pods on a claim that one pod can use",
        ["ClaimInUse"],
        ["the claim data is ReadWriteOncePod", "in use by default/asked-"],
        "a new, empty claim data-shared with ReadWriteOnce",
        node("n1"),
        storage_class("fast"),
        volume("disk-1", "data", mode="ReadWriteOncePod"),
        bound_claim("data", "disk-1", modes=["ReadWriteOncePod"]),
        *deployment("asked", ["n1", ""], volumes=uses("data")),
        pod="deployment/asked",
    ),
    cause_of(
        "a claim that the pod of another deployment uses",
        ["ClaimInUse"],
        ["the claim data is ReadWriteOncePod", "in use by default/other-"],
        "scale Deployment default/other to 0",
        node("n1"),
        storage_class("fast"),
        volume("disk-1", "data", mode="ReadWriteOncePod"),
        bound_claim("data", "disk-1", modes=["ReadWriteOncePod"]),
        *deployment("other", ["n1"], volumes=uses("data")),
        *deployment("asked", [""], nodeSelector={HOST: "n1"}, volumes=uses("data")),
        pod="deployment/asked",
    ),
)
