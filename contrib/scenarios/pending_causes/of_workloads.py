"""Deployments of several pods, some of which are pending."""

from collections.abc import Sequence

from contrib.scenarios.manifests import deployment, node, pod
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
)
