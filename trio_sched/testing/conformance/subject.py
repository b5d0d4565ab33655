"""The plugin that is checked, with what it is checked on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from functools import cached_property
from random import Random
from typing import Any

import attrs
from attrs import define, field, frozen

from trio_sched.daemon.watching.watched_kinds import kind_of
from trio_sched.engine.registry.profile import Profile
from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_groups.pod_group import PodGroup
from trio_sched.plugin_api.custom_resources import Watched
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.node_table import NodeTable
from trio_sched.testing.builders import pod
from trio_sched.testing.fake_handle import FakeHandle
from trio_sched.testing.given_plugins import Plugin, is_instance, name_of
from trio_sched.testing.plugin_harness import make_profile, make_table

GROUP_NAME = "conformance"
"""The pod group that hooks about groups are called with."""
_SEED = 20260101


@frozen
class Cluster:
    """Nodes, and the pods on them; pods on other nodes are left out."""

    nodes: tuple[Node, ...]
    running: tuple[Pod, ...]

    def table(self) -> NodeTable:
        """The columns of all nodes."""
        names = {one.name for one in self.nodes}
        return make_table(self.nodes, [one for one in self.running if one.node_name in names])


@define(eq=False)
class Trial:
    """An instance of the plugin with a handle of its own, in a profile without other plugins."""

    profile: Profile
    handle: FakeHandle

    def show(self, cluster: Cluster) -> NodeTable:
        """Have the handle show *cluster*; returns its columns."""
        table = cluster.table()
        self.handle.nodes = NodeColumns(table)
        return table

    def reset_random(self) -> None:
        """Let the random number generator of the handle start over."""
        self.handle.rng.seed(_SEED)

    @property
    def watched_kinds(self) -> set[Watched]:
        """The kinds that the plugin can read."""
        found = map(kind_of, self.handle.watched or ())
        return {"Node", "Pod", *(kind[0] for kind in found if kind is not None)}

    @property
    def plugin(self) -> Any:
        """The instance."""
        (plugin,) = self.profile.plugins.values()
        return plugin


@frozen(eq=False, kw_only=True)
class Subject:
    """What is checked, and on what."""

    given: Plugin
    """A class, an instance, or the name of an installed plugin."""
    args: Any
    handle: FakeHandle
    pods: tuple[Pod, ...]
    """The pods that are to be scheduled."""
    cluster: Cluster
    effective_edits: list[Any] = field(factory=list)
    """What `find_effective` has found: once for all checks."""
    effort: int = 1
    """How many times as many random changes are tried."""
    prepare: Callable[[Any], object] | None = None
    """Called with every instance before it is asked anything."""

    @property
    def name(self) -> str:
        """The name of the plugin."""
        return name_of(self.given)

    @property
    def is_instance(self) -> bool:
        """Whether there is only the one instance that the author has made, so that none can be made again."""
        return is_instance(self.given)

    @cached_property
    def _columns(self) -> NodeColumns:
        """What the handles of new instances show: one for all, as none of them may write to it."""
        return NodeColumns(self.cluster.table())

    def fresh(self) -> Trial:
        """A new instance with a copy of the handle; or the given instance, with the handle itself.

        Raises:
            PluginError: the plugin does not keep the contract, or the arguments do not fit.
        """
        handle = self.handle if self.is_instance else copy_of(self.handle)
        args = {} if self.args is None else {self.name: self.args}
        trial = Trial(make_profile([self.given], args=args, handle=handle), handle)
        handle.nodes = self._columns
        if self.prepare is not None:
            self.prepare(trial.plugin)
        trial.reset_random()
        return trial


def add_pod_group(handle: FakeHandle, waiting: Iterable[Pod]) -> None:
    """Let plugins find the pod group that their hooks about groups are called with."""
    groups = handle.known_objects.setdefault("PodGroup", [])
    for namespace in sorted({each.namespace for each in waiting}):
        groups.append(PodGroup(metadata=ObjectMeta(name=GROUP_NAME, namespace=namespace)))
        handle.grouped.append(pod("member", namespace=namespace, group=GROUP_NAME))


def copy_of(handle: FakeHandle) -> FakeHandle:
    """A handle with the same contents, which can be changed without effect on *handle*."""
    twin = copy(handle)
    for name, value in _attributes(handle):
        if isinstance(value, Random):
            other = Random()
            other.setstate(value.getstate())
            setattr(twin, name, other)
        elif isinstance(value, dict):
            setattr(
                twin, name, {key: copy(part) if isinstance(part, list | dict) else part for key, part in value.items()}
            )
        elif isinstance(value, list | set):
            setattr(twin, name, copy(value))
    return twin


def _attributes(handle: FakeHandle) -> Iterator[tuple[str, Any]]:
    names = [attribute.name for attribute in attrs.fields(FakeHandle)]
    names += [name for name in getattr(handle, "__dict__", {}) if name not in names]
    return ((name, getattr(handle, name)) for name in names)
