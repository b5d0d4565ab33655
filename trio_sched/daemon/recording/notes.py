"""What is noted in the event loop; a thread makes records of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from attrs import field, frozen

from trio_sched.engine.cache import CachedPod
from trio_sched.engine.scheduler import Scheduler
from trio_sched.objects.changes import Changes, Listed
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.custom_resources import Watched
from trio_sched.recording.records import Configured, Missed


@frozen(eq=False)
class Batch:
    """What a watch has delivered, of a kind that takes long to encode or all objects of a kind."""

    now: float
    kind: Watched
    batch: Listed[Any] | Changes[Any]


@frozen(eq=False, kw_only=True)
class SegmentBegins:
    """Another segment begins, with what exists now; objects are immutable, so references to them are enough.

    It holds up the event loop for about a millisecond where there are 50,000 pods: what can be made later is made of it
    by the thread.
    """

    now: float
    posix_seconds: float
    configured: Configured | None
    objects: Mapping[Watched, Sequence[Any]] = field(factory=dict)
    """Nodes in the order of their rows, pods, and the kinds that plugins read."""
    uids_on_nodes: Sequence[str] = ()
    """The pods on nodes in the order of the cache."""
    on_nodes: Sequence[CachedPod] = ()
    """The same; only their nodes stay as they are."""
    assumed: Collection[str] = frozenset()
    """The UIDs of those that are assumed."""
    nominated: Mapping[str, str] = field(factory=dict)
    """UID → the node that a pod is nominated to."""

    def placements(self) -> Iterator[tuple[str, str, bool]]:
        """The pods on nodes, as `trio_sched.recording.records.OnNodes` has them."""
        for uid, one in zip(self.uids_on_nodes, self.on_nodes, strict=True):
            yield uid, one.node_name, uid in self.assumed


Note = bytes | Batch | SegmentBegins | Missed
"""Nearly all are records as they are written: encoded at once they take half the time and hold nothing that is gone."""


def what_exists(
    scheduler: Scheduler, *, now: float, posix_seconds: float, configured: Configured | None
) -> SegmentBegins:
    """What *scheduler* knows now."""
    cache, objects = scheduler.cache, scheduler.object_cache
    pods: Sequence[Pod] = list(objects.pods_and_nodes["Pod"]().values())
    nodes: Sequence[Node] = list(cache.table.nodes)
    others = {kind: list(objects.objects(kind)) for kind in objects.kinds}
    return SegmentBegins(
        now=now,
        posix_seconds=posix_seconds,
        configured=configured,
        objects={**others, "Node": nodes, "Pod": pods},
        uids_on_nodes=list(cache.uids()),
        on_nodes=list(cache),
        assumed=cache.assumed_uids(),
        nominated={uid: node for node, there in scheduler.queue.nominator.nodes.items() for uid in there},
    )
