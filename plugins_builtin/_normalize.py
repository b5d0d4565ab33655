"""The scheduling framework's default normalisation of scores."""

import numpy as np

from trio_sched.plugin_api import Int64Array

MAX_SCORE = 100


def default_normalize(scores: Int64Array, *, reverse: bool = False) -> Int64Array:
    """Scale non-negative *scores* so that the highest becomes 100; with *reverse* 0 becomes 100 and the highest 0.

    Source: DefaultNormalizeScore of Kubernetes 1.36; whole numbers, truncated.
    """
    highest = int(scores.max(initial=0))
    if highest == 0:
        return np.full_like(scores, MAX_SCORE) if reverse else scores
    if highest < len(scores):  # fewer divisions: one for each possible score instead of one for each node
        table = np.arange(highest + 1, dtype=np.int64) * MAX_SCORE // highest
        return (MAX_SCORE - table if reverse else table)[scores]
    scaled = scores * MAX_SCORE // highest
    return MAX_SCORE - scaled if reverse else scaled
