"""Pods that schedulers have evicted, and for whom: judged by what the API server stores at that moment."""

from typing import Any

from attrs import define, field

from trio_sched.engine.sharding.reserved_places import (
    ASKED_FOR_GROUP,
    MAY_PREEMPT_FOR_GROUP,
    PLACE_RESERVED,
    PREEMPTING,
    PREEMPTING_FOR_GROUP,
)
from trio_sched.simulator.storage.object_store import Change
from trio_sched.testing.cluster import VirtualCluster

Json = dict[str, Any]


@define(eq=False)
class Evictions:
    """Follows the API server's history of pods."""

    cluster: VirtualCluster
    victims: dict[str, str] = field(factory=dict)
    """Names of pods → the nodes that they were evicted from."""
    wrong: list[str] = field(factory=list)
    """Evictions that nobody with a reserved place on the node needs, nor a group that has all of its places."""
    _nodes_of: dict[str, set[str]] = field(factory=dict)
    """Groups whose pods are evicted together → nodes on which they had pods, or places for pods."""

    def __attrs_post_init__(self) -> None:
        self.cluster.api.store.collection("pods").listen(self._see)

    def _see(self, change: Change) -> None:
        fields = change.current.fields
        name, node = fields["metadata"]["name"], fields["spec"].get("nodeName", "")
        together = self._evicted_together(fields)
        place = node or fields["status"].get("nominatedNodeName")  # where it can be about to be bound
        if place and together:
            self._nodes_of.setdefault(together, set()).add(place)
        is_ending = change.type == "DELETED" or fields["metadata"].get("deletionTimestamp")
        if not node or name in self.victims or not is_ending or not _is_preempted(fields):
            return
        self.victims[name] = node
        others = [stored.fields for stored in self.cluster.api.store.collection("pods").objects.values()]
        nodes, priority = self._nodes_of.get(together, {node}), fields["spec"].get("priority", 0)
        if not any(_has_place(other, nodes, priority) and _has_all(_group(other), others) for other in others):
            self.wrong.append(f"{name} on {node}")

    def _evicted_together(self, fields: Json) -> str:
        """The group with which the pod leaves; empty if it leaves alone."""
        name = _group(fields)
        stored = self.cluster.api.store.get("podgroups.scheduling.k8s.io", f"default/{name}") if name else None
        mode = None if stored is None else stored.fields["spec"].get("disruptionMode")
        return name if mode not in (None, "Pod") and "single" not in mode else ""


def _condition(fields: Json, type_: str) -> Json:
    conditions = (fields.get("status") or {}).get("conditions") or ()
    return next((one for one in conditions if one["type"] == type_), {})


def _is_preempted(fields: Json) -> bool:
    return bool(_condition(fields, "DisruptionTarget").get("reason") == "PreemptionByScheduler")


def _note(fields: Json) -> str:
    if fields["spec"].get("nodeName") or not fields["status"].get("nominatedNodeName"):
        return ""
    return str(_condition(fields, PLACE_RESERVED).get("reason", ""))


def _has_place(fields: Json, nodes: set[str], priority: int) -> bool:
    is_reserved = _note(fields) in (PREEMPTING, PREEMPTING_FOR_GROUP)
    is_there = fields["status"].get("nominatedNodeName") in nodes
    return is_reserved and is_there and bool(fields["spec"].get("priority", 0) > priority)


def _group(fields: Json) -> str:
    return str((fields["spec"].get("schedulingGroup") or {}).get("podGroupName") or "")


def _has_all(group: str, pods: list[Json]) -> bool:
    """Whether the group waits for no place."""
    notes = [_note(one) for one in pods if group and _group(one) == group]
    return MAY_PREEMPT_FOR_GROUP not in notes and ASKED_FOR_GROUP not in notes
