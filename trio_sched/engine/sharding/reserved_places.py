"""What the status of a nominated pod says of its place: that others may be evicted for it, or that it is kept."""

from __future__ import annotations

from typing import Final

from trio_sched.objects.pod import Pod, PodCondition

PLACE_RESERVED: Final = "trio-sched.dev/PlaceReserved"
"""The condition of a pod that others are evicted for, or of a group: whether the owner of the node keeps its place."""
MAY_PREEMPT: Final = "MayPreempt"
"""Its reason: whoever nominated the pod found no room on any node; the owner of this one has not answered."""
PREEMPTING: Final = "Preempting"
"""Its reason: the owner keeps the place, and evicts others; nobody else takes the nomination back."""
ROOM_MADE: Final = "RoomMade"
"""Its reason: there is room, and nobody is evicted any more; the lane gives the pod what it claims, and decides."""
TAKEN_BACK: Final = "TakenBack"
"""Its reason: the pod was nominated so before, and is not any more."""
ASKED_FOR_GROUP: Final = "AskedForGroup"
"""Its reason: the owner of the node is to keep the place until others of the group of the pod have theirs."""
KEPT_FOR_GROUP: Final = "KeptForGroup"
"""Its reason: the owner keeps the place; whoever decides on the group binds the pod there, or takes the place back."""
MAY_PREEMPT_FOR_GROUP: Final = "MayPreemptForGroup"
"""Its reason: the owner is to say whether the pod would have a place if less important pods were evicted."""
PREEMPTING_FOR_GROUP: Final = "PreemptingForGroup"
"""Its reason: it would; whoever decides on the group evicts others once all of its pods have this, and asks again."""


def place_note(pod: Pod) -> PodCondition | None:
    """What is noted about the place that *pod* is nominated to; None if it is not, or nothing is."""
    if not pod.status.nominated_node_name:
        return None
    found = next((one for one in pod.status.conditions or () if one.type == PLACE_RESERVED), None)
    return None if found is None or found.reason == TAKEN_BACK else found


def may_preempt(pod: Pod) -> bool:
    """Whether others may be evicted for *pod* from the node that it is nominated to."""
    return has_note(pod, MAY_PREEMPT) or has_note(pod, PREEMPTING)


def is_reserved(pod: Pod) -> bool:
    """Whether the owner of the node that *pod* is nominated to keeps the place, and evicts others."""
    return has_note(pod, PREEMPTING)


def has_room(pod: Pod) -> bool:
    """Whether the node that *pod* is nominated to has room for it, and the lane is to give it what it claims."""
    return has_note(pod, ROOM_MADE)


def is_asked_for_group(pod: Pod) -> bool:
    """Whether the owner of the node that *pod* is nominated to is asked to keep the place until its group is bound."""
    return has_note(pod, ASKED_FOR_GROUP)


def is_kept_for_group(pod: Pod) -> bool:
    """Whether the owner of the node that *pod* is nominated to keeps the place until its group is bound."""
    return has_note(pod, KEPT_FOR_GROUP)


def may_preempt_for_group(pod: Pod) -> bool:
    """Whether the owner of that node is asked for a place that is there only once others are evicted."""
    return has_note(pod, MAY_PREEMPT_FOR_GROUP)


def is_preempting_for_group(pod: Pod) -> bool:
    """Whether others are evicted for *pod* on that node if all pods of its group have such places."""
    return has_note(pod, PREEMPTING_FOR_GROUP)


def has_note(pod: Pod, reason: str) -> bool:
    """Whether *reason* is noted about the place that *pod* is nominated to."""
    note = place_note(pod)
    return note is not None and note.reason == reason
