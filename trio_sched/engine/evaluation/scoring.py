"""Scores of nodes: pre_score, score, normalize_score, weights. The plain evaluation."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from attrs import define, field

from trio_sched.engine.hooks.bound_hooks import BoundHook, ScoreHook
from trio_sched.engine.hooks.plugin_calls import call_normalize_score, call_score, call_status_hook
from trio_sched.engine.hooks.return_values import check_score_range
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.snapshot.arrays import Int64Array
from trio_sched.snapshot.node_columns import NodeColumns


@define(eq=False)
class Scores:
    """The scores of the nodes that passed, per plugin and in sum; all of shape (nodes,)."""

    totals: Int64Array
    raw: dict[str, Int64Array] = field(factory=dict)
    normalized: dict[str, Int64Array] = field(factory=dict)
    weights: dict[str, int] = field(factory=dict)


def run_pre_scores(hooks: Iterable[BoundHook], pod: Pod, nodes: NodeColumns, state: CycleState) -> None:
    """Call every pre_score; notes in *state* which plugins' scores are skipped.

    Raises:
        HookFailed: a plugin failed, or returned a status other than Skip.
    """
    skipped = set(state.skip_score)
    try:
        for hook in hooks:
            if call_status_hook(hook, pod, nodes, state) is not None:  # the only status that pre_score has is Skip
                skipped.add(hook.plugin)
    finally:
        state.skip_score = frozenset(skipped)


def run_scores(hooks: Iterable[ScoreHook], pod: Pod, nodes: NodeColumns, state: CycleState) -> Scores:
    """Score *nodes*, which have passed every filter.

    Raises:
        HookFailed: a plugin failed, or left the range of scores.
    """
    scores = Scores(np.zeros(len(nodes), dtype=np.int64))
    for hook in hooks:
        if hook.plugin in state.skip_score:
            continue
        raw = call_score(hook, pod, nodes, state)
        normalized = call_normalize_score(hook, pod, raw.copy(), state) if hook.normalize is not None else raw
        check_score_range(hook, normalized)
        scores.raw[hook.plugin] = raw
        scores.normalized[hook.plugin] = normalized
        scores.weights[hook.plugin] = hook.weight
        scores.totals += normalized * hook.weight
    return scores
