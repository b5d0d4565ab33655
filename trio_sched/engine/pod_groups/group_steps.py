"""The steps of an attempt to schedule a pod group: what it asks of the daemon, since nothing in the engine waits."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import TypeVar

from attrs import frozen

from trio_sched.engine.evaluation.decision import ScheduleResult, SchedulingFailure
from trio_sched.engine.evaluation.extender_cycle import NodesForExtenders
from trio_sched.engine.hooks.plugin_calls import HookCall
from trio_sched.engine.queue.queued_pod import QueuedPodInfo

T = TypeVar("T")


@frozen(eq=False)
class AskExtenders:
    """The step of asking extenders about a pod; its result is what they left of which nodes, or a failure."""

    info: QueuedPodInfo
    feasible: NodesForExtenders
    find_again: Callable[[], NodesForExtenders | SchedulingFailure]
    """Finds feasible nodes other than the pod's nominated one."""


@frozen(eq=False)
class Pause:
    """The step of letting other tasks run; nothing is assumed."""


Assumed = list[tuple[QueuedPodInfo, ScheduleResult, str | None]]
"""Pods that are assumed, where, and the node that each is nominated to."""
GroupStep = HookCall | AskExtenders | Pause
GroupSteps = Generator[GroupStep, object, T]


def at_once(steps: GroupSteps[T]) -> T:
    """The outcome of steps of which none asks for anything."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            outcome: T = stop.value
            return outcome


def in_order(infos: Iterable[QueuedPodInfo]) -> list[QueuedPodInfo]:
    """The order in which the pods of a group are scheduled: by priority, then by when they were tried first."""
    return sorted(infos, key=lambda info: (-info.pod.priority, info.initial_attempt_timestamp or 0.0))
