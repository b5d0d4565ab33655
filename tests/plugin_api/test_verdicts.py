from typing import Any

import numpy as np
import pytest

from trio_sched.plugin_api import (
    NodeStatuses,
    Verdicts,
    default_normalize_score,
    int_scores,
    unresolvable,
    unschedulable,
)


def test_a_mask_is_enough_for_one_reason() -> None:
    full = unschedulable("full")
    verdicts = Verdicts.where(np.array([True, False, True]), full)
    assert verdicts.passes.tolist() == [True, False, True]
    assert verdicts.codes.tolist() == [0, 1, 0]
    assert verdicts.explain(1) is full


@pytest.mark.parametrize(
    ("passes", "got"),
    [([True], "list"), (np.array([1, 0]), "an array of int64"), (np.True_, "bool")],
)
def test_a_mask_is_an_array_of_booleans(passes: Any, got: str) -> None:
    with pytest.raises(TypeError, match=f"passes as an array of booleans, one for each node, not as {got}"):
        Verdicts.where(passes, unschedulable("full"))


def test_the_reason_of_a_mask_is_a_status() -> None:
    with pytest.raises(TypeError, match=r"otherwise as a Status, .* for instance, not str"):
        Verdicts.where(np.array([True]), "full")  # type: ignore[arg-type]


def test_statuses_are_grouped_and_found_by_name() -> None:
    full, none = unschedulable("full"), unresolvable()
    statuses = NodeStatuses(((full, [0, 2]), (unschedulable("old"), [1])), ["a", "b", "c", "d"], none)
    assert statuses.by_node() == {"a": full, "c": full, "b": unschedulable("old")}
    assert statuses.counts() == [(full, 2), (unschedulable("old"), 1)]
    assert (statuses.get("c"), statuses.get("d"), statuses.get("elsewhere")) == (full, none, none)


def test_statuses_by_name_become_groups() -> None:
    statuses = NodeStatuses.of({"a": unschedulable("x"), "b": unschedulable("y")}, unresolvable("z"))
    assert statuses.by_node() == {"a": unschedulable("x"), "b": unschedulable("y")}
    assert statuses.get("c") == unresolvable("z")


def test_scores_come_from_any_numbers() -> None:
    for values in ([1, 2], (n for n in (1, 2)), np.array([1.9, 2.1])):
        scores = int_scores(values)
        assert (scores.tolist(), scores.dtype) == ([1, 2], np.int64)


@pytest.mark.parametrize(
    ("scores", "reverse", "expected"),
    [
        ([0, 1, 2], False, [0, 50, 100]),
        ([0, 1, 2], True, [100, 50, 0]),
        ([0, 0], False, [0, 0]),
        ([0, 0], True, [100, 100]),
        ([1, 3], False, [33, 100]),
        ([1, 3], True, [67, 0]),
        ([], True, []),
    ],
)
def test_the_highest_becomes_100(scores: list[int], reverse: bool, expected: list[int]) -> None:
    assert default_normalize_score(np.array(scores, dtype=np.int64), reverse=reverse).tolist() == expected
