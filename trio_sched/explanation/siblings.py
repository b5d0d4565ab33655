"""The other pods that are changed as the pod in question is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from attrs import evolve

from trio_sched.engine.scheduler import Scheduler
from trio_sched.explanation.owners import controller_of, is_of, siblings_of
from trio_sched.explanation.pod_groups import PodGroupOfPod
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.clauses import Edit

_MAX_SIBLINGS: Final = 20
"""Pending pods of a Job that are changed together."""


def changed_together(scheduler: Scheduler, pod: Pod, group: PodGroupOfPod) -> list[Pod]:
    """The other pods of the *group* of *pod* that wait for each other; else the pending ones of its Job."""
    if group.is_scheduled:
        is_whole = group.is_all_or_nothing or group.group() is None
        return [one for one in group.waiting_members() if is_whole and one.uid != pod.uid]
    pending = scheduler.cache.unassigned.pods() if _is_of_job(pod) else []
    return siblings_of(pod, pending)[:_MAX_SIBLINGS]


def for_siblings(
    pod: Pod, edits: Sequence[Edit], siblings: Sequence[Pod], is_in_place: Callable[[Edit], bool]
) -> Iterator[Edit]:
    """*edits*; what is done to *pod* is done to *siblings* as well.

    Nobody does it where they have the template of the pod, unless a Job has it, of which pods are changed in place.
    """
    owner = controller_of(pod)
    for edit in edits:
        yield edit
        if edit.kind == "Pod" and (edit.namespace, edit.name) == (pod.namespace, pod.name):
            has_template = not _is_of_job(pod) or not is_in_place(edit)
            for one in siblings:
                is_done = edit.is_consequence or (is_of(owner, one) and has_template)
                yield evolve(edit, name=one.name, is_consequence=is_done)


def _is_of_job(pod: Pod) -> bool:
    owner = controller_of(pod)
    return owner is not None and owner.kind == "Job"
