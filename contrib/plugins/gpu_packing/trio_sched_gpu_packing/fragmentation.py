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

from trio_sched_gpu_packing.demand import MAX_GPUS, Demand

_FEW: Final = 64
"""So many nodes are evaluated faster than it is found out which of them look alike."""
_FACTORS: Final = np.random.default_rng(0).integers(-(2**62), 2**62, MAX_GPUS + 2)
_MAX_CELLS: Final = 1 << 21
"""How many numbers an array of a single step may have; what is larger is done in parts."""


@frozen(eq=False)
class NodeStates:
    """The nodes as far as fragmentation sees them."""

    cpu_milli: NDArray[np.int64]
    """Shape (nodes,): free CPU."""
    idle: NDArray[np.int64]
    """Shape (nodes, GPUs): what is idle of each GPU, in thousandths; 0 where a node has fewer of them."""
    model: NDArray[np.intp]
    """Shape (nodes,): the row in *usable*."""
    usable: NDArray[np.bool_]
    """Shape (models, shapes of the demand): which shapes may run on a model of GPU."""

    def take(self, rows: NDArray[np.intp] | slice) -> NodeStates:
        """Only these nodes."""
        return NodeStates(self.cpu_milli[rows], self.idle[rows], self.model[rows], self.usable)


@frozen
class Weights:
    """What counts how much; the defaults allocated more GPUs than either measure alone, see the README."""

    filled: float = 1.0
    """What is left idle once the node is filled with pods of one shape."""
    one_pod: float = 0.5
    """What is idle although not even one pod of a shape fits: the measure of the paper."""
    best_fit: float = 20.0
    """What an idle node of 128 cores, or of 8 GPUs, costs, in thousandths of a GPU: decides where the rest is equal."""


def fragmentation(demand: Demand, nodes: NodeStates, weights: Weights) -> NDArray[np.float64]:
    """Shape (nodes,): what cannot be used of the idle GPUs of each node, in thousandths of a GPU."""
    count, gpus = nodes.idle.shape
    shapes = len(demand.shapes)
    if not shapes or not count or not (weights.filled or weights.one_pod):
        return np.zeros(count)
    if count > _FEW:
        # Many nodes look alike, all idle ones for instance; which GPU of a node it is does not matter.
        looks = np.column_stack((nodes.cpu_milli, nodes.model, np.sort(nodes.idle, axis=1)))
        hashes = looks @ _FACTORS[: gpus + 2]  # sorting whole rows takes longer than it spares
        _hashes, first, look_of = np.unique(hashes, return_index=True, return_inverse=True)
        if 2 * len(first) < count and np.array_equal(looks[first][look_of], looks):
            return fragmentation(demand, nodes.take(first), weights)[look_of]
    step = max(1, _MAX_CELLS // max(shapes, gpus * len(demand.sizes)))
    parts = [_fragmentation(demand, nodes.take(slice(i, i + step)), weights) for i in range(0, count, step)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def share_losses(demand: Demand, milli: int, nodes: NodeStates, weights: Weights) -> NDArray[np.float64]:
    """Shape (nodes, GPUs): the fragmentation of each node if that GPU of it gave a share of *milli*.

    Infinite where the GPU has less than that left.
    """
    losses = np.full(nodes.idle.shape, np.inf)
    node, gpu = np.nonzero(nodes.idle >= milli)
    if len(node):
        after = nodes.take(node)
        after.idle[np.arange(len(node)), gpu] -= milli
        losses[node, gpu] = fragmentation(demand, after, weights)
    return losses


def _fragmentation(demand: Demand, nodes: NodeStates, weights: Weights) -> NDArray[np.float64]:
    total = nodes.idle.sum(axis=1)
    by_size = nodes.idle[:, :, None]
    fits = by_size >= demand.sizes  # (nodes, GPUs, sizes)
    fitting = np.count_nonzero(fits, axis=1)[:, demand.size_of]
    # Shape (nodes, shapes) from here on.
    hosts = fitting >= demand.gpus
    hosts &= nodes.cpu_milli[:, None] >= demand.cpu_milli
    hosts &= nodes.usable[nodes.model]
    lost = np.zeros(len(total))
    if weights.one_pod:
        too_small = np.where(fits, 0, by_size).sum(axis=1)[:, demand.size_of]
        lost += weights.one_pod * (np.where(hosts, too_small, total[:, None]) @ demand.frequency)
    if weights.filled:
        pods = (by_size // demand.sizes).sum(axis=1)[:, demand.size_of] // demand.gpus
        by_cpu = nodes.cpu_milli[:, None] // np.maximum(demand.cpu_milli, 1)
        np.minimum(pods, by_cpu, out=pods, where=demand.cpu_milli > 0)
        used = np.where(hosts, pods * (demand.gpus * demand.milli), 0)
        lost += weights.filled * (total - used @ demand.frequency)
    return lost
