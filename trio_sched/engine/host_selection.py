"""Which of the best nodes it will be."""

from random import Random

import numpy as np

from trio_sched.snapshot.node_columns import Int64Array


def best_positions(totals: Int64Array) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Positions of the highest of *totals*, which must not be empty."""
    return np.flatnonzero(totals == totals.max())


def select_host(totals: Int64Array, rng: Random) -> int:
    """One of the positions with the highest total, each with the same probability."""
    best = best_positions(totals)
    return int(best[0]) if len(best) == 1 else int(best[rng.randrange(len(best))])
