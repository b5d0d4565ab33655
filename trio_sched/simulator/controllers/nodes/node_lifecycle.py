"""Nodes that are not ready, under pressure or cordoned are tainted, and pods of unreachable nodes count as not ready.

Source: the node lifecycle controller of Kubernetes. That finds out by itself that a kubelet has stopped; here the
condition of the node is the first to say so. Where a kubelet says that its node is not ready, it goes on to say which
of the pods are.
"""

from typing import Final

import trio
from attrs import define, field

from trio_sched.documents.json_values import Json
from trio_sched.simulator.controllers.controller import Controller
from trio_sched.simulator.controllers.events import EventRecorder
from trio_sched.simulator.controllers.nodes.eviction_rates import EvictionRates, readiness, zone_of
from trio_sched.simulator.kubelets.pod_states import condition_of, is_ready, is_unreachable
from trio_sched.simulator.registry.lifecycle import write_fields
from trio_sched.simulator.storage.object_store import Change, StoredObject

_REACT_SECONDS: Final = 0.1
_NOT_READY: Final = "node.kubernetes.io/not-ready"
_UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
_BY_CONDITION: Final = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}
_EVICTING: Final = {(_NOT_READY, "NoExecute"), (_UNREACHABLE, "NoExecute")}
_OWN: Final = _EVICTING | {
    (key, "NoSchedule") for key in (_NOT_READY, _UNREACHABLE, _UNSCHEDULABLE, *_BY_CONDITION.values())
}


def wanted_taints(fields: Json) -> list[tuple[str, str]]:
    """Keys and effects of the taints that a node is to have by its conditions."""
    wanted = []
    ready = (condition_of(fields, "Ready") or {}).get("status")
    if ready in ("False", "Unknown"):
        key = _NOT_READY if ready == "False" else _UNREACHABLE
        wanted += [(key, "NoSchedule"), (key, "NoExecute")]
    for kind, key in _BY_CONDITION.items():
        if (condition_of(fields, kind) or {}).get("status") == "True":
            wanted.append((key, "NoSchedule"))
    if (fields.get("spec") or {}).get("unschedulable"):
        wanted.append((_UNSCHEDULABLE, "NoSchedule"))
    return wanted


