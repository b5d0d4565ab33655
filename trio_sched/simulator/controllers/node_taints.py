"""Simulated taints by condition: nodes that are not ready, under pressure or cordoned are tainted.

Source: the node lifecycle controller of Kubernetes.
"""

from typing import Any, Final

import trio
from attrs import define, field

from trio_sched.simulator.api_server import ApiServer
from trio_sched.simulator.controllers.pod_states import condition_of
from trio_sched.simulator.controllers.steps import Steps
from trio_sched.simulator.lifecycle import write_fields
from trio_sched.simulator.object_store import Change, StoredObject

Json = dict[str, Any]

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
_OWN: Final = {
    *((key, "NoSchedule") for key in (_NOT_READY, _UNREACHABLE, _UNSCHEDULABLE, *_BY_CONDITION.values())),
    (_NOT_READY, "NoExecute"),
    (_UNREACHABLE, "NoExecute"),
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
class NodeTaints:
    """Adds and removes the taints of nodes whose conditions change; those of the beginning stay as they are."""

    server: ApiServer
    _steps: Steps = field(factory=Steps, init=False)

    @property
    def is_busy(self) -> bool:
        """Whether taints are to be changed."""
        return self._steps.is_busy

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the controller; never returns."""
        stop = self.server.store.collection("nodes").listen(self._on_node)
        task_status.started()
        await self._steps.run(stop)

    def _on_node(self, change: Change) -> None:
        before = wanted_taints(change.previous.fields) if change.previous is not None else None
        if change.type == "MODIFIED" and before != wanted_taints(change.current.fields):
            self._steps.plan(self._taint, change.current.key, _REACT_SECONDS)

    def _taint(self, key: str) -> None:
        node: StoredObject | None = self.server.store.get("nodes", key)
        if node is None:
            return
        wanted, spec = wanted_taints(node.fields), node.fields.get("spec") or {}
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


def _place(taint: Json) -> tuple[str, str]:
    return taint.get("key") or "", taint.get("effect") or ""
