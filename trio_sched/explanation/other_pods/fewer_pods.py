"""Workloads with fewer pods: of the pod's own as many as can run, of others none where all of theirs are in the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from attrs import evolve
from msgspec import Struct, structs

from trio_sched.explanation.owners import Workload, siblings_of, workload_behind
from trio_sched.explanation.trial import EditedObject, Trial
from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.clauses import Change, Edit, some_names

SCALED: Final = frozenset({"Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"})
"""Kinds with a number of pods that can be changed."""


class Replicas(Struct, frozen=True):
    """``spec`` of a workload, as far as it is about its number of pods."""

    replicas: int


class Parallelism(Struct, frozen=True):
    """``spec`` of a Job, as far as it is about its number of pods."""

    parallelism: int


class ScaledWorkload(Struct, frozen=True):
    """A workload with a number of pods."""

    metadata: ObjectMeta
    spec: Replicas | Parallelism


def fewer_of_its_own(trial: Trial) -> tuple[Change, EditedObject, Pod] | None:
    """The workload of the pod with no more pods than run, and one that runs; None if it cannot have fewer.

    Controllers delete pods without a node before others, those of a StatefulSet with the highest numbers.
    """
    pod, workload = trial.pod, workload_behind(trial.pod)
    if workload is None or workload.kind not in SCALED:
        return None
    running = siblings_of(pod, (one.pod_on_node for one in trial.scheduler.cache))
    pending = [pod, *siblings_of(pod, trial.scheduler.cache.unassigned.pods())]
    if not running or (workload.kind == "StatefulSet" and min(map(_number, pending)) < max(map(_number, running))):
        return None
    number = len(running)
    edit = _scaled(trial, pod, workload, number + len(pending), number)
    gone = "the pod" if len(pending) == 1 else f"the {len(pending)} pods"
    at_once = " at a time" if workload.kind == "Job" else ""
    change = Change(
        title=f"scale {workload.kind} {workload.name} to {number}{at_once}",
        edits=(edit,),
        note=f"{gone} without a node will be deleted, not {some_names([one.key for one in running])}",
    )
    old = trial.current(edit)
    edited = EditedObject(kind=workload.kind, name=workload.name, namespace=pod.namespace, old=old, new=edit.apply(old))
    return change, edited, running[0]


def _number(pod: Pod) -> int:
    """The number of a pod of a StatefulSet."""
    number = pod.name.rpartition("-")[2]
    return int(number) if number.isascii() and number.isdigit() and len(number) < 10 else 0


def none_of_others(trial: Trial, change: Change, deleted: Sequence[Pod]) -> Iterator[Change]:
    """*change*, which deletes pods that controllers make again, with their workloads scaled down to none.

    Only where all pods of these workloads are deleted: of others nobody knows which pods go.
    """
    scaled: dict[tuple[str, Workload], list[Pod]] = {}
    for pod in deleted:
        workload = workload_behind(pod)
        if workload is None or workload.kind not in SCALED or not _has_no_other(pod, deleted, trial):
            return
        scaled.setdefault((pod.namespace, workload), []).append(pod)
    edits = [_scaled(trial, pods[0], workload, len(pods), 0) for (_namespace, workload), pods in scaled.items()]
    names = " and ".join(f"{workload.kind} {namespace}/{workload.name}" for namespace, workload in scaled)
    done = [evolve(one, is_consequence=True) for one in change.edits]
    yield evolve(
        change, title=f"scale {names} to 0", edits=(*edits, *done), note="no pods are made in place of those that go"
    )


def _has_no_other(pod: Pod, deleted: Sequence[Pod], trial: Trial) -> bool:
    """Whether the workload of *pod* has no pods but *deleted*."""
    workload, uids = workload_behind(pod), {one.uid for one in deleted}
    cache = trial.scheduler.cache
    there = (*(one.pod_on_node for one in cache), *cache.unassigned.pods())
    return all(one.uid in uids for one in there if one.namespace == pod.namespace and workload_behind(one) == workload)


def _scaled(trial: Trial, pod: Pod, workload: Workload, before: int, after: int) -> Edit:
    """The *workload* of *pod* with *after* pods instead of *before*."""
    metadata = ObjectMeta(name=workload.name, namespace=pod.namespace)
    number: Callable[[int], Replicas | Parallelism] = Parallelism if workload.kind == "Job" else Replicas
    now = ScaledWorkload(metadata=metadata, spec=number(before))
    trial.assume(workload.kind, now)
    return Edit(
        kind=workload.kind,
        name=workload.name,
        namespace=pod.namespace,
        apply=lambda one: structs.replace(one, spec=number(after)),
    )
