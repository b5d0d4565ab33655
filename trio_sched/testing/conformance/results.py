"""What a plugin returns for one pod and some nodes, to be compared."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from trio_sched.engine.evaluation.filtering import run_filters, run_pre_filters
from trio_sched.engine.evaluation.scoring import run_pre_scores
from trio_sched.engine.hooks.plugin_calls import call_score
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.status import Status
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing.conformance.subject import Trial


@frozen(eq=False)
class Results:
    """What the plugin returns for every node; scores also for nodes that its filter rejects."""

    statuses: tuple[Status | None, ...] | None
    scores: NDArray[np.int64] | None
    is_random: bool = False
    """Whether it has used the random number generator of the handle: then equal questions get different answers."""


def ask(trial: Trial, waiting: Pod, nodes: NodeColumns, everything: NodeColumns) -> Results | None:
    """The results about *nodes*, some or all of *everything*; None if pre_filter ends the cycle.

    Raises:
        HookFailed: it failed.
    """
    profile, state = trial.profile, CycleState()
    trial.reset_random()
    before = trial.handle.rng.getstate()
    prepared = run_pre_filters(profile.pre_filter, waiting, everything, state)
    if prepared.rejected is not None:
        return None
    outcome = run_filters(profile.filter, waiting, nodes, state)
    statuses = tuple(outcome.status(position) for position in range(len(nodes))) if profile.filter else None
    run_pre_scores(profile.pre_score, waiting, everything, state)
    scorers = [scorer for scorer in profile.score if scorer.plugin not in state.skip_score]
    scores = call_score(scorers[0], waiting, nodes, state) if scorers else None
    return Results(statuses, scores, is_random=trial.handle.rng.getstate() != before)


def differs(a: Sequence[Any] | None, i: int, b: Sequence[Any] | None, j: int) -> bool:
    """Whether status *i* of *a* is another one than status *j* of *b*."""
    if a is None or b is None:
        return False
    return comparable(a[i]) != comparable(b[j])


def comparable(status: Status | None) -> Hashable:
    """What has to be the same: the code, and the reasons in any order."""
    return None if status is None else (status.code, tuple(sorted(status.all_reasons)))


def only(results: Results, position: int) -> Results:
    """The results about one node."""
    return Results(
        None if results.statuses is None else results.statuses[position : position + 1],
        None if results.scores is None else results.scores[position : position + 1],
    )


def same(a: Results | None, b: Results | None) -> bool:
    """Whether two results are equal."""
    if a is None or b is None:
        return a is b
    if (a.scores is None) != (b.scores is None):
        return False
    return [comparable(s) for s in a.statuses or ()] == [comparable(s) for s in b.statuses or ()] and (
        a.scores is None or np.array_equal(a.scores, b.scores)  # type: ignore[arg-type]  # both or neither, see above
    )
