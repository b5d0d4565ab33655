"""A group of pods in the queue: one entity with one place, one backoff and one turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from attrs import define, field

from trio_sched.engine.queue.queued_pod import QueuedPodInfo


@define(eq=False)
class QueuedGroup:
    """One group, or tree of groups, of which pods are queued, or are being scheduled."""

    key: str
    """``namespace/name``, or of a tree the key of its root."""
    timestamp: float
    """When it last entered the queue; of all its entries."""
    members: dict[str, QueuedPodInfo] = field(factory=dict)
    """Its pods in the active, backoff or unschedulable part, by ``namespace/name``."""
    pending: dict[str, QueuedPodInfo] = field(factory=dict)
    """Its pods that have come, or come back, while it is being scheduled."""
    is_in_flight: bool = False
    is_incomplete: bool = False
    """No event has shown the group itself."""
    unschedulable_count: int = 0
    consecutive_errors: int = 0
    backoff_expiry: float | None = None

    @property
    def failure_count(self) -> int:
        """What the backoff counts: errors in a row, else rejections."""
        return self.consecutive_errors if self.consecutive_errors > 0 else self.unschedulable_count


def with_incomplete(sizes: Mapping[str, int], groups: Iterable[QueuedGroup]) -> dict[str, int]:
    """How many pods are in each part of the queue, where those of incomplete groups are a part of their own."""
    incomplete = [info for group in groups if group.is_incomplete for info in group.members.values()]
    gated = sum(bool(info.gating_plugin) for info in incomplete)
    unschedulable = sizes["unschedulable"] - len(incomplete) + gated
    counted = {"gated": sizes["gated"] - gated, "unschedulable": unschedulable, "incomplete": len(incomplete)}
    return {**sizes, **counted}


def entity_sizes(
    sizes: Mapping[str, int], groups: Iterable[QueuedGroup], part_of: Callable[[QueuedGroup], str]
) -> dict[tuple[str, str], int]:
    """How many entities are in each part of the queue: (part, ``pod`` or ``podgroup``) → number.

    Args:
        sizes: how many pods are.
        groups: all groups.
        part_of: where the members of a group are.
    """
    pods, of_groups = Counter(sizes), Counter[str]()
    for group in groups:
        pods["pending"] -= len(group.pending)
        of_groups["pending"] += bool(group.pending)
        if group.members:
            part = part_of(group)
            of_groups[part] += 1
            pods[part] -= len(group.members)
    return {(part, "pod"): pods[part] for part in pods} | {(part, "podgroup"): of_groups[part] for part in pods}
