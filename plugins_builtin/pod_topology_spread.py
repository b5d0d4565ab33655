"""PodTopologySpread: pods of a kind spread over the domains of a topology, as evenly as their constraints say."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
from attrs import define, frozen

from plugins_builtin._node_inclusion import (
    affinity_key,
    match_required,
    match_tolerated,
    required_matches,
    tolerates_all,
)
from plugins_builtin._spread_constraints import HARD, HOSTNAME, SOFT, WATCHED, Constraint, Constraints
from plugins_builtin._tally import Tally
from trio_sched.plugin_api import (
    SKIP,
    Action,
    BoolArray,
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
    Status,
    Verdicts,
    failure,
    hookimpl,
    on,
    unresolvable,
    unschedulable,
)

NAME = "PodTopologySpread"
REASON = "node(s) didn't match pod topology spread constraints"
REASON_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"
MAX_SCORE = 100

_MISSING, _SKEWED = 1, 2
_STATUSES = {_MISSING: unresolvable(REASON_LABEL), _SKEWED: unschedulable(REASON)}
_HARD_KEY, _SOFT_KEY = (NAME, "hard"), (NAME, "soft")


@define(eq=False)
class _Hard:
    """The hard constraints of a pod, each with the pods per domain."""

    constraints: Sequence[Constraint]
    tallies: list[Tally]
    matches_itself: Sequence[bool]

    def clone(self) -> _Hard:
        return _Hard(self.constraints, [tally.clone() for tally in self.tallies], self.matches_itself)


@frozen(eq=False)
class _Soft:
    """What the soft constraints make of the nodes that passed: points per domain (or per node), and who has no part."""

    constraints: Sequence[Constraint]
    tables: Sequence[Any]
    """Per constraint the points of each domain, shape (domains,); for hostnames the weight and the selector."""
    ignored: BoolArray | None
    """Shape (nodes,): nodes that lack a key, where all keys are needed."""
    have_all_keys: bool
    """No node lacks a key."""


class PodTopologySpread:
    """Keeps the skew between domains within bounds, and prefers what evens it out."""

    name: ClassVar[str] = NAME
    Args: ClassVar[type[PodTopologySpreadArgs]] = PodTopologySpreadArgs
    watches: ClassVar[tuple[str, ...]] = WATCHED

    def __init__(self, args: PodTopologySpreadArgs, handle: Handle) -> None:
        self._constraints = Constraints(args, handle)
        self._numeric = handle.feature_enabled("TaintTolerationComparisonOperators")

    # --- filter -----------------------------------------------------------------------------------------------------

    @hookimpl
    def pre_filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Status | None:
        """Count the pods per domain; nothing to do without hard constraints."""
        try:
            constraints = self._constraints.of(pod, HARD)
        except SelectorError as problem:
            return failure(f"get constraints from pod: obtaining pod's hard topology spread constraints: {problem}")
        if not constraints:
            return SKIP
        keys = tuple(constraint.key for constraint in constraints)
        tallies = [
            Tally(nodes.domain_counts(c.counted(pod.namespace), c.key, self._counting_nodes(c, keys, pod)))
            for c in constraints
        ]
        state.write(_HARD_KEY, _Hard(constraints, tallies, [c.labels.matches(pod.labels) for c in constraints]))
        return None

    def _counting_nodes(self, constraint: Constraint, keys: tuple[str, ...], pod: Pod) -> NodeSet:
        """The nodes that count for *constraint*: those with all *keys* that its policies admit."""
        honors_affinity, honors_taints = constraint.honors_affinity, constraint.honors_taints
        key = (
            NAME,
            keys,
            affinity_key(pod) if honors_affinity else None,
            (pod.spec.tolerations or (), self._numeric) if honors_taints else None,
        )

        def select(nodes: NodeColumns) -> BoolArray:
            chosen = match_required(pod, nodes) if honors_affinity else np.ones(len(nodes), dtype=np.bool_)
            if honors_taints:
                chosen &= match_tolerated(pod, nodes, numeric=self._numeric)
            for topology_key in keys:
                chosen &= nodes.label_values(topology_key) != 0
            return chosen

        return NodeSet(key, select)

    @hookimpl
    def add_pod(self, pod: Pod, added: Pod, node: NodeView, state: CycleState) -> None:
        """One more in the node's domains."""
        self._count(pod, added, node, state, 1)

    @hookimpl
    def remove_pod(self, pod: Pod, removed: Pod, node: NodeView, state: CycleState) -> None:
        """One fewer in the node's domains."""
        self._count(pod, removed, node, state, -1)

    def _count(self, pod: Pod, other: Pod, node: NodeView, state: CycleState, delta: int) -> None:
        # Unlike when pods are counted, pods being deleted and empty selectors make no difference here.
        if other.namespace != pod.namespace:
            return
        hard: _Hard = state.read(_HARD_KEY)
        labels = node.labels
        if any(constraint.key not in labels for constraint in hard.constraints):
            return
        for constraint, tally in zip(hard.constraints, hard.tallies, strict=True):
            if constraint.labels.matches(other.labels) and self._includes(constraint, pod, node):
                tally.change(node.label_value_id(constraint.key), delta)

    def _includes(self, constraint: Constraint, pod: Pod, node: NodeView) -> bool:
        if constraint.honors_affinity:
            try:
                if not required_matches(pod, node.name, node.labels):
                    return False
            except ValueError:
                return False
        return not constraint.honors_taints or tolerates_all(
            pod.spec.tolerations or (), node.taints, numeric=self._numeric
        )

    @hookimpl
    def filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Verdicts:
        """Nodes fail that lack a key, or where one more pod would be too many more than elsewhere."""
        hard: _Hard = state.read(_HARD_KEY)
        codes: CodeArray | None = None
        for constraint, tally, itself in zip(hard.constraints, hard.tallies, hard.matches_itself, strict=True):
            fewest = 0 if tally.base.size < constraint.min_domains else tally.minimum
            most = constraint.max_skew + fewest - itself
            table = (tally.counts(nodes) > most).view(np.int8) * np.int8(_SKEWED)
            table[0] = _MISSING
            found = table[nodes.label_values(constraint.key)]
            codes = found if codes is None else np.where(codes, codes, found)
        assert codes is not None
        return Verdicts(codes, _STATUSES.__getitem__)

    # --- score ------------------------------------------------------------------------------------------------------

    @hookimpl
    def pre_score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Status | None:
        """Weigh the constraints by how many domains there are; nothing to do without soft constraints."""
        try:
            constraints = self._constraints.of(pod, SOFT)
        except SelectorError as problem:
            return failure(f"calculating preScoreState: obtaining pod's soft topology spread constraints: {problem}")
        if not constraints or len(nodes) == 0:
            return SKIP
        need_all = bool(pod.spec.topology_spread_constraints) or self._constraints.are_all_keys_needed
        keys = tuple(constraint.key for constraint in constraints) if need_all else ()
        ignored = _lack_a_key(keys, nodes)
        tables: list[Any] = []
        for constraint in constraints:
            counted = constraint.counted(pod.namespace)
            if constraint.key == HOSTNAME:
                size = len(nodes) if ignored is None else int(np.count_nonzero(~ignored))
                tables.append((math.log(size + 2), counted))
                continue
            values = nodes.label_values(constraint.key)
            weight = math.log(_distinct(values if ignored is None else values[~ignored]) + 2)
            counts = nodes.domain_counts(counted, constraint.key, self._counting_nodes(constraint, keys, pod)).counts
            table = counts * weight + float(constraint.max_skew - 1)
            table[0] = 0.0
            tables.append(table)
        state.write(_SOFT_KEY, _Soft(constraints, tables, ignored, need_all and ignored is None))
        return None

    @hookimpl
    def score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Int64Array:
        """The more pods in its domains, the more points; normalize_score turns that round."""
        soft: _Soft = state.read(_SOFT_KEY)
        points = np.zeros(len(nodes), dtype=np.float64)
        for constraint, table in zip(soft.constraints, soft.tables, strict=True):
            if constraint.key != HOSTNAME:
                points += table[nodes.label_values(constraint.key)]
                continue
            weight, counted = table
            found = nodes.pod_counts(counted) * weight
            found += float(constraint.max_skew - 1)
            if not soft.have_all_keys:
                found *= nodes.label_values(HOSTNAME) != 0
            points += found
        points += (
            0.5  # half away from zero; what lies just below a half is exact here, because points are 0 or over 0.69
        )
        whole = np.floor(points, out=points).astype(np.int64)
        if soft.ignored is not None:
            whole[soft.ignored] = 0
        return whole

    @hookimpl
    def normalize_score(self, pod: Pod, scores: Int64Array, state: CycleState) -> Int64Array:
        """The node with the fewest points becomes 100; nodes that lack a key 0."""
        soft: _Soft = state.read(_SOFT_KEY)
        part = scores if soft.ignored is None else scores[~soft.ignored]
        most = int(part.max(initial=0))
        fewest = int(part.min()) if len(part) else 0
        if most == 0:
            normalized = np.full_like(scores, MAX_SCORE)
        elif most < len(scores):  # each possible score once is less than every node
            normalized = (MAX_SCORE * (most + fewest - np.arange(most + 1)) // most)[scores]
        else:
            normalized = MAX_SCORE * (most + fewest - scores) // most
        if soft.ignored is not None:
            normalized[soft.ignored] = 0
        return normalized

    # --- what may free a pod ----------------------------------------------------------------------------------------

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """Pods that count come, go or change; nodes that count do."""
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


def _lack_a_key(keys: Iterable[str], nodes: NodeColumns) -> BoolArray | None:
    """Shape (nodes,): which nodes lack one of *keys*; None if none does."""
    lacking: BoolArray | None = None
    for key in keys:
        if nodes.all_have_label(key):
            continue
        absent = nodes.label_values(key) == 0
        lacking = absent if lacking is None else lacking | absent
    return lacking if lacking is not None and lacking.any() else None


def _distinct(values: Any) -> int:
    return int(np.count_nonzero(np.bincount(values))) if len(values) else 0
