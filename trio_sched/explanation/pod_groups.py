"""The pod in question together with the pods of its group: what the scheduler would decide, and why the group waits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from random import Random
from typing import Final

import numpy as np
from attrs import define, field, frozen
from msgspec import structs

from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.hooks.plugin_calls import call_status_hook
from trio_sched.engine.pod_groups.group_steps import in_order
from trio_sched.engine.pod_groups.pod_group_cycle import PodGroupCycle
from trio_sched.engine.pod_groups.pod_group_explanation import explain, lacking_resources
from trio_sched.engine.pod_groups.pod_group_results import GroupResult
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.scheduler import Scheduler
from trio_sched.explanation.analysis import FailingClause, clause_without_hook
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_groups.pod_group import PodGroup
from trio_sched.objects.pod_requests import pod_resources
from trio_sched.plugin_api.clauses import Change, Clause, Edit, smaller_gang
from trio_sched.plugin_api.pod_groups import PodGroupInfo
from trio_sched.plugin_api.smaller_requests import smaller_request

_KIND: Final = "PodGroup"
_MOST_DECISIONS: Final = 3000
"""Decisions on pods of groups for one explanation: a gang of 300 is tried ten times, if it has one placement."""
_IN_BYTES: Final = frozenset({"memory", "ephemeral-storage"})
_UNIT: Final = 1 << 20
"""Requests in bytes are multiples of it."""
_MOST_PLACEMENTS: Final = 6
"""Placements that are shown, those in which most pods fit."""


class TooManyDecisions(Exception):
    """The group is too large to be tried once more."""


@frozen(kw_only=True)
class GroupOutcome:
    """What is decided about the group."""

    result: GroupResult
    pods: tuple[Pod, ...]
    """Those that were tried, in this order."""

    def node_of(self, pod: Pod) -> str:
        """The node that *pod* would get; empty if it would get none."""
        if self.result.status is not None:
            return ""
        return next(
            (one.placed.node_name for one in self.result.pods if one.info.uid == pod.uid and one.placed is not None), ""
        )


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

    @property
    def is_scheduled(self) -> bool:
        """Whether the pod has a group, and the scheduler schedules groups."""
        members = self._members()
        return members is not None and self.pod.uid in members

    @property
    def is_all_or_nothing(self) -> bool:
        """Whether its pods are scheduled only if others are, or only beside these."""
        group = self.group()
        return self.is_scheduled and group is not None and (group.min_count is not None or bool(group.topology_key))

    def _members(self) -> Mapping[str, Pod] | None:
        groups, key = self.scheduler.cache.groups, self.pod.group_key
        found = groups.get(key) if key is not None and groups.is_followed else None
        return None if found is None else found.pods

    def group(self) -> PodGroup | None:
        """The group as it is; None if there is none."""
        cache, key = self.scheduler.object_cache, self.pod.group_key
        if key is None or _KIND not in cache.kinds:
            return None
        found: PodGroup | None = cache.get(_KIND, key.partition("/")[2], self.pod.namespace)
        return found

    def waiting(self) -> list[Pod]:
        """Its pods that have no node, with the one in question, in the order in which they came."""
        pods = self._members() or {}
        nodes = self.scheduler.cache.get
        return [self.pod if uid == self.pod.uid else one for uid, one in pods.items() if nodes(uid) is None]

    def decide(self, pods: Mapping[str, Pod]) -> GroupOutcome:
        """What is decided about the group as things stand.

        Args:
            pods: UID → pod, of those of its pods that are other than they are.

        Raises:
            TooManyDecisions: more were needed for all that was tried than is sensible.
        """
        members = [pods.get(one.uid, one) for one in self.waiting()]
        tried = [one for one in members if one.uid == self.pod.uid or self._is_tried(one)]
        if self._left < len(tried):
            self.is_exhausted = True
            raise TooManyDecisions
        scheduler, key = self.scheduler, self.pod.group_key
        assert key is not None
        infos = in_order(QueuedPodInfo(one, 0.0) for one in tried)
        namespace, _slash, name = key.partition("/")
        cycle = PodGroupCycle(
            scheduler=scheduler,
            profile=scheduler.profiles[self.pod.scheduler_name],
            infos=infos,
            group=PodGroupInfo(namespace, name, tuple(info.pod for info in infos)),
            by_placement=True,  # without the gate no plugin names placements
            tries_all=True,
        )
        scheduler.invalidate_signatures()
        random, scheduler.rng = scheduler.rng, Random(0)  # the same choice for the same cluster
        try:
            result = cycle.run_at_once()
        finally:
            scheduler.rng = random
        self._left -= len(tried) * max(len(result.tried), 1)
        return GroupOutcome(result=result, pods=cycle.group.pods)

    def _is_tried(self, pod: Pod) -> bool:
        if pod.metadata.deletion_timestamp is not None or pod.scheduler_name != self.pod.scheduler_name:
            return False
        profile = self.scheduler.profiles[pod.scheduler_name]
        try:
            return all(call_status_hook(hook, pod) is None for hook in profile.pre_enqueue)
        except HookFailed:
            return False

    def clause(self, outcome: GroupOutcome, nodes: int) -> FailingClause:
        """The requirement that the pods of the group run at once, which is not met.

        Args:
            outcome: what was decided.
            nodes: how many there are.
        """
        group, result = self.group(), outcome.result
        if result.status is None:
            return clause_without_hook(_others_first(self.pod), np.ones(nodes, dtype=np.bool_))
        key = "" if group is None else group.topology_key
        name = (self.pod.group_key or "").partition("/")[2]
        what = "pods" if group is None or group.min_count is None else f"{group.min_count} pods"
        where = f" in one {key}" if key else ""
        text = explain(result, len(outcome.pods), topology_key=key)
        clause = Clause(
            reason="GangDoesNotFitInPlacement" if key else "GangDoesNotFit",
            title=f"{what} of the gang {name} at once{where}",
            cause=text,
            details=lambda: _details(result, key),
            changes=lambda _nodes: () if group is None else self._changes(group, outcome),
        )
        return clause_without_hook(clause, np.ones(nodes, dtype=np.bool_))

    def _changes(self, group: PodGroup, outcome: GroupOutcome) -> Iterator[Change]:
        fitting, needed = outcome.result.fitting, group.min_count
        if needed is not None:
            count = fitting + len(self._members() or ()) - len(self.waiting())  # with those that have a node
            if 0 < count < needed:
                yield smaller_gang(group, count, recreated=not self.scheduler.behaviour.smaller_gangs_are_tried)
        if group.topology_key:
            edit = _edit(group, _without_topology)
            title = f"recreate the group {group.name} without its topology constraint"
            yield Change(title=title, edits=(edit,))
        yield from self._smaller_requests(outcome)

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
            changed = {one.uid: edit.apply(one) for one in self.waiting()}
            return self.decide(changed).result.status is None
        except TooManyDecisions:
            return False


def _others_first(pod: Pod) -> Clause:
    name = (pod.group_key or "").partition("/")[2]
    return Clause(
        reason="TakenByPodGroup",
        title=f"place besides the other pods of the group {name}",
        cause="these come first, and leave it no node",
    )


def _edit(group: PodGroup, apply: Callable[[PodGroup], PodGroup]) -> Edit:
    return Edit(kind=_KIND, name=group.name, namespace=group.namespace, apply=apply, recreate=True)


def _without_topology(group: PodGroup) -> PodGroup:
    return structs.replace(group, spec=structs.replace(group.spec, scheduling_constraints=None))


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
