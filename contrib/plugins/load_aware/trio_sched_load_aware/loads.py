"""What is known about the load of nodes: samples, their age and peaks, and pods that they do not show yet."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from attrs import define, field, frozen

_STEPS: Final = 100
"""Loads are rounded to so many parts of the capacity: smaller changes move no pod, so that results stay cached."""
_LONGEST_WITHOUT_SAMPLE: Final = 60.0


@frozen
class _Sample:
    """The load of a node as it was smoothed, and when it was measured."""

    value: float
    at: float


@define(eq=False)
class SignalLoads:
    """One signal of all nodes. Times are those of the scheduler's clock, in seconds.

    Args:
        max_age: for how many seconds a sample counts.
        half_life: after how many seconds half of a peak is forgotten; 0 keeps none.
    """

    max_age: float
    half_life: float
    _samples: dict[str, _Sample] = field(factory=dict, init=False)

    def add(self, values: Mapping[str, float], at: float) -> None:
        """Take in what was measured at *at*: a higher value counts at once, a lower one step by step."""
        for node, value in values.items():
            before = self._samples.get(node)
            if before is not None and self.half_life and before.value > value:
                value += (before.value - value) * 0.5 ** ((at - before.at) / self.half_life)
            self._samples[node] = _Sample(value, at)

    def forget(self, now: float, nodes: Collection[str]) -> None:
        """Drop what is too old, and nodes that are not among *nodes*."""
        oldest = now - self.max_age
        self._samples = {
            node: sample for node, sample in self._samples.items() if sample.at >= oldest and node in nodes
        }

    def shown(self) -> dict[str, float]:
        """Node → load from 0 to 1, rounded."""
        return {node: round(sample.value * _STEPS) / _STEPS for node, sample in self._samples.items()}

    @property
    def newest(self) -> float | None:
        """When the newest sample was measured."""
        return max((sample.at for sample in self._samples.values()), default=None)


@frozen
class Placed:
    """A pod that was placed on a node not long ago."""

    node: str
    at: float
    cpu_milli: int
    memory_bytes: int


@define(eq=False)
class RecentPods:
    """Pods whose load the samples do not show in full yet.

    What is measured is a mean over some time, and pods need some time to get to work. So of a pod's request the share
    counts that is not over yet of *warm_up* seconds, at the time of the last sample.
    """

    warm_up: float
    sampled_at: float = field(default=float("-inf"), init=False)
    _placed: dict[str, Placed] = field(factory=dict, init=False)
    _on_node: dict[str, set[str]] = field(factory=dict, init=False)
    """Node → UIDs."""

    def __len__(self) -> int:
        return len(self._placed)

    def __contains__(self, uid: str) -> bool:
        return uid in self._placed

    def add(self, uid: str, placed: Placed) -> None:
        """The pod *uid* was placed."""
        self.remove(uid)
        self._placed[uid] = placed
        self._on_node.setdefault(placed.node, set()).add(uid)

    def remove(self, uid: str) -> None:
        """It is not there after all."""
        placed = self._placed.pop(uid, None)
        if placed is not None:
            uids = self._on_node[placed.node]
            uids.discard(uid)
            if not uids:
                del self._on_node[placed.node]

    def advance(self, sampled_at: float, now: float) -> bool:
        """There is a newer sample, at *sampled_at*; whether that has changed what any pod counts.

        Without newer samples pods count in full, but no longer than twice the time: there may never be a sample.
        """
        changed = bool(self._placed) and sampled_at > self.sampled_at
        self.sampled_at = max(self.sampled_at, sampled_at)
        over = [
            uid
            for uid, one in self._placed.items()
            if self._left(one) <= 0.0 or now - one.at > max(2.0 * self.warm_up, _LONGEST_WITHOUT_SAMPLE)
        ]
        for uid in over:
            self.remove(uid)
        return changed or bool(over)

    def nodes(self) -> Collection[str]:
        """The nodes with such pods."""
        return self._on_node.keys()

    def on(self, node: str, present: Iterable[str]) -> tuple[float, float]:
        """Milli-CPU and bytes to add for *node*, on which the pods with the UIDs *present* are."""
        cpu = memory = 0.0
        for uid in self._on_node.get(node, set()).intersection(present):
            placed = self._placed[uid]
            left = self._left(placed)
            cpu += left * placed.cpu_milli
            memory += left * placed.memory_bytes
        return cpu, memory

    def _left(self, placed: Placed) -> float:
        if not self.warm_up:
            return 1.0 if self.sampled_at < placed.at else 0.0
        return min(1.0, max(0.0, 1.0 - (self.sampled_at - placed.at) / self.warm_up))
