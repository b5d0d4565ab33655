"""Gangs of which some pods are bound, but fewer than the gang needs: which to complete first, which to give up.

That state is left behind by a process that ended between two binds, by binds that are refused, and by nodes that are
lost. Such a gang is tried before every other pod. If it is still incomplete after a while, its bound pods are to be
evicted, so that it is scheduled again as a whole. The same holds for a tree of groups that is bound as a whole, and of
which fewer child groups are complete than it needs: then the gangs in it are not looked at by themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Final

from attrs import define, field

from trio_sched.engine.group_forest import key_of
from trio_sched.engine.pod_group_state import GroupMembers, PodGroupStates
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_groups.composite_pod_group import CompositePodGroup
from trio_sched.plugin_api.pod_groups import PodGroupTree

INCOMPLETE_SECONDS: Final = 120.0
"""How long a gang may be incomplete before its bound pods are evicted."""
_PAUSES: Final = (1.0, 2.0, 4.0, 8.0, 10.0)
"""Seconds between two tries of an incomplete gang."""

MinCount = Callable[[str], int | None]
"""How many pods the gang called ``namespace/name`` needs; None if there is no such gang."""
TreeOf = Callable[[str], PodGroupTree | None]
"""The tree that is bound as a whole with the pod group called ``namespace/name``; None if that is bound by itself."""


@define(eq=False)
class _Incomplete:
    leaves: tuple[str, ...]
    """The pod groups that it consists of: a gang of itself."""
    since: float
    next_try: float
    tries: int = 0


@define(eq=False, kw_only=True)
class GangRecovery:
    """The incomplete gangs and trees among *states*; trees are called ``namespace//name``."""

    states: PodGroupStates
    min_count: MinCount
    tree_of: TreeOf = lambda _key: None
    _incomplete: dict[str, _Incomplete] = field(factory=dict, init=False)

    def update(self, now: float) -> None:
        """Take in which groups have changed."""
        keys = self.states.take_changed()
        if not keys:
            return
        keys = keys.union(*(one.leaves for one in self._incomplete.values()))
        trees = {key_of(tree.group): tree for tree in map(self.tree_of, keys) if tree is not None}
        found = {key: _leaves(tree) for key, tree in trees.items() if self._is_incomplete_tree(tree)}
        alone = keys.difference(*found.values())
        found |= {key: (key,) for key in alone if self._is_incomplete(key)}
        before, self._incomplete = self._incomplete, {}
        for key, leaves in found.items():
            one = before.get(key) or _Incomplete(leaves, now, now)
            one.leaves = leaves
            self._incomplete[key] = one

    def start_over(self) -> None:
        """Others decide for some time: whatever is incomplete afterwards has been so since then only."""
        for one in self._incomplete.values():
            for key in one.leaves:
                self.states.note_change(key)
        self._incomplete = {}

    def next_to_try(self, now: float) -> list[Pod]:
        """The pods without a node of what to try now: what has been incomplete for longest; empty if nothing is due."""
        due = [
            (one.since, key) for key, one in self._incomplete.items() if one.next_try <= now and self._can_be_tried(one)
        ]
        if not due:
            return []
        _since, key = min(due)
        one = self._incomplete[key]
        one.next_try = now + _PAUSES[min(one.tries, len(_PAUSES) - 1)]
        one.tries += 1
        return [pod for group in self._groups(one.leaves) for pod in group.unscheduled_pods]

    def take_overdue(self, now: float) -> list[tuple[str, list[Pod]]]:
        """The gangs and trees to give up, with their bound pods; each again only after as long a time."""
        found = []
        for key, one in self._incomplete.items():
            groups = self._groups(one.leaves)
            if groups and now >= one.since + INCOMPLETE_SECONDS and not any(group.assumed for group in groups):
                one.since = now
                found.append((key, [pod for group in groups for pod in bound_pods(group)]))
        return found

    def next_check(self) -> float:
        """When the next one is due to be tried or given up; infinity if none is incomplete."""
        incomplete = self._incomplete.values()
        return min((min(one.next_try, one.since + INCOMPLETE_SECONDS) for one in incomplete), default=math.inf)

    def is_incomplete(self, key: str) -> bool:
        """Whether the gang or tree called *key* is incomplete, as of the last `update`."""
        return key in self._incomplete

    def _groups(self, keys: Iterable[str]) -> list[GroupMembers]:
        return [group for group in map(self.states.get, keys) if group is not None]

    def _is_incomplete(self, key: str) -> bool:
        group, needed = self.states.get(key), self.min_count(key)
        if group is None or needed is None or not group.assigned or group.pod_count < needed:
            return False
        if not group.unscheduled and not group.assumed:
            return False  # the others have run their course, or never existed
        return 0 < len(bound_pods(group)) < needed

    def _is_incomplete_tree(self, tree: PodGroupTree) -> bool:
        groups = self._groups(_leaves(tree))
        if not any(group.unscheduled or group.assumed for group in groups):
            return False
        if not any(map(bound_pods, groups)):
            return False
        return self._has_enough(tree, _pod_count) and not self._has_enough(tree, _bound_count)

    def _has_enough(self, tree: PodGroupTree, count: Callable[[GroupMembers], int]) -> bool:
        """Whether *tree* would be complete if each pod group had as many pods as *count* says."""
        if not isinstance(tree.group, CompositePodGroup):
            key = key_of(tree.group)
            group = self.states.get(key)
            return group is not None and count(group) >= (self.min_count(key) or 1)
        enough = sum(self._has_enough(child, count) for child in tree.children)
        return enough >= (tree.group.min_group_count or 1)

    def _can_be_tried(self, one: _Incomplete) -> bool:
        groups = self._groups(one.leaves)
        return any(group.unscheduled for group in groups) and not any(group.assumed for group in groups)


def bound_pods(group: GroupMembers) -> list[Pod]:
    """The pods of *group* that are bound and not being deleted."""
    assigned = (group.pods[uid] for uid in group.assigned)
    return [pod for pod in assigned if pod.metadata.deletion_timestamp is None]


def _pod_count(group: GroupMembers) -> int:
    return group.pod_count


def _bound_count(group: GroupMembers) -> int:
    return len(bound_pods(group))


def _leaves(tree: PodGroupTree) -> tuple[str, ...]:
    return tuple(map(key_of, tree.leaves))
