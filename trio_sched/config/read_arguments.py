"""Builds the argument class of an in-tree plugin from what the file says, defaults filled in."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from trio_sched.config.feature_gates import FeatureGates
from trio_sched.objects.affinity import NodeAffinity
from trio_sched.objects.pod import TopologySpreadConstraint
from trio_sched.plugin_api.arguments import (
    CPU_AND_MEMORY,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginArguments,
    PodTopologySpreadArgs,
    RequestedToCapacityRatio,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
    VolumeBindingArgs,
)

Given = Mapping[str, Any]
"""The fields that the file gives, by their names there."""


def read_arguments(plugin: str, given: Given, gates: FeatureGates) -> PluginArguments:
    """The arguments of the in-tree *plugin*: what is *given*, else its default under *gates*.

    Raises:
        KeyError: *plugin* takes no arguments.
    """
    return _READERS[plugin](given, gates)


def _default_preemption(given: Given, _: FeatureGates) -> DefaultPreemptionArgs:
    return DefaultPreemptionArgs(
        min_candidate_nodes_percentage=given.get("minCandidateNodesPercentage", 10),
        min_candidate_nodes_absolute=given.get("minCandidateNodesAbsolute", 100),
    )


def _dynamic_resources(given: Given, gates: FeatureGates) -> DynamicResourcesArgs:
    standard = DynamicResourcesArgs()
    filter_timeout = standard.filter_timeout_ns if gates.enabled("DRASchedulerFilterTimeout") else None
    can_bind = gates.enabled("DRADeviceBindingConditions") and gates.enabled("DRAResourceClaimDeviceStatus")
    return DynamicResourcesArgs(
        filter_timeout_ns=given.get("filterTimeout", filter_timeout),
        binding_timeout_ns=given.get("bindingTimeout", standard.binding_timeout_ns if can_bind else None),
    )


def _inter_pod_affinity(given: Given, _: FeatureGates) -> InterPodAffinityArgs:
    return InterPodAffinityArgs(
        hard_pod_affinity_weight=given.get("hardPodAffinityWeight", 1),
        ignore_preferred_terms_of_existing_pods=given.get("ignorePreferredTermsOfExistingPods", False),
    )


def _node_affinity(given: Given, _: FeatureGates) -> NodeAffinityArgs:
    affinity = given.get("addedAffinity")
    return NodeAffinityArgs(added_affinity=None if affinity is None else msgspec.convert(affinity, NodeAffinity))


def _balanced_allocation(given: Given, _: FeatureGates) -> NodeResourcesBalancedAllocationArgs:
    return NodeResourcesBalancedAllocationArgs(resources=_resources(given))


def _resources(given: Given) -> tuple[ResourceSpec, ...]:
    resources = given.get("resources") or ()
    # A weight of 0 counts as not given.
    return (
        tuple(ResourceSpec(name=r.get("name", ""), weight=r.get("weight", 0) or 1) for r in resources) or CPU_AND_MEMORY
    )


def _shape(given: Given) -> tuple[UtilizationShapePoint, ...] | None:
    points = given.get("shape")
    return None if points is None else tuple(UtilizationShapePoint(**point) for point in points)


def _fit(given: Given, _: FeatureGates) -> NodeResourcesFitArgs:
    return NodeResourcesFitArgs(
        ignored_resources=given.get("ignoredResources"),
        ignored_resource_groups=given.get("ignoredResourceGroups"),
        scoring_strategy=_strategy(given["scoringStrategy"]) if "scoringStrategy" in given else ScoringStrategy(),
    )


def _strategy(given: Given) -> ScoringStrategy:
    ratio = given.get("requestedToCapacityRatio")
    return ScoringStrategy(
        # Not defaulted: a strategy without a type is refused when the plugin is built.
        type=given.get("type", ""),
        resources=_resources(given),
        requested_to_capacity_ratio=None if ratio is None else RequestedToCapacityRatio(shape=_shape(ratio)),
    )


def _pod_topology_spread(given: Given, _: FeatureGates) -> PodTopologySpreadArgs:
    constraints = given.get("defaultConstraints")
    return PodTopologySpreadArgs(
        default_constraints=None
        if constraints is None
        else msgspec.convert(constraints, tuple[TopologySpreadConstraint, ...]),
        defaulting_type=given.get("defaultingType") or "System",
    )


def _volume_binding(given: Given, gates: FeatureGates) -> VolumeBindingArgs:
    shape = _shape(given)
    if not shape and gates.enabled("StorageCapacityScoring"):
        shape = (UtilizationShapePoint(utilization=0, score=10), UtilizationShapePoint(utilization=100, score=0))
    return VolumeBindingArgs(bind_timeout_seconds=given.get("bindTimeoutSeconds", 600), shape=shape)


_READERS: Final[Mapping[str, Callable[[Given, FeatureGates], PluginArguments]]] = {
    "DefaultPreemption": _default_preemption,
    "DynamicResources": _dynamic_resources,
    "InterPodAffinity": _inter_pod_affinity,
    "NodeAffinity": _node_affinity,
    "NodeResourcesBalancedAllocation": _balanced_allocation,
    "NodeResourcesFit": _fit,
    "PodTopologySpread": _pod_topology_spread,
    "VolumeBinding": _volume_binding,
}
