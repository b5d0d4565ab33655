"""Which pods of an attempt are bound together, and which of them may be bound if others cannot.

A gang is a unit, and so is a composite group that needs some of its children, with all that is below it. Child groups
of one that needs none are units of their own, and pods of a group that is no gang are bound one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Protocol

from attrs import define, frozen

from trio_sched.engine.pod_groups.group_tree_cycle import GroupTreeCycle
from trio_sched.engine.pod_groups.pod_group_cycle import PodGroupCycle
from trio_sched.engine.pod_groups.pod_group_results import PodToBind
from trio_sched.objects.pod_groups.pod_group import PodGroup
from trio_sched.plugin_api.pod_groups import PodGroupTree

MayBind = Callable[[frozenset[str]], frozenset[str]]
"""Which of the pods with these UIDs may be bound if no others are."""


@frozen(eq=False)
class BindingUnit:
    """Pods that are bound together."""

    pods: list[PodToBind]
    may_bind: MayBind | None = None
    """None: each of them is bound whatever becomes of the others."""

    def split(self) -> tuple[list[PodToBind], list[PodToBind]]:
        """The pods that may be bound as things stand, and those that may not."""
        if self.may_bind is None:
            return self.pods, []
        allowed = self.may_bind(frozenset([one.info.uid for one in self.pods]))
        return (
            [one for one in self.pods if one.info.uid in allowed],
            [one for one in self.pods if one.info.uid not in allowed],
        )


@define(eq=False, kw_only=True)
class BindingUnits:
    """Finds the units of an attempt."""

    to_bind: Mapping[str, list[PodToBind]]
    """Pod group → its pods that fit, if it is schedulable."""
    min_count: Callable[[str], int | None]
    """How many pods the gang called ``namespace/name`` needs; None if it is no gang."""
    bound_count: Callable[[str], int]
    """How many pods of the pod group called ``namespace/name`` are bound."""
    schedules_gangs: bool
    """Whether the profile has composite groups and gangs scheduled as a whole."""

    def of(self, cycle: PodGroupCycle) -> Iterator[BindingUnit]:
        """The units of the group or tree of *cycle*."""
        if not isinstance(cycle, GroupTreeCycle):
            key = cycle.group.key
            rule = None if self.min_count(key) is None else self._rule(cycle)
            yield BindingUnit(self._pods(cycle), None if rule is None else rule.may_bind)
        elif self.schedules_gangs and cycle.root.min_group_count is not None:
            yield BindingUnit(self._pods(cycle), self._rule(cycle).may_bind)
        else:
            for child in cycle.children:
                yield from self.of(child)

    def _pods(self, cycle: PodGroupCycle) -> list[PodToBind]:
        if isinstance(cycle, GroupTreeCycle):
            return [pod for child in cycle.children for pod in self._pods(child)]
        return self.to_bind.get(cycle.group.key, [])

    def _rule(self, cycle: PodGroupCycle) -> _Rule:
        if isinstance(cycle, GroupTreeCycle):
            return _ChildGroups(cycle.root.min_group_count or 1, tuple(map(self._rule, cycle.children)))
        key = cycle.group.key
        return _Pods(frozenset([one.info.uid for one in self._pods(cycle)]), partial(self._missing, key))

    def _missing(self, key: str) -> int:
        """How many pods the group called *key* needs besides those that are bound; one if it is no gang."""
        return (self.min_count(key) or 1) - self.bound_count(key)


def tree_bound_together(tree: PodGroupTree, leaf: str) -> PodGroupTree | None:
    """The part of *tree* that is the unit with the pod group called *leaf*; None if that is one of its own."""
    if isinstance(tree.group, PodGroup):
        return None
    if tree.group.min_group_count is not None:
        return tree
    for child in tree.children:
        if any(f"{one.namespace}/{one.name}" == leaf for one in child.leaves):
            return tree_bound_together(child, leaf)
    return None


class _Rule(Protocol):
    def is_enough(self, left: frozenset[str]) -> bool: ...

    def may_bind(self, left: frozenset[str]) -> frozenset[str]: ...


@frozen(eq=False)
class _Pods:
    """Enough pods of a pod group."""

    uids: frozenset[str]
    missing: Callable[[], int]

    def is_enough(self, left: frozenset[str]) -> bool:
        return len(self.uids & left) >= self.missing()

    def may_bind(self, left: frozenset[str]) -> frozenset[str]:
        return self.uids & left if self.is_enough(left) else frozenset()


@frozen(eq=False)
class _ChildGroups:
    """Enough child groups of a composite group."""

    needed: int
    children: tuple[_Rule, ...]

    def is_enough(self, left: frozenset[str]) -> bool:
        return sum(child.is_enough(left) for child in self.children) >= self.needed

    def may_bind(self, left: frozenset[str]) -> frozenset[str]:
        if not self.is_enough(left):
            return frozenset()
        return frozenset[str]().union(*(child.may_bind(left) for child in self.children))
