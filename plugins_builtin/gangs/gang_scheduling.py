"""GangScheduling: the pods of a gang are bound when enough of them have a node, and none before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, ClassVar

from attrs import evolve

from trio_sched.plugin_api import (
    Action,
    BoolArray,
    Change,
    Clause,
    CompositePodGroup,
    CycleState,
    Edit,
    EventRegistration,
    Handle,
    Hint,
    NodeColumns,
    PlacementProgress,
    Pod,
    PodGroup,
    PodGroupInfo,
    PodGroupState,
    PodGroupTree,
    Resource,
    Status,
    Wait,
    edit_pod,
    failure,
    hookimpl,
    nearest_name,
    not_yet,
    on,
    quote,
    replace_fields,
    unresolvable,
    unschedulable,
)
from trio_sched.plugin_api.behaviour import Behaviour
from trio_sched.plugin_api.clauses import new_pod_group, smaller_gang
from trio_sched.plugin_api.features import Features
from trio_sched.plugin_api.pod_groups import workload_and_group

NAME = "GangScheduling"
PERMIT_SECONDS = 300.0
TOO_FEW_PODS = "waiting for minCount pods from a gang to appear in scheduling queue"
TOO_FEW_NODES = "waiting for minCount pods from a gang to be scheduled"


class GangScheduling:
    """Gates the pods of a gang until there are enough of them, and has none bound until enough have a node."""

    name: ClassVar[str] = NAME

    def __init__(self, args: object, handle: Handle) -> None:
        self._handle = handle
        self._has_trees = Features.of(handle.feature_enabled).composite_pod_group
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
        if self._has_trees and group.spec.parent_composite_pod_group_name:
            return self._refused_in_tree(group)
        if group.min_count is None:
            return None
        state = self._state(pod, name)
        if isinstance(state, Status):
            return state
        return unresolvable(TOO_FEW_PODS) if state.pod_count < group.min_count else None

    def _refused_in_tree(self, group: PodGroup) -> Status | None:
        """Why the pods of a group that has a parent are gated; None if they are not."""
        tree = self._handle.pod_group_tree(group.namespace, group.name)
        if isinstance(tree, Status):
            return unresolvable(f"failed to build hierarchy snapshot: {tree.message}")
        if not self._has_enough_pods(tree):
            return unresolvable(f"waiting for composite pod group {quote(tree.group.name)} tree to meet quorum")
        return None

    def _has_enough_pods(self, tree: PodGroupTree) -> bool:
        """Whether a group has as many pods, or a composite one as many child groups that have, as it needs."""
        group = tree.group
        if isinstance(group, CompositePodGroup):
            return sum(map(self._has_enough_pods, tree.children)) >= _needed(group)
        return self._pod_count(group) >= _needed(group)

    @hookimpl
    def placement_feasible(self, group: PodGroupInfo, progress: PlacementProgress) -> Status | None:
        """Compare how many pods have a node, or still may get one, with how many the group needs.

        Of a composite group its child groups are compared.
        """
        known: PodGroup | CompositePodGroup | None = self._handle.object(group.kind, group.name, group.namespace)
        if known is None:
            missing = f"{group.kind.lower()}.scheduling.k8s.io {quote(group.name)} not found"
            return failure(f"failed to get podGroup {group.key} to compute gang feasibility: {missing}")
        needed = _needed(known)
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
            yield self._missing_group(pod, name)
            return
        count = self._pod_count(group)
        if group.min_count is not None and count < group.min_count:
            yield Clause(
                reason="GangIncomplete",
                title=f"{group.min_count} pods of the gang {name}",
                cause=f"the gang {name} needs {group.min_count} pods, and there are {count}",
                changes=partial(self._smaller_gang, group, count),
            )
        elif self._has_trees and group.spec.parent_composite_pod_group_name:
            tree = self._handle.pod_group_tree(group.namespace, group.name)
            if isinstance(tree, Status):
                yield Clause(reason="TreeNotWhole", title=f"tree of the pod group {name}", cause=tree.message)
            else:
                yield from self._missing_in(tree)

    def _missing_group(self, pod: Pod, name: str) -> Clause:
        namespace = pod.namespace
        workload, group = workload_and_group(name)
        known = [one.name for one in self._handle.objects("PodGroup") if one.namespace == namespace]
        if workload:
            text, changes = f"there is no workload {workload} with a pod group {group} in namespace {namespace}", []
            # A copy of the group has its key behind the name.
            head = f"{workload}:{group}"
            near = nearest_name(head, [one for one in known if one.count(":") == 1])
            if near:
                meant, group = workload_and_group(near)
                text += f"; there is {meant} with {group}"
                changes = [self._other_copy(pod, near, name.removeprefix(head), f"the workload {meant} with {group}")]
            title = f"workload {workload}"
            return Clause(reason="WorkloadNotFound", title=title, cause=text, changes=lambda _nodes: changes)
        near = nearest_name(name, known)
        text = f"there is no pod group {name} in namespace {namespace}" + (f"; there is {near}" if near else "")
        changes = [_other_group(pod, near, f"the pod group {near}")] if near else []
        changes.append(new_pod_group(namespace, name))
        title = f"pod group {name}"
        return Clause(reason="PodGroupNotFound", title=title, cause=text, changes=lambda _nodes: changes)

    def _other_copy(self, pod: Pod, group: str, key: str, what: str) -> Change:
        """*pod* in the copy of *group* that *key* stands for, which is there once a pod is in it."""
        change = _other_group(pod, f"{group}{key}", what)
        like: PodGroup | None = self._handle.object("PodGroup", group, pod.namespace)
        if not key or like is None:
            return change
        made = replace_fields(like, metadata=replace_fields(like.metadata, name=f"{group}{key}"))
        copy = Edit(
            kind="PodGroup",
            name=made.name,
            namespace=pod.namespace,
            apply=lambda one: made if one is None else one,
            is_consequence=True,
        )
        return evolve(change, edits=(copy, *change.edits))

    def _missing_in(self, tree: PodGroupTree) -> Iterator[Clause]:
        """What a composite group at the top of *tree* lacks of child groups with enough pods."""
        if self._has_enough_pods(tree):
            return
        needed, ready = _needed(tree.group), sum(map(self._has_enough_pods, tree.children))
        name = tree.group.name
        yield Clause(
            reason="TreeIncomplete",
            title=f"{needed} child groups of the tree {name}",
            cause=f"the composite group {name} needs {needed} child groups with enough pods, and {ready} have enough",
            details=lambda: [self._lack_of(one) for one in tree.leaves if self._pod_count(one) < _needed(one)],
        )

    def _lack_of(self, group: PodGroup) -> str:
        return f"pod group {group.name}: {self._pod_count(group)} of {_needed(group)} pods"

    def _pod_count(self, group: PodGroup) -> int:
        state = self._handle.pod_group_state(group.namespace, group.name)
        return 0 if state is None else state.pod_count

    def _smaller_gang(self, group: PodGroup, count: int, _nodes: BoolArray) -> Iterable[Change]:
        yield smaller_gang(group, count, recreated=not self._smaller_gangs_are_tried)

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """A pod of the group is added, or the group is, or it needs fewer pods."""
        added = [
            on(Resource.POD, Action.ADD, self._pod_added),
            on(Resource.POD_GROUP, Action.ADD, self._group_added),
        ]
        if self._has_trees:
            added.append(on(Resource.COMPOSITE_POD_GROUP, Action.ADD, self._parent_added))
        changed = on(Resource.POD_GROUP, Action.UPDATE, self._group_changed)
        return [*added, changed] if self._smaller_gangs_are_tried else added

    def _pod_added(self, pod: Pod, old: Any, new: Pod) -> Hint:
        name = None if new.spec.scheduling_group is None else new.spec.scheduling_group.pod_group_name
        return Hint.QUEUE if name and self._are_together(pod, new.namespace, name) else Hint.SKIP

    def _group_added(self, pod: Pod, old: Any, new: PodGroup) -> Hint:
        return Hint.QUEUE if self._are_together(pod, new.namespace, new.name) else Hint.SKIP

    def _parent_added(self, pod: Pod, old: Any, new: CompositePodGroup) -> Hint:
        tree = self._tree(pod.namespace, pod.group_key)
        return Hint.QUEUE if tree is not None and pod.namespace == new.namespace and _has(tree, new) else Hint.SKIP

    def _group_changed(self, pod: Pod, old: PodGroup, new: PodGroup) -> Hint:
        if not self._are_together(pod, new.namespace, new.name):
            return Hint.SKIP
        before, after = old.min_count, new.min_count
        return Hint.QUEUE if before is None or after is None or after < before else Hint.SKIP

    def _are_together(self, pod: Pod, namespace: str, name: str) -> bool:
        """Whether the group of *pod* is that one, or in the same tree."""
        key = f"{namespace}/{name}"
        if not self._has_trees or pod.group_key == key or pod.namespace != namespace:
            return pod.group_key == key
        own, other = self._tree(namespace, pod.group_key), self._tree(namespace, key)
        return own is not None and other is not None and own.group.metadata.uid == other.group.metadata.uid

    def _tree(self, namespace: str, key: str | None) -> PodGroupTree | None:
        """The tree that a group is in; None if it is in none that can be scheduled."""
        tree = None if key is None else self._handle.pod_group_tree(namespace, key.partition("/")[2])
        return tree if isinstance(tree, PodGroupTree) else None


def _other_group(pod: Pod, name: str, what: str) -> Change:
    return Change(title=f"use {what}", edits=(edit_pod(pod, partial(_in_group, name=name)),), corrects=True)


def _in_group(pod: Pod, name: str) -> Pod:
    assert pod.spec.scheduling_group is not None
    group = replace_fields(pod.spec.scheduling_group, pod_group_name=name)
    return replace_fields(pod, spec=replace_fields(pod.spec, scheduling_group=group))


def _needed(group: PodGroup | CompositePodGroup) -> int:
    """How many pods, or child groups, a group needs."""
    return (group.min_group_count if isinstance(group, CompositePodGroup) else group.min_count) or 1


def _has(tree: PodGroupTree, group: CompositePodGroup) -> bool:
    """Whether *group* is in *tree*."""
    return tree.group.metadata.uid == group.metadata.uid or any(_has(child, group) for child in tree.children)
