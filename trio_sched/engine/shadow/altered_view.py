"""The cluster as somebody else may have seen it: with changes undone that came before, or made that come later."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from typing import Any

from attrs import frozen

from trio_sched.engine.scheduler import Scheduler
from trio_sched.objects.changes import Change
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_requests import has_same_resources
from trio_sched.plugin_api.custom_resources import Watched, differ


@frozen(eq=False)
class Crossing:
    """A change that was shown shortly before a decision, or shortly after it."""

    kind: Watched
    """``Pod``, ``Node``, or the name of another kind."""
    change: Change[Any]
    is_ahead: bool
    """Whether it comes later: then the cache does not have it yet, and the other scheduler may have known it."""
    seconds: float = 0.0
    """How long it was shown before the decision, or after it."""

    @cached_property
    def identity(self) -> tuple[Watched, str]:
        """What has changed."""
        metadata = self.change.subject.metadata
        return self.kind, metadata.uid or f"{metadata.namespace}/{metadata.name}"

    @cached_property
    def node_names(self) -> frozenset[str]:
        """The nodes that it is about; none if it may be about any."""
        change = self.change
        if self.kind == "Node":
            return frozenset((change.subject.metadata.name,))
        if self.kind != "Pod":
            return frozenset()
        versions = [pod for pod in (change.old, change.new) if pod is not None]
        return frozenset(filter(None, (pod.node_name or pod.nominated_node_name for pod in versions)))

    @property
    def then(self) -> Any:
        """The object in the other view; None if there is none."""
        return _after(self.change) if self.is_ahead else self.change.old

    @property
    def loaded(self) -> str:
        """The node that has a pod more in the other view; empty if none has."""
        return _place(self.then) if self.kind == "Pod" and _place(self.then) != _place(self._now) else ""

    @property
    def relieved(self) -> str:
        """The node that has a pod less in the other view; empty if none has."""
        return _place(self._now) if self.kind == "Pod" and _place(self.then) != _place(self._now) else ""

    @property
    def is_only_a_start(self) -> bool:
        """Whether nothing has changed but that a pod has started, which matters for preemption alone."""
        change = self.change
        return (
            self.kind == "Pod"
            and _has_started(change.old, _after(change))
            and not _pod_matters(change.old, _after(change))
        )

    @property
    def _now(self) -> Any:
        return self.change.old if self.is_ahead else _after(self.change)

    def is_decision_of(self, schedulers: Collection[str]) -> bool:
        """Whether one of *schedulers* has chosen a node for a pod: what it knows before it is shown."""
        old, new = self.change.old, self.change.new
        if self.kind != "Pod" or self.change.type != "MODIFIED" or old is None or new is None:
            return False
        return _place(old) != _place(new) != "" and new.scheduler_name in schedulers

    def __str__(self) -> str:
        change, metadata = self.change, self.change.subject.metadata
        old, new = change.old, change.new
        name = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
        what = {"ADDED": "is created", "DELETED": "is gone"}.get(change.type, "has changed")
        if self.kind == "Pod" and change.type == "MODIFIED" and old is not None and new is not None:
            if old.node_name != new.node_name:
                what = f"is bound to {new.node_name}"
            elif old.nominated_node_name != new.nominated_node_name:
                node_name = new.nominated_node_name
                what = f"is nominated to {node_name}" if node_name else "is not nominated any more"
            elif new.metadata.deletion_timestamp is not None and old.metadata.deletion_timestamp is None:
                what = "is being deleted"
            elif _has_started(old, new):
                what = "has started"
        return f"{self.kind} {name} {what}, {self.seconds:.3f} s {'after' if self.is_ahead else 'before'}"


def _after(change: Change[Any]) -> Any:
    """The object that there is after *change*; None if it is gone: a deletion has its last state."""
    return None if change.type == "DELETED" else change.new


def _place(pod: Pod | None) -> str:
    return "" if pod is None else pod.node_name or pod.nominated_node_name


def matters(kind: Watched, change: Change[Any]) -> bool:
    """Whether *change* can be a reason to decide otherwise."""
    old, new = change.old, _after(change)
    if kind == "Pod":
        return _pod_matters(old, new) or _has_started(old, new)
    return old is None or new is None or differ(old, new)


def _has_started(old: Pod | None, new: Pod | None) -> bool:
    return old is not None and new is not None and old.status.start_time != new.status.start_time


def _pod_matters(old: Pod | None, new: Pod | None) -> bool:
    places = [(pod.node_name, pod.nominated_node_name) if pod is not None else ("", "") for pod in (old, new)]
    if places[0] != places[1]:
        return True
    if old is None or new is None or not any(places[0]):
        return False
    is_ending = [pod.metadata.deletion_timestamp is not None for pod in (old, new)]
    return is_ending[0] != is_ending[1] or old.labels != new.labels or not has_same_resources(old, new)


@contextmanager
def altered(scheduler: Scheduler, crossings: Iterable[Crossing]) -> Iterator[None]:
    """The cache is as it would be without or with *crossings* while the block runs, where nothing may wait.

    Each undoes its change, or makes it if it is ahead; of several about one object, the nearest first, the last counts.
    """
    with ExitStack() as stack:
        kinds = set()
        for crossing in {one.identity: one for one in crossings}.values():
            then = crossing.then
            subject = crossing.change.subject
            if crossing.kind == "Pod":
                stack.enter_context(_with_pod(scheduler, subject, then))
            elif crossing.kind == "Node":
                stack.enter_context(_with_node(scheduler, subject.metadata.name, then))
            else:
                kinds.add(crossing.kind)
                stack.enter_context(_with_object(scheduler, crossing.kind, subject, then))
        for kind in kinds:
            scheduler.object_cache.count_change(kind)
        try:
            yield
        finally:
            stack.close()
            for kind in kinds:
                scheduler.object_cache.count_change(kind)


@contextmanager
def _with_pod(scheduler: Scheduler, subject: Pod, then: Pod | None) -> Iterator[None]:
    """*subject* is *then* while the block runs; None: it is gone."""
    cache, nominator = scheduler.cache, scheduler.queue.nominator
    known = cache.unassigned.get(subject.key)
    if known is not None and known.uid != subject.uid:
        known = None
    with scheduler.without(subject):
        nominated = nominator.delete(subject.uid)
        if then is None:
            cache.unassigned.drop(subject)
        elif then.node_name:
            cache.add(then)
        else:
            cache.unassigned.put(then)
            nominator.add(then, None)
        try:
            yield
        finally:
            if then is not None and then.node_name:
                cache.remove(then.uid)
            nominator.delete(subject.uid)
            cache.unassigned.drop(subject)
            if known is not None:
                cache.put_unassigned(known)
                if nominated:
                    nominator.add(known, nominated)


@contextmanager
def _with_node(scheduler: Scheduler, name: str, then: Node | None) -> Iterator[None]:
    table = scheduler.cache.table
    row = table.row_of.get(name)
    now = None if row is None else table.nodes[row]
    _set_node(scheduler, name, then)
    try:
        yield
    finally:
        _set_node(scheduler, name, now)


def _set_node(scheduler: Scheduler, name: str, node: Node | None) -> None:
    cache = scheduler.cache
    if node is not None:
        cache.add_node(node)
    elif name in cache.table.row_of:
        cache.remove_node(name)


@contextmanager
def _with_object(scheduler: Scheduler, kind: Watched, subject: Any, then: Any) -> Iterator[None]:
    metadata, objects = subject.metadata, scheduler.object_cache
    now = objects.get(kind, metadata.name, metadata.namespace)
    _set_object(scheduler, kind, metadata.name, metadata.namespace, then)
    try:
        yield
    finally:
        _set_object(scheduler, kind, metadata.name, metadata.namespace, now)


def _set_object(scheduler: Scheduler, kind: Watched, name: str, namespace: str, then: Any) -> None:
    objects = scheduler.object_cache
    if then is None:
        objects.remove(kind, name, namespace)
    else:
        objects.put(kind, name, namespace, then)
