"""What the pods of a Job come to: counts, indexes that are done or have failed, what its podFailurePolicy ends.

Source: ``syncJob`` and ``trackJobStatusAndRemoveFinalizers`` of kube-controller-manager.
"""

from collections.abc import Iterable

from attrs import define, field

from trio_sched.documents.json_values import Json
from trio_sched.simulator.controllers.workloads.deployment_status import condition
from trio_sched.simulator.controllers.workloads.job_indexes import (
    failures_of_index,
    ignored_failures_of_index,
    index_of,
    read_indexes,
    written_indexes,
)
from trio_sched.simulator.controllers.workloads.job_pods import finished_at, has_failed, is_uncounted
from trio_sched.simulator.controllers.workloads.job_policies import failure_verdict
from trio_sched.simulator.kubelets.pod_states import is_active, is_terminating
from trio_sched.simulator.pods.pod_phase import is_finished, phase_of
from trio_sched.simulator.storage.object_store import StoredObject


@define
class JobCounts:
    """The counts of a Job with what its pods add to them.

    Attributes:
        succeeded: pods.
        failed: pods.
        done: indexes that have succeeded.
        lost: indexes that have failed for good.
        fails: the condition by which the pod failure policy ends the Job.
        settled: the pods that are counted now, or are not to be; their finalizer is taken off.
        replaceable: index → its last failed pod, which is kept until another one takes its place and its failures over.
        ends: the pods that have ended since the last look, in the order of their ends, and whether each has failed.
    """

    succeeded: int
    failed: int
    done: set[int]
    lost: set[int]
    fails: Json | None = None
    settled: list[StoredObject] = field(factory=list)
    replaceable: dict[int, StoredObject] = field(factory=dict)
    ends: list[tuple[StoredObject, bool]] = field(factory=list)

    def settle_rest(self, spec: Json, pods: Iterable[StoredObject], *, as_failed: bool) -> None:
        """Settle the pods that have not ended, as the Job ends; if it fails, they count as failed."""
        known = {pod.key for pod in self.settled}
        for pod in filter(is_uncounted, pods):
            if pod.key in known:
                continue
            self.settled.append(pod)
            if as_failed and is_countable(spec, pod) and failure_verdict(spec, pod).action != "Ignore":
                self.failed += 1

    def fields(self, spec: Json) -> Json:
        """The part of the status of the Job that says them."""
        told: Json = {"succeeded": self.succeeded, "failed": self.failed, "uncountedTerminatedPods": {}}
        if spec.get("completionMode") == "Indexed":
            told["completedIndexes"] = written_indexes(self.done)
            if spec.get("backoffLimitPerIndex") is not None:
                told["failedIndexes"] = written_indexes(self.lost)
        return told


def is_countable(spec: Json, pod: StoredObject) -> bool:
    """Whether a pod has an index of the Job of *spec*, if it is an indexed one."""
    if spec.get("completionMode") != "Indexed":
        return True
    index = index_of(pod)
    return index is not None and index < spec.get("completions", 0)


def counted(spec: Json, status: Json, pods: list[StoredObject], *, leaves: bool) -> JobCounts:
    """What *pods* add to the *status* of a Job; all of them are settled if it *leaves*, being deleted."""
    completions = spec.get("completions") or 0
    counts = JobCounts(
        status.get("succeeded", 0),
        status.get("failed", 0),
        read_indexes(status.get("completedIndexes"), completions),
        read_indexes(status.get("failedIndexes"), completions),
    )
    for pod in pods:
        if counts.fails is None and has_failed(spec, pod):
            verdict = failure_verdict(spec, pod)
            if verdict.action == "FailJob":
                counts.fails = condition("FailureTarget", "True", "PodFailurePolicy", verdict.message)
    uncounted = sorted(filter(is_uncounted, pods), key=finished_at)
    valid = [pod for pod in uncounted if is_countable(spec, pod)]
    _note_indexes(counts, spec, valid)
    if spec.get("backoffLimitPerIndex") is not None:
        counts.replaceable = _replaceable(counts, spec, valid, pods)
    kept = set() if leaves else {pod.key for pod in counts.replaceable.values()}
    for pod in uncounted:
        succeeded, failed = phase_of(pod.fields) == "Succeeded", has_failed(spec, pod)
        if not (succeeded or failed or leaves):
            continue
        if is_countable(spec, pod) and (succeeded or failed):
            counts.ends.append((pod, failed))
        if pod.key in kept:
            continue
        counts.settled.append(pod)
        if succeeded:
            counts.succeeded += 1
        elif failed and is_countable(spec, pod) and failure_verdict(spec, pod).action != "Ignore":
            counts.failed += 1
    if spec.get("completionMode") == "Indexed":
        counts.succeeded = len(counts.done)
    return counts


def _note_indexes(counts: JobCounts, spec: Json, pods: list[StoredObject]) -> None:
    """Note the indexes of pods that have succeeded, and those of which too many have failed."""
    limit = spec.get("backoffLimitPerIndex")
    for pod in pods:
        index = index_of(pod)
        if index is None:
            continue
        if phase_of(pod.fields) == "Succeeded":
            counts.done.add(index)
        elif limit is not None and has_failed(spec, pod):
            action = failure_verdict(spec, pod).action
            if action == "FailIndex" or (action != "Ignore" and failures_of_index(pod) >= limit):
                counts.lost.add(index)


def _replaceable(
    counts: JobCounts, spec: Json, valid: list[StoredObject], pods: list[StoredObject]
) -> dict[int, StoredObject]:
    found: dict[int, StoredObject] = {}
    settled = counts.done | counts.lost | {index_of(pod) for pod in pods if is_active(pod.fields)}
    for pod in valid:
        index = index_of(pod)
        if index is None or index in settled or not has_failed(spec, pod):
            continue
        if index not in found or _absolute_failures(found[index]) <= _absolute_failures(pod):
            found[index] = pod
    return found


def _absolute_failures(pod: StoredObject) -> int:
    return failures_of_index(pod) + ignored_failures_of_index(pod)


def failures_with(spec: Json, pod: StoredObject) -> tuple[int, int]:
    """How many pods of its index have failed with this one, and how many of them do not count."""
    ignored = failure_verdict(spec, pod).action == "Ignore"
    return failures_of_index(pod) + (not ignored), ignored_failures_of_index(pod) + ignored


def is_leaving(pod: StoredObject) -> bool:
    """Whether a pod is being deleted and has not ended."""
    return is_terminating(pod.fields) and not is_finished(pod.fields)
