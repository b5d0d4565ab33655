"""Topology spread constraints of a pod, compiled; the default constraints for pods without their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import define, field, frozen

from trio_sched.plugin_api import (
    EVERYTHING,
    NOTHING,
    Handle,
    LabelMatcher,
    LabelSelector,
    NamespacedMatcher,
    Pod,
    PodSelector,
    PodTopologySpreadArgs,
    SelectorError,
    SizedCache,
    TopologySpreadConstraint,
    compile_selector,
    selector_of_map,
)

HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"
HONOR, IGNORE = "Honor", "Ignore"
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
WATCHED = ("Service", "ReplicationController", "ReplicaSet", "StatefulSet")
"""Kinds whose selectors are used in default constraints."""
_SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable=SOFT),
    TopologySpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable=SOFT),
)
_OWNERS = {
    ("v1", "ReplicationController"): "ReplicationController",
    ("apps/v1", "ReplicaSet"): "ReplicaSet",
    ("apps/v1", "StatefulSet"): "StatefulSet",
}
_MAX_MERGED = 4096
_MAX_SELECTORS = 4096


@frozen(eq=False)
class Constraint:
    """One constraint, with the defaults of its optional fields."""

    max_skew: int
    key: str
    labels: LabelMatcher
    min_domains: int = 1
    honors_affinity: bool = True
    """nodeAffinityPolicy Honor: pods are counted on nodes that match the pod's node affinity only."""
    honors_taints: bool = False
    """nodeTaintsPolicy Honor: pods are counted on nodes whose taints the pod tolerates only."""

    def counted(self, namespace: str) -> PodSelector:
        """Selects the pods to count, none that are being deleted; an empty selector none, although it matches all."""
        return _counted(namespace, NOTHING if self.labels.is_everything else self.labels)


_selectors: SizedCache[tuple[str, LabelMatcher], PodSelector] = SizedCache()


def _counted(namespace: str, labels: LabelMatcher) -> PodSelector:
    found = _selectors.get((namespace, labels))
    if found is None:
        found = PodSelector((NamespacedMatcher(frozenset((namespace,)), labels),), without_terminating=True)
        _selectors.keep((namespace, labels), found, texts=found.texts, max_entries=_MAX_SELECTORS)
    return found


@define(eq=False)
class Constraints:
    """The constraints of pods, with the default constraints of one profile."""

    args: PodTopologySpreadArgs
    handle: Handle
    _default: dict[str, list[TopologySpreadConstraint]] = field(init=False)
    _services: tuple[int, dict[str, list[Mapping[str, str]]]] = (-1, {})
    _merged: SizedCache[tuple[LabelMatcher, object], LabelMatcher] = field(factory=SizedCache)

    def __attrs_post_init__(self) -> None:
        is_list = self.args.defaulting_type == "List"
        stated = (self.args.default_constraints or ()) if is_list else _SYSTEM_DEFAULTS
        self._default = {action: [one for one in stated if one.when_unsatisfiable == action] for action in (HARD, SOFT)}

    @property
    def requires_all_keys(self) -> bool:
        """Whether default constraints ignore nodes without one of the topology keys in scoring."""
        return self.args.defaulting_type == "List"

    def of(self, pod: Pod, action: str) -> list[Constraint]:
        """The constraints of *pod* whose ``whenUnsatisfiable`` is *action*, `HARD` or `SOFT`.

        Raises:
            SelectorError: the selector of a constraint does not parse.
        """
        stated = pod.spec.topology_spread_constraints
        if stated:
            return [
                _constraint(one, self._own_selector(one, pod)) for one in stated if one.when_unsatisfiable == action
            ]
        return self._defaults(pod, action)

    def _own_selector(self, constraint: TopologySpreadConstraint, pod: Pod) -> LabelMatcher:
        matcher = compile_selector(constraint.label_selector)
        keys = constraint.match_label_keys
        if not keys:
            return matcher
        labels = {key: pod.labels[key] for key in keys if key in pod.labels}
        return self._merge(matcher, tuple(labels.items()), lambda: matcher.and_equal(labels))

    def _merge(self, matcher: LabelMatcher, other: object, make: Any) -> LabelMatcher:
        found = self._merged.get((matcher, other))
        if found is None:
            found = make()
            self._merged.keep((matcher, other), found, texts=matcher.texts + found.texts, max_entries=_MAX_MERGED)
        return found

    def _defaults(self, pod: Pod, action: str) -> list[Constraint]:
        wanted = self._default[action]
        if not wanted:
            return []
        labels = self._derived_selector(pod)
        return [] if labels.is_everything else [_constraint(one, labels) for one in wanted]

    def _derived_selector(self, pod: Pod) -> LabelMatcher:
        """The selectors of the Services and of the controller of *pod*, merged."""
        labels, stated = pod.labels.items(), dict[str, str]()
        for selector in self._services_in(pod.namespace):  # compiled together: a pod can have thousands of Services
            if selector.items() <= labels:
                stated.update(selector)
        owner = _controller_selector(pod, self.handle) or EVERYTHING
        return self._merge(owner, tuple(stated.items()), lambda: owner.and_equal(stated)) if stated else owner

    def _services_in(self, namespace: str) -> Iterable[Mapping[str, str]]:
        """The selectors of the Services in *namespace*."""
        version = self.handle.version("Service")
        if self._services[0] != version:
            by_namespace: dict[str, list[Mapping[str, str]]] = {}
            for service in self.handle.objects("Service"):
                if service.spec.selector is not None:
                    by_namespace.setdefault(service.metadata.namespace, []).append(service.spec.selector)
            self._services = (version, by_namespace)
        return self._services[1].get(namespace, ())


def _controller_selector(pod: Pod, handle: Handle) -> LabelMatcher | None:
    """The selector of the pod's controller; None if there is none, or it is of another kind or does not parse."""
    for owner in pod.metadata.owner_references or ():
        if not owner.controller:
            continue
        kind = _OWNERS.get((owner.api_version, owner.kind))
        found = handle.object(kind, owner.name, pod.namespace) if kind is not None else None
        if found is None or found.spec.selector is None:
            return None
        selector: LabelSelector | Mapping[str, str] = found.spec.selector
        try:
            return compile_selector(selector) if isinstance(selector, LabelSelector) else selector_of_map(selector)
        except SelectorError:
            return None
    return None


def _constraint(stated: TopologySpreadConstraint, labels: LabelMatcher) -> Constraint:
    return Constraint(
        stated.max_skew,
        stated.topology_key,
        labels,
        1 if stated.min_domains is None else stated.min_domains,
        stated.node_affinity_policy != IGNORE,
        stated.node_taints_policy == HONOR,
    )
