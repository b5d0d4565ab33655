"""How fast nodes that are lost get the taints that evict their pods: the more are lost, the slower.

Source: the node lifecycle controller of Kubernetes, with the defaults of its flags.
"""

from collections.abc import Iterable
from typing import Final

from attrs import define, field

from trio_sched.documents.json_values import Json
from trio_sched.simulator.kubelets.pod_states import condition_of

_RATE: Final = 0.1
"""Nodes per second in a zone that is healthy, or of which no node is (``--node-eviction-rate``)."""
_SECONDARY_RATE: Final = 0.01
"""Evictions a second in a large zone partly healthy (``--secondary-node-eviction-rate``); none in a small one."""
_LARGE_ZONE: Final = 50
_UNHEALTHY_SHARE: Final = 0.55
_FEWEST_UNHEALTHY: Final = 3
_EXCLUDED: Final = "node.kubernetes.io/exclude-disruption"
_ZONE_LABELS: Final = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
_REGION_LABELS: Final = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")


def zone_of(node: Json) -> tuple[str, str]:
    """The region and the zone of a node; both are empty without labels."""
    labels = node["metadata"].get("labels") or {}
    region, zone = (
        next((labels[name] for name in names if name in labels), "") for names in (_REGION_LABELS, _ZONE_LABELS)
    )
    return region, zone


def readiness(node: Json) -> str:
    """What a node says of being ready; one that says nothing is taken for ready."""
    return (condition_of(node, "Ready") or {}).get("status") or "True"


@define(eq=False)
class EvictionRates:
    """The rates of all zones; each lets one node pass at once, and the next when its time has come.

    Attributes:
        stopped: no node of the cluster is ready, which is blamed on the network: nothing is evicted.
    """

    stopped: bool = field(default=False, init=False)
    _rates: dict[tuple[str, str], float] = field(factory=dict, init=False)
    _next: dict[tuple[str, str], float] = field(factory=dict, init=False)
    """Zone → when the next node may pass."""

    def update(self, nodes: Iterable[Json], now: float) -> None:
        """Set the rates by which *nodes* are ready."""
        ready: dict[tuple[str, str], list[bool]] = {}
        for node in nodes:
            if _EXCLUDED not in (node["metadata"].get("labels") or {}):
                ready.setdefault(zone_of(node), []).append(readiness(node) == "True")
        self.stopped = bool(ready) and not any(any(zone) for zone in ready.values())
        for zone, states in ready.items():
            self._set(zone, 0.0 if self.stopped else _rate(states), now)

    def _set(self, zone: tuple[str, str], rate: float, now: float) -> None:
        if self._rates.get(zone, _RATE) == rate:
            return
        if rate and self.wait(zone, now) != 0.0:  # one that had to wait goes on waiting, at the new rate
            self._next[zone] = now + 1 / rate
        self._rates[zone] = rate

    def wait(self, zone: tuple[str, str], now: float) -> float | None:
        """How long the next node of a zone has to wait; None if it may not pass."""
        if not self._rates.get(zone, _RATE):
            return None
        return max(self._next.get(zone, now) - now, 0.0)

    def take(self, zone: tuple[str, str], now: float) -> None:
        """Note that a node of a zone has passed."""
        self._next[zone] = now + 1 / self._rates.get(zone, _RATE)


def _rate(ready: list[bool]) -> float:
    lost = ready.count(False)
    if lost == len(ready) or lost < _FEWEST_UNHEALTHY or lost / len(ready) < _UNHEALTHY_SHARE:
        return _RATE
    return _SECONDARY_RATE if len(ready) > _LARGE_ZONE else 0.0
