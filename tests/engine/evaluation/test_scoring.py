from typing import Any

import numpy as np
import pytest

from trio_sched.engine.evaluation.scoring import run_pre_scores, run_scores
from trio_sched.engine.hooks.bound_hooks import BoundHook, ScoreHook
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.hooks.return_values import check_score_range
from trio_sched.plugin_api import SKIP, CycleState, NodeColumns, failure, unschedulable
from trio_sched.testing import make_table, node, pod


@pytest.fixture
def nodes() -> NodeColumns:
    return NodeColumns(make_table([node("a"), node("b"), node("c")]))


def giving(*scores: int) -> Any:
    return lambda *_: np.array(scores, dtype=np.int64)


def raising(*_args: Any) -> Any:
    raise LookupError("broken")


def test_totals_are_the_weighted_sum_of_normalised_scores(nodes: NodeColumns) -> None:
    scorers = [
        ScoreHook(
            "A",
            "score",
            giving(1, 2, 3),
            weight=2,
            normalize=BoundHook("A", "normalize_score", lambda _pod, scores, _state: scores * 10),
        ),
        ScoreHook("B", "score", giving(5, 0, 0), weight=3),
        ScoreHook("N", "score_node", lambda _pod, node, _state: ord(node.name) - ord("a"), per_node=True),
    ]
    scores = run_scores(scorers, pod(), nodes, CycleState())
    assert scores.totals.tolist() == [2 * 10 + 15, 2 * 20 + 1, 2 * 30 + 2]
    assert {name: column.tolist() for name, column in scores.raw.items()} == {
        "A": [1, 2, 3],
        "B": [5, 0, 0],
        "N": [0, 1, 2],
    }
    assert scores.normalized["A"].tolist() == [10, 20, 30]
    assert scores.weights == {"A": 2, "B": 3, "N": 1}


def test_normalising_in_place_leaves_the_raw_scores_alone(nodes: NodeColumns) -> None:
    def in_place(_pod: Any, scores: Any, _state: Any) -> Any:
        scores *= 2
        return scores

    scores = run_scores(
        [ScoreHook("A", "score", giving(1, 2, 3), normalize=BoundHook("A", "normalize_score", in_place))],
        pod(),
        nodes,
        CycleState(),
    )
    assert (scores.raw["A"].tolist(), scores.totals.tolist()) == ([1, 2, 3], [2, 4, 6])


def test_plugins_that_skip_pre_score_are_not_called(nodes: NodeColumns) -> None:
    state = CycleState()
    run_pre_scores(
        [BoundHook("A", "pre_score", lambda *_: SKIP), BoundHook("B", "pre_score", lambda *_: None)],
        pod(),
        nodes,
        state,
    )
    assert state.skip_score == {"A"}
    scores = run_scores(
        [ScoreHook("A", "score", raising), ScoreHook("B", "score", giving(1, 1, 1))], pod(), nodes, state
    )
    assert scores.totals.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (raising, "pre_score raised LookupError: broken"),
        (lambda *_: failure("cannot"), "cannot"),
        (lambda *_: unschedulable("no"), "no"),
    ],
)
def test_pre_score_cannot_reject(nodes: NodeColumns, answer: Any, message: str) -> None:
    with pytest.raises(HookFailed, match=f'^running PreScore plugin "A": {message}$'):
        run_pre_scores([BoundHook("A", "pre_score", answer)], pod(), nodes, CycleState())


@pytest.mark.parametrize(
    ("scorer", "message"),
    [
        (
            ScoreHook("A", "score", raising),
            r'running Score plugins: plugin "A" failed with: \w+ raised LookupError: broken',
        ),
        (
            ScoreHook("A", "score_node", raising, per_node=True),
            r'running Score plugins: plugin "A" failed with: \w+ raised LookupError: broken',
        ),
        (
            ScoreHook("A", "score", giving(1, 2)),
            r"plugin \"A\" failed with: score returned shape \(2,\), expected \(3,\)",
        ),
        (
            ScoreHook("A", "score", giving(1, 2, 3), normalize=BoundHook("A", "normalize_score", raising)),
            r'running Normalize on Score plugins: plugin "A" failed with: \w+ raised LookupError: broken',
        ),
        (
            ScoreHook("A", "score", giving(1, 101, 3)),
            'applying score defaultWeights on Score plugins: plugin "A" returns an invalid score 101, '
            r"it should in the range of \[0, 100\] after normalizing",
        ),
        (ScoreHook("A", "score", giving(1, -1, 3)), "returns an invalid score -1, "),
    ],
)
def test_a_failing_score_fails_the_cycle_with_the_text_of_kube_scheduler(
    nodes: NodeColumns, scorer: ScoreHook, message: str
) -> None:
    with pytest.raises(HookFailed, match=message) as caught:
        run_scores([scorer], pod(), nodes, CycleState())
    assert caught.value.status.plugin == "A"


@pytest.mark.parametrize("scores", [[], [0], [100], [0, 100]])
def test_the_bounds_of_the_score_range_are_valid(scores: list[int]) -> None:
    check_score_range(ScoreHook("A", "score", giving()), np.array(scores, dtype=np.int64))


@pytest.mark.parametrize("scores", [[-1], [101]])
def test_a_single_score_is_checked_too(scores: list[int]) -> None:
    with pytest.raises(HookFailed):
        check_score_range(ScoreHook("A", "score", giving()), np.array(scores, dtype=np.int64))
