"""The plugin: keeps pods away from nodes with a maintenance, and writes its status."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, ClassVar, Final

import numpy as np
import trio
import trio.lowlevel
from attrs import define, field, frozen, validators

from trio_sched.plugin_api import (
    SKIP,
    Action,
    CustomObject,
    CycleState,
    Duration,
    EventRegistration,
    Handle,
    Hint,
    Input,
    Int64Array,
    Node,
    NodeColumns,
    ObjectGone,
    Pod,
    Resource,
    Status,
    Verdicts,
    hookimpl,
    on,
    unresolvable,
)
from trio_sched_node_maintenance.maintenance import (
    MAINTENANCE,
    BadMaintenance,
    Maintenance,
    Phase,
    Policy,
    read_maintenance,
    run_seconds,
)

_CHUNK: Final = 200
"""How many nodes are looked at before other tasks run."""
_RETRY_SECONDS: Final = 0.1
"""When pods are tried again after an end: at the moment itself the task that ends it may not have run."""
_REASON: Final = "node(s) had a planned maintenance"


@frozen(kw_only=True)
class NodeMaintenanceArgs:
    """What ``pluginConfig`` says."""

    status_interval: Duration = field(default=30.0, validator=validators.ge(1.0))
    """How often the number of pods in the status is brought up to date."""


@define(eq=False)
class _Objects:
    """All maintenances that can be used, as read from one version of the objects."""

    version: int = -1
    usable: dict[str, Maintenance] = field(factory=dict)
    problems: dict[str, str] = field(factory=dict)
    """Name → what is wrong."""


class NodeMaintenance:
    """Keeps pods away from nodes with a maintenance; see the custom resource `NodeMaintenance`."""

    name: ClassVar[str] = "NodeMaintenance"
    Args: ClassVar[type[NodeMaintenanceArgs]] = NodeMaintenanceArgs
    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.NODE})
    watches: ClassVar = (MAINTENANCE,)
    writes: ClassVar = {MAINTENANCE.status: ("patch",)}
    run_once_per_process: ClassVar[bool] = True
    run_on_leader_only: ClassVar[bool] = True

    def __init__(self, args: NodeMaintenanceArgs, handle: Handle) -> None:
        self._args, self._handle = args, handle
        self._known = _Objects()
        self._written: dict[str, dict[str, Any]] = {}
        """UID → the status that was written last, which the watch may show later."""
        self._maintenances = handle.metrics.gauge("maintenances", "Maintenances by phase.", ["phase"])
        self._nodes_gauge = handle.metrics.gauge("nodes", "Nodes that pods are kept away from now.")
        self._pods_gauge = handle.metrics.gauge("pods_remaining", "Pods on nodes with an active maintenance.")

    # --- finding nodes ------------------------------------------------------------------------------------------------

    @hookimpl
    def sign(self, pod: Pod) -> Hashable | None:
        """How long it runs; where that is compared with the time, nothing can be kept."""
        if _is_of_daemon_set(pod):
            return "DaemonSet"
        by_time = any(one.policy is Policy.ONLY_PODS_THAT_END for one in self._objects().usable.values())
        seconds = run_seconds(pod) if by_time else None
        return None if seconds is not None else ""

    @hookimpl
    def pre_filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Status | None:
        """Pods of a DaemonSet belong to their node."""
        return SKIP if _is_of_daemon_set(pod) or not self._objects().usable else None

    @hookimpl
    def filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Verdicts:
        """No node from which a maintenance keeps the pod away now."""
        now, seconds = self._handle.wall_seconds(), run_seconds(pod)
        away = [one for one in self._objects().usable.values() if one.keeps_away(seconds, now)]
        codes = np.zeros(len(nodes), dtype=np.int64)
        if away:
            for position, node in enumerate(nodes):
                number = next((n for n, one in enumerate(away) if one.covers(node.node)), None)
                if number is not None:
                    codes[position] = number + 1
        return Verdicts(codes, lambda code: unresolvable(f"{_REASON} ({away[code - 1].name})"))

    @hookimpl
    def score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Int64Array:
        """100, or 0 where a maintenance applies, which the filter has let pass."""
        now = self._handle.wall_seconds()
        applying = [one for one in self._objects().usable.values() if one.applies(now)]
        scores = np.full(len(nodes), 100, dtype=np.int64)
        if applying:
            for position, node in enumerate(nodes):
                if any(one.covers(node.node) for one in applying):
                    scores[position] = 0
        return scores

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """A maintenance that is changed or deleted; nodes; annotations of the pod."""
        return [
            on(MAINTENANCE, Action.UPDATE | Action.DELETE, self._frees),
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, self._is_free),
            on(Resource.UNSCHEDULABLE_POD, Action.UPDATE),
        ]

    def _frees(self, pod: Pod, old: CustomObject | None, new: CustomObject | None) -> Hint:
        """Whether a node of the old maintenance, from which it kept *pod* away, is free of the new one."""
        before, after = _usable(old), _usable(new)
        now, seconds = self._handle.wall_seconds(), run_seconds(pod)
        # The old one may have kept it away when it was tried, though its time is over by now.
        if before is None or before.policy is Policy.AVOID:
            return Hint.SKIP
        for node in self._handle.objects("Node"):
            if before.covers(node) and not (
                after is not None and after.keeps_away(seconds, now) and after.covers(node)
            ):
                return Hint.QUEUE
        return Hint.SKIP

    def _is_free(self, pod: Pod, old: Node | None, new: Node | None) -> Hint:
        now, seconds = self._handle.wall_seconds(), run_seconds(pod)
        away = (one for one in self._objects().usable.values() if one.keeps_away(seconds, now))
        return Hint.QUEUE if new is not None and not any(one.covers(new) for one in away) else Hint.SKIP

    def _objects(self) -> _Objects:
        version = self._handle.version(MAINTENANCE)
        if version != self._known.version:
            found = _Objects(version)
            for one in self._handle.objects(MAINTENANCE):
                try:
                    found.usable[one.name] = read_maintenance(one)
                except BadMaintenance as problem:
                    found.problems[one.name] = str(problem)
            self._known = found
        return self._known

    # --- in the background --------------------------------------------------------------------------------------------

    @hookimpl
    async def run(self) -> None:
        """Write the status, and note when a maintenance begins to apply, starts or ends."""
        looked_at = self._handle.wall_seconds()
        while True:
            now = self._handle.wall_seconds()
            changes = [one.changes_after(looked_at) for one in self._objects().usable.values()]
            if any(moment is not None and moment <= now for moment in changes):
                self._handle.invalidate()
                self._retry_rejected(0.0)
            looked_at = now
            await self._write_all(now)
            usable, written = self._objects().usable.values(), self._handle.wall_seconds()
            coming = [one.changes_after(now) for one in usable]
            ends = [one.end - written for one in usable if one.applies(now) and one.policy is not Policy.AVOID]
            if ends:
                self._retry_rejected(min(ends))
            next_change = min((one - written for one in coming if one is not None), default=self._args.status_interval)
            await trio.sleep(max(0.001, min(next_change, self._args.status_interval)))

    def _retry_rejected(self, seconds: float) -> None:
        """Have pods that were kept away tried again in *seconds*: the end of a maintenance is no event."""
        for one in self._handle.pending_pods():
            if self.name in one.rejected_by:
                self._handle.retry_after(one.pod, max(0.0, seconds) + _RETRY_SECONDS)

    async def _write_all(self, now: float) -> None:
        """Bring the status of all objects up to date."""
        pods: dict[str, int] = {}
        for pod in list(self._handle.objects("Pod")):
            if pod.node_name and not _is_of_daemon_set(pod):
                pods[pod.node_name] = pods.get(pod.node_name, 0) + 1
        known, phases = self._objects(), dict.fromkeys(Phase, 0)
        kept_away: set[str] = set()
        for found in list(self._handle.objects(MAINTENANCE)):
            usable = known.usable.get(found.name)
            if usable is None:
                phases[Phase.INVALID] += 1
                await self._write(found, *_invalid(found, known.problems.get(found.name, "it cannot be read")))
                continue
            nodes = await self._nodes_of(usable)
            phase = usable.phase(now)
            phases[phase] += 1
            if phase is Phase.ACTIVE:
                kept_away.update(node.name for node in nodes)
            before = self._status(found).get("phase")
            if await self._write(found, phase, len(nodes), sum(pods.get(node.name, 0) for node in nodes), ""):
                self._tell(usable, before, phase, nodes)
        existing = {one.metadata.uid for one in self._handle.objects(MAINTENANCE)}
        self._written = {uid: status for uid, status in self._written.items() if uid in existing}
        for phase, count in phases.items():
            self._maintenances.set(count, phase=phase.value)
        self._nodes_gauge.set(len(kept_away))
        self._pods_gauge.set(sum(pods.get(name, 0) for name in kept_away))

    async def _nodes_of(self, maintenance: Maintenance) -> list[Node]:
        found = []
        for number, node in enumerate(list(self._handle.objects("Node"))):
            if maintenance.covers(node):
                found.append(node)
            if number % _CHUNK == _CHUNK - 1:
                await trio.lowlevel.checkpoint()
        return found

    def _status(self, found: CustomObject) -> Mapping[str, Any]:
        return self._written.get(found.metadata.uid, found.status)

    async def _write(self, found: CustomObject, phase: Phase, nodes: int, pods: int, problem: str) -> bool:
        """Write the status if it is another one; whether that was done."""
        status: dict[str, Any] = {"phase": phase.value, "nodes": nodes, "podsRemaining": pods, "message": problem}
        before = self._status(found)
        if all(before.get(name) == value for name, value in status.items()):
            return False
        if problem and before.get("message") != problem:
            self._handle.record_event(found, "Warning", "Invalid", "Validating", problem[:1000])
        patch = {"metadata": {"uid": found.metadata.uid}, "status": status}
        try:
            await self._handle.patch(MAINTENANCE, found.name, patch, subresource="status")
        except ObjectGone:
            return False
        except Exception as failed:  # the next round writes it
            self._handle.log.warning("the status of %s cannot be written: %s", found.name, failed)
            return False
        self._written[found.metadata.uid] = status
        return True

    def _tell(self, maintenance: Maintenance, before: Any, phase: Phase, nodes: list[Node]) -> None:
        """An event on each node when the maintenance begins, and when it ends."""
        if before == phase.value:
            return
        if phase is Phase.ACTIVE:
            what, note = "MaintenanceBegins", f"{maintenance.name} begins"
        elif phase is Phase.OVER and before == Phase.ACTIVE.value:
            what, note = "MaintenanceEnds", f"{maintenance.name} is over"
        else:
            return
        for node in nodes:
            self._handle.record_event(node, "Normal", what, "Maintenance", note)


def _usable(found: CustomObject | None) -> Maintenance | None:
    try:
        return None if found is None else read_maintenance(found)
    except BadMaintenance:
        return None


def _invalid(found: CustomObject, problem: str) -> tuple[Phase, int, int, str]:
    return Phase.INVALID, 0, 0, problem


def _is_of_daemon_set(pod: Pod) -> bool:
    return any(owner.kind == "DaemonSet" for owner in pod.metadata.owner_references or ())
