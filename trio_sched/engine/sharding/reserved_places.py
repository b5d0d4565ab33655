"""What the status of a nominated pod says of its place: that others may be evicted for it, or that it is kept."""

from __future__ import annotations

from typing import Final

from trio_sched.objects.pod import Pod, PodCondition

PLACE_RESERVED: Final = "trio-sched.dev/PlaceReserved"
"""The condition of a pod that others are evicted for: whether the owner of the node keeps the place for it."""
MAY_PREEMPT: Final = "MayPreempt"
"""Its reason: whoever nominated the pod found no room on any node; the owner of this one has not answered."""
PREEMPTING: Final = "Preempting"
"""Its reason: the owner keeps the place, and evicts others; nobody else takes the nomination back."""
TAKEN_BACK: Final = "TakenBack"
"""Its reason: the pod was nominated so before, and is not any more."""


def place_note(pod: Pod) -> PodCondition | None:
    """What is noted about the place that *pod* is nominated to; None if it is not, or nothing is."""
    if not pod.status.nominated_node_name:
        return None
    found = next((one for one in pod.status.conditions or () if one.type == PLACE_RESERVED), None)
    return None if found is None or found.reason == TAKEN_BACK else found


def may_preempt(pod: Pod) -> bool:
    """Whether others may be evicted for *pod* from the node that it is nominated to."""
    return place_note(pod) is not None


def is_reserved(pod: Pod) -> bool:
    """Whether the owner of the node that *pod* is nominated to keeps the place."""
    note = place_note(pod)
    return note is not None and note.reason == PREEMPTING
