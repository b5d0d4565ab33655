"""Checks the answers of filter and score: types, shapes, codes, ranges, and that each is about one node only."""

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
from trio_sched.testing.conformance.results import Results, ask, differs
from trio_sched.testing.conformance.subject import Subject, Trial


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


def subset_problems(subject: Subject) -> Iterator[str]:
    """The first node of each pod about which something else is said in other company."""
    trial = subject.fresh()
    everything = NodeColumns(trial.show(subject.cluster))
    for waiting in subject.pods:
        try:
            whole = ask(trial, waiting, everything, everything)
            if whole is not None and not whole.is_random:
                yield from _subset_problems(trial, waiting, everything, whole, f"pod {waiting.name!r}")
        except HookFailed:
            continue  # reported where answers are checked


def _subset_problems(trial: Trial, waiting: Pod, everything: NodeColumns, whole: Results, where: str) -> Iterator[str]:
    count = len(everything)
    for positions in (np.arange(0, count, 2), np.arange(count)[::-1].copy(), np.arange(count)[-1:]):
        part = ask(trial, waiting, everything.take(positions), everything)
        if part is None:
            continue
        for i, position in enumerate(positions.tolist()):
            name = everything.name(position)
            if differs(part.statuses, i, whole.statuses, position):
                yield f"{where}: filter says something else about {name!r} when it is shown fewer nodes"
                return
            if part.scores is not None and whole.scores is not None and part.scores[i] != whole.scores[position]:
                yield (
                    f"{where}: score gives {name!r} {part.scores[i]} when it is shown {len(positions)} nodes, "
                    f"{whole.scores[position]} when it is shown all"
                )
                return
