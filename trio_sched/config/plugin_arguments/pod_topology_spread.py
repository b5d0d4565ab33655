"""``pluginConfig`` of PodTopologySpread."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from trio_sched.config.decode import Given, GoType, Integer, ListOf, MapOf, String, Struct
from trio_sched.config.errors import Problem
from trio_sched.config.feature_gates import FeatureGates
from trio_sched.config.omit_empty import omit_empty
from trio_sched.config.problems import duplicate, forbidden, invalid, invalid_name, required, unsupported
from trio_sched.objects.names import label_key_problems
from trio_sched.objects.pod import TopologySpreadConstraint
from trio_sched.plugin_api.arguments import PodTopologySpreadArgs

_DEFAULTING_TYPES: Final = ("System", "List")
_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")

_LABEL_SELECTOR: Final = Struct(
    "v1.LabelSelector",
    {
        "matchLabels": MapOf(String()),
        "matchExpressions": ListOf(
            Struct(
                "v1.LabelSelectorRequirement",
                {"key": String(), "operator": String("v1.LabelSelectorOperator"), "values": ListOf(String())},
            )
        ),
    },
)
_CONSTRAINT: Final = Struct(
    "v1.TopologySpreadConstraint",
    {
        "maxSkew": Integer(32),
        "topologyKey": String(),
        "whenUnsatisfiable": String("v1.UnsatisfiableConstraintAction"),
        "labelSelector": _LABEL_SELECTOR,
        "minDomains": Integer(32),
        "nodeAffinityPolicy": String("v1.NodeInclusionPolicy"),
        "nodeTaintsPolicy": String("v1.NodeInclusionPolicy"),
        "matchLabelKeys": ListOf(String()),
    },
)
FIELDS: Final[Mapping[str, GoType]] = {
    "defaultConstraints": ListOf(_CONSTRAINT),
    "defaultingType": String("v1.PodTopologySpreadConstraintsDefaulting"),
}
"""The fields of ``v1.PodTopologySpreadArgs``."""


def defaults(_: FeatureGates) -> PodTopologySpreadArgs:
    """The defaults, which depend on no feature gate."""
    return PodTopologySpreadArgs()


def convert(given: Given, default: PodTopologySpreadArgs) -> PodTopologySpreadArgs:
    """The fields that are *given*, the others from *default*; an empty type counts as not given."""
    constraints = given.get("defaultConstraints")
    return PodTopologySpreadArgs(
        default_constraints=default.default_constraints
        if constraints is None
        else msgspec.convert(constraints, tuple[TopologySpreadConstraint, ...]),
        defaulting_type=given.get("defaultingType") or default.defaulting_type,
    )


def validate(args: PodTopologySpreadArgs, at: str, _: FeatureGates) -> Iterator[Problem]:
    """What is wrong with *args*; *at* stands before every path."""
    constraints = args.default_constraints or ()
    if args.defaulting_type not in _DEFAULTING_TYPES:
        yield unsupported(f"{at}defaultingType", args.defaulting_type, _DEFAULTING_TYPES)
    elif args.defaulting_type == "System" and constraints:
        yield invalid_name(f"{at}defaultingType", args.defaulting_type, "when .defaultConstraints are not empty")
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(constraints):
        place = f"{at}defaultConstraints[{index}]"
        yield from _validate_constraint(constraint, place)
        key, action = constraint.topology_key, constraint.when_unsatisfiable
        if (key, action) in seen:
            yield duplicate(place, f"{{{key}, {action}}}")
        seen.add((key, action))


def _validate_constraint(constraint: TopologySpreadConstraint, path: str) -> Iterator[Problem]:
    key, action = constraint.topology_key, constraint.when_unsatisfiable
    if constraint.max_skew <= 0:
        yield invalid(f"{path}.maxSkew", constraint.max_skew, "not in valid range (0, inf)")
    if not key:
        yield required(f"{path}.topologyKey", "can not be empty")
    else:
        for problem in label_key_problems(key):
            yield invalid(f"{path}.topologyKey", key, problem)
    if not action:
        yield required(f"{path}.whenUnsatisfiable", "can not be empty")
    elif action not in _ACTIONS:
        yield unsupported(f"{path}.whenUnsatisfiable", action, _ACTIONS)
    if constraint.label_selector is not None:
        detail = "constraint must not define a selector, as they deduced for each pod"
        yield forbidden(f"{path}.labelSelector", detail)


def dump(args: PodTopologySpreadArgs) -> dict[str, Any]:
    """The fields as a completed file shows them."""
    constraints = [_dump_constraint(constraint) for constraint in args.default_constraints or ()]
    return omit_empty(defaultConstraints=constraints, defaultingType=args.defaulting_type)


def _dump_constraint(constraint: TopologySpreadConstraint) -> dict[str, Any]:
    always = {
        "maxSkew": constraint.max_skew,
        "topologyKey": constraint.topology_key,
        "whenUnsatisfiable": constraint.when_unsatisfiable,
    }
    given: dict[str, Any] = msgspec.to_builtins(constraint)
    if not given.get("matchLabelKeys"):
        given.pop("matchLabelKeys", None)
    return given | always
