"""The pod in question together with the pods of its group: what the scheduler would decide, and why the group waits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from random import Random
from typing import Any, Final

import numpy as np
from attrs import define, evolve, field, frozen

from trio_sched.engine.group_forest import AnyGroup
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.hooks.plugin_calls import call_pod_group_post_filter, call_status_hook
from trio_sched.engine.pod_groups.group_steps import in_order
from trio_sched.engine.pod_groups.group_tree_cycle import GroupTreeCycle, cycle_of
from trio_sched.engine.pod_groups.pod_group_cycle import PodGroupCycle
from trio_sched.engine.pod_groups.pod_group_explanation import (
    explain,
    explain_tree,
    fitting_children,
    lacking_resources,
)
from trio_sched.engine.pod_groups.pod_group_results import GroupResult, TreeResult
from trio_sched.engine.pod_groups.pod_group_trial import PodGroupTrial
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.scheduler import Scheduler
from trio_sched.explanation.analysis import FailingClause, clause_without_hook
from trio_sched.explanation.group_changes import (
    COMPOSITE,
    KIND,
    recreate_group,
    smaller_tree,
    without_gates,
    without_topology,
)
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_groups.composite_pod_group import CompositePodGroup
from trio_sched.objects.pod_groups.pod_group import PodGroup
from trio_sched.objects.pod_requests import pod_resources
from trio_sched.plugin_api.clauses import Change, Clause, edit_pod, smaller_gang, some_names
from trio_sched.plugin_api.pod_groups import MAX_LEVELS, PodGroupInfo, PodGroupPostFilterResult, PodGroupTree
from trio_sched.plugin_api.smaller_requests import smaller_request

_MOST_DECISIONS: Final = 3000
"""Decisions on pods of groups for one explanation: a gang of 300 is tried ten times, if it has one placement."""
_IN_BYTES: Final = frozenset({"memory", "ephemeral-storage"})
_UNIT: Final = 1 << 20
"""Requests in bytes are multiples of it."""
_MOST_HELD_BACK: Final = 2
"""Pods of the group that are not tried, of which the reason is shown."""
_MOST_PLACEMENTS: Final = 6
"""Placements that are shown, those in which most pods fit."""


class TooManyDecisions(Exception):
    """The group is too large to be tried once more."""


@frozen(kw_only=True)
class FailingGroup:
    """The group whose requirement is not met: that of the pod, or a composite group above it."""

    group: AnyGroup | None
    result: GroupResult
    members: int
    """How many pods, or child groups, were tried."""


@frozen(kw_only=True)
class GroupOutcome:
    """What is decided about the group, or the tree that it is in."""

    result: GroupResult
    nodes: Mapping[str, str]
    """UID → node, of the pods that would be bound."""
    failing: FailingGroup | None
    """Why the group is not scheduled as things are; None if it is."""
    victims: tuple[Pod, ...] = ()
    """The pods that would be evicted for the group; then *nodes* are those that its pods would get."""
    violations: int = 0
    """How many of these a disruption budget protects."""

    def node_of(self, pod: Pod) -> str:
        """The node that *pod* would get; empty if it would get none."""
        return self.nodes.get(pod.uid, "")


@define(eq=False)
class PodGroupOfPod:
    """The group of the pod in question.

    Attributes:
        scheduler: holds the cluster's state.
        pod: the pod, without a node.
    """

    scheduler: Scheduler
    pod: Pod
    is_exhausted: bool = field(default=False, init=False)
    """Whether more was to be tried than is sensible."""
    _left: int = field(factory=lambda: _MOST_DECISIONS, init=False)
    _is_tried_once: bool = field(default=False, init=False)

    @property
    def is_scheduled(self) -> bool:
        """Whether the pod has a group, and the scheduler schedules groups."""
        members = self._members()
        return members is not None and self.pod.uid in members

    @property
    def is_all_or_nothing(self) -> bool:
        """Whether its pods are scheduled only if others are, or only beside these."""
        return self.is_scheduled and any(_is_gang(one) or one.topology_key for one in self.with_parents())

    def with_parents(self) -> Iterator[AnyGroup]:
        """The group, and the groups above it; nothing if there is no group."""
        group: AnyGroup | None = self.group()
        for _level in range(MAX_LEVELS):
            if group is None:
                return
            yield group
            name = group.spec.parent_composite_pod_group_name
            group = self._composite(name) if name and self.scheduler.forest is not None else None

    def _composite(self, name: str) -> CompositePodGroup | None:
        cache = self.scheduler.object_cache
        if COMPOSITE not in cache.kinds:
            return None
        found: CompositePodGroup | None = cache.get(COMPOSITE, name, self.pod.namespace)
        return found

    def _members(self) -> Mapping[str, Pod] | None:
        groups, key = self.scheduler.cache.groups, self.pod.group_key
        found = groups.get(key) if key is not None and groups.is_followed else None
        return None if found is None else found.pods

    def group(self) -> PodGroup | None:
        """The group as it is; None if there is none."""
        cache, key = self.scheduler.object_cache, self.pod.group_key
        if key is None or KIND not in cache.kinds:
            return None
        found: PodGroup | None = cache.get(KIND, key.partition("/")[2], self.pod.namespace)
        return found

    def waiting_members(self) -> list[Pod]:
        """Its pods that have no node, with the one in question, in the order in which they came."""
        return self._waiting(self._members() or {})

    def _waiting(self, pods: Mapping[str, Pod]) -> list[Pod]:
        nodes = self.scheduler.cache.get
        return [self.pod if uid == self.pod.uid else one for uid, one in pods.items() if nodes(uid) is None]

    def _waiting_in(self, tree: PodGroupTree) -> list[Pod]:
        groups = (self.scheduler.cache.groups.get(f"{leaf.namespace}/{leaf.name}") for leaf in tree.leaves)
        return [one for group in groups if group is not None for one in self._waiting(group.pods)]

    def _tree(self) -> PodGroupTree | None:
        """The tree that the group is in; None if it is in none, or in one that is not whole."""
        forest, key = self.scheduler.forest, self.pod.group_key
        tree = None if forest is None or key is None else forest.tree_of(key)
        return tree if isinstance(tree, PodGroupTree) and tree.children else None

    def decide(self, pods: Mapping[str, Pod], *, preempt: bool = False) -> GroupOutcome:
        """What is decided about the group as things stand.

        Args:
            pods: UID → pod, of those of its pods that are other than they are.
            preempt: whether other pods may be evicted for the group, as its priority allows.

        Raises:
            TooManyDecisions: more were needed for all that was tried than is sensible.
        """
        tree = self._tree()
        waiting = self.waiting_members() if tree is None else self._waiting_in(tree)
        members = [pods.get(one.uid, one) for one in waiting]
        tried = [one for one in members if one.uid == self.pod.uid or self._is_tried(one)]
        if self._left < len(tried) and self._is_tried_once:
            self.is_exhausted = True
            raise TooManyDecisions
        self._is_tried_once = True  # as things are, however large it is
        scheduler, key = self.scheduler, self.pod.group_key
        assert key is not None
        infos = in_order(QueuedPodInfo(one, 0.0) for one in tried)
        options: dict[str, Any] = {
            "scheduler": scheduler,
            "profile": scheduler.profiles[self.pod.scheduler_name],
            "by_placement": True,  # without the gate no plugin names placements
            "tries_all": True,
        }
        if tree is None:
            namespace, _slash, name = key.partition("/")
            group = PodGroupInfo(namespace, name, tuple(info.pod for info in infos))
            cycle = PodGroupCycle(infos=infos, group=group, **options)
        else:
            cycle = cycle_of(tree, infos, **options)
        scheduler.invalidate_signatures()
        random, scheduler.rng = scheduler.rng, Random(0)  # the same choice for the same cluster
        try:
            result = cycle.run_at_once()
        finally:
            scheduler.rng = random
        self._left -= len(tried) * max(len(result.tried), 1)
        nodes = {
            one.info.uid: one.placed.node_name
            for part in cycle.parts(result, result)
            if part.result.status is None
            for one in part.result.pods
            if one.placed is not None
        }
        outcome = GroupOutcome(result=result, nodes=nodes, failing=self._failing(cycle, result))
        if preempt and scheduler.preempts_for_groups and result.status is not None and result.status.is_rejected:
            return self._preempting(cycle, outcome)
        return outcome

    def _preempting(self, cycle: PodGroupCycle, outcome: GroupOutcome) -> GroupOutcome:
        """What becomes of the group with the evictions that the first plugin finds that helps it."""
        for hook in cycle.profile.pod_group_post_filter:
            with PodGroupTrial(cycle) as trial:
                try:
                    found = call_pod_group_post_filter(hook, cycle.group, trial)
                except HookFailed:
                    continue
            if isinstance(found, PodGroupPostFilterResult):
                if found.victims:
                    return evolve(
                        outcome, nodes=dict(trial.places), victims=found.victims, violations=found.pdb_violations
                    )
                break
        return outcome

    def _failing(self, cycle: PodGroupCycle, result: GroupResult | None) -> FailingGroup | None:
        """The lowest group on the way from the group of *cycle* to that of the pod that is not schedulable."""
        if isinstance(cycle, GroupTreeCycle):
            below = result.children if isinstance(result, TreeResult) else []
            for number, child in enumerate(cycle.children):
                if self.pod.group_key in child.keys:
                    found = self._failing(child, below[number] if number < len(below) else None)
                    if found is not None:
                        return found
        if result is None or result.status is None:
            return None
        if isinstance(cycle, GroupTreeCycle):
            return FailingGroup(group=cycle.root, result=result, members=len(cycle.children))
        return FailingGroup(group=self.group(), result=result, members=len(cycle.infos))

    def _is_tried(self, pod: Pod) -> bool:
        return self._held_back_by(pod) is None

    def _held_back_by(self, pod: Pod) -> str | None:
        """Why a pod of the group is not tried with the others; None if it is."""
        if pod.metadata.deletion_timestamp is not None:
            return "it is being deleted"
        if pod.scheduler_name != self.pod.scheduler_name:
            return f"it is for the scheduler {pod.scheduler_name}"
        try:
            for hook in self.scheduler.profiles[pod.scheduler_name].pre_enqueue:
                status = call_status_hook(hook, pod)
                if status is not None:
                    return status.message
        except HookFailed as failed:
            return str(failed)
        return None

    def _held_back(self) -> dict[str, tuple[Pod, str]]:
        """The other pods of the group that are not tried, and why, by their keys."""
        others = [(one, self._held_back_by(one)) for one in self.waiting_members() if one.uid != self.pod.uid]
        return {one.key: (one, why) for one, why in others if why is not None}

    def clause(self, outcome: GroupOutcome, nodes: int) -> FailingClause:
        """The requirement that the pods of the group run at once, which is not met.

        Args:
            outcome: what was decided.
            nodes: how many there are.
        """
        failing = outcome.failing
        if failing is None:
            clause = _others_first(self.pod)
        elif isinstance(failing.group, CompositePodGroup):
            clause = self._clause_of_tree(failing.group, failing, outcome)
        else:
            clause = self._clause_of_gang(failing.group, failing, outcome)
        return clause_without_hook(clause, np.ones(nodes, dtype=np.bool_))

    def _clause_of_gang(self, group: PodGroup | None, failing: FailingGroup, outcome: GroupOutcome) -> Clause:
        result, key = failing.result, "" if group is None else group.topology_key
        name = (self.pod.group_key or "").partition("/")[2]
        what = "pods" if group is None or group.min_count is None else f"{group.min_count} pods"
        where = f" in one {key}" if key else ""
        waiting = [f"the pod {key} is not tried: {why}" for key, (_pod, why) in self._held_back().items()]
        return Clause(
            reason="GangDoesNotFitInPlacement" if key else "GangDoesNotFit",
            title=f"{what} of the gang {name} at once{where}",
            cause="; ".join([*waiting[:_MOST_HELD_BACK], explain(result, failing.members, topology_key=key)]),
            details=lambda: _details(result, key),
            changes=lambda _nodes: () if group is None else self._changes(group, result.fitting, outcome),
        )

    def _clause_of_tree(self, tree: CompositePodGroup, failing: FailingGroup, outcome: GroupOutcome) -> Clause:
        result, key = failing.result, tree.topology_key
        fitting = fitting_children(result)
        needed = "" if tree.min_group_count is None else f"{tree.min_group_count} "
        where = f" in one {key}" if key else ""
        return Clause(
            reason="TreeDoesNotFitInPlacement" if key else "TreeDoesNotFit",
            title=f"{needed}child groups of the tree {tree.name} at once{where}",
            cause=explain_tree(result, failing.members, topology_key=key),
            details=lambda: _details(result, key),
            changes=lambda _nodes: self._changes(tree, fitting, outcome),
        )

    def _changes(self, group: AnyGroup, fitting: int, outcome: GroupOutcome) -> Iterator[Change]:
        if isinstance(group, CompositePodGroup):
            if group.min_group_count is not None and 0 < fitting < group.min_group_count:
                yield smaller_tree(group, fitting)
        elif group.min_count is not None:
            yield from self._without_gates()
            count = fitting + len(self._members() or ()) - len(self.waiting_members())  # with those that have a node
            if 0 < count < group.min_count:
                yield smaller_gang(group, count, recreated=not self.scheduler.behaviour.smaller_gangs_are_tried)
        if group.topology_key:
            edit = recreate_group(group, without_topology)
            title = f"recreate the group {group.name} without its topology constraint"
            yield Change(title=title, edits=(edit,))
        yield from self._smaller_requests(outcome)

    def _without_gates(self) -> Iterator[Change]:
        """The other pods of the group without their scheduling gates."""
        gated = [one for one, _why in self._held_back().values() if one.spec.scheduling_gates]
        if gated:
            title = f"remove the scheduling gates of {some_names([one.key for one in gated])}"
            yield Change(title=title, edits=tuple(edit_pod(one, without_gates) for one in gated))

    def _smaller_requests(self, outcome: GroupOutcome) -> Iterator[Change]:
        """For each resource that is short the largest request with which all fit."""
        options = self.scheduler.cache.options
        requested = pod_resources(self.pod, options).requested
        for resource in _lacking(outcome.result):
            fits, too_much = 0, requested.amount(resource)
            found: Change | None = None
            unit = _UNIT if resource in _IN_BYTES else 1
            while too_much - fits > unit:
                most = (fits + too_much) // 2 // unit * unit
                change = smaller_request(self.pod, resource, most, options, where=" in each pod of the group")
                if change is not None and self._would_fit(change):
                    fits, found = most, change
                else:
                    too_much = most
            if found is not None:
                yield found

    def _would_fit(self, change: Change) -> bool:
        (edit,) = change.edits
        try:
            changed = {one.uid: edit.apply(one) for one in self.waiting_members()}
            return bool(self.decide(changed).node_of(self.pod))
        except TooManyDecisions:
            return False


def _others_first(pod: Pod) -> Clause:
    name = (pod.group_key or "").partition("/")[2]
    return Clause(
        reason="TakenByPodGroup",
        title=f"place besides the other pods of the group {name}",
        cause="these come first, and leave it no node",
    )


def _is_gang(group: AnyGroup) -> bool:
    needed = group.min_group_count if isinstance(group, CompositePodGroup) else group.min_count
    return needed is not None


def _details(result: GroupResult, key: str) -> Iterator[str]:
    """The placements, the one in which most pods fit first."""
    best = sorted(result.tried, key=lambda one: -one.fitting)
    for one in best[:_MOST_PLACEMENTS]:
        where = f"{key} {one.name}: " if key else ""
        yield f"{where}{one.fitting} fit, then {one.shortage}"
    if len(best) > _MOST_PLACEMENTS:
        yield f"and {len(best) - _MOST_PLACEMENTS} more"


def _lacking(result: GroupResult) -> Iterable[str]:
    """The resources that pods lack."""
    failures = (one.failed for one in result.pods if one.failed is not None)
    return dict.fromkeys(name for failed in failures for name in lacking_resources(failed))
