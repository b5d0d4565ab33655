"""A simulated job controller: pods until as many have succeeded as are asked for."""

from itertools import islice
from typing import ClassVar, Final

from attrs import define, field

from trio_sched.documents.json_values import Json
from trio_sched.simulator.controllers.workloads.controlled_objects import ControlledObjects
from trio_sched.simulator.controllers.workloads.deployment_status import condition
from trio_sched.simulator.controllers.workloads.job_counts import (
    JobCounts,
    counted,
    failures_with,
    is_countable,
    is_leaving,
)
from trio_sched.simulator.controllers.workloads.job_indexes import (
    IGNORED_INDEX_FAILURES,
    INDEX,
    INDEX_FAILURES,
    index_of,
)
from trio_sched.simulator.controllers.workloads.job_pods import TRACKING, backoff_until, finished_at, is_uncounted
from trio_sched.simulator.controllers.workloads.job_policies import replaces_failed_only, succeeds_by_policy
from trio_sched.simulator.controllers.workloads.rollout_sizes import status_of
from trio_sched.simulator.controllers.workloads.workload_controller import WorkloadController, without_zeros
from trio_sched.simulator.kubelets.kubelet import EXIT_CODE, RUN_SECONDS
from trio_sched.simulator.kubelets.pod_states import (
    condition_of,
    is_active,
    is_ready,
    is_terminating,
    unix_time,
)
from trio_sched.simulator.pods.containers import containers_of
from trio_sched.simulator.pods.pod_phase import phase_of
from trio_sched.simulator.registry.lifecycle import drop_finalizer, write_fields
from trio_sched.simulator.storage.object_store import Change, StoredObject, copied

_MOST_AT_ONCE: Final = 500
_ENDINGS: Final = ("SuccessCriteriaMet", "FailureTarget")


