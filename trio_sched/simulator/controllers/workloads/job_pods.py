"""What the pods of a Job say: whether one has failed and is counted, when it ended, how long to wait after failures."""

from typing import Final

from trio_sched.documents.json_values import Json
from trio_sched.simulator.controllers.workloads.job_policies import replaces_failed_only
from trio_sched.simulator.kubelets.pod_states import condition_of, is_terminating, unix_time
from trio_sched.simulator.pods.pod_phase import is_finished, phase_of
from trio_sched.simulator.storage.object_store import StoredObject

TRACKING: Final = "batch.kubernetes.io/job-tracking"
_FIRST_BACKOFF_SECONDS: Final = 10.0
_LAST_BACKOFF_SECONDS: Final = 600.0


def is_uncounted(pod: StoredObject) -> bool:
    """Whether a pod has not been counted as succeeded or failed."""
    return TRACKING in (pod.fields["metadata"].get("finalizers") or ())


def has_failed(spec: Json, pod: StoredObject) -> bool:
    """Whether a pod counts as failed for the Job of *spec*: one that is being deleted does, unless it is waited for."""
    if is_finished(pod.fields):
        return phase_of(pod.fields) == "Failed"
    return is_terminating(pod.fields) and not replaces_failed_only(spec)


def finished_at(pod: StoredObject) -> float:
    """When a pod ended, as a Unix time: by its containers, else by its condition, else by its deletion."""
    status, metadata = pod.fields.get("status") or {}, pod.fields["metadata"]
    ends = [
        unix_time(((one.get("state") or {}).get("terminated") or {}).get("finishedAt"))
        for one in status.get("containerStatuses") or ()
    ]
    known = [moment for moment in ends if moment is not None]
    if known and len(known) == len(ends):
        return max(known)
    ready = condition_of(pod.fields, "Ready")
    if ready is not None and ready.get("status") == "False":
        since = unix_time(ready.get("lastTransitionTime"))
        if since is not None:
            return since
    deleted = unix_time(metadata.get("deletionTimestamp"))
    if deleted is not None:
        return deleted - (metadata.get("deletionGracePeriodSeconds") or 0)
    return unix_time(metadata.get("creationTimestamp")) or 0.0


def backoff_until(last_failure: float, failures: int) -> float:
    """When the next pod may be created after so many *failures* in a row, the last of them at a Unix time."""
    if not failures:
        return 0.0
    return last_failure + min(_FIRST_BACKOFF_SECONDS * 2.0 ** min(failures - 1, 30), _LAST_BACKOFF_SECONDS)
