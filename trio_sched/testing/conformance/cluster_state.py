"""A cluster at one moment, and single changes of it, as the scheduler would be told about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from attrs import frozen

from trio_sched.daemon.watching.watched_kinds import kind_of
from trio_sched.engine.queue.cluster_changes import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_DELETE,
    annotation_event,
    node_update_events,
    pod_update_events,
)
from trio_sched.engine.queue.queueing_hints import HintTable
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_requests import pod_resources
from trio_sched.plugin_api.cluster_events import Action, ClusterEvent
from trio_sched.plugin_api.custom_resources import CustomResource, as_json
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.node_table import NodeTable
from trio_sched.snapshot.pod_info import PodInfo
from trio_sched.testing.conformance.subject import Trial
from trio_sched.testing.plugin_harness import make_table

Kind = str | CustomResource[Any]
"""What plugins call a kind, or one of the three below."""
NODE: Final = "Node"
RUNNING: Final = "running Pod"
WAITING: Final = "pending Pod"


@frozen(eq=False)
class ClusterState:
    """The objects by kind and key; pods with and without a node are kinds of their own."""

    objects: Mapping[Kind, Mapping[str, Any]]

    @property
    def nodes(self) -> Mapping[str, Node]:
        """By name."""
        return self.objects.get(NODE, {})

    @property
    def running(self) -> Mapping[str, Pod]:
        """The pods on nodes, by UID."""
        return self.objects.get(RUNNING, {})

    @property
    def waiting(self) -> Mapping[str, Pod]:
        """The pods without a node, by UID."""
        return self.objects.get(WAITING, {})

    def table(self) -> NodeTable:
        """The columns of its nodes."""
        return make_table(self.nodes.values(), [pod for pod in self.running.values() if pod.node_name in self.nodes])

    def show(self, trial: Trial, table: NodeTable) -> None:
        """Have the handle of *trial* show this cluster, of which *table* has the columns."""
        handle = trial.handle
        for kind, objects in self.objects.items():
            if kind not in (NODE, RUNNING, WAITING):
                handle.known_objects[kind] = list(objects.values())
        pods = [*self.running.values(), *self.waiting.values()]
        handle.grouped = [pod for pod in pods if pod.spec.scheduling_group is not None]
        handle.pending = {pod.key: pod for pod in self.waiting.values()}
        handle.nodes = NodeColumns(table)

    def after(self, change: Change) -> ClusterState:
        """The cluster after *change*."""
        of_kind = dict(self.objects.get(change.kind, {}))
        if change.new is None:
            of_kind.pop(change.key, None)
        else:
            of_kind[change.key] = change.new
        return ClusterState({**self.objects, change.kind: of_kind})

    def without(self, kind: Kind, key: str) -> ClusterState:
        """The cluster without one object."""
        return ClusterState({**self.objects, kind: {k: one for k, one in self.objects[kind].items() if k != key}})


@frozen(eq=False)
class Change:
    """An object is added (*old* is None), deleted (*new* is None), or replaced by a new version."""

    kind: Kind
    old: Any
    new: Any

    @property
    def key(self) -> str:
        """The key of the object, among those of its kind."""
        return key_of(self.kind, self.new if self.new is not None else self.old)

    @property
    def action(self) -> Action:
        """What happened to it."""
        return Action.ADD if self.old is None else Action.DELETE if self.new is None else Action.UPDATE

    def make_in(self, table: NodeTable) -> None:
        """Have *table*, the columns of a cluster, show it after the change."""
        if self.kind == NODE:
            if self.new is None:
                table.remove_node(self.old.name)
            elif self.old is None:
                table.add_node(self.new)
            else:
                table.update_node(self.new)
        elif self.kind == RUNNING:
            for one in (self.old, self.new):
                row = None if one is None else table.row_of.get(one.node_name)
                if row is None:
                    continue
                if one is self.old:
                    table.remove_pod(row, one.uid)
                else:
                    table.add_pod(row, PodInfo(one, pod_resources(one)))

    def events(self, resources: Mapping[Kind, str]) -> list[ClusterEvent]:
        """What the scheduler makes of it.

        Args:
            resources: kind → the resource that plugins have registered for, for kinds besides pods and nodes.
        """
        if self.kind == NODE:
            if self.old is None or self.new is None:
                return [NODE_ADD if self.old is None else NODE_DELETE]
            return node_update_events(self.old, self.new)
        if self.kind in (RUNNING, WAITING):
            if self.old is None or self.new is None:
                return [ASSIGNED_POD_ADD if self.old is None else ASSIGNED_POD_DELETE] if self.kind == RUNNING else []
            added = annotation_event(self.old, self.new)
            return [*pod_update_events(self.old, self.new), *([] if added is None else [added])]
        resource = resources.get(self.kind)
        return [] if resource is None else [ClusterEvent(resource, self.action)]


def key_of(kind: Kind, one: Any) -> str:
    """The key of an object among those of its kind."""
    metadata = one.metadata
    if kind in (RUNNING, WAITING):
        return str(metadata.uid)
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else str(metadata.name)


def resources_by_kind(table: HintTable) -> dict[Kind, str]:
    """Kind → the resource in the registrations of plugins."""
    found: dict[Kind, str] = {}
    for entry in table.entries:
        resource = entry.event.resource
        kind = kind_of(entry.custom_resource or resource)
        if kind is not None:
            found[kind[0]] = resource
    return found


def plain_of(one: Any) -> dict[str, Any]:
    """An object as in JSON, to be changed."""
    plain: dict[str, Any] = msgspec.json.decode(as_json(one))
    return plain


def from_plain(kind: Kind, plain: dict[str, Any], like: Any) -> Any:
    """An object of *kind* from JSON, as plugins get it; *like* is another, and returned if *plain* is not valid."""
    try:
        if isinstance(kind, CustomResource):
            return kind.decode(msgspec.json.encode(plain))
        return msgspec.convert(plain, type(like))
    except (msgspec.MsgspecError, RecursionError):
        return like
