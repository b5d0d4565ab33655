"""What is idle of each GPU of a node, from the pods on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from trio_sched.plugin_api import NodeColumns, Pod
from trio_sched_gpu_packing.demand import MILLI, Shape

IndexOf = Callable[[Pod], tuple[int, ...] | None]
"""The numbers of the GPUs that a pod was given; None if that is not known."""


def parse_indexes(text: str) -> tuple[int, ...] | None:
    """``"0,3"`` → (0, 3); None for anything else, which somebody else may have written."""
    parts = text.split(",")
    if len(parts) > 64 or not all(part.isascii() and part.isdecimal() and len(part) < 4 for part in parts):
        return None
    return tuple(int(part) for part in parts)


def choose(idle: Sequence[int], shape: Shape) -> tuple[int, ...]:
    """The GPUs that are left with least once they host a pod of *shape*; fewer than it needs if it does not fit."""
    fitting = sorted((left, gpu) for gpu, left in enumerate(idle) if left >= shape.milli)
    return tuple(sorted(gpu for _, gpu in fitting[: shape.gpus]))


def idle_gpus(gpus: int, pods: Iterable[tuple[Shape, tuple[int, ...] | None]]) -> list[int]:
    """What is idle of each of *gpus* GPUs, in thousandths.

    Args:
        gpus: how many there are.
        pods: the shapes of the pods on the node, and which GPUs they have. Where that is not known (another scheduler
            has placed the pod), the GPUs that are left with least are assumed.
    """
    idle = [MILLI] * gpus
    unknown: list[Shape] = []
    for shape, indexes in pods:
        if indexes is None or len(indexes) != shape.gpus or not all(index < gpus for index in indexes):
            unknown.append(shape)
            continue
        for index in indexes:
            idle[index] = max(0, idle[index] - shape.milli)
    for shape in sorted(unknown, key=lambda one: (-one.gpus, -one.milli)):
        for index in choose(idle, shape):
            idle[index] -= shape.milli
    return idle


@define(eq=False)
class NodeGpus:
    """Keeps what is idle on each node until its version changes.

    Args:
        gpus_of: how many GPUs a node has, by its amount of the resource.
        shape_of: the shape of a pod.
        index_of: which GPUs a pod has.
    """

    gpus_of: Callable[[int], int]
    shape_of: Callable[[Pod], Shape]
    index_of: IndexOf
    _kept: dict[str, tuple[int, list[int]]] = field(factory=dict, init=False)

    def idle(self, nodes: NodeColumns, resource: str) -> NDArray[np.int64]:
        """Shape (nodes, GPUs): what is idle of each GPU; 0 where a node has fewer of them than another."""
        if len(self._kept) > 2 * nodes.total_nodes + 100:  # nodes come and go
            self._kept.clear()
        row = nodes.resource_row(resource)
        if row is None:
            return np.zeros((len(nodes), 0), dtype=np.int64)
        amounts, versions = nodes.allocatable[row].tolist(), nodes.versions.tolist()
        found: list[list[int]] = []
        for position, name in enumerate(nodes.names):
            kept = self._kept.get(name)
            if kept is None or kept[0] != versions[position]:
                kept = self._kept[name] = (versions[position], self._idle(amounts[position], nodes.node(position).pods))
            found.append(kept[1])
        width = max(map(len, found), default=0)
        padded = [gpus if len(gpus) == width else gpus + [0] * (width - len(gpus)) for gpus in found]
        return np.array(padded, dtype=np.int64).reshape(len(found), width)

    def of(self, nodes: NodeColumns, position: int, resource: str, pods: Iterable[Pod]) -> list[int]:
        """What would be idle of each GPU of one node with just these *pods* on it."""
        row = nodes.resource_row(resource)
        return [] if row is None else self._idle(int(nodes.allocatable[row, position]), pods)

    def forget(self, node_name: str) -> None:
        """Something that is not in the node's version has changed."""
        self._kept.pop(node_name, None)

    def _idle(self, amount: int, pods: Iterable[Pod]) -> list[int]:
        gpus = self.gpus_of(amount)
        if not gpus:
            return []
        shapes = ((self.shape_of(pod), pod) for pod in pods)
        return idle_gpus(gpus, ((shape, self.index_of(pod)) for shape, pod in shapes if shape.gpus))
