"""The scheduling cycle of a tree of groups: its child groups are tried one after the other, and all is reverted.

Pods of a child group that is schedulable stay assumed while its siblings are tried. A composite group is schedulable if
the plugins say so of how many of its children are; if it is not, what is assumed for its children is reverted.

Source: the composite pod groups of kube-scheduler 1.37.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from attrs import define, evolve

from trio_sched.engine.group_forest import key_of
from trio_sched.engine.pod_groups.group_steps import Assumed, GroupSteps
from trio_sched.engine.pod_groups.group_verdicts import CompositeVerdict, GroupAttempt
from trio_sched.engine.pod_groups.pod_group_cycle import PodGroupCycle
from trio_sched.engine.pod_groups.pod_group_results import (
    GroupPart,
    GroupResult,
    TreeResult,
    error_text,
    group_unschedulable,
)
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_groups.composite_pod_group import CompositePodGroup
from trio_sched.plugin_api.pod_groups import Placement, PodGroupInfo, PodGroupTree
from trio_sched.plugin_api.status import failure


@define(eq=False, kw_only=True)
class GroupTreeCycle(PodGroupCycle):
    """One attempt to schedule the pods of a composite group; or the part of one."""

    children: Sequence[PodGroupCycle]
    """The cycles of its child groups."""
    root: CompositePodGroup

    @property
    def entity_key(self) -> str:
        """The key of the tree in the queue."""
        return key_of(self.root)

    def run(self, *, post_filters: bool = True, ask_extenders: bool = True) -> GroupSteps[GroupResult]:
        """See `PodGroupCycle.run`; the result has all pods of the tree."""
        result = yield from super().run(post_filters=post_filters, ask_extenders=ask_extenders)
        if result.status is None and not result.fitting:
            result.status = group_unschedulable()
        result.pods = [pod for part in self.parts(result, result) for pod in part.result.pods]
        return result

    def parts(self, found: GroupResult, result: GroupResult) -> list[GroupPart]:
        """See `PodGroupCycle.parts`; groups below one that is not schedulable are not scheduled either."""
        below = found.children if isinstance(found, TreeResult) else ()
        parts: list[GroupPart] = []
        for number, child in enumerate(self.children):
            own = _inherited(below[number] if number < len(below) else None, found, child)
            parts += child.parts(own, own)
        if result is found:
            return parts
        return [evolve(part, result=_after_preemption(part.result, found, result)) for part in parts]

    def _in_placement(self, placement: Placement, kept: Assumed | None) -> GroupSteps[GroupResult]:
        result = TreeResult(group_unschedulable(), placement=placement)
        verdict = CompositeVerdict(self._attempt(result))
        assumed: Assumed = []
        try:
            for child in self.children if verdict.begin() else ():
                found = yield from child.run_within(self, placement, assumed)
                result.children.append(found)
                result.shortage = result.shortage or found.shortage
                if found.status is None:
                    result.fitting += found.fitting
                elif found.is_error:
                    text = error_text(found.status)
                    result.status = failure(f"composite pod group evaluation failed due to child error: {text}")
                    return result
                if not verdict.count(is_placed=found.status is None):
                    break
            verdict.end()
            if kept is not None and result.status is None:
                kept += assumed
                assumed = []
        finally:  # also if the process ends while a step is taken
            self._revert_all(assumed)
        return result

    def _attempt(self, result: GroupResult) -> GroupAttempt:
        return GroupAttempt(
            profile=self.profile,
            group=self.group,
            state=self._state,
            scheduled=0,
            members=len(self.children),
            is_part=True,
            plugin_failures=self.scheduler.plugin_failures,
            tries_all=self.tries_all,
            result=result,
        )

    def _assignments(self, result: GroupResult) -> Iterator[tuple[Pod, str]]:
        for child, own in zip(self.children, result.children if isinstance(result, TreeResult) else (), strict=False):
            if own.status is None:
                yield from child._assignments(own)


def _inherited(own: GroupResult | None, parent: GroupResult, child: PodGroupCycle) -> GroupResult:
    """What an attempt came to for a child group, in view of what it came to for its parent."""
    if own is None:
        kind = TreeResult if isinstance(child, GroupTreeCycle) else GroupResult
        return kind(parent.status or group_unschedulable(), tells_members=True)
    is_overruled = own.status is None or (parent.is_error and not own.is_error)
    return evolve(own, status=parent.status) if parent.status is not None and is_overruled else own


def _after_preemption(own: GroupResult, found: GroupResult, result: GroupResult) -> GroupResult:
    """What an attempt came to for a group, in view of what preemption for the whole tree has changed."""
    if result.is_error:
        return evolve(own, status=result.status)
    assert own.status is not None, "preemption is for trees that are not scheduled"
    assert found.status is not None
    assert result.status is not None
    told = result.status.reasons[len(found.status.reasons) :]
    return evolve(
        own,
        status=evolve(own.status, reasons=(*own.status.reasons, *told)),
        waiting_on_preemption=result.waiting_on_preemption,
        nominations=result.nominations,
    )


def cycle_of(tree: PodGroupTree, infos: Iterable[QueuedPodInfo], **options: Any) -> PodGroupCycle:
    """An attempt to schedule a tree of groups.

    Args:
        tree: the tree.
        infos: the pods of its pod groups, those of each in the order in which they are scheduled.
        options: fields of `PodGroupCycle`, for all groups.
    """
    by_group: dict[str, list[QueuedPodInfo]] = {}
    for info in infos:
        by_group.setdefault(info.pod.group_key or "", []).append(info)
    return _cycle_of(tree, by_group, options)


def _cycle_of(
    tree: PodGroupTree, infos: Mapping[str, list[QueuedPodInfo]], options: Mapping[str, Any]
) -> PodGroupCycle:
    group = tree.group
    if not isinstance(group, CompositePodGroup):
        own = infos.get(f"{group.namespace}/{group.name}", [])
        info = PodGroupInfo(group.namespace, group.name, tuple([one.pod for one in own]))
        return PodGroupCycle(infos=own, group=info, is_part=True, **options)
    children = [_cycle_of(child, infos, options) for child in tree.children]
    own = [info for child in children for info in child.infos]
    names = tuple([leaf.name for leaf in tree.leaves])
    pods = tuple([one.pod for one in own])
    composite = PodGroupInfo(group.namespace, group.name, pods, "CompositePodGroup", group_names=names)
    return GroupTreeCycle(infos=own, group=composite, root=group, children=children, is_part=True, **options)
