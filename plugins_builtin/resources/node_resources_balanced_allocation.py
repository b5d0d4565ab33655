"""NodeResourcesBalancedAllocation: prefers nodes whose resources would be evenly used with the pod on them."""

from collections.abc import Hashable
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from plugins_builtin.resources.resources import FEW, columns_of, device_class_maps, request_signature, resource_options
from trio_sched.plugin_api import (
    SKIP,
    CycleState,
    Handle,
    Input,
    Int64Array,
    NodeColumns,
    NodeResourcesBalancedAllocationArgs,
    Pod,
    Status,
    hookimpl,
    nano_requests,
    to_amounts,
)
from trio_sched.plugin_api.features import Features

NAME = "NodeResourcesBalancedAllocation"


class NodeResourcesBalancedAllocation:
    """Scores nodes by how much the pod evens out the used shares of their resources."""

    name: ClassVar[str] = NAME
    Args: ClassVar[type[NodeResourcesBalancedAllocationArgs]] = NodeResourcesBalancedAllocationArgs
    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.AMOUNTS})

    def __init__(self, args: NodeResourcesBalancedAllocationArgs, handle: Handle) -> None:
        self._handle = handle
        self._options = resource_options(handle)
        self._extended_by_devices = Features.of(handle.feature_enabled).dra_extended_resource
        # The score reads them too, and a plugin that only scores is not asked for its events.
        self.watches = ("DeviceClass",) if self._extended_by_devices else ()
        self._names = tuple(resource.name for resource in args.resources)
        self._is_scalar = [name not in ("cpu", "memory", "ephemeral-storage") for name in self._names]
        self._can_be_devices = [name for name, scalar in zip(self._names, self._is_scalar, strict=True) if scalar]

    @hookimpl
    def pre_score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Status | None:
        """Skip if the pod requests none of the resources."""
        amounts = to_amounts(nano_requests(pod, self._options, use_status=True))
        wanted = np.array([[amounts.amount(name)] for name in self._names], dtype=np.int64)
        if not wanted.any():
            return SKIP
        state.write((NAME, "wanted"), wanted)
        return None

    @hookimpl
    def score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Int64Array:
        """50..100; 75 if the shares are as even with the pod as without it.

        Source: kube-scheduler 1.36; the order of the float operations is part of the rule.
        """
        wanted: Int64Array = state.read((NAME, "wanted"))
        allocatable, used = columns_of(self._names, nodes, nonzero=False)
        if len(nodes) <= FEW and len(self._names) == 2 and not any(self._is_scalar):
            return _score_few(wanted[:, 0].tolist(), used.tolist(), allocatable.tolist())
        counts = allocatable > 0
        for i, scalar in enumerate(self._is_scalar):
            if scalar and not wanted[i, 0]:
                counts[i] = False
        if len(used) == 2 and counts.all():
            # Converted to float once; numpy would otherwise convert for every division.
            capacity, requested = allocatable.astype(np.float64), used.astype(np.float64)
            before = _percent_even(_spread_of_two(requested / capacity))
            requested += wanted
            after = _percent_even(_spread_of_two(np.divide(requested, capacity, out=requested)))
        else:
            before = _percent_even(_deviation(used, allocatable, counts))
            after = _percent_even(_deviation(used + wanted, allocatable, counts))
        after -= before
        after += 50
        after /= 2
        np.floor(after, out=after)
        after += 50
        return after.astype(np.int64)

    @hookimpl
    def sign(self, pod: Pod) -> Hashable | None:
        """The requests; None if a DeviceClass maps to one of the resources."""
        if self._extended_by_devices:
            for name in self._can_be_devices:
                if device_class_maps(name, self._handle):
                    return None
        return request_signature(pod)


def _score_few(wanted: list[int], used: list[list[int]], allocatable: list[list[int]]) -> Int64Array:
    """The scores of a few nodes with two resources, operation by operation."""
    scores = []
    for u0, u1, a0, a1 in zip(*used, *allocatable, strict=True):
        before = _evenness_of_two(u0, u1, a0, a1)
        after = _evenness_of_two(u0 + wanted[0], u1 + wanted[1], a0, a1)
        scores.append(50 + (50 + after - before) // 2)
    return np.array(scores, dtype=np.int64)


def _evenness_of_two(u0: int, u1: int, a0: int, a1: int) -> int:
    if a0 <= 0 or a1 <= 0:
        return 100
    # Converted before they are divided, as arrays are: beyond 2^53 Python's own division of integers is more exact.
    first, second = min(float(u0) / float(a0), 1.0), min(float(u1) / float(a1), 1.0)
    return int((1.0 - abs(first - second) / 2) * 100.0)


def _percent_even(spread: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shape (nodes,): 100 less the standard deviation *spread*, in percent, of the used shares; a whole number."""
    np.subtract(1.0, spread, out=spread)
    spread *= 100.0
    even: NDArray[np.float64] = np.trunc(spread, out=spread)
    return even


def _spread_of_two(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """The standard deviation of two shares per node, which may be overwritten."""
    np.minimum(shares, 1.0, out=shares)
    spread: NDArray[np.float64] = np.subtract(shares[0], shares[1], out=shares[0])
    np.abs(spread, out=spread)
    spread /= 2
    return spread


def _deviation(used: Int64Array, allocatable: Int64Array, counts: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Shape (nodes,): standard deviation of the used shares of the resources that each node has.

    Nodes that have the same resources are computed together.
    """
    shares = np.minimum(used / np.where(counts, allocatable, 1), 1.0)
    deviation = np.zeros(used.shape[1])
    for pattern in np.unique(counts, axis=1).T:
        columns = np.flatnonzero((counts == pattern[:, None]).all(axis=0))
        present = shares[np.flatnonzero(pattern)][:, columns]
        k = len(present)
        if k == 2:
            deviation[columns] = np.abs(present[0] - present[1]) / 2
        elif k > 2:
            total = np.zeros(len(columns))
            for row in present:
                total += row
            mean = total / k
            squares = np.zeros(len(columns))
            for row in present:
                squares += (row - mean) * (row - mean)
            deviation[columns] = np.sqrt(squares / k)
    return deviation
