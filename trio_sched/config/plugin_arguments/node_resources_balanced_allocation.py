"""``pluginConfig`` of NodeResourcesBalancedAllocation."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from trio_sched.config.decode import Given, GoType
from trio_sched.config.errors import Problem
from trio_sched.config.feature_gates import FeatureGates
from trio_sched.config.plugin_arguments import resource_spec
from trio_sched.config.problems import duplicate, invalid
from trio_sched.plugin_api.arguments import NodeResourcesBalancedAllocationArgs

FIELDS: Final[Mapping[str, GoType]] = {"resources": resource_spec.RESOURCES}
"""The fields of ``v1.NodeResourcesBalancedAllocationArgs``."""


def defaults(_: FeatureGates) -> NodeResourcesBalancedAllocationArgs:
    """The defaults, which depend on no feature gate."""
    return NodeResourcesBalancedAllocationArgs()


def convert(given: Given, default: NodeResourcesBalancedAllocationArgs) -> NodeResourcesBalancedAllocationArgs:
    """The fields that are *given*, the others from *default*."""
    resources = resource_spec.convert(given.get("resources"))
    return NodeResourcesBalancedAllocationArgs(resources=resources or default.resources)


def validate(args: NodeResourcesBalancedAllocationArgs, at: str, _: FeatureGates) -> Iterator[Problem]:
    """What is wrong with *args*; *at* stands before every path."""
    seen: set[str] = set()
    for index, spec in enumerate(args.resources):
        if spec.name in seen:
            yield duplicate(f"{at}resources[{index}].name", spec.name)
        seen.add(spec.name)
        if spec.weight != 1:
            yield invalid(f"{at}resources[{index}].weight", spec.weight, "must be 1")


def dump(args: NodeResourcesBalancedAllocationArgs) -> dict[str, Any]:
    """The fields as a completed file shows them."""
    return {"resources": resource_spec.dump(args.resources)}
