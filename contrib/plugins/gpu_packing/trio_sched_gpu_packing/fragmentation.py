"""How much of the idle GPUs of a node the expected pods could not use.

The first measure is that of Weng et al., Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation
Gradient Descent (USENIX ATC 2023): for each expected shape, the idle part of those GPUs that it does not fit on, or all
of the idle GPUs if it does not fit on the node; the mean over all shapes, by frequency. That asks whether *one* pod
fits. A node with one idle core and seven idle GPUs looks fine to it as long as a core is enough for a pod. So there is
a second one: what would be left idle if the node were filled with pods of that shape, until GPUs or CPU run out.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from trio_sched_gpu_packing.demand import Demand

_MAX_CELLS: Final = 1 << 21
"""How many numbers an array of a single step may have; what is larger is done in parts."""


@frozen
class Weights:
    """What counts how much; the defaults allocated more GPUs than either measure alone, see the README."""

    filled: float = 1.0
    """What is left idle once the node is filled with pods of one shape."""
    one_pod: float = 0.5
    """What is idle although not even one pod of a shape fits: the measure of the paper."""
    best_fit: float = 20.0
    """What an idle node of 128 cores, or of 8 GPUs, costs, in thousandths of a GPU: decides where the rest is equal."""


def fragmentation(
    demand: Demand,
    cpu_milli: NDArray[np.int64],
    idle: NDArray[np.int64],
    usable: NDArray[np.bool_],
    weights: Weights,
) -> NDArray[np.float64]:
    """What cannot be used of the idle GPUs, in thousandths of a GPU.

    Args:
        demand: the expected pods.
        cpu_milli: shape (nodes,): free CPU.
        idle: shape (nodes, GPUs): what is free of each GPU, in thousandths; 0 where a node has fewer GPUs.
        usable: shape (nodes, shapes of *demand*): which of them the node's model of GPU allows.
        weights: of the two measures.

    Returns:
        Shape (nodes,).
    """
    count, gpus = idle.shape
    shapes = len(demand.shapes)
    if not shapes or not count:
        return np.zeros(count)
    step = max(1, _MAX_CELLS // max(shapes, gpus * len(demand.sizes)))
    parts = [
        _fragmentation(demand, cpu_milli[i : i + step], idle[i : i + step], usable[i : i + step], weights)
        for i in range(0, count, step)
    ]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def share_losses(
    demand: Demand,
    milli: int,
    cpu_milli: NDArray[np.int64],
    idle: NDArray[np.int64],
    usable: NDArray[np.bool_],
    weights: Weights,
) -> NDArray[np.float64]:
    """The fragmentation of each node if each of its GPUs gave a share of *milli*.

    Args:
        demand: as in `fragmentation`.
        milli: the share.
        cpu_milli: free CPU once the pod is there.
        idle: as in `fragmentation`.
        usable: as in `fragmentation`.
        weights: as in `fragmentation`.

    Returns:
        Shape (nodes, GPUs); infinite where a GPU has less than that left.
    """
    losses = np.full(idle.shape, np.inf)
    node, gpu = np.nonzero(idle >= milli)
    if len(node):
        after = idle[node]
        after[np.arange(len(node)), gpu] -= milli
        losses[node, gpu] = fragmentation(demand, cpu_milli[node], after, usable[node], weights)
    return losses


def _fragmentation(
    demand: Demand,
    cpu_milli: NDArray[np.int64],
    idle: NDArray[np.int64],
    usable: NDArray[np.bool_],
    weights: Weights,
) -> NDArray[np.float64]:
    total = idle.sum(axis=1)
    by_size = idle[:, :, None]
    fits = by_size >= demand.sizes  # (nodes, GPUs, sizes)
    fitting = np.count_nonzero(fits, axis=1)[:, demand.size_of]
    # Shape (nodes, shapes) from here on.
    enough_cpu = cpu_milli[:, None] >= demand.cpu_milli
    hosts = usable & enough_cpu & (fitting >= demand.gpus)
    lost = np.zeros(len(total))
    if weights.one_pod:
        too_small = np.where(fits, 0, by_size).sum(axis=1)[:, demand.size_of]
        lost += weights.one_pod * (np.where(hosts, too_small, total[:, None]) @ demand.frequency)
    if weights.filled:
        pods = (by_size // demand.sizes).sum(axis=1)[:, demand.size_of] // demand.gpus
        np.minimum(pods, cpu_milli[:, None] // np.maximum(demand.cpu_milli, 1), out=pods)
        used = np.where(hosts, pods * (demand.gpus * demand.milli), 0)
        lost += weights.filled * (total - used @ demand.frequency)
    return lost
