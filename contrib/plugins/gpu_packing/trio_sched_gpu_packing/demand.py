"""The shape of a pod (what it asks for, as far as packing sees it), and a mix of shapes as columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from trio_sched.plugin_api import Pod, pod_resources

MILLI = 1000
"""A whole GPU, in the unit of this package."""
MAX_GPUS = 64
"""The GPUs of a node that are looked at one by one."""
_MAX_SHAPES = 256
"""The most frequent shapes that a mix is made of; the others are too rare to pack for."""


class UnusableRequest(ValueError):
    """A pod requests more than one GPU, but no whole number of them."""


@frozen
class Shape:
    """What a pod requests."""

    cpu_milli: int
    gpus: int
    """Whole GPUs, or 1 for a share of one; 0 for none."""
    milli: int
    """What it asks of each of these GPUs: 1000, or less for a share."""
    models: frozenset[str] | None = None
    """The models it may run on; None: any."""

    @property
    def is_share(self) -> bool:
        """Whether it requests a part of one GPU."""
        return 0 < self.milli < MILLI


def shape_of(pod: Pod, resource: str, units_per_gpu: int, model_label: str) -> Shape:
    """The shape of *pod*, where *units_per_gpu* of *resource* are a whole GPU.

    Raises:
        UnusableRequest: it requests one and a half GPUs, for instance.
    """
    requested = pod_resources(pod).requested
    units = requested.amount(resource)
    if units <= 0:
        return Shape(requested.cpu_milli, 0, 0)
    models = _models(pod, model_label)
    if units < units_per_gpu:
        return Shape(requested.cpu_milli, 1, max(1, units * MILLI // units_per_gpu), models)
    gpus, rest = divmod(units, units_per_gpu)
    if rest:
        raise UnusableRequest(
            f"pod requests {units} of {resource}, which is more than one GPU of {units_per_gpu} and no whole number "
            "of them"
        )
    return Shape(requested.cpu_milli, gpus, MILLI, models)


def _models(pod: Pod, label: str) -> frozenset[str] | None:
    """The values of *label* that a node must have for *pod*; None if that is not said with one list of values."""
    selected = (pod.spec.node_selector or {}).get(label)
    if selected is not None:
        return frozenset((selected,))
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    terms = (required.node_selector_terms if required else None) or ()
    if len(terms) != 1:
        return None
    for requirement in terms[0].match_expressions or ():
        if requirement.key == label and requirement.operator == "In":
            return frozenset(requirement.values or ())
    return None


@frozen(eq=False)
class Demand:
    """A mix of shapes with GPUs, as columns of length *shapes*."""

    shapes: tuple[Shape, ...] = ()
    frequency: NDArray[np.float64] = field(factory=lambda: np.zeros(0))
    """The share of each shape among all; their sum is 1."""
    cpu_milli: NDArray[np.int64] = field(factory=lambda: np.zeros(0, dtype=np.int64))
    gpus: NDArray[np.int64] = field(factory=lambda: np.zeros(0, dtype=np.int64))
    milli: NDArray[np.int64] = field(factory=lambda: np.zeros(0, dtype=np.int64))
    sizes: NDArray[np.int64] = field(factory=lambda: np.zeros(0, dtype=np.int64))
    """The distinct values of *milli*."""
    size_of: NDArray[np.intp] = field(factory=lambda: np.zeros(0, dtype=np.intp))
    """For each shape the position of its *milli* in *sizes*."""

    @classmethod
    def of(cls, counts: Mapping[Shape, int]) -> Demand:
        """The mix in which each shape is as frequent as *counts* says."""
        frequent = [(shape, n) for shape, n in Counter(counts).most_common(_MAX_SHAPES) if shape.gpus and n > 0]
        if not frequent:
            return cls()
        shapes = tuple(shape for shape, _ in frequent)
        numbers = np.array([n for _, n in frequent], dtype=np.float64)
        milli = np.array([shape.milli for shape in shapes], dtype=np.int64)
        sizes, size_of = np.unique(milli, return_inverse=True)
        return cls(
            shapes=shapes,
            frequency=numbers / numbers.sum(),
            cpu_milli=np.array([shape.cpu_milli for shape in shapes], dtype=np.int64),
            gpus=np.array([shape.gpus for shape in shapes], dtype=np.int64),
            milli=milli,
            sizes=sizes,
            size_of=size_of.astype(np.intp),
        )

    def usable_on(self, model: str) -> NDArray[np.bool_]:
        """Shape (shapes,): which of them may run on GPUs of *model*."""
        return np.array([shape.models is None or model in shape.models for shape in self.shapes], dtype=np.bool_)

    def distance(self, other: Demand) -> float:
        """How different the mixes are: 0 if they are equal, 1 if they have no shape in common."""
        mine = dict(zip(self.shapes, self.frequency.tolist(), strict=True))
        theirs = dict(zip(other.shapes, other.frequency.tolist(), strict=True))
        if not mine or not theirs:
            return float(bool(mine) != bool(theirs))
        apart = (abs(mine.get(shape, 0.0) - theirs.get(shape, 0.0)) for shape in {*mine, *theirs})
        return float(sum(apart)) / 2
