"""``pluginConfig`` of InterPodAffinity."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from trio_sched.config.decode import Bool, Given, GoType, Integer
from trio_sched.config.errors import Problem
from trio_sched.config.feature_gates import FeatureGates
from trio_sched.config.problems import invalid
from trio_sched.plugin_api.arguments import InterPodAffinityArgs

FIELDS: Final[Mapping[str, GoType]] = {
    "hardPodAffinityWeight": Integer(32),
    "ignorePreferredTermsOfExistingPods": Bool(),
}
"""The fields of ``v1.InterPodAffinityArgs``."""


def defaults(_: FeatureGates) -> InterPodAffinityArgs:
    """The defaults, which depend on no feature gate."""
    return InterPodAffinityArgs()


def convert(given: Given, default: InterPodAffinityArgs) -> InterPodAffinityArgs:
    """The fields that are *given*, the others from *default*."""
    return InterPodAffinityArgs(
        hard_pod_affinity_weight=given.get("hardPodAffinityWeight", default.hard_pod_affinity_weight),
        ignore_preferred_terms_of_existing_pods=given.get(
            "ignorePreferredTermsOfExistingPods", default.ignore_preferred_terms_of_existing_pods
        ),
    )


def validate(args: InterPodAffinityArgs, at: str, _: FeatureGates) -> Iterator[Problem]:
    """What is wrong with *args*; *at* stands before every path."""
    if not 0 <= args.hard_pod_affinity_weight <= 100:
        yield invalid(f"{at}hardPodAffinityWeight", args.hard_pod_affinity_weight, "not in valid range [0, 100]")


def dump(args: InterPodAffinityArgs) -> dict[str, Any]:
    """The fields as a completed file shows them."""
    return {
        "hardPodAffinityWeight": args.hard_pod_affinity_weight,
        "ignorePreferredTermsOfExistingPods": args.ignore_preferred_terms_of_existing_pods,
    }