@define(eq=False)
class NodeLifecycleController(Controller):
    """Adds and removes the taints of nodes whose conditions change; those of the beginning stay as they are.

    Taints that evict pods come one node after the other, by the `EvictionRates` of zones. Pods of nodes that were ready
    and are unreachable now are marked as not ready.
    """

    _rates: EvictionRates = field(factory=EvictionRates, init=False)
    _lost: dict[str, None] = field(factory=dict, init=False)
    """The nodes that are not ready and whose pods are not evicted yet."""
    _events: EventRecorder = field(init=False)

    @_events.default
    def _recorder(self) -> EventRecorder:
        return EventRecorder(self.server, "node-controller")

    def start(self) -> None:
        """Follow the nodes."""
        self.listen("nodes", self._on_node)
        self.listen("nodes", self._on_unreachable_node)

    def _on_node(self, change: Change) -> None:
        key, current, previous = change.current.key, change.current.fields, change.previous
        if change.type == "DELETED":
            self._lost.pop(key, None)
        elif (lost := _has_lost_taints(previous, current)) or _wanted(previous) != wanted_taints(current):
            self._steps.plan(self._taint, key, _REACT_SECONDS)
            if readiness(current) == "True":
                self._lost.pop(key, None)
            elif lost or previous is None or readiness(previous.fields) == "True":
                self._lost.setdefault(key)
        elif change.type == "MODIFIED":
            return
        if self._lost or self._rates.stopped:
            self._steps.plan(self._look_at_zones, "", _REACT_SECONDS)

    def _taint(self, key: str) -> None:
        """Give a node the taints of its conditions; one that evicts only in place of another."""
        node: StoredObject | None = self.server.store.get("nodes", key)
        if node is not None:
            given = (node.fields.get("spec") or {}).get("taints") or ()
            self._write(node, evicts=any(_place(one) in _EVICTING for one in given))

    def _look_at_zones(self, _key: str) -> None:
        """Find out how fast pods may be evicted."""
        nodes = self.server.store.collection("nodes").objects.values()
        was_stopped = self._rates.stopped
        self._rates.update((node.fields for node in nodes), trio.current_time())
        if self._rates.stopped and not was_stopped:
            for node in list(nodes):
                self._write(node, evicts=False)
                if readiness(node.fields) != "True":
                    self._lost[node.key] = None
        self._plan_evictions()

    def _plan_evictions(self) -> None:
        """Plan the next eviction of each zone."""
        nodes = self.server.store.collection("nodes").objects
        first: dict[tuple[str, str], str] = {}
        for key in self._lost:
            first.setdefault(zone_of(nodes[key].fields), key)
        for zone, key in first.items():
            wait = self._rates.wait(zone, trio.current_time())
            if wait is not None:
                self._steps.plan(self._evict, key, wait)

    def _evict(self, key: str) -> None:
        """Give a lost node the taint that evicts its pods, if it may pass."""
        node: StoredObject | None = self.server.store.get("nodes", key)
        if node is None or key not in self._lost:
            return
        zone, now = zone_of(node.fields), trio.current_time()
        if self._rates.wait(zone, now) == 0.0:
            self._rates.take(zone, now)
            del self._lost[key]
            self._write(node, evicts=True)
        self._plan_evictions()

    def _write(self, node: StoredObject, *, evicts: bool) -> None:
        wanted, spec = wanted_taints(node.fields), node.fields.get("spec") or {}
        wanted = [place for place in wanted if evicts or place not in _EVICTING]
        given = list(spec.get("taints") or ())
        taints = [one for one in given if _place(one) not in _OWN or _place(one) in wanted]
        there = {_place(one) for one in taints}
        moment = self.server.state.timestamp()
        taints += [
            {"key": k, "effect": effect, "timeAdded": moment} for k, effect in wanted if (k, effect) not in there
        ]
        if taints == given:
            return
        fresh = {**spec, "taints": taints}
        if not taints:
            del fresh["taints"]
        write_fields(self.server.state, self.server.state.types.core("nodes"), node, spec=fresh)

    def _on_unreachable_node(self, change: Change) -> None:
        before = change.previous
        if before is not None and readiness(before.fields) == "True" and is_unreachable(change.current.fields):
            self._steps.plan(self._mark_pods, change.current.key, _REACT_SECONDS)

    def _mark_pods(self, key: str) -> None:
        node: StoredObject | None = self.server.store.get("nodes", key)
        if node is None or not is_unreachable(node.fields):
            return
        types = self.server.state.types
        self._events.normal(types.core("nodes"), node, "NodeNotReady", f"Node {key} status is now: NodeNotReady")
        for pod in list(self.server.store.collection("pods").objects.values()):
            if pod.fields["spec"].get("nodeName") == key and is_ready(pod.fields):
                self._mark(pod)

    def _mark(self, pod: StoredObject) -> None:
        status, ready = pod.fields["status"], condition_of(pod.fields, "Ready")
        assert ready is not None, "the pod is ready"
        no = {**ready, "status": "False", "lastTransitionTime": self.server.state.timestamp()}
        conditions = [no if one is ready else one for one in status["conditions"]]
        pods = self.server.state.types.core("pods")
        marked = write_fields(self.server.state, pods, pod, status={**status, "conditions": conditions})
        self._events.warning(pods, marked, "NodeNotReady", "Node is not ready")


def _wanted(node: StoredObject | None) -> list[tuple[str, str]]:
    return wanted_taints(node.fields) if node is not None else []


def _has_lost_taints(before: StoredObject | None, now: Json) -> bool:
    """Whether somebody has taken taints off a node that it is to have."""
    if before is None or before.fields.get("spec") is now.get("spec"):
        return False
    had, has = ({_place(one) for one in (node.get("spec") or {}).get("taints") or ()} for node in (before.fields, now))
    return any(place in had and place not in has for place in wanted_taints(now))


def _place(taint: Json) -> tuple[str, str]:
    return taint.get("key") or "", taint.get("effect") or ""
