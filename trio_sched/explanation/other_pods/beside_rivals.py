"""Changes after which the pod runs although other pending pods have their places first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import Final

from trio_sched.engine.evaluation.decision import ScheduleResult
from trio_sched.engine.evaluation.filtering import NominatedPods
from trio_sched.explanation.analysis import analyse
from trio_sched.explanation.side_effects import placed
from trio_sched.explanation.trial import Trial
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.clauses import Change

_MOST: Final = 3
"""Changes that are made besides one."""


def beside_rivals(trial: Trial, change: Change, pod: Pod, rivals: Sequence[Pod]) -> list[Change]:
    """*change* together with what else the pod needs once *rivals* have the places that they take.

    Args:
        trial: in which the change is made.
        change: lets the pod run as long as it comes first.
        pod: the pod, as the change leaves it.
        rivals: pending pods that leave it no place.
    """
    scheduler = trial.scheduler
    with ExitStack() as stack:
        for one in rivals:
            decision = scheduler.try_pod(one)
            if isinstance(decision, ScheduleResult):
                stack.enter_context(placed(trial, one, decision.node_name))
        return [change & one for one in islice(_needed(trial, pod, scheduler.nominated_before(pod)), _MOST)]


def beside_nominated(trial: Trial) -> list[Change]:
    """What the pod needs besides the pods that are nominated to nodes and come before it."""
    with ExitStack() as stack:
        for node_name, pods in trial.scheduler.nominated_before(trial.pod).items():
            for one in pods if node_name in trial.scheduler.cache.table.row_of else ():
                stack.enter_context(placed(trial, one.pod, node_name))
        return list(islice(_needed(trial, trial.pod, {}), _MOST))


def _needed(trial: Trial, pod: Pod, nominated: NominatedPods) -> Iterator[Change]:
    """Changes of the pod and of nodes that meet the one requirement that is not met somewhere."""
    scheduler = trial.scheduler
    analysis = analyse(scheduler.profiles[pod.scheduler_name], scheduler.cache.table, pod, nominated)
    for clauses, _count in analysis.failing_sets():
        for change in clauses[0].changes(analysis.passes_without(clauses)) if len(clauses) == 1 else ():
            if all(one.kind == "Node" or (one.kind, one.namespace, one.name) == _id(pod) for one in change.edits):
                yield change


def _id(pod: Pod) -> tuple[str, str, str]:
    return "Pod", pod.namespace, pod.name
