"""The three scoring strategies of NodeResourcesFit.

Whole numbers throughout, as kube-scheduler computes them; floats only where they are exact (see `FLOAT_EXACT_BELOW`),
because numpy divides int64 several times slower than float64.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from plugins_builtin.resources.resources import FEW, FLOAT_EXACT_BELOW, columns_of
from trio_sched.plugin_api import (
    DEFAULT_CPU_MILLI,
    DEFAULT_MEMORY_BYTES,
    MAX_SCORE,
    Int64Array,
    NodeColumns,
    Pod,
    ScoringStrategy,
    UtilizationShapePoint,
    nano_requests,
    to_amounts,
)

_DEFAULTS = {"cpu": DEFAULT_CPU_MILLI * 1_000_000, "memory": DEFAULT_MEMORY_BYTES * 1_000_000_000}


class ResourceScorer:
    """Scores nodes by the utilization of their resources with the pod on them."""

    def __init__(self, strategy: ScoringStrategy) -> None:
        self._names = tuple(resource.name for resource in strategy.resources)
        self._weights = np.array([resource.weight for resource in strategy.resources], dtype=np.int64)
        self._is_scalar = [name not in ("cpu", "memory", "ephemeral-storage") for name in self._names]
        self._equal_weights = len(set(self._weights.tolist())) == 1
        self._kind = strategy.type
        ratio = strategy.requested_to_capacity_ratio
        self._score_of_utilization = utilization_scores((ratio.shape if ratio is not None else None) or ())
        plain = not any(self._is_scalar) and self._equal_weights and self._kind == "LeastAllocated"
        self._few = _least_allocated_few if plain else None

    def pod_amounts(self, pod: Pod) -> Int64Array:
        """Shape (resources, 1): the requests of *pod*; containers without requests count with defaults.

        ``spec.resources`` does not count: kube-scheduler's scorer does not use it either.
        """
        amounts = to_amounts(nano_requests(pod, use_pod_level=False, defaults=_DEFAULTS))
        return np.array([[amounts.amount(name)] for name in self._names], dtype=np.int64)

    def score(self, wanted: Int64Array, nodes: NodeColumns) -> Int64Array:
        """Shape (nodes,): 0..100."""
        allocatable, used = columns_of(self._names, nodes, nonzero=True)
        if len(nodes) <= FEW and self._few is not None:
            few = self._few(wanted[:, 0].tolist(), used.T.tolist(), allocatable.T.tolist())
            if few is not None:
                return few
        requested = used + wanted
        counts = allocatable > 0
        for i, scalar in enumerate(self._is_scalar):
            if scalar and not wanted[i, 0]:
                counts[i] = False
        all_count = bool(counts.all())
        capacity = allocatable if all_count else np.where(counts, allocatable, 1)
        if self._kind == "RequestedToCapacityRatio":
            return self._by_ratio(capacity, requested, counts)
        if max(int(capacity.max(initial=0)), int(requested.max(initial=0))) < FLOAT_EXACT_BELOW:
            scores = self._by_share_float(capacity, requested)
        else:
            scores = self._by_share_int(capacity, requested)
        return self._average(scores, counts, all_count)

    def most_allocated(self, pods: Iterable[Pod], nodes: NodeColumns) -> int:
        """0..100: the share of *nodes* together that is requested, with *pods* on them, whatever the strategy is."""
        allocatable, used = columns_of(self._names, nodes, nonzero=True)
        wanted = [0] * len(self._names)
        for pod in pods:
            for i, (amount,) in enumerate(self.pod_amounts(pod).tolist()):
                wanted[i] += amount
        total = weights = 0
        for i, (is_scalar, weight) in enumerate(zip(self._is_scalar, self._weights.tolist(), strict=True)):
            has = allocatable[i]
            capacity = int(has.sum())
            if capacity == 0 or (is_scalar and not wanted[i]):
                continue
            requested = wanted[i] + int(used[i][has > 0].sum())
            total += min(requested, capacity) * MAX_SCORE // capacity * weight
            weights += weight
        return total // weights if weights else 0

    def _by_share_float(self, capacity: Int64Array, requested: Int64Array) -> NDArray[np.float64]:
        has = capacity.astype(np.float64)
        share = requested.astype(np.float64)
        if self._kind == "MostAllocated":
            np.minimum(share, has, out=share)
        else:
            np.subtract(has, share, out=share)
        share *= MAX_SCORE
        share /= has
        np.floor(share, out=share)
        return np.maximum(share, 0, out=share)

    def _by_share_int(self, capacity: Int64Array, requested: Int64Array) -> NDArray[np.float64]:
        over = requested > capacity
        if self._kind == "MostAllocated":
            share = _times_100_div(np.where(over, capacity, requested), capacity)
        else:
            share = np.where(over, 0, _times_100_div(np.where(over, 0, capacity - requested), capacity))
        return share.astype(np.float64)

    def _average(self, scores: NDArray[np.float64], counts: NDArray[np.bool_], all_count: bool) -> Int64Array:
        if all_count and self._equal_weights:
            total = scores[0]
            for row in scores[1:]:
                total += row
            total /= len(self._names)
            rounded: Int64Array = np.floor(total, out=total).astype(np.int64)
            return rounded
        weights = np.where(counts, self._weights[:, None], 0)
        weight_sums = weights.sum(axis=0)
        weighted = (scores.astype(np.int64) * weights).sum(axis=0)
        average: Int64Array = weighted // np.maximum(weight_sums, 1)
        return average

    def _by_ratio(self, capacity: Int64Array, requested: Int64Array, counts: NDArray[np.bool_]) -> Int64Array:
        over = requested > capacity
        utilization = np.where(over, 100, _times_100_div(np.where(over, 0, requested), capacity))
        scores = self._score_of_utilization[np.clip(utilization, 0, 100)]
        weights = np.where(counts & (scores > 0), self._weights[:, None], 0)
        weight_sums = weights.sum(axis=0)
        weighted = (scores * weights).sum(axis=0).astype(np.float64)
        # Halves are rounded up (the numbers are not negative); numpy's rounding would go to the nearest even number.
        average: Int64Array = np.floor(weighted / np.maximum(weight_sums, 1) + 0.5).astype(np.int64)
        return average


def utilization_scores(shape: Sequence[UtilizationShapePoint]) -> Int64Array:
    """Shape (101,): the score of each utilization, linear between the points of *shape*; zeros without points."""
    points = [(point.utilization, point.score * 10) for point in shape]
    return np.array([_interpolated(points, utilization) if points else 0 for utilization in range(101)], dtype=np.int64)


def _least_allocated_few(wanted: list[int], used: list[list[int]], allocatable: list[list[int]]) -> Int64Array | None:
    """LeastAllocated for a few nodes, over common resources of equal weight; one row of *used* per node.

    None where numbers are so large that kube-scheduler's 64 bits would wrap.
    """
    scores = []
    for node_used, node_has in zip(used, allocatable, strict=True):
        total = count = 0
        for need, usage, has in zip(wanted, node_used, node_has, strict=True):
            if has >= FLOAT_EXACT_BELOW:
                return None
            if has > 0:
                count += 1
                free = has - usage - need
                if free > 0:
                    total += free * MAX_SCORE // has
        scores.append(total // count if count else 0)
    return np.array(scores, dtype=np.int64)


def _interpolated(points: Sequence[tuple[int, int]], utilization: int) -> int:
    previous: tuple[int, int] | None = None
    for x, y in points:
        if utilization <= x:
            if previous is None:
                return y
            rise, run, ahead = y - previous[1], x - previous[0], utilization - previous[0]
            step = abs(rise) * ahead // run  # towards zero, also on falling lines
            return previous[1] + (step if rise >= 0 else -step)
        previous = (x, y)
    return points[-1][1]


def _times_100_div(numerator: Int64Array, denominator: Int64Array) -> Int64Array:
    """``numerator * 100 / denominator``, truncated towards zero; wraps at 64 bits, as kube-scheduler does."""
    with np.errstate(over="ignore"):
        product = numerator * np.int64(MAX_SCORE)
    quotient = np.abs(product) // denominator
    signed: Int64Array = np.where(product < 0, -quotient, quotient)
    return signed