@define(eq=False)
class JobController(WorkloadController):
    """Creates the pods of Jobs, counts how they end, and deletes finished Jobs in time."""

    api_version: ClassVar[str] = "batch/v1"
    kind: ClassVar[str] = "Job"
    component: ClassVar[str] = "job-controller"
    retry_seconds: ClassVar[tuple[float, float]] = (1.0, 60.0)
    _streaks: dict[str, tuple[str, int, float]] = field(factory=dict, init=False)
    """Key of a Job → its uid, how many pods failed in a row, and when the last of them did."""

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self.pods.follow(self.kind, self._on_pod)

    def _on_pod(self, key: str, change: Change) -> None:
        """Take the finalizer off a pod whose Job is gone, and which nobody counts any more."""
        if change.type != "DELETED" and self.stored(key) is None:
            self._steps.plan(self._release_orphan, change.current.key, 0.1)

    def _release_orphan(self, key: str) -> None:
        pod = self.server.store.get("pods", key)
        if pod is not None and is_uncounted(pod):
            self._drop_tracking(pod)

    def sync(self, key: str) -> None:
        """Count the pods that have ended, and create or delete pods."""
        stored = self.stored(key)
        if stored is None:
            self._streaks.pop(key, None)
            return
        if stored.fields["spec"].get("managedBy") not in (None, "", "kubernetes.io/job-controller"):
            return
        pods = self.claim(stored, self.selector_of(stored.fields), self.pods)
        if self._is_finished(stored):
            for pod in filter(is_uncounted, pods):
                self._drop_tracking(pod)
            self._expire(stored)
            return
        spec, leaves = stored.fields["spec"], is_terminating(stored.fields)
        status = dict(status_of(stored))
        if not spec.get("suspend"):
            status.setdefault("startTime", self.server.state.timestamp())
        counts = counted(spec, status, pods, leaves=leaves)
        self._note_streak(stored, counts)
        ending = _noted_ending(status) or self._failure(stored, status, counts) or _success_by_policy(spec, counts)
        live = [pod for pod in pods if is_active(pod.fields)]
        active: int | None = None
        try:
            if ending is not None:
                for pod in live:
                    self.delete_pod(stored, pod)
                counts.settle_rest(spec, pods, as_failed=ending["type"] == "FailureTarget")
            elif not leaves:
                active = self._manage(stored, counts, live, pods)
        finally:
            self._settle(counts)
            current = [pod for pod in self._again(stored) if is_active(pod.fields)]
            if ending is None:
                ending = self._completion(spec, counts, current)
                if ending is None and not leaves:
                    self._note_suspension(stored, status)
            self._write(stored, status, counts, ending, len(current) if active is None else active)

    def adopt(self, objects: ControlledObjects, one: StoredObject, owner: StoredObject) -> StoredObject:
        """Make a Job the controller of a pod, which is kept until it is counted."""
        adopted = super().adopt(objects, one, owner)
        if is_uncounted(adopted):
            return adopted
        metadata = adopted.fields["metadata"]
        kept = {**metadata, "finalizers": [*(metadata.get("finalizers") or ()), TRACKING]}
        return write_fields(self.server.state, objects.resource, adopted, metadata=kept)

    def release(self, objects: ControlledObjects, one: StoredObject, uid: str) -> None:
        """Take a pod from its Job, which does not count it any more."""
        super().release(objects, one, uid)
        self._drop_tracking(one)

    def _again(self, stored: StoredObject) -> list[StoredObject]:
        """The pods of a Job as they are stored now."""
        return self.claim(stored, self.selector_of(stored.fields), self.pods)

    # --- counting ---------------------------------------------------------------------------------------------------

    def _note_streak(self, stored: StoredObject, counts: JobCounts) -> None:
        """Note how many pods failed after the last that succeeded, for which the next ones wait."""
        for pod, failed in counts.ends:
            if failed:
                failures, _last = self._streak(stored)
                self._streaks[stored.key] = stored.fields["metadata"]["uid"], failures + 1, finished_at(pod)
            else:
                self._streaks.pop(stored.key, None)

    def _streak(self, stored: StoredObject) -> tuple[int, float]:
        """How many pods of a Job failed in a row, and when the last of them did."""
        uid, failures, last = self._streaks.get(stored.key, ("", 0, 0.0))
        return (failures, last) if uid == stored.fields["metadata"]["uid"] else (0, 0.0)

    def _note_suspension(self, stored: StoredObject, status: Json) -> None:
        """Note in *status* that the Job was suspended or resumed, which starts over."""
        suspended, noted = bool(stored.fields["spec"].get("suspend")), condition_of({"status": status}, "Suspended")
        was_suspended = noted is not None and noted.get("status") == "True"
        if suspended == was_suspended:
            return
        others = [one for one in status.get("conditions") or () if one is not noted]
        if suspended:
            fresh = condition("Suspended", "True", "JobSuspended", "Job suspended")
            status.pop("startTime", None)
            self.tell(stored, "Suspended", "Job suspended")
        else:
            fresh = condition("Suspended", "False", "JobResumed", "Job resumed")
            status["startTime"] = self.server.state.timestamp()
            self.tell(stored, "Resumed", "Job resumed")
        status["conditions"] = [*others, self._dated(fresh)]

    def _settle(self, counts: JobCounts) -> None:
        for pod in counts.settled:
            self._drop_tracking(pod)

    def _drop_tracking(self, pod: StoredObject) -> None:
        """Take the finalizer off a pod; one that was only waiting for that is gone."""
        state, resource = self.server.state, self.server.state.types.core("pods")
        current = state.store.get("pods", pod.key)
        if current is None:
            return
        drop_finalizer(state, resource, current, TRACKING)

    def _dismiss(self, stored: StoredObject, pods: list[StoredObject]) -> None:
        """Delete pods that are too many; these count neither as succeeded nor as failed."""
        for pod in pods:
            self._drop_tracking(pod)
            self.delete_pod(stored, pod)

    def _failure(self, stored: StoredObject, status: Json, counts: JobCounts) -> Json | None:
        """The condition by which the Job fails; None if it does not."""
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
        if counts.lost and wanted is not None and len(counts.lost) + len(counts.done) >= wanted:
            return condition("FailureTarget", "True", "FailedIndexes", "Job has failed indexes")
        return None

    def _completion(self, spec: Json, counts: JobCounts, active: list[StoredObject]) -> Json | None:
        """The condition by which the Job is complete; None if it is not."""
        wanted = spec.get("completions")
        if active or not (counts.succeeded if wanted is None else counts.succeeded >= wanted):
            return None
        why = "Reached expected number of succeeded pods"
        return condition("SuccessCriteriaMet", "True", "CompletionsReached", why)

    # --- pods -------------------------------------------------------------------------------------------------------

    def _manage(
        self, stored: StoredObject, counts: JobCounts, live: list[StoredObject], pods: list[StoredObject]
    ) -> int | None:
        """Create or delete pods; what the status is to say of the number of active ones, if it is not their number."""
        spec, completions = stored.fields["spec"], stored.fields["spec"].get("completions")
        wanted = spec.get("parallelism", 1)
        if spec.get("suspend"):
            wanted = 0
        elif completions is not None:
            wanted = min(wanted, max(completions - counts.succeeded, 0))
        elif counts.succeeded:
            wanted = len(live)
        superfluous = self._superfluous(spec, live, len(live) - wanted)
        if superfluous:
            self._dismiss(stored, superfluous)
            return None
        leaving = [pod for pod in pods if is_leaving(pod)] if replaces_failed_only(spec) else []
        missing = min(wanted - len(leaving) - len(live), _MOST_AT_ONCE)
        if missing <= 0:
            return None
        if spec.get("backoffLimitPerIndex") is None:
            failures, last = self._streak(stored)
            wait = backoff_until(last, failures) - self.now()
            if wait > 0:
                self.plan_after(stored.key, wait)
                return 0
        if spec.get("completionMode") != "Indexed":
            for number in range(missing):
                self._create(stored, checked=number > 0)
            return None
        taken = {index_of(pod) for pod in [*live, *leaving]} | counts.done | counts.lost
        free = list(islice((index for index in range(completions or 0) if index not in taken), missing))
        waits = {index: self._wait_of_index(spec, counts.replaceable.get(index)) for index in free}
        ready = [index for index, wait in waits.items() if wait <= 0]
        for index in ready:
            self._create(stored, index, counts.replaceable.get(index))
        if free and not ready:
            self.plan_after(stored.key, min(waits.values()))
            return 0
        return None

    def _superfluous(self, spec: Json, live: list[StoredObject], excess: int) -> list[StoredObject]:
        """The pods to delete: those without an index or with one that another has, and as many as are too many."""
        ranked = sorted(live, key=lambda pod: (phase_of(pod.fields) == "Running", is_ready(pod.fields), -_born(pod)))
        chosen = []
        if spec.get("completionMode") == "Indexed":
            last = {index_of(pod): pod for pod in ranked if is_countable(spec, pod)}
            chosen = [pod for pod in ranked if last.get(index_of(pod)) is not pod]
        others = [pod for pod in ranked if pod not in chosen]
        return chosen + others[: max(excess - len(chosen), 0)]

    def _wait_of_index(self, spec: Json, failed: StoredObject | None) -> float:
        """How long to wait until a failed pod is replaced."""
        if failed is None or spec.get("backoffLimitPerIndex") is None:
            return 0.0
        return backoff_until(finished_at(failed), sum(failures_with(spec, failed))) - self.now()

    def _create(
        self,
        stored: StoredObject,
        index: int | None = None,
        failed: StoredObject | None = None,
        *,
        checked: bool = False,
    ) -> None:
        """Create a pod, of an index in place of a failed one."""
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
            if stored.fields["spec"].get("backoffLimitPerIndex") is not None:
                failures, ignored = (0, 0) if failed is None else failures_with(stored.fields["spec"], failed)
                annotations[INDEX_FAILURES] = str(failures)
                if ignored:
                    annotations[IGNORED_INDEX_FAILURES] = str(ignored)
            source = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}}
            for container in containers_of(template["spec"]):
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

    def _write(self, stored: StoredObject, status: Json, counts: JobCounts, ending: Json | None, active: int) -> None:
        spec, pods = stored.fields["spec"], self._again(stored)
        ready = sum(is_active(pod.fields) and is_ready(pod.fields) for pod in pods)
        leaving = sum(map(is_leaving, pods))
        conditions = list(status.get("conditions") or ())
        fresh: Json = {**status, **counts.fields(spec), "active": active, "ready": ready, "terminating": leaving}
        if ending is not None and ending not in conditions:
            conditions.append(self._dated(ending))
        if ending is not None and not leaving:
            kind = "Complete" if ending["type"] == "SuccessCriteriaMet" else "Failed"
            last = self._dated(condition(kind, "True", ending.get("reason", ""), ending.get("message", "")))
            conditions.append(last)
            if kind == "Complete":
                fresh["completionTime"] = self.server.state.timestamp()
                if counts.succeeded > spec.get("completions", counts.succeeded):
                    why = "Too many succeeded pods running after completion count reached"
                    self.warn(stored, "TooManySucceededPods", why)
                self.tell(stored, "Completed", "Job completed")
            else:
                self.warn(stored, last["reason"], last["message"])
            self._streaks.pop(stored.key, None)
        fresh["conditions"] = conditions
        kept = ("ready", "terminating", "uncountedTerminatedPods", "failedIndexes")
        self.write_status(stored, without_zeros(fresh, *kept))

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


def _noted_ending(status: Json) -> Json | None:
    """The condition that decided before how the Job ends."""
    return next((one for kind in _ENDINGS if (one := condition_of({"status": status}, kind)) is not None), None)


def _success_by_policy(spec: Json, counts: JobCounts) -> Json | None:
    why = succeeds_by_policy(spec, counts.done)
    return None if why is None else condition("SuccessCriteriaMet", "True", "SuccessPolicy", why)


def _born(pod: StoredObject) -> float:
    return unix_time(pod.fields["metadata"].get("creationTimestamp")) or 0.0
