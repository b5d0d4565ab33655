"""How good the nodes are: pre_score, score, normalize_score, weights. The plain evaluation."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from attrs import define, field

from trio_sched.engine.filtering import CycleFailed, plugin_failed
from trio_sched.engine.profile import Caller, ScoreCaller
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.status import Code
from trio_sched.snapshot.arrays import Int64Array
from trio_sched.snapshot.node_columns import NodeColumns

MAX_SCORE = 100


@define(eq=False)
class Scores:
    """The scores of the nodes that passed, per plugin and in sum; all of shape (nodes,)."""

    totals: Int64Array
    raw: dict[str, Int64Array] = field(factory=dict)
    normalized: dict[str, Int64Array] = field(factory=dict)
    weights: dict[str, int] = field(factory=dict)


def run_pre_scores(callers: Iterable[Caller], pod: Pod, nodes: NodeColumns, state: CycleState) -> None:
    """Ask every pre_score; notes in *state* which plugins have no opinion.

    Raises:
        CycleFailed: a plugin failed or refused.
    """
    skipped = set(state.skip_score)
    try:
        for caller in callers:
            prefix = f'running PreScore plugin "{caller.plugin}"'
            try:
                status = caller.call(pod, nodes, state)
            except Exception as exc:
                raise plugin_failed(prefix, caller.plugin, exc) from exc
            if status is None or status.code == Code.SUCCESS:
                continue
            if status.code != Code.SKIP:
                raise plugin_failed(prefix, caller.plugin, status.error or status.message)
            skipped.add(caller.plugin)
    finally:
        state.skip_score = frozenset(skipped)


def run_scores(callers: Iterable[ScoreCaller], pod: Pod, nodes: NodeColumns, state: CycleState) -> Scores:
    """Score *nodes*, which have passed every filter.

    Raises:
        CycleFailed: a plugin failed, or left the range of scores.
    """
    scores = Scores(np.zeros(len(nodes), dtype=np.int64))
    for caller in callers:
        if caller.plugin in state.skip_score:
            continue
        raw = raw_scores(caller, pod, nodes, state)
        normalized = normalize(caller, pod, raw.copy(), state) if caller.normalize is not None else raw
        check_range(caller.plugin, normalized)
        scores.raw[caller.plugin] = raw
        scores.normalized[caller.plugin] = normalized
        scores.weights[caller.plugin] = caller.weight
        scores.totals += normalized * caller.weight
    return scores


def raw_scores(caller: ScoreCaller, pod: Pod, nodes: NodeColumns, state: CycleState) -> Int64Array:
    """What one plugin gives each of *nodes*.

    Raises:
        CycleFailed: it failed.
    """
    try:
        if caller.per_node:
            return np.array([caller.call(pod, node, state) for node in nodes], dtype=np.int64)
        raw: Int64Array = caller.call(pod, nodes, state)
        if raw.shape != (len(nodes),):
            raise ValueError(f"answered with shape {raw.shape}, expected ({len(nodes)},)")
        if raw.dtype != np.int64:
            raw = raw.astype(np.int64)
    except CycleFailed:
        raise
    except Exception as exc:
        prefix = f'running Score plugins: plugin "{caller.plugin}" failed with'
        raise plugin_failed(prefix, caller.plugin, exc) from exc
    return raw


def normalize(caller: ScoreCaller, pod: Pod, raw: Int64Array, state: CycleState) -> Int64Array:
    """Let the plugin bring *raw*, which it may overwrite, to 0..100.

    Raises:
        CycleFailed: it failed.
    """
    assert caller.normalize is not None
    try:
        normalized: Int64Array = caller.normalize(pod, raw, state)
    except Exception as exc:
        prefix = f'running Normalize on Score plugins: plugin "{caller.plugin}" failed with'
        raise plugin_failed(prefix, caller.plugin, exc) from exc
    return normalized if normalized.dtype == np.int64 else normalized.astype(np.int64)


def check_range(plugin: str, scores: Int64Array) -> None:
    """Scores are 0..100 once normalised.

    Raises:
        CycleFailed: one is not.
    """
    if len(scores) == 1:
        if 0 <= int(scores[0]) <= MAX_SCORE:
            return
    # Read as unsigned, negative numbers are huge: one look at the highest finds both kinds of offenders.
    elif len(scores) == 0 or scores.view(np.uint64).max() <= MAX_SCORE:
        return
    lowest, highest = int(scores.min()), int(scores.max())
    bad = lowest if lowest < 0 else highest
    raise plugin_failed(
        "applying score defaultWeights on Score plugins",
        plugin,
        f'plugin "{plugin}" returns an invalid score {bad}, '
        f"it should in the range of [0, {MAX_SCORE}] after normalizing",
    )
