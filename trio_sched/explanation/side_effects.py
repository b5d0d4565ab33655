"""What else happens once a change is made: where evicted pods would go, and who could take the place first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from heapq import nsmallest
from itertools import islice
from typing import Final

from msgspec import structs

from trio_sched.engine.evaluation.decision import ScheduleResult
from trio_sched.explanation.owners import controller_of
from trio_sched.explanation.trial import EditedObject, Trial
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.clauses import some_names

_MAX_RIVALS: Final = 20
"""Other pending pods that are placed first."""
_MAX_ELIGIBLE: Final = 1_000
"""So many pending pods are compared for that; there can be tens of thousands."""


def side_effects(
    trial: Trial, edited: list[EditedObject], pod: Pod, node_name: str, rivals: Sequence[Pod], *, comes_back: bool
) -> Iterator[str]:
    """What to know of a change that is made.

    Args:
        trial: in which it is made.
        edited: what it changes.
        pod: the pod in question, as the change leaves it.
        node_name: where it would run.
        rivals: the pods that could take its place.
        comes_back: whether those could that controllers make in place of pods that are deleted.
    """
    if rivals:
        are = "is" if len(rivals) == 1 else "are"
        yield f"{some_names([one.key for one in rivals])}, which {are} pending too, could take this place first"
    victims = [one.old for one in edited if _is_eviction(one)]
    if comes_back:
        yield "what their controllers make in their place could take this place first"
    with placed(trial, pod, node_name), replaced(trial, victims) as replacements:
        for victim, went_to in zip(victims, replacements, strict=True):
            yield from _said_of_replacement(victim, went_to)


def rivals_of(trial: Trial, pod: Pod, node_name: str) -> list[Pod]:
    """Pending pods of at least the same priority that together take the place of *pod*, and leave none for it.

    They are placed one after the other, those of the highest priority first, until *pod* fits nowhere; given are those
    that are on its node then.
    """
    scheduler, there = trial.scheduler, []
    eligible = (one for one in scheduler.cache.unassigned.pods() if _may_come_first(trial, one, pod))
    others = nsmallest(_MAX_RIVALS, islice(eligible, _MAX_ELIGIBLE), key=_queue_order)
    with ExitStack() as stack:
        for other in others:
            decision = scheduler.try_pod(other)
            if not isinstance(decision, ScheduleResult) or decision.node_name == other.nominated_node_name:
                continue  # where it is nominated it counts already
            stack.enter_context(placed(trial, other, decision.node_name))
            if decision.node_name == node_name:
                there.append(other)
                if not isinstance(scheduler.try_pod(pod), ScheduleResult):
                    return there
    return []


def replacements_come_first(trial: Trial, edited: Iterable[EditedObject], pod: Pod) -> bool:
    """Whether the pods that controllers make in place of those that are deleted could leave *pod* no place.

    Only those count that *pod* does not evict in their turn.
    """
    victims = [one.old for one in edited if _is_eviction(one) and one.old.priority >= pod.priority]
    if not any(controller_of(one) is not None for one in victims):
        return False
    with replaced(trial, victims):
        return not isinstance(trial.scheduler.try_pod(pod), ScheduleResult)


def _is_eviction(one: EditedObject) -> bool:
    is_left = one.new is not None or one.is_consequence
    return one.kind == "Pod" and not is_left and one.old.metadata.deletion_timestamp is None


def _said_of_replacement(victim: Pod, went_to: str | None) -> Iterator[str]:
    controller = controller_of(victim)
    if controller is None:
        yield f"nothing recreates {victim.key}"
    elif went_to is not None:
        made = f"{controller.kind} {controller.name} makes a new pod in place of {victim.key}"
        yield f"{made}, which would {f'go to {went_to}' if went_to else 'be pending'}"


@contextmanager
def replaced(trial: Trial, victims: Iterable[Pod]) -> Iterator[list[str | None]]:
    """The pods that controllers make in place of *victims* are on nodes while in the block.

    They are placed one after the other. Gives where each of them is: empty if it is pending, None if nothing recreates
    the pod, or another scheduler places it.
    """
    found: list[str | None] = []
    with ExitStack() as stack:
        for victim in victims:
            if controller_of(victim) is None or victim.scheduler_name not in trial.scheduler.profiles:
                found.append(None)
                continue
            metadata = structs.replace(victim.metadata, uid=f"{victim.uid}-next", name=f"{victim.name}-next")
            replacement = without_node(structs.replace(victim, metadata=metadata))
            decision = trial.scheduler.try_pod(replacement)
            node_name = decision.node_name if isinstance(decision, ScheduleResult) else ""
            if node_name:
                stack.enter_context(placed(trial, replacement, node_name))
            found.append(node_name)
        yield found


def _queue_order(pod: Pod) -> tuple[int, str]:
    return -pod.priority, pod.metadata.creation_timestamp or ""


def _may_come_first(trial: Trial, other: Pod, pod: Pod) -> bool:
    return (
        other.uid != pod.uid
        and other.priority >= pod.priority
        and other.scheduler_name in trial.scheduler.profiles
        and not other.spec.scheduling_gates
    )


@contextmanager
def placed(trial: Trial, pod: Pod, node_name: str) -> Iterator[None]:
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


def without_node(pod: Pod) -> Pod:
    """*pod* as it was before it had a node."""
    spec = structs.replace(pod.spec, node_name="")
    status = structs.replace(pod.status, phase="Pending", nominated_node_name="")
    return structs.replace(pod, spec=spec, status=status)
