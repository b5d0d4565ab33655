"""Which plugins of older versions are gone, until when they could be named, and what stands for them today."""

from collections.abc import Mapping
from typing import Final

VERSIONS: Final = ("v1alpha1", "v1alpha2", "v1beta1", "v1beta2", "v1beta3")
"""The legacy versions of the component configuration, oldest first."""

VOLUME_LIMITS: Final = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})
"""Counted volumes of one cloud each; such volumes are CSI volumes now, which NodeVolumeLimits counts."""

STRATEGIES: Final[Mapping[str, str]] = {
    "NodeResourcesLeastAllocated": "LeastAllocated",
    "NodeResourcesMostAllocated": "MostAllocated",
    "RequestedToCapacityRatio": "RequestedToCapacityRatio",
}
"""Scored nodes by their resources; each is a ``scoringStrategy`` of NodeResourcesFit now."""

SELECTOR_SPREAD: Final = "SelectorSpread"
SPREADERS: Final = frozenset({SELECTOR_SPREAD, "DefaultPodTopologySpread"})
"""One plugin under two names: spread the pods of a service; PodTopologySpread does so with ``System`` defaulting."""

NODE_LABEL: Final = "NodeLabel"
"""Wanted labels to be there or not; ``addedAffinity`` of NodeAffinity does so."""

AVOID_PODS: Final = "NodePreferAvoidPods"
"""Read an annotation of nodes that no component writes any more."""

SERVICE_AFFINITY: Final = "ServiceAffinity"
RESOURCE_LIMITS: Final = "NodeResourceLimits"

_LAST_VERSION: Final[Mapping[str, str]] = {
    **dict.fromkeys([*STRATEGIES, NODE_LABEL, SERVICE_AFFINITY, RESOURCE_LIMITS], "v1beta1"),
    **dict.fromkeys([*SPREADERS, AVOID_PODS], "v1beta2"),
}


def is_retired(plugin: str) -> bool:
    """Whether *plugin* was part of Kubernetes once and is no more."""
    return plugin in _LAST_VERSION or plugin in VOLUME_LIMITS


def removed_before(plugin: str, version: str) -> bool:
    """Whether *version* could no longer name *plugin*."""
    last = _LAST_VERSION.get(plugin)
    return last is not None and VERSIONS.index(version) > VERSIONS.index(last)
