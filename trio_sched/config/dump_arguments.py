"""Writes plugin arguments back: as the file shows them, and as kube-scheduler shows its inner form in an error."""

from collections.abc import Sequence
from typing import Any

import msgspec

from trio_sched.config.durations import format_duration
from trio_sched.config.go_text import json_text
from trio_sched.config.wire_types import API_VERSION
from trio_sched.objects.affinity import NodeAffinity
from trio_sched.objects.pod import TopologySpreadConstraint
from trio_sched.objects.selector import NodeSelectorTerm
from trio_sched.plugin_api.arguments import (
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginArguments,
    PodTopologySpreadArgs,
    ResourceSpec,
    UtilizationShapePoint,
    VolumeBindingArgs,
)

Fields = dict[str, Any]
"""What stands under a key of the file."""


def dump_arguments(args: PluginArguments) -> Fields:
    """*args* as they stand in a completed configuration file."""
    return {"apiVersion": API_VERSION, "kind": type(args).__name__, **_fields(args)}


def internal_arguments(args: PluginArguments) -> str:
    """*args* as JSON with the names of kube-scheduler's inner types."""
    return json_text({key[:1].upper() + key[1:]: value for key, value in _fields(args).items()})


def _fields(args: PluginArguments) -> Fields:
    match args:
        case DefaultPreemptionArgs():
            return {
                "minCandidateNodesPercentage": args.min_candidate_nodes_percentage,
                "minCandidateNodesAbsolute": args.min_candidate_nodes_absolute,
            }
        case DynamicResourcesArgs():
            timeout, binding = args.filter_timeout_ns, args.binding_timeout_ns
            fields: Fields = {"filterTimeout": None if timeout is None else format_duration(timeout)}
            return fields if binding is None else fields | {"bindingTimeout": format_duration(binding)}
        case InterPodAffinityArgs():
            return {
                "hardPodAffinityWeight": args.hard_pod_affinity_weight,
                "ignorePreferredTermsOfExistingPods": args.ignore_preferred_terms_of_existing_pods,
            }
        case NodeAffinityArgs():
            return {} if args.added_affinity is None else {"addedAffinity": _node_affinity(args.added_affinity)}
        case NodeResourcesBalancedAllocationArgs():
            return {"resources": _resources(args.resources)}
        case NodeResourcesFitArgs():
            return _fit(args)
        case PodTopologySpreadArgs():
            constraints = [_constraint(constraint) for constraint in args.default_constraints or ()]
            return _given(defaultConstraints=constraints, defaultingType=args.defaulting_type)
        case VolumeBindingArgs():
            return {"bindTimeoutSeconds": args.bind_timeout_seconds, **_given(shape=_shape(args.shape))}


def _given(**fields: Any) -> Fields:
    """The *fields* that are not empty."""
    return {key: value for key, value in fields.items() if value}


def _resources(resources: Sequence[ResourceSpec]) -> list[Fields]:
    return [{"name": spec.name, **_given(weight=spec.weight)} for spec in resources]


def _shape(shape: Sequence[UtilizationShapePoint] | None) -> list[Fields] | None:
    return None if shape is None else [{"utilization": point.utilization, "score": point.score} for point in shape]


def _fit(args: NodeResourcesFitArgs) -> Fields:
    strategy, ratio = args.scoring_strategy, args.scoring_strategy.requested_to_capacity_ratio
    return {
        **_given(
            ignoredResources=list(args.ignored_resources or ()),
            ignoredResourceGroups=list(args.ignored_resource_groups or ()),
        ),
        "scoringStrategy": {
            **_given(type=strategy.type, resources=_resources(strategy.resources)),
            **({} if ratio is None else {"requestedToCapacityRatio": _given(shape=_shape(ratio.shape))}),
        },
    }


def _node_affinity(affinity: NodeAffinity) -> Fields:
    fields: Fields = {}
    required = affinity.required_during_scheduling_ignored_during_execution
    if required is not None:
        terms = required.node_selector_terms
        listed = None if terms is None else [_term(term) for term in terms]
        fields["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": listed}
    preferred = affinity.preferred_during_scheduling_ignored_during_execution
    if preferred:
        fields["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": term.weight, "preference": _term(term.preference)} for term in preferred
        ]
    return fields


def _term(term: NodeSelectorTerm) -> Fields:
    fields = {"matchExpressions": term.match_expressions, "matchFields": term.match_fields}
    return {
        key: [{"key": r.key, "operator": r.operator, **_given(values=list(r.values or ()))} for r in requirements]
        for key, requirements in fields.items()
        if requirements
    }


def _constraint(constraint: TopologySpreadConstraint) -> Fields:
    always = {
        "maxSkew": constraint.max_skew,
        "topologyKey": constraint.topology_key,
        "whenUnsatisfiable": constraint.when_unsatisfiable,
    }
    given: Fields = msgspec.to_builtins(constraint)
    if not given.get("matchLabelKeys"):
        given.pop("matchLabelKeys", None)
    return given | always
