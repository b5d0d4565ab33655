"""The trees of pod groups and composite pod groups: which group is below which, and what is wrong with a tree.

A tree is scheduled as a whole, so its root is what the queue orders. Pod groups that have no parent are their own
root. So are those of a tree that is not whole, which wait until it is: a parent is missing, the parents are a circle,
or there are more levels than `MAX_LEVELS`.
"""

from __future__ import annotations

from typing import Final

from attrs import define, field

from trio_sched.go.text import quote
from trio_sched.objects.pod_groups.composite_pod_group import CompositePodGroup
from trio_sched.objects.pod_groups.pod_group import PodGroup
from trio_sched.plugin_api.pod_groups import MAX_LEVELS, PodGroupTree
from trio_sched.plugin_api.status import Status, unresolvable

BROKEN_SECONDS: Final = 5.0
"""A group is reported if its tree is not whole for as long: events about parents can be late."""
_COMPOSITE: Final = "//"

AnyGroup = PodGroup | CompositePodGroup


def key_of(group: AnyGroup) -> str:
    """``namespace/name`` of a pod group, ``namespace//name`` of a composite one."""
    return f"{group.namespace}{_COMPOSITE if isinstance(group, CompositePodGroup) else '/'}{group.name}"


def is_composite(key: str) -> bool:
    """Whether *key* is that of a composite pod group."""
    return _COMPOSITE in key


def _parent_key(group: AnyGroup) -> str:
    """The key of the parent; empty if *group* has none."""
    name = group.spec.parent_composite_pod_group_name
    return f"{group.namespace}{_COMPOSITE}{name}" if name else ""


@define(eq=False)
class GroupForest:
    """All groups that events have shown, with their parents; keys are those of `key_of`.

    Source: the hierarchies of kube-scheduler 1.37.
    """

    _groups: dict[str, AnyGroup] = field(factory=dict)
    _children: dict[str, dict[str, None]] = field(factory=dict)
    """Parent, which need not exist → its children, which do."""
    _broken: dict[str, str] = field(factory=dict)
    """Pod group → what is wrong with its tree."""
    _unreported: dict[str, float] = field(factory=dict)
    """Those of them that `take_broken` has not returned yet → since when, in this order."""

    # --- groups come, change and go ---------------------------------------------------------------------------------

    def put(self, group: AnyGroup, now: float) -> set[str]:
        """*group* is new, or has another version.

        Returns:
            The pod groups whose root may be another now.
        """
        key = key_of(group)
        old = self._groups.get(key)
        self._groups[key] = group
        if old is not None and _parent_key(old) == _parent_key(group):
            return set()
        if old is not None:
            self._unlink(key, old)
        if parent := _parent_key(group):
            self._children.setdefault(parent, {})[key] = None
        return self._judge(self.leaves_below(key), now)

    def remove(self, group: AnyGroup, now: float) -> set[str]:
        """*group* is gone; returns the same as `put`."""
        key = key_of(group)
        old = self._groups.pop(key, None)
        if old is None:
            return set()
        self._unlink(key, old)
        return self._judge(self.leaves_below(key), now)

    def _unlink(self, key: str, old: AnyGroup) -> None:
        parent = _parent_key(old)
        siblings = self._children.get(parent)
        if siblings is not None:
            siblings.pop(key, None)
            if not siblings:
                del self._children[parent]

    def leaves_below(self, key: str) -> set[str]:
        """The pod groups below the group called *key*, or itself if it is one."""
        found, seen, waiting = set[str](), {key}, [key]
        while waiting:
            one = waiting.pop()
            if not is_composite(one):
                found.add(one)
            below = self._children.get(one, {}).keys() - seen
            seen |= below
            waiting += below
        return found

    def _judge(self, leaves: set[str], now: float) -> set[str]:
        for leaf in leaves:
            problem = self.problem(leaf) if leaf in self._groups else ""
            if problem == self._broken.get(leaf, ""):
                continue
            self._unreported.pop(leaf, None)
            if problem:
                self._broken[leaf], self._unreported[leaf] = problem, now
            else:
                del self._broken[leaf]
        return leaves

    # --- trees ------------------------------------------------------------------------------------------------------

    def _climb(self, leaf: str) -> tuple[str, str]:
        """The root of the tree of a pod group, and what is wrong with the tree."""
        path = [leaf]
        while True:
            group = self._groups.get(path[-1])
            if group is None:
                return leaf, _missing(path[-1])
            parent = _parent_key(group)
            if not parent:
                return path[-1], ""
            if parent in path:
                names = " -> ".join(_name(one) for one in [*path[path.index(parent) :], parent])
                return leaf, f"the parents of composite pod groups are a circle: {names}"
            if len(path) == MAX_LEVELS:
                return leaf, f"the tree of {_described(leaf)} has more than {MAX_LEVELS} levels of groups"
            path.append(parent)

    def root_of(self, leaf: str) -> str:
        """The root of the tree of a pod group; itself if it has no parent, or its tree is not whole."""
        root, problem = self._climb(leaf)
        return leaf if problem else root

    def problem(self, leaf: str) -> str:
        """Why the tree of a pod group is not whole; empty if it is."""
        return self._climb(leaf)[1]

    def root(self, key: str) -> AnyGroup | None:
        """The group that is the root called *key*; None if it is none, or its tree is not whole."""
        if is_composite(key):
            return self._groups.get(key)
        root, problem = self._climb(key)
        return self._groups.get(key) if root == key and not problem else None

    def tree(self, key: str) -> PodGroupTree | None:
        """The tree with the root called *key*, children in the order of their creation; None if there is none."""
        group = self.root(key)
        return None if group is None else self._subtree(key, group, MAX_LEVELS)

    def tree_of(self, leaf: str) -> PodGroupTree | Status:
        """The tree that a pod group is in, from its root; or why there is none."""
        root, problem = self._climb(leaf)
        tree = None if problem else self.tree(root)
        return unresolvable(problem) if tree is None else tree

    def _subtree(self, key: str, group: AnyGroup, levels: int) -> PodGroupTree:
        below = [(one, self._groups[one]) for one in self._children.get(key, {})] if levels > 1 else []
        # Those of one second are in the order in which events showed them, which is also that of a recording.
        below.sort(key=lambda child: child[1].metadata.creation_timestamp or "")
        return PodGroupTree(group, tuple([self._subtree(one, child, levels - 1) for one, child in below]))

    # --- trees that are not whole -----------------------------------------------------------------------------------

    def take_broken(self, now: float) -> list[tuple[str, str]]:
        """The pod groups whose tree has not been whole for `BROKEN_SECONDS`, with the reason, each once."""
        found = []
        for leaf, since in self._unreported.items():
            if now < since + BROKEN_SECONDS:
                break
            found.append((leaf, self._broken[leaf]))
        for leaf, _problem in found:
            del self._unreported[leaf]
        return found

    def next_check(self) -> float:
        """When `take_broken` will have something; infinity if there is nothing to report."""
        since = next(iter(self._unreported.values()), None)
        return float("inf") if since is None else since + BROKEN_SECONDS


def _name(key: str) -> str:
    return key.rpartition("/")[2]


def _described(key: str) -> str:
    return f"{'composite pod group' if is_composite(key) else 'pod group'} {quote(_name(key))}"


def _missing(key: str) -> str:
    return f"{_described(key)} not found"
