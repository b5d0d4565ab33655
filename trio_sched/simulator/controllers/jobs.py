"""A simulated job controller: pods until as many have succeeded as are asked for."""

from typing import Any, ClassVar, Final

from attrs import define, field

from trio_sched.simulator.controllers.deployment_status import condition
from trio_sched.simulator.controllers.job_pods import (
    INDEX,
    INDEX_FAILURES,
    TRACKING,
    backoff_until,
    failure_verdict,
    failures_of_index,
    finished_at,
    has_failed,
    index_of,
    is_uncounted,
    read_indexes,
    succeeds_by_policy,
    written_indexes,
)
from trio_sched.simulator.controllers.pod_states import (
    condition_of,
    is_active,
    is_ready,
    is_terminating,
    phase_of,
    unix_time,
)
from trio_sched.simulator.controllers.rollout_sizes import status_of
from trio_sched.simulator.controllers.workload_controller import WorkloadController, without_zeros
from trio_sched.simulator.kubelet import EXIT_CODE, RUN_SECONDS
from trio_sched.simulator.lifecycle import drop_finalizer
from trio_sched.simulator.object_store import Change, StoredObject, copied

Json = dict[str, Any]

_MOST_AT_ONCE: Final = 500


@define
class _Counts:
    """What is counted anew in one look at a Job, and what it comes to."""

    succeeded: int
    failed: int
    done: set[int]
    lost: set[int]
    fails: Json | None = None


