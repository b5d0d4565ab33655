"""PodTopologySpread: spreads pods over the domains of a topology, as evenly as their constraints require."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
from attrs import define, field, frozen

from plugins_builtin._node_inclusion import (
    affinity_key,
    affinity_texts,
    match_required,
    match_tolerated,
    required_matches,
    tolerates_all,
)
from plugins_builtin.spreading.match_counts import MatchCounts
from plugins_builtin.spreading.spread_clauses import spread_clause, stated_constraints
from plugins_builtin.spreading.spread_constraints import HARD, HOSTNAME, SOFT, WATCHED, Constraint, Constraints
from trio_sched.plugin_api import (
    MAX_SCORE,
    SKIP,
    Action,
    BoolArray,
    Clause,
    CodeArray,
    CycleState,
    EventRegistration,
    Handle,
    Hint,
    Int64Array,
    Node,
    NodeColumns,
    NodeSet,
    NodeView,
    Pod,
    PodTopologySpreadArgs,
    Resource,
    SelectorError,
    SizedCache,
    Status,
    Tolerations,
    TopologySpreadConstraint,
    Verdicts,
    failure,
    hookimpl,
    on,
    unresolvable,
    unschedulable,
)
from trio_sched.plugin_api.features import Features

NAME = "PodTopologySpread"
REASON = "node(s) didn't match pod topology spread constraints"
REASON_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"

_MISSING, _SKEWED = 1, 2
_STATUSES = {_MISSING: unresolvable(REASON_LABEL), _SKEWED: unschedulable(REASON)}
_HARD_KEY, _SOFT_KEY = (NAME, "hard"), (NAME, "soft")


@define(eq=False)
class _PreFilterState:
    """The hard constraints of a pod.

    Source: preFilterState of kube-scheduler's PodTopologySpread.
    """

    constraints: Sequence[Constraint]
    match_counts: list[MatchCounts]
    """Per constraint the matching pods of each domain."""
    matches_itself: Sequence[bool]
    """Per constraint whether its selector matches the pod itself."""
    tolerations: Tolerations

    def clone(self) -> _PreFilterState:
        counts = [one.clone() for one in self.match_counts]
        return _PreFilterState(self.constraints, counts, self.matches_itself, self.tolerations)


@frozen(cache_hash=True)
class _NodeSetKey:
    """What decides on which nodes a constraint counts pods."""

    topology_keys: tuple[str, ...]
    affinity: Hashable
    tolerations: Hashable


_MAX_KEYS = 512
_keys: SizedCache[_NodeSetKey, _NodeSetKey] = SizedCache()
"""Equal keys are one object: the key of another pod is compared once, however many constraints the pods have."""


@define(eq=False)
class _CountingNodes:
    """The nodes on which constraints of *pod* count pods: those with all *topology_keys*, as their policies say."""

    pod: Pod
    topology_keys: tuple[str, ...]
    numeric: bool
    _made: dict[tuple[bool, bool], NodeSet] = field(factory=dict)

    def of(self, constraint: Constraint) -> NodeSet:
        """The nodes on which *constraint* counts; one object, hashed once, for thousands of constraints."""
        policies = constraint.honors_affinity, constraint.honors_taints
        found = self._made.get(policies)
        if found is None:
            found = self._made[policies] = self._make(*policies)
        return found

    def _make(self, honors_affinity: bool, honors_taints: bool) -> NodeSet:
        # The function below has no reference to this object, which has one to it: else the pod would stay in memory
        # until the garbage collector looks for cycles, which it seldom does here.
        pod, topology_keys, numeric = self.pod, self.topology_keys, self.numeric
        texts = len(topology_keys)
        affinity = tolerations = None
        if honors_affinity:
            affinity = affinity_key(pod)
            texts += affinity_texts(pod)
        if honors_taints:
            tolerations = pod.spec.tolerations or (), numeric
            texts += len(pod.spec.tolerations or ())

        def select(nodes: NodeColumns) -> BoolArray:
            chosen = match_required(pod, nodes) if honors_affinity else np.ones(len(nodes), dtype=np.bool_)
            if honors_taints:
                chosen &= match_tolerated(pod, nodes, numeric=numeric)
            for key in topology_keys:
                chosen &= nodes.label_values(key) != 0
            return chosen

        key = _NodeSetKey(topology_keys, affinity, tolerations)
        key = _keys.get(key) or _keys.keep(key, key, texts=texts, max_entries=_MAX_KEYS)
        return NodeSet(key, select, texts)


@frozen(eq=False)
class _PreScoreState:
    """The soft constraints of a pod, for the nodes that passed the filters.

    Source: preScoreState of kube-scheduler's PodTopologySpread.
    """

    constraints: Sequence[Constraint]
    tables: Sequence[Any]
    """Per constraint the score of each domain, shape (domains,); for hostnames the weight and the selector."""
    ignored_nodes: BoolArray | None
    """Shape (nodes,): nodes without one of the topology keys, if all keys are required; None if there are none."""
    have_all_keys: bool
    """All keys are required and every node has them."""


class PodTopologySpread:
    """Filters by the skew between domains that hard constraints allow; scores lower skew of soft ones higher."""

    name: ClassVar[str] = NAME
    Args: ClassVar[type[PodTopologySpreadArgs]] = PodTopologySpreadArgs
    watches: ClassVar[tuple[str, ...]] = WATCHED

    def __init__(self, args: PodTopologySpreadArgs, handle: Handle) -> None:
        self._constraints = Constraints(args, handle)
        self._numeric = Features.of(handle.feature_enabled).taint_toleration_comparison_operators

    # --- filter -----------------------------------------------------------------------------------------------------

    @hookimpl
    def pre_filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Status | None:
        """Count matching pods per domain; Skip without hard constraints."""
        try:
            constraints = self._constraints.of(pod, HARD)
        except SelectorError as problem:
            return failure(f"get constraints from pod: obtaining pod's hard topology spread constraints: {problem}")
        if not constraints:
            return SKIP
        keys = tuple(constraint.key for constraint in constraints)
        counting = _CountingNodes(pod, keys, self._numeric)
        match_counts = [
            MatchCounts(nodes.domain_counts(c.counted(pod.namespace), c.key, counting.of(c))) for c in constraints
        ]
        matches_itself = [constraint.labels.matches(pod.labels) for constraint in constraints]
        tolerations = Tolerations(pod.spec.tolerations or (), numeric=self._numeric)
        state.write(_HARD_KEY, _PreFilterState(constraints, match_counts, matches_itself, tolerations))
        return None

    @hookimpl
    def add_pod(self, pod: Pod, added: Pod, node: NodeView, state: CycleState) -> None:
        """Count *added* in the node's domains."""
        self._update(pod, added, node, state, 1)

    @hookimpl
    def remove_pod(self, pod: Pod, removed: Pod, node: NodeView, state: CycleState) -> None:
        """Do not count *removed* in the node's domains."""
        self._update(pod, removed, node, state, -1)

    def _update(self, pod: Pod, other: Pod, node: NodeView, state: CycleState, delta: int) -> None:
        # Unlike in pre_filter, terminating pods count here, and an empty selector matches every pod.
        if other.namespace != pod.namespace:
            return
        pre_filtered: _PreFilterState = state.read(_HARD_KEY)
        labels = node.labels
        if any(constraint.key not in labels for constraint in pre_filtered.constraints):
            return
        tolerations = pre_filtered.tolerations
        for constraint, counts in zip(pre_filtered.constraints, pre_filtered.match_counts, strict=True):
            if constraint.labels.matches(other.labels) and self._includes(constraint, pod, node, tolerations):
                counts.change(node.label_value_id(constraint.key), delta)

    def _includes(self, constraint: Constraint, pod: Pod, node: NodeView, tolerations: Tolerations) -> bool:
        if constraint.honors_affinity:
            try:
                if not required_matches(pod, node.name, node.labels):
                    return False
            except ValueError:
                return False
        return not constraint.honors_taints or tolerates_all(tolerations, node.taints)

    @hookimpl
    def filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Verdicts:
        """Nodes without a topology key fail, and nodes where the pod would raise the skew above its maximum."""
        pre_filtered: _PreFilterState = state.read(_HARD_KEY)
        codes: CodeArray | None = None
        for constraint, counts, itself in zip(
            pre_filtered.constraints, pre_filtered.match_counts, pre_filtered.matches_itself, strict=True
        ):
            global_minimum = 0 if counts.base.size < constraint.min_domains else counts.minimum
            highest_allowed = constraint.max_skew + global_minimum - itself
            table = (counts.counts(nodes) > highest_allowed).view(np.int8) * np.int8(_SKEWED)
            table[0] = _MISSING
            found = table[nodes.label_values(constraint.key)]
            codes = found if codes is None else np.where(codes, codes, found)
        assert codes is not None
        return Verdicts(codes, _STATUSES.__getitem__)

    @hookimpl
    def clauses(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Iterable[Clause]:
        """Each hard constraint."""
        pre_filtered: _PreFilterState | None = state.get(_HARD_KEY)
        if pre_filtered is None:
            return
        stated: list[TopologySpreadConstraint | None] = [*stated_constraints(pod)]
        if len(stated) != len(pre_filtered.constraints):  # the profile's defaults
            stated = [None] * len(pre_filtered.constraints)
        for constraint, counts, itself, one in zip(
            pre_filtered.constraints, pre_filtered.match_counts, pre_filtered.matches_itself, stated, strict=True
        ):
            yield spread_clause(pod, nodes, constraint, counts, itself, one)

    # --- score ------------------------------------------------------------------------------------------------------

    @hookimpl
    def pre_score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Status | None:
        """Weight the constraints by their number of domains; Skip without soft constraints."""
        try:
            constraints = self._constraints.of(pod, SOFT)
        except SelectorError as problem:
            return failure(f"calculating preScoreState: obtaining pod's soft topology spread constraints: {problem}")
        if not constraints or len(nodes) == 0:
            return SKIP
        requires_all_keys = bool(pod.spec.topology_spread_constraints) or self._constraints.requires_all_keys
        keys = tuple(constraint.key for constraint in constraints) if requires_all_keys else ()
        ignored = _without_a_key(keys, nodes)
        counting = _CountingNodes(pod, keys, self._numeric)
        tables: list[Any] = []
        for constraint in constraints:
            counted = constraint.counted(pod.namespace)
            if constraint.key == HOSTNAME:
                size = len(nodes) if ignored is None else int(np.count_nonzero(~ignored))
                tables.append((math.log(size + 2), counted))
                continue
            values = nodes.label_values(constraint.key)
            weight = math.log(_distinct(values if ignored is None else values[~ignored]) + 2)
            counts = nodes.domain_counts(counted, constraint.key, counting.of(constraint)).counts
            table = counts * weight + float(constraint.max_skew - 1)
            table[0] = 0.0
            tables.append(table)
        state.write(_SOFT_KEY, _PreScoreState(constraints, tables, ignored, requires_all_keys and ignored is None))
        return None

    @hookimpl
    def score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Int64Array:
        """The weighted sum of matching pods in the node's domains; normalize_score reverses it."""
        pre_scored: _PreScoreState = state.read(_SOFT_KEY)
        scores = np.zeros(len(nodes), dtype=np.float64)
        for constraint, table in zip(pre_scored.constraints, pre_scored.tables, strict=True):
            if constraint.key != HOSTNAME:
                scores += table[nodes.label_values(constraint.key)]
                continue
            weight, counted = table
            found = nodes.pod_counts(counted) * weight
            found += float(constraint.max_skew - 1)
            if not pre_scored.have_all_keys:
                found *= nodes.label_values(HOSTNAME) != 0
            scores += found
        # Rounds half away from zero; numbers just below a half are exact here, because scores are 0 or over 0.69.
        scores += 0.5
        rounded = np.floor(scores, out=scores).astype(np.int64)
        if pre_scored.ignored_nodes is not None:
            rounded[pre_scored.ignored_nodes] = 0
        return rounded

    @hookimpl
    def normalize_score(self, pod: Pod, scores: Int64Array, state: CycleState) -> Int64Array:
        """Map the lowest score to 100; ignored nodes get 0."""
        ignored = state.read(_SOFT_KEY).ignored_nodes
        counted = scores if ignored is None else scores[~ignored]
        highest = int(counted.max(initial=0))
        lowest = int(counted.min()) if len(counted) else 0
        if highest == 0:
            normalized = np.full_like(scores, MAX_SCORE)
        elif highest < len(scores):  # fewer divisions: one for each possible score instead of one for each node
            normalized = (MAX_SCORE * (highest + lowest - np.arange(highest + 1)) // highest)[scores]
        else:
            normalized = MAX_SCORE * (highest + lowest - scores) // highest
        if ignored is not None:
            normalized[ignored] = 0
        return normalized

    # --- events -----------------------------------------------------------------------------------------------------

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """Pods and nodes are added, deleted or change labels; pods change tolerations, nodes taints."""
        pod_actions = Action.ADD | Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION | Action.DELETE
        node_actions = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
        return [
            on(Resource.POD, pod_actions, self._counts_changed),
            on(Resource.NODE, node_actions, self._domains_changed),
        ]

    def _hard_of(self, pod: Pod) -> list[Constraint]:
        try:
            return self._constraints.of(pod, HARD)
        except SelectorError as problem:
            raise SelectorError(f"obtaining pod's hard topology spread constraints: {problem}") from problem

    def _counts_changed(self, pod: Pod, old: Pod | None, new: Pod | None) -> Hint:
        other = new if new is not None else old
        assert other is not None
        itself = other.uid == pod.uid
        if not itself and (not (other.node_name or other.nominated_node_name) or other.namespace != pod.namespace):
            return Hint.SKIP
        constraints = self._hard_of(pod)
        if old is None or new is None:
            return _queue_if(any(constraint.labels.matches(other.labels) for constraint in constraints))
        tolerates_others = itself and (old.spec.tolerations or ()) != (new.spec.tolerations or ())
        if tolerates_others and any(constraint.honors_taints for constraint in constraints):
            return Hint.QUEUE
        if old.labels == new.labels:
            return Hint.SKIP
        return _queue_if(any(c.labels.matches(old.labels) != c.labels.matches(new.labels) for c in constraints))

    def _domains_changed(self, pod: Pod, old: Node | None, new: Node | None) -> Hint:
        keys = [constraint.key for constraint in self._hard_of(pod)]
        if old is None or new is None:
            node = new if new is not None else old
            assert node is not None
            return _queue_if(all(key in node.labels for key in keys))
        before, after = (all(key in node.labels for key in keys) for node in (old, new))
        if before != after:
            return Hint.QUEUE
        moved = any(old.labels.get(key) != new.labels.get(key) for key in keys)
        return _queue_if(after and (moved or (old.spec.taints or ()) != (new.spec.taints or ())))


def _queue_if(worthwhile: bool) -> Hint:
    return Hint.QUEUE if worthwhile else Hint.SKIP


def _without_a_key(keys: Iterable[str], nodes: NodeColumns) -> BoolArray | None:
    """Shape (nodes,): which nodes do not have all labels *keys*; None if all nodes have them."""
    lacking: BoolArray | None = None
    for key in keys:
        if nodes.all_have_label(key):
            continue
        absent = nodes.label_values(key) == 0
        lacking = absent if lacking is None else lacking | absent
    return lacking if lacking is not None and lacking.any() else None


def _distinct(values: Any) -> int:
    return int(np.count_nonzero(np.bincount(values))) if len(values) else 0
