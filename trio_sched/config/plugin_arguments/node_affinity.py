"""``pluginConfig`` of NodeAffinity."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from trio_sched.config.decode import Given, GoType, Integer, ListOf, String, Struct
from trio_sched.config.errors import Problem
from trio_sched.config.feature_gates import FeatureGates
from trio_sched.config.omit_empty import omit_empty
from trio_sched.config.plugin_arguments.node_selector_terms import term_problems
from trio_sched.objects.affinity import NodeAffinity
from trio_sched.objects.selector import NodeSelectorTerm
from trio_sched.plugin_api.arguments import NodeAffinityArgs

_REQUIREMENTS: Final = ListOf(
    Struct(
        "v1.NodeSelectorRequirement",
        {"key": String(), "operator": String("v1.NodeSelectorOperator"), "values": ListOf(String())},
    )
)
_TERM: Final = Struct("v1.NodeSelectorTerm", {"matchExpressions": _REQUIREMENTS, "matchFields": _REQUIREMENTS})
_NODE_AFFINITY: Final = Struct(
    "v1.NodeAffinity",
    {
        "requiredDuringSchedulingIgnoredDuringExecution": Struct(
            "v1.NodeSelector", {"nodeSelectorTerms": ListOf(_TERM)}
        ),
        "preferredDuringSchedulingIgnoredDuringExecution": ListOf(
            Struct("v1.PreferredSchedulingTerm", {"weight": Integer(32), "preference": _TERM})
        ),
    },
)
FIELDS: Final[Mapping[str, GoType]] = {"addedAffinity": _NODE_AFFINITY}
"""The fields of ``v1.NodeAffinityArgs``."""


def defaults(_: FeatureGates) -> NodeAffinityArgs:
    """The defaults, which depend on no feature gate."""
    return NodeAffinityArgs()


def convert(given: Given, default: NodeAffinityArgs) -> NodeAffinityArgs:
    """The fields that are *given*, the others from *default*."""
    affinity = given.get("addedAffinity")
    return default if affinity is None else NodeAffinityArgs(added_affinity=msgspec.convert(affinity, NodeAffinity))


def validate(args: NodeAffinityArgs, at: str, _: FeatureGates) -> Iterator[Problem]:
    """What is wrong with *args*; *at* stands before every path."""
    affinity = args.added_affinity
    if affinity is None:
        return
    required_terms = affinity.required_during_scheduling_ignored_during_execution
    if required_terms is not None:
        place = f"{at}addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        for index, term in enumerate(required_terms.node_selector_terms or ()):
            yield from term_problems(term, f"{place}[{index}]")
    place = f"{at}addedAffinity.preferredDuringSchedulingIgnoredDuringExecution"
    for index, preferred in enumerate(affinity.preferred_during_scheduling_ignored_during_execution or ()):
        if preferred.weight:  # kube-scheduler skips a term without weight
            yield from term_problems(preferred.preference, f"{place}[{index}]")


def dump(args: NodeAffinityArgs) -> dict[str, Any]:
    """The fields as a completed file shows them."""
    return {} if args.added_affinity is None else {"addedAffinity": _dump_affinity(args.added_affinity)}


def _dump_affinity(affinity: NodeAffinity) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    required = affinity.required_during_scheduling_ignored_during_execution
    if required is not None:
        terms = required.node_selector_terms
        dumped = None if terms is None else [_dump_term(term) for term in terms]
        fields["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": dumped}
    preferred = affinity.preferred_during_scheduling_ignored_during_execution
    if preferred:
        fields["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": term.weight, "preference": _dump_term(term.preference)} for term in preferred
        ]
    return fields


def _dump_term(term: NodeSelectorTerm) -> dict[str, Any]:
    fields = {"matchExpressions": term.match_expressions, "matchFields": term.match_fields}
    return {
        key: [{"key": r.key, "operator": r.operator, **omit_empty(values=list(r.values or ()))} for r in requirements]
        for key, requirements in fields.items()
        if requirements
    }