@define(eq=False)
class JobController(WorkloadController):
    """Creates the pods of Jobs, counts how they end, and deletes finished Jobs in time."""

    api_version: ClassVar[str] = "batch/v1"
    kind: ClassVar[str] = "Job"
    component: ClassVar[str] = "job-controller"
    _streaks: dict[str, tuple[int, float]] = field(factory=dict, init=False)
    """UID of a Job → how many pods failed in a row, and when the last of them did."""

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self.pods.follow(self.kind, self._on_pod)

    def _on_pod(self, key: str, change: Change) -> None:
        """Let go of a pod whose Job is gone, and which nobody counts any more."""
        if change.type != "DELETED" and self.stored(key) is None:
            self._steps.plan(self._release_orphan, change.current.key, 0.1)

    def _release_orphan(self, key: str) -> None:
        pod = self.server.store.get("pods", key)
        if pod is not None and is_uncounted(pod):
            self._release(pod)

    def sync(self, key: str) -> None:
        """Count the pods that have ended, and create or delete pods."""
        stored = self.stored(key)
        if stored is None:
            return
        if stored.fields["spec"].get("managedBy") not in (None, "", "kubernetes.io/job-controller"):
            return
        pods = self.claim(stored, self.selector_of(stored.fields), self.pods)
        if self._is_finished(stored):
            for pod in filter(is_uncounted, pods):
                self._release(pod)
            self._expire(stored)
            return
        status = self._begin(stored)
        counts = self._count(stored, status, pods)
        conditions = list(status.get("conditions") or ())
        ending = next((one for one in conditions if one["type"] in ("SuccessCriteriaMet", "FailureTarget")), None)
        if ending is None:
            ending = self._outcome(stored, status, counts, pods)
            if ending is not None:
                conditions.append(self._dated(ending))
        live = [pod for pod in self._again(pods) if is_active(pod.fields)]
        try:
            if ending is not None:
                for pod in live:
                    self.delete_pod(stored, pod)
            elif stored.fields["spec"].get("suspend"):
                self._dismiss(stored, live)
            elif not is_terminating(stored.fields):
                self._manage(stored, counts, live, pods)
        finally:
            self._write(stored, status, counts, conditions, ending)

    def _again(self, pods: list[StoredObject]) -> list[StoredObject]:
        """*pods* as they are stored now."""
        current = (self.server.store.get("pods", pod.key) for pod in pods)
        return [pod for pod in current if pod is not None]

    # --- counting ---------------------------------------------------------------------------------------------------

    def _begin(self, stored: StoredObject) -> Json:
        """The status with its start; suspending and resuming begin anew."""
        status, moment = dict(status_of(stored)), self.server.state.timestamp()
        suspended = bool(stored.fields["spec"].get("suspend"))
        noted = condition_of(stored.fields, "Suspended")
        others = [one for one in status.get("conditions") or () if one is not noted]
        if suspended and (noted is None or noted.get("status") != "True"):
            fresh = condition("Suspended", "True", "JobSuspended", "Job suspended")
            status["conditions"] = [*others, self._dated(fresh)]
            status.pop("startTime", None)
            self.tell(stored, "Suspended", "Job suspended")
        elif not suspended and noted is not None and noted.get("status") == "True":
            fresh = condition("Suspended", "False", "JobResumed", "Job resumed")
            status["conditions"] = [*others, self._dated(fresh)]
            status["startTime"] = moment
            self.tell(stored, "Resumed", "Job resumed")
        elif not suspended:
            status.setdefault("startTime", moment)
        return status

    def _count(self, stored: StoredObject, status: Json, pods: list[StoredObject]) -> _Counts:
        spec, uid = stored.fields["spec"], stored.fields["metadata"]["uid"]
        counts = _Counts(
            status.get("succeeded", 0),
            status.get("failed", 0),
            read_indexes(status.get("completedIndexes")),
            read_indexes(status.get("failedIndexes")),
        )
        indexed = spec.get("completionMode") == "Indexed"
        for pod in sorted(filter(is_uncounted, pods), key=finished_at):
            index = index_of(pod)
            if phase_of(pod.fields) == "Succeeded":
                if indexed and (index is None or index in counts.done or index >= spec.get("completions", 0)):
                    self._release(pod)
                    continue
                counts.succeeded += 1
                self._streaks.pop(uid, None)
                if index is not None:
                    counts.done.add(index)
            elif has_failed(spec, pod):
                verdict = failure_verdict(spec, pod)
                if verdict.action == "FailJob" and counts.fails is None:
                    counts.fails = condition("FailureTarget", "True", "PodFailurePolicy", verdict.message)
                if verdict.action != "Ignore":
                    counts.failed += 1
                    self._streaks[uid] = (self._streaks.get(uid, (0, 0.0))[0] + 1, finished_at(pod))
                    limit = spec.get("backoffLimitPerIndex")
                    lost = verdict.action == "FailIndex" or (limit is not None and failures_of_index(pod) >= limit)
                    if index is not None and lost:
                        counts.lost.add(index)
            else:
                continue
            self._release(pod)
        return counts

    def _release(self, pod: StoredObject) -> None:
        """Take the finalizer off a pod; one that was only waiting for that is gone."""
        state, resource = self.server.state, self.server.state.types.core("pods")
        current = state.store.get("pods", pod.key)
        if current is None:
            return
        drop_finalizer(state, resource, current, TRACKING)

    def _dismiss(self, stored: StoredObject, pods: list[StoredObject]) -> None:
        """Delete pods that are too many; these count neither as succeeded nor as failed."""
        for pod in pods:
            self._release(pod)
            self.delete_pod(stored, pod)

    def _outcome(self, stored: StoredObject, status: Json, counts: _Counts, pods: list[StoredObject]) -> Json | None:
        """The condition that decides how the Job ends; None if it goes on."""
        spec, wanted = stored.fields["spec"], stored.fields["spec"].get("completions")
        if counts.fails is not None:
            return counts.fails
        if counts.failed > spec.get("backoffLimit", 6):
            why = "Job has reached the specified backoff limit"
            return condition("FailureTarget", "True", "BackoffLimitExceeded", why)
        deadline, began = spec.get("activeDeadlineSeconds"), unix_time(status.get("startTime"))
        if deadline is not None and began is not None and not spec.get("suspend"):
            left = began + deadline - self.now()
            if left <= 0:
                why = "Job was active longer than specified deadline"
                return condition("FailureTarget", "True", "DeadlineExceeded", why)
            self.plan_after(stored.key, left)
        if len(counts.lost) > spec.get("maxFailedIndexes", len(counts.lost)):
            why = "Job has exceeded the specified maximal number of failed indexes"
            return condition("FailureTarget", "True", "MaxFailedIndexesExceeded", why)
        if counts.lost and wanted is not None and len(counts.lost | counts.done) >= wanted:
            return condition("FailureTarget", "True", "FailedIndexes", "Job has failed indexes")
        by_policy = succeeds_by_policy(spec, counts.done)
        if by_policy is not None:
            return condition("SuccessCriteriaMet", "True", "SuccessPolicy", by_policy)
        active = any(is_active(pod.fields) for pod in self._again(pods))
        if counts.succeeded >= wanted if wanted is not None else counts.succeeded and not active:
            why = "Reached expected number of succeeded pods"
            return condition("SuccessCriteriaMet", "True", "CompletionsReached", why)
        return None

    # --- pods -------------------------------------------------------------------------------------------------------

    def _manage(
        self, stored: StoredObject, counts: _Counts, live: list[StoredObject], pods: list[StoredObject]
    ) -> None:
        spec, completions = stored.fields["spec"], stored.fields["spec"].get("completions")
        wanted = spec.get("parallelism", 1)
        if completions is not None:
            wanted = min(wanted, max(completions - counts.succeeded, 0))
        elif counts.succeeded:
            wanted = min(wanted, len(live))
        if len(live) > wanted:
            ranked = sorted(
                live, key=lambda pod: (phase_of(pod.fields) == "Running", is_ready(pod.fields), -_born(pod))
            )
            self._dismiss(stored, ranked[: len(live) - wanted])
            return
        if spec.get("podReplacementPolicy") == "Failed" or "podFailurePolicy" in spec:
            leaving = (pod for pod in self._again(pods) if is_terminating(pod.fields) and not _has_ended(pod))
            wanted -= len(list(leaving))
        missing = min(wanted - len(live), _MOST_AT_ONCE)
        if missing <= 0:
            return
        failures, last = self._streaks.get(stored.fields["metadata"]["uid"], (0, 0.0))
        per_index = spec.get("backoffLimitPerIndex") is not None
        wait = 0.0 if per_index else backoff_until(last, failures) - self.now()
        if wait > 0:
            self.plan_after(stored.key, wait)
            return
        if spec.get("completionMode") != "Indexed":
            for number in range(missing):
                self._create(stored, checked=number > 0)
            return
        taken = {index_of(pod) for pod in live} | counts.done | counts.lost
        free = [index for index in range(completions or 0) if index not in taken][:missing]
        for index in free:
            failed = [pod for pod in pods if index_of(pod) == index]
            before = max((failures_of_index(pod) + 1 for pod in failed), default=0)
            last = max(map(finished_at, failed), default=0.0)
            later = backoff_until(last, before) - self.now() if per_index else 0.0
            if later > 0:
                self.plan_after(stored.key, later)
            else:
                self._create(stored, index, before if per_index else None)

    def _create(
        self, stored: StoredObject, index: int | None = None, failures: int | None = None, *, checked: bool = False
    ) -> None:
        template = copied(stored.fields["spec"]["template"])
        job = stored.fields["metadata"]
        metadata = template["metadata"] = dict(template.get("metadata") or {})
        annotations = dict(metadata.get("annotations") or {})
        for name in (RUN_SECONDS, EXIT_CODE):
            if name in (job.get("annotations") or {}):
                annotations.setdefault(name, job["annotations"][name])
        metadata["finalizers"] = [*(metadata.get("finalizers") or ()), TRACKING]
        stem = job["name"]
        if index is not None:
            stem = f"{stem}-{index}"
            annotations[INDEX] = str(index)
            metadata["labels"] = {**(metadata.get("labels") or {}), INDEX: str(index)}
            template["spec"].setdefault("hostname", stem)
            if failures is not None:
                annotations[INDEX_FAILURES] = str(failures)
            source = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}}
            for container in (*template["spec"].get("initContainers", ()), *template["spec"]["containers"]):
                given = container.get("env") or []
                if all(one.get("name") != "JOB_COMPLETION_INDEX" for one in given):
                    container["env"] = [*given, {"name": "JOB_COMPLETION_INDEX", "valueFrom": source}]
        if annotations:
            metadata["annotations"] = annotations
        self.create_pod(stored, template, stem=stem, checked=checked)

    # --- status -----------------------------------------------------------------------------------------------------

    def _dated(self, fresh: Json) -> Json:
        moment = self.server.state.timestamp()
        dates = {"lastProbeTime": moment, "lastTransitionTime": moment}
        return {"type": fresh["type"], "status": fresh["status"], **dates, **fresh}

    def _is_finished(self, stored: StoredObject) -> bool:
        return any(
            (found := condition_of(stored.fields, kind)) is not None and found.get("status") == "True"
            for kind in ("Complete", "Failed")
        )

    def _write(
        self, stored: StoredObject, status: Json, counts: _Counts, conditions: list[Json], ending: Json | None
    ) -> None:
        pods = self.claim(stored, self.selector_of(stored.fields), self.pods)
        live = [pod for pod in pods if is_active(pod.fields)]
        leaving = sum(is_terminating(pod.fields) and not _has_ended(pod) for pod in pods)
        fresh: Json = {**status, "conditions": conditions}
        fresh |= {"active": len(live), "ready": sum(is_ready(pod.fields) for pod in live), "terminating": leaving}
        fresh |= {"succeeded": counts.succeeded, "failed": counts.failed, "uncountedTerminatedPods": {}}
        if stored.fields["spec"].get("completionMode") == "Indexed":
            fresh["completedIndexes"] = written_indexes(counts.done)
            if stored.fields["spec"].get("backoffLimitPerIndex") is not None:
                fresh["failedIndexes"] = written_indexes(counts.lost)
        if ending is not None and not live and not leaving:
            kind = "Complete" if ending["type"] == "SuccessCriteriaMet" else "Failed"
            last = self._dated(condition(kind, "True", ending.get("reason", ""), ending.get("message", "")))
            fresh["conditions"] = [*conditions, last]
            if kind == "Complete":
                fresh["completionTime"] = self.server.state.timestamp()
                if counts.succeeded > stored.fields["spec"].get("completions", counts.succeeded):
                    why = "Too many succeeded pods running after completion count reached"
                    self.warn(stored, "TooManySucceededPods", why)
                self.tell(stored, "Completed", "Job completed")
            else:
                self.warn(stored, last["reason"], last["message"])
            self._streaks.pop(stored.fields["metadata"]["uid"], None)
        self.write_status(stored, without_zeros(fresh, "ready", "terminating", "uncountedTerminatedPods"))

    def _expire(self, stored: StoredObject) -> None:
        """Delete a finished Job when its time is over."""
        seconds = stored.fields["spec"].get("ttlSecondsAfterFinished")
        ends = [condition_of(stored.fields, kind) for kind in ("Complete", "Failed")]
        moments = [unix_time(one.get("lastTransitionTime")) for one in ends if one is not None]
        if seconds is None or is_terminating(stored.fields):
            return
        left = max((moment for moment in moments if moment is not None), default=self.now()) + seconds - self.now()
        if left > 0:
            self.plan_after(stored.key, left)
        else:
            self.delete(self.resource, stored)


def _has_ended(pod: StoredObject) -> bool:
    return phase_of(pod.fields) in ("Succeeded", "Failed")


def _born(pod: StoredObject) -> float:
    return unix_time(pod.fields["metadata"].get("creationTimestamp")) or 0.0
