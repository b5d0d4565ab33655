"""A simulated cron job controller: a Job whenever the schedule is due."""

from datetime import UTC, datetime, timedelta
from typing import ClassVar, Final

from attrs import define, field

from trio_sched.documents.json_values import Json
from trio_sched.objects.timestamps import format_time
from trio_sched.simulator.controllers.workloads.controlled_objects import ControlledObjects
from trio_sched.simulator.controllers.workloads.cron_times import next_time, time_zone
from trio_sched.simulator.controllers.workloads.rollout_sizes import status_of
from trio_sched.simulator.controllers.workloads.workload_controller import WorkloadController, owner_reference
from trio_sched.simulator.errors.status_errors import ApiError
from trio_sched.simulator.kubelets.pod_states import condition_of, is_terminating, unix_time
from trio_sched.simulator.registry.lifecycle import create
from trio_sched.simulator.storage.clock import parse_timestamp
from trio_sched.simulator.storage.object_store import Change, StoredObject, copied
from trio_sched.simulator.validation.batch.cron import InvalidSchedule, Schedule, parse_schedule

_SCHEDULED: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_LONGEST_STEM: Final = 52


@define(eq=False)
class CronJobController(WorkloadController):
    """Creates Jobs in time, and deletes those beyond the limits of the history.

    What was due before the controller began is not made up for.

    Args:
        jobs: by their CronJobs.
    """

    api_version: ClassVar[str] = "batch/v1"
    kind: ClassVar[str] = "CronJob"
    component: ClassVar[str] = "cronjob-controller"

    jobs: ControlledObjects
    _began: datetime = field(init=False)

    def __attrs_post_init__(self) -> None:
        """No pods of its own are followed: they belong to its Jobs."""
        self._began = self.server.state.now()
        self.jobs.follow(self.kind, lambda key, _change: self.plan(key))

    def _on_orphan(self, change: Change) -> None:
        """Jobs are not adopted."""

    def sync(self, key: str) -> None:
        """Create a Job if one is due, and wait for the next time."""
        stored = self.stored(key)
        if stored is None:
            return
        jobs = self.jobs.of(stored.fields["metadata"]["uid"])
        status = dict(status_of(stored))
        self._clean_up(stored, jobs, status)
        active = self._active(stored, jobs, status)
        if not is_terminating(stored.fields) and not stored.fields["spec"].get("suspend"):
            active = self._run(stored, active, status)
        status["active"] = [_reference(job) for job in active]
        if not active:
            del status["active"]
        self.write_status(stored, status)

    def _active(self, stored: StoredObject, jobs: list[StoredObject], status: Json) -> list[StoredObject]:
        """The Jobs that are active: of those that the status names, and tells of the others."""
        by_uid = {job.fields["metadata"]["uid"]: job for job in jobs}
        active = []
        for reference in status.get("active") or ():
            job, name = by_uid.pop(reference.get("uid"), None), reference.get("name")
            if job is None:
                self.tell(stored, "MissingJob", f"Active job went missing: {name}")
            elif (ending := _ending(job)) is not None:
                self.tell(stored, "SawCompletedJob", f"Saw completed job: {name}, condition: {ending}")
            else:
                active.append(job)
        for job in by_uid.values():
            if _ending(job) is None:
                why = f"Saw a job that the controller did not create or forgot: {job.fields['metadata']['name']}"
                self.warn(stored, "UnexpectedJob", why)
        return active

    def _run(self, stored: StoredObject, active: list[StoredObject], status: Json) -> list[StoredObject]:
        """Create a Job if one is due; the answer is which are active then."""
        spec, now = stored.fields["spec"], self.server.state.now()
        try:
            schedule = parse_schedule(spec.get("schedule") or "")
        except InvalidSchedule:
            return active  # in a cluster, too, such an object is passed over
        due, coming = self._due(stored, schedule, now)
        if coming is not None:
            self.plan_after(stored.key, (coming - now).total_seconds())
        deadline = spec.get("startingDeadlineSeconds")
        if due is None:
            return active
        if deadline is not None and due + timedelta(seconds=deadline) < now:
            moment = due.astimezone(UTC).strftime("%a, %d %b %Y %H:%M:%S +0000")
            self.warn(stored, "MissSchedule", f"Missed scheduled time to start a job: {moment}")
            return active
        if active and spec.get("concurrencyPolicy") == "Forbid":
            why = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self.tell(stored, "JobAlreadyActive", why)
            return active
        if spec.get("concurrencyPolicy") == "Replace":
            for job in active:
                self._delete_job(stored, job)
            active = []
        made = self._create(stored, due)
        status["lastScheduleTime"] = format_time(due)
        return [*active, made] if made is not None else active

    def _due(self, stored: StoredObject, schedule: Schedule, now: datetime) -> tuple[datetime | None, datetime | None]:
        """The last moment at which a Job was due and has not been created, and the next one."""
        spec, zone = stored.fields["spec"], time_zone(stored.fields["spec"].get("timeZone"))
        marks = (status_of(stored).get("lastScheduleTime"), stored.fields["metadata"].get("creationTimestamp"))
        since = next((found for mark in marks if mark and (found := parse_timestamp(mark))), now)
        earliest = max(since, self._began)
        if spec.get("startingDeadlineSeconds") is not None:
            earliest = max(earliest, now - timedelta(seconds=spec["startingDeadlineSeconds"]))
        due, coming = None, next_time(schedule, earliest, zone)
        while coming is not None and coming <= now:
            due, coming = coming, next_time(schedule, coming, zone)
        return due, coming

    def _create(self, stored: StoredObject, due: datetime) -> StoredObject | None:
        metadata, template = stored.fields["metadata"], copied(stored.fields["spec"]["jobTemplate"])
        resource = self.resource_of("batch/v1", "Job")
        given = template.get("metadata") or {}
        zone = time_zone(stored.fields["spec"].get("timeZone"))
        scheduled = due.astimezone(zone).isoformat(timespec="seconds").replace("+00:00", "Z")
        name = f"{metadata['name'][:_LONGEST_STEM]}-{int(due.timestamp()) // 60}"
        if self.server.store.get(resource.collection, f"{metadata['namespace']}/{name}") is not None:
            return None
        made: Json = {
            "name": name,
            "annotations": {**(given.get("annotations") or {}), _SCHEDULED: scheduled},
            "ownerReferences": [owner_reference(self.resource, stored)],
        }
        if given.get("labels"):
            made["labels"] = given["labels"]
        fields = {"metadata": made, "spec": template["spec"]}
        try:
            job = create(self.server.state, resource, metadata["namespace"], fields)
        except ApiError as error:
            if metadata["namespace"] not in self.server.state.terminating:
                self.warn(stored, "FailedCreate", f"Error creating job: {error.message}")
            raise
        self.tell(stored, "SuccessfulCreate", f"Created job {name}")
        return job

    def _clean_up(self, stored: StoredObject, jobs: list[StoredObject], status: Json) -> None:
        """Delete the oldest finished Jobs, and note the last success."""
        spec = stored.fields["spec"]
        for ending, limit in (
            ("Complete", spec.get("successfulJobsHistoryLimit", 3)),
            ("Failed", spec.get("failedJobsHistoryLimit", 1)),
        ):
            ended = [job for job in jobs if _ending(job) == ending]
            ended.sort(key=lambda job: (unix_time(status_of(job).get("startTime")) or 0.0, job.key))
            times = [text for job in ended if (text := status_of(job).get("completionTime"))]
            if ending == "Complete" and times:
                status["lastSuccessfulTime"] = max([*times, status.get("lastSuccessfulTime") or ""])
            for job in ended[: max(len(ended) - limit, 0)]:
                self._delete_job(stored, job)

    def _delete_job(self, stored: StoredObject, job: StoredObject) -> None:
        if self.delete(self.resource_of("batch/v1", "Job"), job):
            self.tell(stored, "SuccessfulDelete", f"Deleted job {job.fields['metadata']['name']}")


def _ending(job: StoredObject) -> str | None:
    for kind in ("Complete", "Failed"):
        found = condition_of(job.fields, kind)
        if found is not None and found.get("status") == "True":
            return kind
    return None


def _reference(job: StoredObject) -> Json:
    metadata = job.fields["metadata"]
    return {
        "kind": "Job",
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "apiVersion": "batch/v1",
        "resourceVersion": str(job.version),
    }
