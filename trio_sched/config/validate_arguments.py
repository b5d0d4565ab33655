"""Judges the arguments of the in-tree plugins: a list of problems, in kube-scheduler's order and words."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from trio_sched.config.durations import format_duration
from trio_sched.config.errors import Problem
from trio_sched.config.feature_gates import FeatureGates
from trio_sched.config.names import label_key_problems, label_value_problems
from trio_sched.config.problems import duplicate, forbidden, invalid, invalid_name, required, unsupported
from trio_sched.objects.selector import NodeSelectorRequirement, NodeSelectorTerm
from trio_sched.objects.timestamps import SECOND_NS
from trio_sched.plugin_api.arguments import (
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginArguments,
    PodTopologySpreadArgs,
    UtilizationShapePoint,
    VolumeBindingArgs,
)

_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_STRATEGIES: Final = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")
_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)


def argument_problems(args: PluginArguments, path: str, gates: FeatureGates) -> Iterator[Problem]:
    """What is wrong with *args*, which stand at *path* (empty: paths begin with the field)."""
    at = f"{path}." if path else ""
    match args:
        case DefaultPreemptionArgs():
            return _default_preemption(args, at)
        case DynamicResourcesArgs():
            return _dynamic_resources(args, at, gates)
        case InterPodAffinityArgs():
            return _inter_pod_affinity(args, at)
        case NodeAffinityArgs():
            return _node_affinity(args, at)
        case NodeResourcesFitArgs():
            return _fit(args, at)
        case NodeResourcesBalancedAllocationArgs():
            return _balanced_allocation(args, at)
        case PodTopologySpreadArgs():
            return _pod_topology_spread(args, at)
        case VolumeBindingArgs():
            return _volume_binding(args, at, gates)


def _default_preemption(args: DefaultPreemptionArgs, at: str) -> Iterator[Problem]:
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    percentage_name, absolute_name = "minCandidateNodesPercentage", "minCandidateNodesAbsolute"
    if not 0 <= percentage <= 100:
        yield invalid(at + percentage_name, percentage, "not in valid range [0, 100]")
    if absolute < 0:
        yield invalid(at + absolute_name, absolute, "not in valid range [0, inf)")
    if percentage == absolute == 0:
        yield invalid(at + percentage_name, 0, f"cannot be zero at the same time as {absolute_name}")
        yield invalid(at + absolute_name, 0, f"cannot be zero at the same time as {percentage_name}")


def _dynamic_resources(args: DynamicResourcesArgs, at: str, gates: FeatureGates) -> Iterator[Problem]:
    if args.filter_timeout_ns is not None:
        if not gates.enabled("DRASchedulerFilterTimeout"):
            yield forbidden(f"{at}filterTimeout", "DRASchedulingFilterTimeout feature gate is disabled")
        elif args.filter_timeout_ns < 0:
            yield invalid(f"{at}filterTimeout", format_duration(args.filter_timeout_ns), "must be zero or positive")
    if args.binding_timeout_ns is not None:
        if not (gates.enabled("DRADeviceBindingConditions") and gates.enabled("DRAResourceClaimDeviceStatus")):
            detail = "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled"
            yield forbidden(f"{at}bindingTimeout", detail)
        elif args.binding_timeout_ns < SECOND_NS:
            yield invalid(f"{at}bindingTimeout", format_duration(args.binding_timeout_ns), "must be at least 1 second")


def _inter_pod_affinity(args: InterPodAffinityArgs, at: str) -> Iterator[Problem]:
    if not 0 <= args.hard_pod_affinity_weight <= 100:
        yield invalid(f"{at}hardPodAffinityWeight", args.hard_pod_affinity_weight, "not in valid range [0, 100]")


def _node_affinity(args: NodeAffinityArgs, at: str) -> Iterator[Problem]:
    affinity = args.added_affinity
    if affinity is None:
        return
    required_terms = affinity.required_during_scheduling_ignored_during_execution
    if required_terms is not None:
        place = f"{at}addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        for index, term in enumerate(required_terms.node_selector_terms or ()):
            yield from _selector_term(term, f"{place}[{index}]")
    place = f"{at}addedAffinity.preferredDuringSchedulingIgnoredDuringExecution"
    for index, preferred in enumerate(affinity.preferred_during_scheduling_ignored_during_execution or ()):
        if preferred.weight:  # a term without weight is never looked at
            yield from _selector_term(preferred.preference, f"{place}[{index}]")


def _selector_term(term: NodeSelectorTerm, path: str) -> Iterator[Problem]:
    for index, requirement in enumerate(term.match_expressions or ()):
        yield from _label_requirement(requirement, f"{path}.matchExpressions[{index}]")
    for index, requirement in enumerate(term.match_fields or ()):
        place = f"{path}.matchFields[{index}]"
        if requirement.operator not in ("In", "NotIn"):
            yield unsupported(f"{place}.operator", requirement.operator, ("In", "NotIn"))
        elif len(requirement.values or ()) != 1:
            yield invalid(f"{place}.values", _listed(requirement), "must have one element")


def _listed(requirement: NodeSelectorRequirement) -> list[str] | None:
    return None if requirement.values is None else list(requirement.values)


def _label_requirement(requirement: NodeSelectorRequirement, path: str) -> Iterator[Problem]:
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
                yield invalid(place, _listed(requirement), detail)
        case "Exists" | "DoesNotExist":
            if values:
                yield invalid(place, _listed(requirement), "values set must be empty for exists and does not exist")
        case _:
            if len(values) != 1:
                detail = "for 'Gt', 'Lt' operators, exactly one value is required"
                yield invalid(place, _listed(requirement), detail)
            for index, value in enumerate(values):
                if not _INTEGER.fullmatch(value) or not -(1 << 63) <= int(value) < 1 << 63:
                    detail = "for 'Gt', 'Lt' operators, the value must be an integer"
                    yield invalid(f"{place}[{index}]", value, detail)
    for index, value in enumerate(values):
        if problems := label_value_problems(value):
            yield invalid(f"{place}[{index}][{requirement.key}]", value, "; ".join(problems))


def _fit(args: NodeResourcesFitArgs, at: str) -> Iterator[Problem]:
    for index, resource in enumerate(args.ignored_resources or ()):
        yield from _label_key(f"{at}ignoredResources[{index}]", resource)
    for index, group in enumerate(args.ignored_resource_groups or ()):
        place = f"{at}ignoredResourceGroups[{index}]"
        if "/" in group:
            yield invalid(place, group, "resource group name can't contain '/'")
        yield from _label_key(place, group)
    strategy = args.scoring_strategy
    place = f"{at}scoringStrategy"
    if strategy.type not in _STRATEGIES:
        yield unsupported(f"{place}.type", strategy.type, _STRATEGIES)
    for index, spec in enumerate(strategy.resources):
        if not 0 < spec.weight <= 100:
            detail = f"resource weight of {spec.name} not in valid range (0, 100]"
            yield invalid(f"{place}.resources[{index}].weight", spec.weight, detail)
    ratio = strategy.requested_to_capacity_ratio
    place = f"{place}.requestedToCapacityRatio"
    if strategy.type == "RequestedToCapacityRatio":
        if ratio is None:
            yield required(place, "must be specified when type is RequestedToCapacityRatio")
        else:
            yield from _shape(ratio.shape or (), f"{place}.shape")
    elif ratio is not None:
        yield forbidden(place, "must be nil when type is not RequestedToCapacityRatio")


def _label_key(path: str, key: str) -> Iterator[Problem]:
    for problem in label_key_problems(key):
        yield invalid(path, key, problem)


def _shape(shape: tuple[UtilizationShapePoint, ...], path: str) -> Iterator[Problem]:
    if not shape:
        yield required(path, "at least one point must be specified")
        return
    for index in range(1, len(shape)):
        if shape[index - 1].utilization >= shape[index].utilization:
            detail = "values must be sorted in increasing order"
            yield invalid(f"{path}[{index}].utilization", shape[index].utilization, detail)
            break
    for index, point in enumerate(shape):
        if not 0 <= point.utilization <= 100:
            yield invalid(f"{path}[{index}].utilization", point.utilization, "not in valid range [0, 100]")
        if not 0 <= point.score <= 10:
            yield invalid(f"{path}[{index}].score", point.score, "not in valid range [0, 10]")


def _balanced_allocation(args: NodeResourcesBalancedAllocationArgs, at: str) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, spec in enumerate(args.resources):
        if spec.name in seen:
            yield duplicate(f"{at}resources[{index}].name", spec.name)
        seen.add(spec.name)
        if spec.weight != 1:
            yield invalid(f"{at}resources[{index}].weight", spec.weight, "must be 1")


def _pod_topology_spread(args: PodTopologySpreadArgs, at: str) -> Iterator[Problem]:
    constraints = args.default_constraints or ()
    if args.defaulting_type not in ("System", "List"):
        yield unsupported(f"{at}defaultingType", args.defaulting_type, ("System", "List"))
    elif args.defaulting_type == "System" and constraints:
        yield invalid_name(f"{at}defaultingType", args.defaulting_type, "when .defaultConstraints are not empty")
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(constraints):
        place = f"{at}defaultConstraints[{index}]"
        key, action = constraint.topology_key, constraint.when_unsatisfiable
        if constraint.max_skew <= 0:
            yield invalid(f"{place}.maxSkew", constraint.max_skew, "not in valid range (0, inf)")
        if key:
            yield from _label_key(f"{place}.topologyKey", key)
        else:
            yield required(f"{place}.topologyKey", "can not be empty")
        if not action:
            yield required(f"{place}.whenUnsatisfiable", "can not be empty")
        elif action not in _ACTIONS:
            yield unsupported(f"{place}.whenUnsatisfiable", action, _ACTIONS)
        if constraint.label_selector is not None:
            detail = "constraint must not define a selector, as they deduced for each pod"
            yield forbidden(f"{place}.labelSelector", detail)
        if (key, action) in seen:
            yield duplicate(place, f"{{{key}, {action}}}")
        seen.add((key, action))


def _volume_binding(args: VolumeBindingArgs, at: str, gates: FeatureGates) -> Iterator[Problem]:
    if args.bind_timeout_seconds < 0:
        detail = "invalid BindTimeoutSeconds, should not be a negative value"
        yield invalid(f"{at}bindTimeoutSeconds", args.bind_timeout_seconds, detail)
    if gates.enabled("StorageCapacityScoring"):
        yield from _shape(args.shape or (), f"{at}shape")
    elif args.shape is not None:
        points: list[Mapping[str, Any]] = [{"Utilization": p.utilization, "Score": p.score} for p in args.shape]
        detail = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
        yield invalid(f"{at}shape", points, detail)
