"""Required rules about other pods: judged by what the API server stores at the moment a pod is bound."""

from collections.abc import Callable, Mapping
from typing import Any

from attrs import define, field

from trio_sched.simulator.storage.object_store import Change
from trio_sched.testing.cluster import VirtualCluster

Json = dict[str, Any]
APART_ON_NODES, APART_IN_ZONES, IN_ONE_ZONE = "apart-on-nodes", "apart-in-zones", "in-one-zone"
"""Labels of pods: their value says which pods the rule of each of them is about."""


@define(eq=False)
class RuleLedger:
    """Follows the API server's history of pods."""

    cluster: VirtualCluster
    zone_of: Callable[[str], str]
    """The zone of a node."""
    wrong: list[str] = field(factory=list)
    """Binds that have broken the rule of a pod."""
    _bound: dict[str, tuple[Mapping[str, str], str]] = field(factory=dict)
    """Names of pods on nodes → their labels, and the node."""

    def __attrs_post_init__(self) -> None:
        self.cluster.api.store.collection("pods").listen(self._see)

    def _see(self, change: Change) -> None:
        fields = change.current.fields
        name, node = fields["metadata"]["name"], fields["spec"].get("nodeName", "")
        if change.type == "DELETED":
            self._bound.pop(name, None)
        elif node and name not in self._bound:
            labels = fields["metadata"].get("labels") or {}
            if not all(self._holds(rule, labels, node) for rule in (APART_ON_NODES, APART_IN_ZONES, IN_ONE_ZONE)):
                self.wrong.append(f"{name} on {node} with {labels}")
            self._bound[name] = labels, node

    def _holds(self, rule: str, labels: Mapping[str, str], node: str) -> bool:
        value = labels.get(rule)
        nodes = {at for others, at in self._bound.values() if value and others.get(rule) == value}
        if rule == APART_ON_NODES:
            return node not in nodes
        zones = set(map(self.zone_of, nodes))
        return not zones or (self.zone_of(node) in zones) == (rule == IN_ONE_ZONE)
