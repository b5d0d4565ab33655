"""PodTopologySpread and InterPodAffinity once more, for comparison: plain dicts, counted from scratch, no hurry.

Follows the description of kube-scheduler 1.36 step by step, and shares no code with the plugins. Wherever a pod and a
node are looked at, every pod on every node is looked at.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import ROUND_HALF_UP, Decimal

from attrs import define, field, frozen

from trio_sched.objects.affinity import PodAffinityTerm
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod, TopologySpreadConstraint
from trio_sched.objects.pod_groups.workload import ReplicaSet, Service
from trio_sched.objects.selector import LabelSelector

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
MISSING_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"
SKEWED = "node(s) didn't match pod topology spread constraints"
NOT_NEAR = "node(s) didn't match pod affinity rules"
TOO_NEAR = "node(s) didn't match pod anti-affinity rules"
UNWELCOME = "node(s) didn't satisfy existing pods anti-affinity rules"

SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable="ScheduleAnyway"),
    TopologySpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable="ScheduleAnyway"),
)


class BadSelector(Exception):
    """A label selector that does not parse."""


@define
class PlainCluster:
    """What there is."""

    nodes: dict[str, Node] = field(factory=dict)
    pods: dict[str, Pod] = field(factory=dict)
    place: dict[str, str] = field(factory=dict)
    """The node of each pod by UID; there may be no such node."""
    namespaces: dict[str, dict[str, str]] = field(factory=dict)
    services: list[Service] = field(factory=list)
    replica_sets: dict[tuple[str, str], ReplicaSet] = field(factory=dict)

    def pods_on(self, name: str) -> list[Pod]:
        return [pod for uid, pod in self.pods.items() if self.place[uid] == name]

    def everybody(self) -> Iterable[tuple[Node, Pod]]:
        return ((node, pod) for node in self.nodes.values() for pod in self.pods_on(node.name))


# --- selectors ------------------------------------------------------------------------------------------------------


def check(selector: LabelSelector | None) -> None:
    for one in (selector and selector.match_expressions) or ():
        if one.operator in ("In", "NotIn") and not one.values:
            raise BadSelector


def is_empty(selector: LabelSelector | None) -> bool:
    return selector is not None and not selector.match_labels and not selector.match_expressions


def selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in (selector.match_labels or {}).items()):
        return False
    for one in selector.match_expressions or ():
        has = one.key in labels
        holds = {
            "In": has and labels[one.key] in one.values,
            "NotIn": not (has and labels[one.key] in one.values),
            "Exists": has,
            "DoesNotExist": not has,
        }[one.operator]
        if not holds:
            return False
    return True


# --- PodTopologySpread ----------------------------------------------------------------------------------------------


@frozen(eq=False)
class PlainConstraint:
    max_skew: int
    key: str
    selectors: tuple[LabelSelector | None, ...]
    """All must match."""
    min_domains: int
    honors_affinity: bool
    honors_taints: bool

    @property
    def selects_everything(self) -> bool:
        return all(map(is_empty, self.selectors))

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(selects(selector, labels) for selector in self.selectors)


class PlainSpread:
    """One pod's spread constraints over one cluster."""

    def __init__(self, cluster: PlainCluster, pod: Pod, defaults: tuple[TopologySpreadConstraint, ...] | None) -> None:
        self.cluster, self.pod = cluster, pod
        self.defaults, self.is_list = defaults if defaults is not None else SYSTEM_DEFAULTS, defaults is not None
        self.hard: list[PlainConstraint] = []
        self.counts: list[dict[str, int]] = []
        self.soft: list[PlainConstraint] = []
        self.ignored: set[str] = set()

    def constraints(self, action: str) -> list[PlainConstraint]:
        stated = self.pod.spec.topology_spread_constraints
        if stated:
            mine = [one for one in stated if one.when_unsatisfiable == action]
            return [self.constraint(one, self.own_selectors(one)) for one in mine]
        selectors = self.derived_selectors()
        if all(map(is_empty, selectors)):
            return []
        return [self.constraint(one, selectors) for one in self.defaults if one.when_unsatisfiable == action]

    def constraint(self, one: TopologySpreadConstraint, selectors: tuple[LabelSelector | None, ...]) -> PlainConstraint:
        for selector in selectors:
            check(selector)
        return PlainConstraint(
            one.max_skew,
            one.topology_key,
            selectors,
            one.min_domains or 1,
            (one.node_affinity_policy or "Honor") == "Honor",
            (one.node_taints_policy or "Ignore") == "Honor",
        )

    def own_selectors(self, one: TopologySpreadConstraint) -> tuple[LabelSelector | None, ...]:
        labels = self.pod.labels
        equal = {key: labels[key] for key in one.match_label_keys or () if key in labels}
        return one.label_selector, LabelSelector(match_labels=equal)

    def derived_selectors(self) -> tuple[LabelSelector | None, ...]:
        pod, merged = self.pod, dict[str, str]()
        for service in self.cluster.services:
            selector = service.spec.selector
            if service.metadata.namespace != pod.namespace or selector is None:
                continue
            if all(pod.labels.get(key) == value for key, value in selector.items()):
                merged.update(selector)
        for owner in pod.metadata.owner_references or ():
            owned = self.cluster.replica_sets.get((pod.namespace, owner.name))
            if owner.controller and (owner.api_version, owner.kind) == ("apps/v1", "ReplicaSet") and owned is not None:
                return LabelSelector(match_labels=merged), owned.spec.selector
        return (LabelSelector(match_labels=merged),)

    def included(self, one: PlainConstraint, node: Node) -> bool:
        return (not one.honors_affinity or admits(self.pod, node)) and (
            not one.honors_taints or tolerates(self.pod, node)
        )

    def count_on(self, one: PlainConstraint, node: Node) -> int:
        if one.selects_everything:
            return 0
        return sum(
            1
            for other in self.cluster.pods_on(node.name)
            if other.namespace == self.pod.namespace
            and other.metadata.deletion_timestamp is None
            and one.matches(other.labels)
        )

    def pre_filter(self) -> bool:
        """Count; False if there is nothing to do."""
        self.hard = self.constraints("DoNotSchedule")
        self.counts = [{} for _ in self.hard]
        for node in self.cluster.nodes.values():
            if all(one.key in node.labels for one in self.hard):
                for one, counts in zip(self.hard, self.counts, strict=True):
                    if self.included(one, node):
                        value = node.labels[one.key]
                        counts[value] = counts.get(value, 0) + self.count_on(one, node)
        return bool(self.hard)

    def change(self, other: Pod, node: Node, delta: int) -> None:
        if other.namespace != self.pod.namespace or any(one.key not in node.labels for one in self.hard):
            return
        for one, counts in zip(self.hard, self.counts, strict=True):
            if one.matches(other.labels) and self.included(one, node):
                counts[node.labels[one.key]] += delta

    def refusal(self, node: Node) -> str:
        for one, counts in zip(self.hard, self.counts, strict=True):
            value = node.labels.get(one.key)
            if value is None:
                return MISSING_LABEL
            least = 0 if len(counts) < one.min_domains else min(counts.values())
            if counts.get(value, 0) + one.matches(self.pod.labels) - least > one.max_skew:
                return SKEWED
        return ""

    def scores(self, feasible: list[Node]) -> tuple[dict[str, int], dict[str, int]] | None:
        """Raw and normalised, by node; None if there is nothing to do."""
        soft = self.constraints("ScheduleAnyway")
        if not soft:
            return None
        require_all = bool(self.pod.spec.topology_spread_constraints) or self.is_list
        ignored = {n.name for n in feasible if require_all and any(one.key not in n.labels for one in soft)}
        sizes, counts = [], []
        for one in soft:
            registered = {node.labels.get(one.key, "") for node in feasible if node.name not in ignored}
            sizes.append(len(feasible) - len(ignored) if one.key == HOSTNAME else len(registered))
            in_domain = dict.fromkeys(registered, 0)
            for node in self.cluster.nodes.values():
                value = node.labels.get(one.key, "")
                has_all = all(other.key in node.labels for other in soft)
                if value in in_domain and (has_all or not require_all) and self.included(one, node):
                    in_domain[value] += self.count_on(one, node)
            counts.append(in_domain)
        raw = {}
        for node in feasible:
            total = 0.0
            for one, size, in_domain in zip(soft, sizes, counts, strict=True):
                if node.name not in ignored and one.key in node.labels:
                    pods = self.count_on(one, node) if one.key == HOSTNAME else in_domain[node.labels[one.key]]
                    total += pods * math.log(size + 2) + float(one.max_skew - 1)
            raw[node.name] = int(Decimal(total).quantize(Decimal(0), ROUND_HALF_UP))
        part = [points for name, points in raw.items() if name not in ignored]
        least, most = min(part, default=0), max(part, default=0)
        normalized = {name: 100 * (most + least - points) // most if most else 100 for name, points in raw.items()}
        return raw, {name: 0 if name in ignored else points for name, points in normalized.items()}


def admits(pod: Pod, node: Node) -> bool:
    """Required node affinity, as far as the random pods have any: terms of expressions about labels."""
    if any(node.labels.get(key) != value for key, value in (pod.spec.node_selector or {}).items()):
        return False
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    if not required:
        return True
    return any(
        selects(LabelSelector(match_expressions=term.match_expressions), node.labels)
        for term in required.node_selector_terms or ()
    )


def tolerates(pod: Pod, node: Node) -> bool:
    hard = [taint for taint in node.spec.taints or () if taint.effect in ("NoSchedule", "NoExecute")]
    return all(any(one.key in ("", taint.key) for one in pod.spec.tolerations or ()) for taint in hard)


# --- InterPodAffinity -----------------------------------------------------------------------------------------------


def required(pod: Pod, which: str) -> tuple[PodAffinityTerm, ...]:
    wish = pod.spec.affinity and getattr(pod.spec.affinity, which)
    terms = (wish and wish.required_during_scheduling_ignored_during_execution) or ()
    return terms if parses(terms) else ()


def preferred(pod: Pod, which: str) -> tuple[tuple[int, PodAffinityTerm], ...]:
    wish = pod.spec.affinity and getattr(pod.spec.affinity, which)
    weighted = (wish and wish.preferred_during_scheduling_ignored_during_execution) or ()
    terms = tuple((one.weight, one.pod_affinity_term) for one in weighted)
    return terms if parses(term for _weight, term in terms) else ()


def parses(terms: Iterable[PodAffinityTerm]) -> bool:
    try:
        for term in terms:
            check(term.label_selector)
            check(term.namespace_selector)
    except BadSelector:
        return False
    return True


class PlainAffinity:
    """One pod's affinity to the others of one cluster, and theirs to it."""

    def __init__(self, cluster: PlainCluster, pod: Pod, *, hard_weight: int = 1, ignore: bool = False) -> None:
        self.cluster, self.pod = cluster, pod
        self.hard_weight, self.ignore = hard_weight, ignore
        self.existing: Counter[tuple[str, str]] = Counter()
        self.near: Counter[tuple[str, str]] = Counter()
        self.far: Counter[tuple[str, str]] = Counter()

    def theirs_means_me(self, owner: Pod, term: PodAffinityTerm) -> bool:
        labels = self.cluster.namespaces.get(self.pod.namespace, {})
        named = self.pod.namespace in named_namespaces(owner, term)
        return (named or selects(term.namespace_selector, labels)) and selects(term.label_selector, self.pod.labels)

    def mine_means(self, term: PodAffinityTerm, other: Pod) -> bool:
        names = set(named_namespaces(self.pod, term))
        if term.namespace_selector is not None and not is_empty(term.namespace_selector):
            names |= {n for n, labels in self.cluster.namespaces.items() if selects(term.namespace_selector, labels)}
        # The selector is asked once more, about a namespace without labels.
        meant = other.namespace in names or selects(term.namespace_selector, {})
        return meant and selects(term.label_selector, other.labels)

    def mine_all_mean(self, other: Pod) -> bool:
        terms = required(self.pod, "pod_affinity")
        return bool(terms) and all(self.mine_means(term, other) for term in terms)

    def pre_filter(self) -> bool:
        """Count; False if there is nothing to do."""
        for node, other in self.cluster.everybody():
            self.change(other, node, 1)
        mine = required(self.pod, "pod_affinity") + required(self.pod, "pod_anti_affinity")
        return bool(self.existing or mine)

    def change(self, other: Pod, node: Node, delta: int) -> None:
        for term in required(other, "pod_anti_affinity"):
            if self.theirs_means_me(other, term):
                self._add(self.existing, term.topology_key, node, delta)
        if self.mine_all_mean(other):
            for term in required(self.pod, "pod_affinity"):
                self._add(self.near, term.topology_key, node, delta)
        for term in required(self.pod, "pod_anti_affinity"):
            if self.mine_means(term, other):
                self._add(self.far, term.topology_key, node, delta)

    def _add(self, counts: Counter[tuple[str, str]], key: str, node: Node, delta: int) -> None:
        if key in node.labels:
            pair = (key, node.labels[key])
            counts[pair] += delta
            if counts[pair] == 0:
                del counts[pair]

    def refusal(self, node: Node) -> str:
        near = required(self.pod, "pod_affinity")
        if any(term.topology_key not in node.labels for term in near):
            return NOT_NEAR
        if any(self.near[term.topology_key, node.labels[term.topology_key]] <= 0 for term in near):
            is_first = not self.near and self.mine_all_mean(self.pod)
            if not is_first:
                return NOT_NEAR
        for term in required(self.pod, "pod_anti_affinity"):
            if self.far[term.topology_key, node.labels.get(term.topology_key, "")] > 0:
                return TOO_NEAR
        if any(self.existing[pair] > 0 for pair in node.labels.items()):
            return UNWELCOME
        return ""

    def scores(self, feasible: list[Node]) -> tuple[dict[str, int], dict[str, int]] | None:
        """Raw and normalised, by node; None if there is nothing to do."""
        mine = preferred(self.pod, "pod_affinity") + preferred(self.pod, "pod_anti_affinity")
        if self.ignore and not mine:
            return None
        points: dict[tuple[str, str], int] = {}

        def add(term: PodAffinityTerm, node: Node, amount: int) -> None:
            if term.topology_key in node.labels:
                pair = (term.topology_key, node.labels[term.topology_key])
                points[pair] = points.get(pair, 0) + amount

        for node, other in self.cluster.everybody():
            for which, sign in (("pod_affinity", 1), ("pod_anti_affinity", -1)):
                for weight, term in preferred(self.pod, which):
                    if self.mine_means(term, other):
                        add(term, node, sign * weight)
                for weight, term in preferred(other, which):
                    if self.theirs_means_me(other, term):
                        add(term, node, sign * weight)
            if self.hard_weight:
                for term in required(other, "pod_affinity"):
                    if self.theirs_means_me(other, term):
                        add(term, node, self.hard_weight)
        if not points:
            return None
        raw = {node.name: sum(points.get(pair, 0) for pair in node.labels.items()) for node in feasible}
        least, most = min(raw.values()), max(raw.values())
        if most == least:
            return raw, dict.fromkeys(raw, 0)
        return raw, {name: int(100.0 * (float(one - least) / float(most - least))) for name, one in raw.items()}


def named_namespaces(owner: Pod, term: PodAffinityTerm) -> tuple[str, ...]:
    if not term.namespaces and term.namespace_selector is None:
        return (owner.namespace,)
    return term.namespaces or ()
