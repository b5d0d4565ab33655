"""Checks the answers of filter and score: types, shapes, codes and ranges."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from trio_sched.engine.evaluation.filtering import run_pre_filters
from trio_sched.engine.evaluation.scoring import run_pre_scores
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.hooks.plugin_calls import call_normalize_score
from trio_sched.engine.hooks.return_values import check_score_range
from trio_sched.engine.registry.profile import Profile
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing.conformance.results import ask
from trio_sched.testing.conformance.subject import Subject


def answer_problems(subject: Subject) -> Iterator[str]:
    """Answers that the scheduler would refuse."""
    trial = subject.fresh()
    everything = NodeColumns(trial.show(subject.cluster))
    for waiting in subject.pods:
        where = f"pod {waiting.name!r}"
        try:
            whole = ask(trial, waiting, everything, everything)
            if whole is None:
                continue
            if whole.scores is not None:
                yield from _normalize_problems(trial.profile, waiting, everything, whole.scores, where)
        except HookFailed as failed:
            yield f"{where}: {failed}"


def _normalize_problems(
    profile: Profile, waiting: Pod, everything: NodeColumns, scores: NDArray[np.int64], where: str
) -> Iterator[str]:
    (scorer,) = profile.score
    state = CycleState()
    run_pre_filters(profile.pre_filter, waiting, everything, state)
    run_pre_scores(profile.pre_score, waiting, everything, state)
    final = scores.copy() if scorer.normalize is None else call_normalize_score(scorer, waiting, scores.copy(), state)
    check_score_range(scorer, final)
    if scorer.normalize is None or scorer.plugin not in profile.depends_on:
        return
    twice = call_normalize_score(scorer, waiting, np.concatenate([scores, scores]), state)
    if not np.array_equal(twice[: len(scores)], final):
        yield f"{where}: normalize_score looks at how often a score occurs, so scores cannot be cached: drop depends_on"
