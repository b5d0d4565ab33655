"""Pods that schedulers have evicted, and for whom: judged by what the API server stores at that moment."""

from typing import Any

from attrs import define, field

from trio_sched.engine.sharding.reserved_places import PLACE_RESERVED, PREEMPTING
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
    """Evictions that nobody with a reserved place on the node needs."""

    def __attrs_post_init__(self) -> None:
        self.cluster.api.store.collection("pods").listen(self._see)

    def _see(self, change: Change) -> None:
        fields = change.current.fields
        name, node = fields["metadata"]["name"], fields["spec"].get("nodeName", "")
        is_ending = change.type == "DELETED" or fields["metadata"].get("deletionTimestamp")
        if not node or name in self.victims or not is_ending or not _is_preempted(fields):
            return
        self.victims[name] = node
        others = [stored.fields for stored in self.cluster.api.store.collection("pods").objects.values()]
        if not any(_has_place(other, node, fields["spec"].get("priority", 0)) for other in others):
            self.wrong.append(f"{name} on {node}")


def _condition(fields: Json, type_: str) -> Json:
    conditions = (fields.get("status") or {}).get("conditions") or ()
    return next((one for one in conditions if one["type"] == type_), {})


def _is_preempted(fields: Json) -> bool:
    return bool(_condition(fields, "DisruptionTarget").get("reason") == "PreemptionByScheduler")


def _has_place(fields: Json, node: str, priority: int) -> bool:
    is_pending = not fields["spec"].get("nodeName") and fields["status"].get("nominatedNodeName") == node
    is_reserved = _condition(fields, PLACE_RESERVED).get("reason") == PREEMPTING
    return is_pending and is_reserved and fields["spec"].get("priority", 0) > priority
