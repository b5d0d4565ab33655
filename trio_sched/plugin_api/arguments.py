"""The arguments of each in-tree plugin: one class per ``pluginConfig`` entry of the configuration file.

The defaults of the attributes are those that a completed configuration has under the default feature gates. An absent
list is ``None`` where Kubernetes tells it from an empty one. How a file's fields become these classes, which values are
valid and how they are written back is in ``trio_sched/config/plugin_arguments/``, a file per plugin.
"""

from typing import Final

from attrs import frozen

from trio_sched.objects.affinity import NodeAffinity
from trio_sched.objects.pod import TopologySpreadConstraint
from trio_sched.objects.timestamps import SECOND_NS


@frozen(kw_only=True)
class ResourceSpec:
    """A resource and its weight."""

    name: str = ""
    weight: int = 1


CPU_AND_MEMORY: Final = (ResourceSpec(name="cpu"), ResourceSpec(name="memory"))
"""The default resources."""


@frozen(kw_only=True)
class UtilizationShapePoint:
    """One point of a utilization → score curve: *utilization* in 0..100, *score* in 0..10."""

    utilization: int = 0
    score: int = 0


@frozen(kw_only=True)
class RequestedToCapacityRatio:
    """The curve of the scoring strategy of the same name."""

    shape: tuple[UtilizationShapePoint, ...] | None = None


@frozen(kw_only=True)
class ScoringStrategy:
    """How NodeResourcesFit scores nodes: by *type*, over *resources*, along a curve for RequestedToCapacityRatio."""

    type: str = "LeastAllocated"
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY
    requested_to_capacity_ratio: RequestedToCapacityRatio | None = None


@frozen(kw_only=True)
class DefaultPreemptionArgs:
    """``pluginConfig`` of DefaultPreemption: the minimum number of candidate nodes to find."""

    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100


@frozen(kw_only=True)
class DynamicResourcesArgs:
    """``pluginConfig`` of DynamicResources; ``None`` if a feature gate switches the timeout off."""

    filter_timeout_ns: int | None = 10 * SECOND_NS
    binding_timeout_ns: int | None = 600 * SECOND_NS


@frozen(kw_only=True)
class InterPodAffinityArgs:
    """``pluginConfig`` of InterPodAffinity."""

    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False


@frozen(kw_only=True)
class NodeAffinityArgs:
    """``pluginConfig`` of NodeAffinity: an affinity that is added to that of every pod of the profile."""

    added_affinity: NodeAffinity | None = None


@frozen(kw_only=True)
class NodeResourcesFitArgs:
    """``pluginConfig`` of NodeResourcesFit: extended resources that the filter ignores, and the scoring strategy."""

    ignored_resources: tuple[str, ...] | None = None
    ignored_resource_groups: tuple[str, ...] | None = None
    scoring_strategy: ScoringStrategy = ScoringStrategy()


@frozen(kw_only=True)
class NodeResourcesBalancedAllocationArgs:
    """``pluginConfig`` of NodeResourcesBalancedAllocation."""

    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY


@frozen(kw_only=True)
class PodTopologySpreadArgs:
    """``pluginConfig`` of PodTopologySpread: the constraints of pods that have none of their own."""

    default_constraints: tuple[TopologySpreadConstraint, ...] | None = None
    defaulting_type: str = "System"


@frozen(kw_only=True)
class VolumeBindingArgs:
    """``pluginConfig`` of VolumeBinding; *shape* is for the feature gate StorageCapacityScoring."""

    bind_timeout_seconds: int = 600
    shape: tuple[UtilizationShapePoint, ...] | None = None


PluginArguments = (
    DefaultPreemptionArgs
    | DynamicResourcesArgs
    | InterPodAffinityArgs
    | NodeAffinityArgs
    | NodeResourcesFitArgs
    | NodeResourcesBalancedAllocationArgs
    | PodTopologySpreadArgs
    | VolumeBindingArgs
)
"""Any of the argument classes above."""
