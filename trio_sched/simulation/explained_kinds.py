"""The kinds that explanations read, and nobody for decisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trio_sched.explanation.limit_ranges import KIND as LIMIT_RANGE
from trio_sched.explanation.priorities import KIND as PRIORITY_CLASS
from trio_sched.explanation.priorities import PriorityClass
from trio_sched.kube_client.kinds import Kind
from trio_sched.objects.limit_range import LimitRange
from trio_sched.objects.resource.resource_claim import ResourceClaimTemplate
from trio_sched.objects.runtime_class import KIND as RUNTIME_CLASS
from trio_sched.objects.runtime_class import RuntimeClass

CLAIM_TEMPLATE: Final = "ResourceClaimTemplate"
EXPLAINED_KINDS: Final[Mapping[str, Kind[Any]]] = {
    PRIORITY_CLASS: Kind(
        group="scheduling.k8s.io", version="v1", plural="priorityclasses", namespaced=False, type=PriorityClass
    ),
    CLAIM_TEMPLATE: Kind(
        group="resource.k8s.io",
        version="v1",
        plural="resourceclaimtemplates",
        namespaced=True,
        type=ResourceClaimTemplate,
    ),
    RUNTIME_CLASS: Kind(
        group="node.k8s.io", version="v1", plural="runtimeclasses", namespaced=False, type=RuntimeClass
    ),
    LIMIT_RANGE: Kind(version="v1", plural="limitranges", namespaced=True, type=LimitRange),
}
"""The name under which they are in the caches → how they are listed."""
