from collections import Counter
from random import Random

import numpy as np
import pytest

from trio_sched.engine.evaluation.host_selection import best_positions, select_host


@pytest.mark.parametrize(
    ("totals", "best"), [([5], [0]), ([1, 3, 2, 3], [1, 3]), ([0, 0, 0], [0, 1, 2]), ([-1, -2], [0])]
)
def test_the_best_nodes_are_all_with_the_highest_total(totals: list[int], best: list[int]) -> None:
    assert best_positions(np.array(totals)).tolist() == best


def test_ties_are_drawn_evenly_and_other_nodes_never() -> None:
    rng = Random(42)
    drawn = Counter(select_host(np.array([7, 9, 3, 9, 9]), rng) for _ in range(3000))
    assert set(drawn) == {1, 3, 4}
    assert all(900 < count < 1100 for count in drawn.values())


def test_a_seed_replays_to_the_same_draws() -> None:
    first, second = ([select_host(np.zeros(50), Random(seed)) for seed in range(20)] for _ in range(2))
    assert first == second


def test_without_a_tie_nothing_is_drawn() -> None:
    rng = Random(1)
    before = rng.getstate()
    assert select_host(np.array([1, 2]), rng) == 1
    assert rng.getstate() == before
