"""What else happens once a change is made: where evicted pods would go, and who could take the place first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from msgspec import structs

from trio_sched.engine.evaluation.decision import ScheduleResult
from trio_sched.explanation.commands import controller_of
from trio_sched.explanation.trial import EditedObject, Trial, without_node
from trio_sched.objects.pod import Pod

_MAX_RIVALS: Final = 20
"""Other pending pods that are looked at."""


def side_effects(trial: Trial, edited: list[EditedObject], pod: Pod, node_name: str) -> Iterator[str]:
    """What to know of a change that is made.

    Args:
        trial: in which it is made.
        edited: what it changes.
        pod: the pod in question, as the change leaves it.
        node_name: where it would run.
    """
    rival = _rival(trial, pod, node_name)
    if rival is not None:
        yield f"{rival.key}, which is pending too, could take this place first"
    with _placed(trial, pod, node_name):
        for one in edited:
            if one.kind == "Pod" and one.new is None and one.old.metadata.deletion_timestamp is None:
                yield from _moved(trial, one.old)


def _moved(trial: Trial, victim: Pod) -> Iterator[str]:
    """Where the pod would go that its controller makes in place of *victim*."""
    controller = controller_of(victim)
    if controller is None:
        yield f"nothing makes {victim.key} anew"
        return
    metadata = structs.replace(victim.metadata, uid=f"{victim.uid}-anew", name=f"{victim.name}-anew")
    again = without_node(structs.replace(victim, metadata=metadata))
    if again.scheduler_name not in trial.scheduler.profiles:
        return
    decision = trial.scheduler.try_pod(again)
    made = f"{controller.kind} {controller.name} makes a new pod in place of {victim.key}"
    if isinstance(decision, ScheduleResult):
        yield f"{made}, which would go to {decision.node_name}"
    else:
        yield f"{made}, which would be pending"


def _rival(trial: Trial, pod: Pod, node_name: str) -> Pod | None:
    """A pending pod of at least the same priority that would take the place of *pod*, and leave none for it."""
    scheduler, looked_at = trial.scheduler, 0
    for other in scheduler.cache.unassigned.pods():
        if other.uid == pod.uid or other.priority < pod.priority or other.scheduler_name not in scheduler.profiles:
            continue
        if other.spec.scheduling_gates:
            continue
        looked_at += 1
        if looked_at > _MAX_RIVALS:
            return None
        decision = scheduler.try_pod(other)
        if isinstance(decision, ScheduleResult) and decision.node_name == node_name:
            with _placed(trial, other, node_name):
                if not isinstance(scheduler.try_pod(pod), ScheduleResult):
                    return other
    return None


@contextmanager
def _placed(trial: Trial, pod: Pod, node_name: str) -> Iterator[None]:
    """*pod* is on the node while in the block."""
    cache = trial.scheduler.cache
    uid = f"{pod.uid}-placed"
    metadata = structs.replace(pod.metadata, uid=uid)
    spec = structs.replace(pod.spec, node_name=node_name, scheduling_group=None)
    cache.add(structs.replace(pod, metadata=metadata, spec=spec))
    try:
        yield
    finally:
        cache.remove(uid)
