"""GangScheduling: the pods of a gang are bound when enough of them have a node, and none before."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, ClassVar

from trio_sched.plugin_api import (
    Action,
    BoolArray,
    Change,
    Clause,
    CycleState,
    EventRegistration,
    Handle,
    Hint,
    NodeColumns,
    PlacementProgress,
    Pod,
    PodGroup,
    PodGroupInfo,
    PodGroupState,
    Resource,
    Status,
    Wait,
    failure,
    hookimpl,
    not_yet,
    on,
    quote,
    unresolvable,
    unschedulable,
)
from trio_sched.plugin_api.behaviour import Behaviour
from trio_sched.plugin_api.clauses import smaller_gang

NAME = "GangScheduling"
PERMIT_SECONDS = 300.0
TOO_FEW_PODS = "waiting for minCount pods from a gang to appear in scheduling queue"
TOO_FEW_NODES = "waiting for minCount pods from a gang to be scheduled"


class GangScheduling:
    """Gates the pods of a gang until there are enough of them, and has none bound until enough have a node."""

    name: ClassVar[str] = NAME

    def __init__(self, args: object, handle: Handle) -> None:
        self._handle = handle
        self._smaller_gangs_are_tried = Behaviour.of(handle).smaller_gangs_are_tried

    def _group_of(self, pod: Pod) -> tuple[str, PodGroup | None] | None:
        """The name of the pod's group, and the group if it exists; None if the pod is in none."""
        group = pod.spec.scheduling_group
        if group is None or not group.pod_group_name:
            return None
        return group.pod_group_name, self._handle.object("PodGroup", group.pod_group_name, pod.namespace)

    def _state(self, pod: Pod, name: str) -> PodGroupState | Status:
        state = self._handle.pod_group_state(pod.namespace, name)
        return failure(f"pod group state not found for pod group {pod.namespace}/{name}") if state is None else state

    @hookimpl
    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Gate the pod until its group exists, and as many pods as a gang needs."""
        found = self._group_of(pod)
        if found is None:
            return None
        name, group = found
        if group is None:
            return unresolvable(f"waiting for pods's pod group {quote(name)} to appear in scheduling queue")
        if group.min_count is None:
            return None
        state = self._state(pod, name)
        if isinstance(state, Status):
            return state
        return unresolvable(TOO_FEW_PODS) if state.pod_count < group.min_count else None

    @hookimpl
    def placement_feasible(self, group: PodGroupInfo, progress: PlacementProgress) -> Status | None:
        """Compare how many pods have a node, or still may get one, with how many the group needs."""
        known: PodGroup | None = self._handle.object("PodGroup", group.name, group.namespace)
        if known is None:
            missing = f"podgroup.scheduling.k8s.io {quote(group.name)} not found"
            return failure(f"failed to get podGroup {group.key} to compute gang feasibility: {missing}")
        needed = known.min_count or 1
        counts = f"{progress.scheduled} scheduled, {progress.remaining} remaining"
        if progress.scheduled + progress.remaining < needed:
            return unschedulable(f"minCount ({needed}) cannot be satisfied: {counts}")
        return not_yet(f"minCount ({needed}) is not yet satisfied: {counts}") if progress.scheduled < needed else None

    @hookimpl
    def permit(self, pod: Pod, node_name: str, state: CycleState) -> Status | Wait | None:
        """Make the pod wait until as many pods as its gang needs have a node; the last one lets all of them go."""
        found = self._group_of(pod)
        if found is None:
            return None
        name, group = found
        if group is None:
            key = f"{pod.namespace}/{name}"
            return failure(f"failed to get podGroup {key}: podgroup.scheduling.k8s.io {quote(name)} not found")
        if group.min_count is None:
            return None
        members = self._state(pod, name)
        if isinstance(members, Status):
            return members
        if members.scheduled_count < group.min_count:
            self._handle.activate(members.unscheduled_pods)
            return Wait(PERMIT_SECONDS, TOO_FEW_NODES)
        if not state.is_trial:
            waiting = self._handle.waiting_pods()
            for uid in members.assumed_uids:
                if uid in waiting:
                    waiting[uid].allow(NAME)
        return None

    @hookimpl
    def clauses(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Iterable[Clause]:
        """The group, and how many of its pods are missing."""
        found = self._group_of(pod)
        if found is None:
            return
        name, group = found
        if group is None:
            yield Clause(
                reason="PodGroupNotFound",
                title=f"pod group {name}",
                cause=f"there is no pod group {name} in namespace {pod.namespace}",
            )
            return
        members = self._handle.pod_group_state(pod.namespace, name)
        count = 0 if members is None else members.pod_count
        if group.min_count is not None and count < group.min_count:
            yield Clause(
                reason="GangIncomplete",
                title=f"{group.min_count} pods of the gang {name}",
                cause=f"the gang {name} needs {group.min_count} pods, and there are {count}",
                changes=partial(self._smaller_gang, group, count),
            )

    def _smaller_gang(self, group: PodGroup, count: int, _nodes: BoolArray) -> Iterable[Change]:
        yield smaller_gang(group, count, recreated=not self._smaller_gangs_are_tried)

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """A pod of the group is added, or the group is, or it needs fewer pods."""
        added = [
            on(Resource.POD, Action.ADD, self._pod_added),
            on(Resource.POD_GROUP, Action.ADD, self._group_added),
        ]
        changed = on(Resource.POD_GROUP, Action.UPDATE, self._group_changed)
        return [*added, changed] if self._smaller_gangs_are_tried else added

    def _pod_added(self, pod: Pod, old: Any, new: Pod) -> Hint:
        return Hint.QUEUE if pod.group_key is not None and pod.group_key == new.group_key else Hint.SKIP

    def _group_added(self, pod: Pod, old: Any, new: PodGroup) -> Hint:
        return Hint.QUEUE if pod.group_key == f"{new.namespace}/{new.name}" else Hint.SKIP

    def _group_changed(self, pod: Pod, old: PodGroup, new: PodGroup) -> Hint:
        if pod.group_key != f"{new.namespace}/{new.name}":
            return Hint.SKIP
        before, after = old.min_count, new.min_count
        return Hint.QUEUE if before is None or after is None or after < before else Hint.SKIP
