"""What is written to nominate a pod to a node, and to take that back."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from trio_sched.daemon.pods.pod_status import merge_condition
from trio_sched.engine.sharding.reserved_places import (
    ASKED_FOR_GROUP,
    KEPT_FOR_GROUP,
    MAY_PREEMPT,
    MAY_PREEMPT_FOR_GROUP,
    PLACE_RESERVED,
    PREEMPTING,
    PREEMPTING_FOR_GROUP,
    ROOM_MADE,
    TAKEN_BACK,
)
from trio_sched.objects.pod import Pod, PodCondition
from trio_sched.objects.timestamps import format_micro_time, format_time

_TEXTS: Final = {
    MAY_PREEMPT: "No node has room for the pod; pods of lower priority on node {node} may be evicted for it",
    PREEMPTING: "Node {node} keeps the place for the pod while others are evicted ({now})",
    ROOM_MADE: "Node {node} has room for the pod, which is bound there once it has got what it claims ({now})",
    ASKED_FOR_GROUP: "The pod is bound, with others if it is in a group, if node {node} keeps the place",
    KEPT_FOR_GROUP: "Node {node} keeps the place until the pod is bound, with others if it is in a group ({now})",
    MAY_PREEMPT_FOR_GROUP: "Its group fits if pods of lower priority are evicted, on node {node} too",
    PREEMPTING_FOR_GROUP: "Node {node} has a place for the pod once others are evicted for its group ({now})",
    TAKEN_BACK: "The pod is not nominated so any more",
}


def nomination(pod: Pod, node_name: str, note: str = "", *, now: datetime) -> dict[str, Any]:
    """The strategic merge patch of ``status`` that nominates *pod* to a node; to none if *node_name* is empty.

    Args:
        pod: as it is known.
        node_name: the node.
        note: what is noted about its place there, a reason of the condition `PLACE_RESERVED`; empty: nothing.
        now: the time of day.
    """
    patch: dict[str, Any] = {"nominatedNodeName": node_name or None}
    known = next((one.reason for one in pod.status.conditions or () if one.type == PLACE_RESERVED), TAKEN_BACK)
    note = note or TAKEN_BACK
    if note == TAKEN_BACK == known:
        return patch
    text = _TEXTS[note].format(node=node_name, now=format_micro_time(now))
    status = "True" if note in (PREEMPTING, KEPT_FOR_GROUP, PREEMPTING_FOR_GROUP) else "False"
    condition = PodCondition(type=PLACE_RESERVED, status=status, reason=note, message=text)
    return patch | merge_condition(pod.status.conditions or (), condition, now=format_time(now))


def both(patch: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """One patch of ``status`` for two, each of which sets at most one condition."""
    joined = patch | other
    if "conditions" in patch and "conditions" in other:
        joined["conditions"] = patch["conditions"] + other["conditions"]
        joined.pop("$setElementOrder/conditions", None)  # new ones come last
    return joined
