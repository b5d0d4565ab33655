"""Assertions about a virtual cluster; a failure tells where the pod is, and what is known about the reason."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Protocol

import trio

from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.objects.event import CoreEvent
from trio_sched.objects.pod import Pod, PodCondition
from trio_sched.simulator import ApiServer
from trio_sched.testing.scheduler_process import SchedulerProcess

_SECONDS_BETWEEN_LOOKS = 0.1
_SECONDS_BETWEEN_CHECKS = 10.0
"""How often is looked whether schedulers have failed, while nothing happens to pods."""
_MAX_EVENTS = 10


class _Cluster(Protocol):
    """What the assertions need of a cluster."""

    api: ApiServer
    schedulers: list[SchedulerProcess]

    def pod(self, name: str, namespace: str = "default") -> Pod: ...

    def placements(self) -> dict[str, str]: ...

    def events(self, reason: str = "", *, about: str = "") -> list[CoreEvent]: ...


class ClusterAssertions:
    """The assertions of a `VirtualCluster`; pods are given as objects, or as ``name`` or ``namespace/name``."""

    def assert_scheduled(self: _Cluster, pod: Pod | str, *, on: str | Iterable[str] | None = None) -> str:
        """Assert that a pod has a node: *on* names it, or those that are right; None allows any.

        Returns:
            The name of the node.

        Raises:
            AssertionError: it has none, or another one; the text has its condition, events, queue and rejectors.
        """
        found = _find(self, pod)
        allowed = None if on is None else [on] if isinstance(on, str) else list(on)
        if found.node_name and (allowed is None or found.node_name in allowed):
            return found.node_name
        wanted = "a node" if allowed is None else f"node {' or '.join(map(repr, allowed))}"
        raise AssertionError(f"pod {found.key} should be on {wanted}, but it is {describe_pod(self, found)}")

    def assert_pending(
        self: _Cluster, pod: Pod | str, *, reason: str | re.Pattern[str] = "", plugin: str = ""
    ) -> PodCondition | None:
        """Assert that a pod has no node.

        Args:
            pod: the pod.
            reason: a part of the message of its condition ``PodScheduled``, or of the reason of a ``pre_enqueue`` that
                keeps it out of the queue; or a compiled pattern that is found in one of these.
            plugin: the plugin that has rejected it or keeps it out of the queue, of those that the scheduler noted.

        Returns:
            The condition; None if it has none, because no attempt is over yet.

        Raises:
            AssertionError: it has a node, or waits for another reason.
        """
        found = _find(self, pod)
        condition = condition_of(found)
        if found.node_name:
            raise AssertionError(f"pod {found.key} should be pending, but it is {describe_pod(self, found)}")
        messages = ["" if condition is None else condition.message]
        messages += [info.gating_message for info in _queued(self, found) if info.gating_plugin]
        if not any(reason.search(one) if isinstance(reason, re.Pattern) else reason in one for one in messages):
            wanted = repr(reason.pattern) if isinstance(reason, re.Pattern) else repr(reason)
            raise AssertionError(
                f"pod {found.key} should be pending because of {wanted}, but it is {describe_pod(self, found)}"
            )
        if plugin and plugin not in rejectors_of(self, found):
            raise AssertionError(
                f"pod {found.key} should be rejected by plugin {plugin!r}, but it is {describe_pod(self, found)}"
            )
        return condition

    def assert_event(
        self: _Cluster, reason: str, *, about: Pod | str = "", message: str | re.Pattern[str] = ""
    ) -> CoreEvent:
        """Assert that an event was recorded.

        Args:
            reason: its reason, ``Scheduled`` or ``FailedScheduling`` for instance.
            about: the object that it is about, or its name; empty for any.
            message: a part of its message, or a compiled pattern that is found there.

        Returns:
            The first such event.

        Raises:
            AssertionError: there is none; the text lists those that there are.
        """
        name = about.name if isinstance(about, Pod) else about.rpartition("/")[2]
        events = self.events(about=name)
        for event in events:
            if event.reason == reason and (
                message.search(event.message) if isinstance(message, re.Pattern) else message in event.message
            ):
                return event
        with_text = f" with {message.pattern if isinstance(message, re.Pattern) else message!r}" if message else ""
        of = f" about {name!r}" if name else ""
        raise AssertionError(f"there is no event {reason!r}{of}{with_text}; {_list_events(events)}")

    async def wait_scheduled(
        self: _Cluster, pod: Pod | str, *, on: str | Iterable[str] | None = None, within_seconds: float = 240.0
    ) -> str:
        """Wait until a pod has a node, and assert that it is one of *on*, as `assert_scheduled` does.

        By default not as long as until the scheduler tries pods again that no event has moved: five minutes.

        Returns:
            The name of the node.

        Raises:
            AssertionError: it has none after *within_seconds* of the cluster's clock, or another one.
            TrioSchedError: a scheduler has failed.
        """
        began = trio.current_time()
        deadline = began + within_seconds
        while not _find(self, pod).node_name and trio.current_time() < deadline:
            for process in self.schedulers:
                process.raise_failure()
            with trio.move_on_at(min(deadline, trio.current_time() + _SECONDS_BETWEEN_CHECKS)):
                await _change_of_a_pod(self)
                looks = math.floor((trio.current_time() - began) / _SECONDS_BETWEEN_LOOKS) + 1
                await trio.sleep_until(began + looks * _SECONDS_BETWEEN_LOOKS)  # what follows from it has happened too
        return ClusterAssertions.assert_scheduled(self, pod, on=on)


async def _change_of_a_pod(cluster: _Cluster) -> None:
    changed = trio.Event()
    end = cluster.api.store.collection("pods").listen(lambda _change: changed.set())
    try:
        await changed.wait()
    finally:
        end()


def condition_of(pod: Pod) -> PodCondition | None:
    """Its condition ``PodScheduled``."""
    return next((one for one in pod.status.conditions or () if one.type == "PodScheduled"), None)


def rejectors_of(cluster: _Cluster, pod: Pod) -> frozenset[str]:
    """The plugins that have rejected a pod, as the running schedulers have noted."""
    return frozenset(plugin for info in _queued(cluster, pod) for plugin in info.rejectors)


def describe_pod(cluster: _Cluster, pod: Pod) -> str:
    """Where a pod is, and what is known about why."""
    lines = [f"on node {pod.node_name!r}" if pod.node_name else f"pending, on no node ({_where(cluster, pod)})"]
    condition = condition_of(pod)
    if condition is not None:
        lines.append(
            f"condition PodScheduled={condition.status} {condition.reason}: {condition.message or 'no message'}"
        )
    elif not pod.node_name and not any(info.gating_plugin for info in _queued(cluster, pod)):
        lines.append("it has no condition PodScheduled: no attempt is over yet; wait with `await cluster.settle()`")
    if rejectors := rejectors_of(cluster, pod):
        lines.append(f"rejected by: {', '.join(sorted(rejectors))}")
    for info in _queued(cluster, pod):
        if info.gating_plugin:
            lines.append(f"kept out of the queue by {info.gating_plugin}: {info.gating_message}")
    lines.append(_list_events(cluster.events(about=pod.name)))
    lines.append(f"nodes: {', '.join(_nodes(cluster)) or 'there are none'}")
    return "\n  ".join(lines)


def _where(cluster: _Cluster, pod: Pod) -> str:
    for process in cluster.schedulers:
        if process.assembly is None or not process.running:
            continue
        queue = process.assembly.scheduler.queue
        if pod.scheduler_name not in queue.profiles:
            known = ", ".join(queue.profiles)
            return f"its schedulerName is {pod.scheduler_name!r}; the profiles are {known}"
        if queue.active.get(pod.key):
            return "in the active queue"
        if queue.set_aside.get(pod.key):
            return "waits for its turn with the extenders"
        if queue.backing_off.get(pod.key):
            return "in backoff"
        if info := queue.unschedulable.get(pod.key):
            return f"waits for an event after {info.attempts} attempts"
        if pod.uid in process.assembly.waiting.by_uid:
            return "waits on permit"
        return "in no queue"
    for process in cluster.schedulers:
        if problem := process.problem:
            return f"no scheduler runs: {process.identity} has ended with: {problem}"
    return "no scheduler runs"


def _queued(cluster: _Cluster, pod: Pod) -> list[QueuedPodInfo]:
    queues = [one.assembly.scheduler.queue for one in cluster.schedulers if one.assembly is not None and one.running]
    return [info for info in (queue.find(pod.key) for queue in queues) if info is not None]


def _find(cluster: _Cluster, pod: Pod | str) -> Pod:
    namespace, name = (pod.namespace, pod.name) if isinstance(pod, Pod) else _parts(pod)
    try:
        return cluster.pod(name, namespace)
    except LookupError:
        others = ", ".join(sorted(cluster.placements())[:20]) or "none"
        raise AssertionError(f"there is no pod {namespace}/{name}; the pods are: {others}") from None


def _parts(key: str) -> tuple[str, str]:
    namespace, _slash, name = key.rpartition("/")
    return namespace or "default", name


def _nodes(cluster: _Cluster) -> list[str]:
    placements = list(cluster.placements().values())
    return [
        f"{name} ({placements.count(name)} pods)"
        for name in [stored.key for stored in cluster.api.store.collection("nodes").in_order()][:20]
    ]


def _list_events(events: Sequence[CoreEvent]) -> str:
    if not events:
        return "there are no events about it"
    shown = [f"{one.type} {one.reason}: {one.message}" for one in events[-_MAX_EVENTS:]]
    return "events:\n    " + "\n    ".join(shown)
