"""Every plugin's verdict about a pod on every node, and the scores: the plain evaluation, without stopping early."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import numpy as np
from attrs import define, field, frozen

from trio_sched.engine.evaluation.filtering import FilterOutcome, NominatedPods, run_pre_filters
from trio_sched.engine.evaluation.nominated_pods import NominatedRows, run_filters_with_nominated_pods
from trio_sched.engine.evaluation.scoring import run_pre_scores, run_scores
from trio_sched.engine.hooks.bound_hooks import FilterHook
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.hooks.plugin_calls import call_filter, call_status_hook, explain
from trio_sched.engine.hooks.return_values import distinct_codes
from trio_sched.engine.registry.profile import Profile
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.status import Status
from trio_sched.snapshot.arrays import BoolArray
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.node_table import NodeTable

BEST: Final = 20
"""The nodes whose scores are told."""


@frozen(kw_only=True)
class Rejection:
    """Nodes that a plugin rejected with the same status."""

    status: Status
    nodes: tuple[str, ...]


@frozen(kw_only=True)
class PluginVerdict:
    """What one filter said of each node, whatever the others said."""

    plugin: str
    passed: int
    rejections: tuple[Rejection, ...] = ()
    is_skipped: bool = False
    """It has nothing to check for this pod, so it was not called."""
    error: str = ""
    """How it failed, if it did as a whole."""


@frozen(kw_only=True)
class NodeScore:
    """One node that passed."""

    node: str
    total: int
    scores: Mapping[str, int]
    """Plugin → its score from 0 to 100."""


@define(eq=False, kw_only=True)
class PodExplanation:
    """What the plugins of a profile say about a pod."""

    nodes: int
    """How many there are."""
    rejected: Status | None = None
    """By a pre_enqueue or pre_filter: then no node was looked at."""
    rejected_at: str = ""
    """The extension point of *rejected*."""
    narrowed_by: tuple[str, ...] = ()
    """Plugins whose pre_filter left nodes out."""
    left_out: tuple[str, ...] = ()
    """These nodes."""
    verdicts: list[PluginVerdict] = field(factory=list)
    nominated: tuple[str, ...] = ()
    """Nodes that pass only without the pods that are nominated to them."""
    feasible: int = 0
    weights: Mapping[str, int] = field(factory=dict)
    """Plugin → the weight of its score; those that skipped the pod are missing."""
    best: tuple[NodeScore, ...] = ()
    """The `BEST` nodes with the highest total."""
    others: tuple[NodeScore, ...] = ()
    """The scores of nodes that were asked about, if they passed."""
    error: str = ""
    """How a plugin failed, if that was the end of it."""


def explain_pod(
    profile: Profile, table: NodeTable, pod: Pod, nominated: NominatedPods, *, scores_of: Collection[str] = ()
) -> PodExplanation:
    """Call the plugins of *profile* about *pod*, which must not be on a node of *table*.

    Args:
        profile: of the pod's scheduler.
        table: the nodes.
        pod: the pod.
        nominated: pods that are nominated to nodes, as for a decision.
        scores_of: names of nodes whose scores are told besides those of the best.
    """
    nodes = NodeColumns(table)
    found = PodExplanation(nodes=len(nodes))
    try:
        for hook in profile.pre_enqueue:
            found.rejected = call_status_hook(hook, pod)
            if found.rejected is not None:
                found.rejected_at = "PreEnqueue"
                return found
        if len(nodes):
            _evaluate(profile, table, pod, nominated, nodes, found, scores_of)
    except HookFailed as failed:
        found.error = str(failed)
    return found


def _evaluate(
    profile: Profile,
    table: NodeTable,
    pod: Pod,
    nominated: NominatedPods,
    nodes: NodeColumns,
    found: PodExplanation,
    scores_of: Collection[str],
) -> None:
    state = CycleState()
    narrowed = run_pre_filters(profile.pre_filter, pod, nodes, state)
    found.narrowed_by = narrowed.narrowed_by
    if narrowed.rejected is not None:
        found.rejected, found.rejected_at = narrowed.rejected, "PreFilter"
        return
    names = list(nodes.names)
    passes = np.ones(len(nodes), dtype=np.bool_)
    if narrowed.node_names is not None:
        passes = np.array([name in narrowed.node_names for name in names], dtype=np.bool_)
        found.left_out = tuple(name for name, is_in in zip(names, passes.tolist(), strict=True) if not is_in)
    for hook in profile.filter:
        if hook.plugin in state.skip_filter:
            found.verdicts.append(PluginVerdict(plugin=hook.plugin, passed=len(nodes), is_skipped=True))
            continue
        verdict, passing = _ask(hook, pod, nodes, names, state)
        found.verdicts.append(verdict)
        passes &= passing
    if nominated:
        passes = _without_nominated(profile, table, pod, nominated, nodes, passes, state, found)
    positions = np.flatnonzero(passes)
    found.feasible = len(positions)
    if len(positions):
        _score(profile, pod, nodes.take(positions), state, found, scores_of)


def _ask(
    hook: FilterHook, pod: Pod, nodes: NodeColumns, names: Sequence[str], state: CycleState
) -> tuple[PluginVerdict, BoolArray]:
    """What *hook* says of each node, and where it passes."""
    passes = np.zeros(len(nodes), dtype=np.bool_)
    grouped: dict[tuple[object, ...], tuple[Status, list[str]]] = {}

    def note(status: Status, positions: Sequence[int]) -> None:
        key = (status.code, status.all_reasons)
        grouped.setdefault(key, (status, []))[1].extend(names[position] for position in positions)

    try:
        if hook.per_node:
            for position in range(len(nodes)):
                status = call_status_hook(hook, pod, nodes.node(position), state)
                passes[position] = status is None
                if status is not None:
                    note(status, [position])
        else:
            verdicts = call_filter(hook, pod, nodes, state)
            passes = verdicts.passes
            for code in distinct_codes(verdicts.codes[~passes]):
                note(explain(hook, verdicts, code), np.flatnonzero(verdicts.codes == code).tolist())
    except HookFailed as failed:
        return PluginVerdict(plugin=hook.plugin, passed=0, error=str(failed)), np.zeros(len(nodes), dtype=np.bool_)
    groups = sorted(grouped.values(), key=lambda group: -len(group[1]))
    rejections = tuple(Rejection(status=status, nodes=tuple(rejected)) for status, rejected in groups)
    return PluginVerdict(plugin=hook.plugin, passed=int(passes.sum()), rejections=rejections), passes


def _without_nominated(
    profile: Profile,
    table: NodeTable,
    pod: Pod,
    nominated: NominatedPods,
    nodes: NodeColumns,
    passes: BoolArray,
    state: CycleState,
    found: PodExplanation,
) -> BoolArray:
    """*passes*, but for nodes where the pod does not fit besides the pods that are nominated there."""
    outcome = FilterOutcome(nodes, passes.copy())
    run_filters_with_nominated_pods(profile, pod, outcome, state, nominated, NominatedRows(table), None)
    found.nominated = tuple(nodes.name(position) for position in np.flatnonzero(passes & ~outcome.passes).tolist())
    return outcome.passes & passes


def _score(
    profile: Profile,
    pod: Pod,
    nodes: NodeColumns,
    state: CycleState,
    found: PodExplanation,
    scores_of: Collection[str],
) -> None:
    if profile.score:
        run_pre_scores(profile.pre_score, pod, nodes, state)
    scores = run_scores(profile.score, pod, nodes, state)

    def told(position: int) -> NodeScore:
        of_plugins = {plugin: int(of[position]) for plugin, of in scores.normalized.items()}
        return NodeScore(node=nodes.name(position), total=int(scores.totals[position]), scores=of_plugins)

    found.weights = scores.weights
    found.best = tuple(map(told, np.argsort(-scores.totals, kind="stable")[:BEST].tolist()))
    asked = (nodes.position(name) for name in scores_of)
    found.others = tuple(told(position) for position in asked if position is not None)
