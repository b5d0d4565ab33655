"""``pluginConfig`` of NodeResourcesFit."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from trio_sched.config.decode import Given, GoType, ListOf, String, Struct
from trio_sched.config.errors import Problem
from trio_sched.config.feature_gates import FeatureGates
from trio_sched.config.omit_empty import omit_empty
from trio_sched.config.plugin_arguments import resource_spec, utilization_shape
from trio_sched.config.problems import forbidden, invalid, required, unsupported
from trio_sched.objects.names import label_key_problems
from trio_sched.plugin_api.arguments import NodeResourcesFitArgs, RequestedToCapacityRatio, ScoringStrategy

_STRATEGIES: Final = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")

_SCORING_STRATEGY: Final = Struct(
    "v1.ScoringStrategy",
    {
        "type": String("v1.ScoringStrategyType"),
        "resources": resource_spec.RESOURCES,
        "requestedToCapacityRatio": Struct("v1.RequestedToCapacityRatioParam", {"shape": utilization_shape.SHAPE}),
    },
)
FIELDS: Final[Mapping[str, GoType]] = {
    "ignoredResources": ListOf(String()),
    "ignoredResourceGroups": ListOf(String()),
    "scoringStrategy": _SCORING_STRATEGY,
}
"""The fields of ``v1.NodeResourcesFitArgs``."""


def defaults(_: FeatureGates) -> NodeResourcesFitArgs:
    """The defaults, which depend on no feature gate."""
    return NodeResourcesFitArgs()


def convert(given: Given, default: NodeResourcesFitArgs) -> NodeResourcesFitArgs:
    """The fields that are *given*, the others from *default*."""
    strategy = default.scoring_strategy
    if "scoringStrategy" in given:
        strategy = _convert_strategy(given["scoringStrategy"], strategy)
    return NodeResourcesFitArgs(
        ignored_resources=given.get("ignoredResources", default.ignored_resources),
        ignored_resource_groups=given.get("ignoredResourceGroups", default.ignored_resource_groups),
        scoring_strategy=strategy,
    )


def _convert_strategy(given: Given, default: ScoringStrategy) -> ScoringStrategy:
    ratio = given.get("requestedToCapacityRatio")
    return ScoringStrategy(
        # Not defaulted: a strategy without a type is refused when the plugin is built.
        type=given.get("type", ""),
        resources=resource_spec.convert(given.get("resources")) or default.resources,
        requested_to_capacity_ratio=None
        if ratio is None
        else RequestedToCapacityRatio(shape=utilization_shape.convert(ratio.get("shape"))),
    )


def validate(args: NodeResourcesFitArgs, at: str, _: FeatureGates) -> Iterator[Problem]:
    """What is wrong with *args*; *at* stands before every path."""
    for index, resource in enumerate(args.ignored_resources or ()):
        for problem in label_key_problems(resource):
            yield invalid(f"{at}ignoredResources[{index}]", resource, problem)
    for index, group in enumerate(args.ignored_resource_groups or ()):
        place = f"{at}ignoredResourceGroups[{index}]"
        if "/" in group:
            yield invalid(place, group, "resource group name can't contain '/'")
        for problem in label_key_problems(group):
            yield invalid(place, group, problem)
    yield from _validate_strategy(args.scoring_strategy, f"{at}scoringStrategy")


def _validate_strategy(strategy: ScoringStrategy, path: str) -> Iterator[Problem]:
    if strategy.type not in _STRATEGIES:
        yield unsupported(f"{path}.type", strategy.type, _STRATEGIES)
    for index, spec in enumerate(strategy.resources):
        if not 0 < spec.weight <= 100:
            detail = f"resource weight of {spec.name} not in valid range (0, 100]"
            yield invalid(f"{path}.resources[{index}].weight", spec.weight, detail)
    ratio = strategy.requested_to_capacity_ratio
    place = f"{path}.requestedToCapacityRatio"
    if strategy.type == "RequestedToCapacityRatio":
        if ratio is None:
            yield required(place, "must be specified when type is RequestedToCapacityRatio")
        else:
            yield from utilization_shape.validate(ratio.shape, f"{place}.shape")
    elif ratio is not None:
        yield forbidden(place, "must be nil when type is not RequestedToCapacityRatio")


def dump(args: NodeResourcesFitArgs) -> dict[str, Any]:
    """The fields as a completed file shows them."""
    return {
        **omit_empty(
            ignoredResources=list(args.ignored_resources or ()),
            ignoredResourceGroups=list(args.ignored_resource_groups or ()),
        ),
        "scoringStrategy": _dump_strategy(args.scoring_strategy),
    }


def _dump_strategy(strategy: ScoringStrategy) -> dict[str, Any]:
    fields = omit_empty(type=strategy.type, resources=resource_spec.dump(strategy.resources))
    ratio = strategy.requested_to_capacity_ratio
    if ratio is not None:
        fields["requestedToCapacityRatio"] = omit_empty(shape=utilization_shape.dump(ratio.shape))
    return fields
