"""``pluginConfig`` of NodeAffinity."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from trio_sched.config.decode import Given, GoType, Integer, ListOf, String, Struct
from trio_sched.config.errors import Problem
from trio_sched.config.feature_gates import FeatureGates
from trio_sched.config.names import label_key_problems, label_value_problems
from trio_sched.config.omit_empty import omit_empty
from trio_sched.config.problems import invalid, unsupported
from trio_sched.objects.affinity import NodeAffinity
from trio_sched.objects.selector import NodeSelectorRequirement, NodeSelectorTerm
from trio_sched.plugin_api.arguments import NodeAffinityArgs
from trio_sched.snapshot.label_text import parse_int64

_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_FIELD_OPERATORS: Final = ("In", "NotIn")

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


def term_problems(term: NodeSelectorTerm, path: str) -> Iterator[Problem]:
    """What is wrong with *term*, which stands at *path*."""
    for index, requirement in enumerate(term.match_expressions or ()):
        yield from _validate_label_requirement(requirement, f"{path}.matchExpressions[{index}]")
    for index, requirement in enumerate(term.match_fields or ()):
        place = f"{path}.matchFields[{index}]"
        if requirement.operator not in _FIELD_OPERATORS:
            yield unsupported(f"{place}.operator", requirement.operator, _FIELD_OPERATORS)
        elif len(requirement.values or ()) != 1:
            yield invalid(f"{place}.values", _values_list(requirement), "must have one element")


def _values_list(requirement: NodeSelectorRequirement) -> list[str] | None:
    return None if requirement.values is None else list(requirement.values)


def _validate_label_requirement(requirement: NodeSelectorRequirement, path: str) -> Iterator[Problem]:
    if requirement.operator not in _OPERATORS:
        yield unsupported(f"{path}.operator", requirement.operator, _OPERATORS)
        return
    if problems := label_key_problems(requirement.key):
        yield invalid(f"{path}.key", requirement.key, "; ".join(problems))
    values = requirement.values or ()
    place = f"{path}.values"
    match requirement.operator:
        case "In" | "NotIn":
            if not values:
                detail = "for 'in', 'notin' operators, values set can't be empty"
                yield invalid(place, _values_list(requirement), detail)
        case "Exists" | "DoesNotExist":
            if values:
                detail = "values set must be empty for exists and does not exist"
                yield invalid(place, _values_list(requirement), detail)
        case _:
            if len(values) != 1:
                detail = "for 'Gt', 'Lt' operators, exactly one value is required"
                yield invalid(place, _values_list(requirement), detail)
            for index, value in enumerate(values):
                if parse_int64(value) is None:
                    detail = "for 'Gt', 'Lt' operators, the value must be an integer"
                    yield invalid(f"{place}[{index}]", value, detail)
    for index, value in enumerate(values):
        if problems := label_value_problems(value):
            yield invalid(f"{place}[{index}][{requirement.key}]", value, "; ".join(problems))


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
