"""Selects one of the nodes with the highest total score."""

from random import Random

import numpy as np
from numpy.typing import NDArray

from trio_sched.snapshot.arrays import Int64Array


def best_positions(totals: Int64Array) -> NDArray[np.intp]:
    """Positions of the highest of *totals*, which must not be empty."""
    best: NDArray[np.intp] = (totals == totals[totals.argmax()]).nonzero()[0]
    return best


def select_host(totals: Int64Array, rng: Random) -> int:
    """One of the positions with the highest total, each with the same probability."""
    best = best_positions(totals)
    return int(best[0]) if len(best) == 1 else int(best[rng.randrange(len(best))])
