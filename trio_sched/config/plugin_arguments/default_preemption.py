"""``pluginConfig`` of DefaultPreemption."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from trio_sched.config.decode import Given, GoType, Integer
from trio_sched.config.errors import Problem
from trio_sched.config.feature_gates import FeatureGates
from trio_sched.config.problems import invalid
from trio_sched.plugin_api.arguments import DefaultPreemptionArgs

FIELDS: Final[Mapping[str, GoType]] = {
    "minCandidateNodesPercentage": Integer(32),
    "minCandidateNodesAbsolute": Integer(32),
}
"""The fields of ``v1.DefaultPreemptionArgs``."""


def defaults(_: FeatureGates) -> DefaultPreemptionArgs:
    """The defaults, which depend on no feature gate."""
    return DefaultPreemptionArgs()


def convert(given: Given, default: DefaultPreemptionArgs) -> DefaultPreemptionArgs:
    """The fields that are *given*, the others from *default*."""
    return DefaultPreemptionArgs(
        min_candidate_nodes_percentage=given.get("minCandidateNodesPercentage", default.min_candidate_nodes_percentage),
        min_candidate_nodes_absolute=given.get("minCandidateNodesAbsolute", default.min_candidate_nodes_absolute),
    )


def validate(args: DefaultPreemptionArgs, at: str, _: FeatureGates) -> Iterator[Problem]:
    """What is wrong with *args*; *at* stands before every path."""
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    percentage_name, absolute_name = "minCandidateNodesPercentage", "minCandidateNodesAbsolute"
    if not 0 <= percentage <= 100:
        yield invalid(at + percentage_name, percentage, "not in valid range [0, 100]")
    if absolute < 0:
        yield invalid(at + absolute_name, absolute, "not in valid range [0, inf)")
    if percentage == absolute == 0:
        yield invalid(at + percentage_name, 0, f"cannot be zero at the same time as {absolute_name}")
        yield invalid(at + absolute_name, 0, f"cannot be zero at the same time as {percentage_name}")


def dump(args: DefaultPreemptionArgs) -> dict[str, Any]:
    """The fields as a completed file shows them."""
    return {
        "minCandidateNodesPercentage": args.min_candidate_nodes_percentage,
        "minCandidateNodesAbsolute": args.min_candidate_nodes_absolute,
    }
