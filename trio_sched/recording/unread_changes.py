"""Which changes of objects are not written, because nothing that decides reads what is different.

Most changes of pods and nodes are such: restarts, readiness, heartbeats.
"""

from __future__ import annotations

from typing import Any, Final

from attrs import define
from msgspec import structs

from trio_sched.objects.changes import Change
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod, PodStatus

READ_CONDITIONS: Final = frozenset({"DisruptionTarget", "PodResizePending", "PodScheduled"})
"""The types of conditions of pods that built-in plugins and the engine read."""

_with = structs.replace


@define
class UnreadChanges:
    """Tells which changes nothing reads.

    Attributes:
        reads_all_conditions: whether a plugin may read any condition of a pod: those of other packages can.
    """

    reads_all_conditions: bool = False

    def is_read(self, change: Change[Any]) -> bool:
        """Whether a decision can depend on *change*."""
        old, new = change.old, change.new
        if change.type != "MODIFIED":
            return True
        if isinstance(new, Pod):
            return self.pod_is_read(old, new)
        return not isinstance(new, Node) or not isinstance(old, Node) or _is_other_node(old, new)

    def pod_is_read(self, old: Pod | None, new: Pod | None) -> bool:
        """Whether a decision can depend on how a pod differs from before.

        This is one function because it runs for every restart of every container in the cluster, a few milliseconds
        apart: the processor has forgotten it each time, and loading it takes longer than its work.
        """
        if old is None or new is None:
            return True
        spec = new.spec
        if not old.spec.node_name or (spec is not old.spec and spec != old.spec):
            return True
        metadata, status, before = new.metadata, new.status, old.status
        if _with(old.metadata, resource_version=metadata.resource_version) != metadata:
            return True
        if self.reads_all_conditions:
            return status != before
        if _with(status, conditions=before.conditions) != before:
            return True
        conditions, others = status.conditions or (), before.conditions or ()
        if len(conditions) != len(others):
            return _read_conditions(status) != _read_conditions(before)
        for one, other in zip(conditions, others, strict=True):
            if one != other and (one.type in READ_CONDITIONS or other.type in READ_CONDITIONS):
                return True
        return False


def _read_conditions(status: PodStatus) -> list[Any]:
    return [one for one in status.conditions or () if one.type in READ_CONDITIONS]


def _is_other_node(old: Node, new: Node) -> bool:
    """Whether anything that a scheduler reads has changed, which it has not with heartbeats."""
    metadata = _with(old.metadata, resource_version=new.metadata.resource_version)
    return bool(metadata != new.metadata or old.spec != new.spec or old.status != new.status)
