"""The plugins that Kubernetes has built in: which points each implements, and which are on by default."""

from collections.abc import Mapping
from typing import Final

from trio_sched.config.feature_gates import FeatureGates
from trio_sched.config.schema import PluginRef

DEFAULT_PREEMPTION: Final = "DefaultPreemption"


def _points(text: str) -> frozenset[str]:
    return frozenset(text.split())


KNOWN_PLUGINS: Final[Mapping[str, frozenset[str]]] = {
    "SchedulingGates": _points("pre_enqueue"),
    "PrioritySort": _points("queue_sort"),
    "NodeUnschedulable": _points("filter"),
    "NodeName": _points("filter"),
    "TaintToleration": _points("filter pre_score score"),
    "NodeAffinity": _points("pre_filter filter pre_score score"),
    "NodePorts": _points("pre_filter filter"),
    "NodeResourcesFit": _points("pre_filter filter pre_score score placement_score"),
    "VolumeRestrictions": _points("pre_filter filter"),
    "NodeVolumeLimits": _points("pre_filter filter"),
    "VolumeBinding": _points("pre_filter filter pre_score score reserve pre_bind"),
    "VolumeZone": _points("pre_filter filter"),
    "PodTopologySpread": _points("pre_filter filter pre_score score"),
    "InterPodAffinity": _points("pre_filter filter pre_score score"),
    "DynamicResources": _points("pre_enqueue pre_filter filter post_filter score reserve pre_bind"),
    "DefaultPreemption": _points("pre_enqueue post_filter pod_group_post_filter"),
    "NodeResourcesBalancedAllocation": _points("pre_score score"),
    "ImageLocality": _points("score"),
    "DefaultBinder": _points("bind"),
    "NodeDeclaredFeatures": _points("pre_filter filter"),
    "GangScheduling": _points("pre_enqueue permit"),
    "TopologyPlacementGenerator": _points("placement_generate"),
    "PodGroupPodsCount": _points("placement_score"),
}
"""Every in-tree plugin and the extension points that it implements."""

REMOVED_PLUGINS: Final = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})
"""Plugins that no version of the file that is still read may name."""

_DEFAULTS: Final = (
    PluginRef("SchedulingGates"),
    PluginRef("PrioritySort"),
    PluginRef("NodeUnschedulable"),
    PluginRef("NodeName"),
    PluginRef("TaintToleration", 3),
    PluginRef("NodeAffinity", 2),
    PluginRef("NodePorts"),
    PluginRef("NodeResourcesFit", 1),
    PluginRef("VolumeRestrictions"),
    PluginRef("NodeVolumeLimits"),
    PluginRef("VolumeBinding"),
    PluginRef("VolumeZone"),
    PluginRef("PodTopologySpread", 2),
    PluginRef("InterPodAffinity", 2),
    PluginRef("DynamicResources", 2),
    PluginRef("DefaultPreemption"),
    PluginRef("NodeResourcesBalancedAllocation", 1),
    PluginRef("ImageLocality", 1),
    PluginRef("DefaultBinder"),
    PluginRef("NodeDeclaredFeatures"),
    PluginRef("GangScheduling"),
    PluginRef("TopologyPlacementGenerator"),
    PluginRef("PodGroupPodsCount", 1),
)
_GATED: Final = {
    "DynamicResources": "DynamicResourceAllocation",
    "NodeDeclaredFeatures": "NodeDeclaredFeatures",
    "GangScheduling": "GangScheduling",
    "TopologyPlacementGenerator": "TopologyAwareWorkloadScheduling",
    "PodGroupPodsCount": "TopologyAwareWorkloadScheduling",
}


def default_plugins(gates: FeatureGates) -> tuple[PluginRef, ...]:
    """The default ``multiPoint`` set, in its order, as far as *gates* allow."""
    return tuple(ref for ref in _DEFAULTS if ref.name not in _GATED or gates.enabled(_GATED[ref.name]))
