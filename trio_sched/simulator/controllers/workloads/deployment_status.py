"""The status of a Deployment: counts, whether it is available, and whether the deadline of its progress is exceeded.

Source: ``sync.go`` and ``progress.go`` of kube-controller-manager.
"""

from collections.abc import Iterable

from trio_sched.documents.json_values import Json
from trio_sched.simulator.controllers.workloads.rollout_sizes import max_unavailable, replicas_of, status_of
from trio_sched.simulator.kubelets.pod_states import condition_of, unix_time
from trio_sched.simulator.storage.object_store import StoredObject

_NO_DEADLINE = (1 << 31) - 1


def progress_deadline(deployment: StoredObject) -> int | None:
    """After how many seconds without progress a rollout has failed; None if it never has."""
    seconds = deployment.fields["spec"].get("progressDeadlineSeconds")
    return None if seconds is None or seconds == _NO_DEADLINE else int(seconds)


def set_condition(conditions: list[Json], fresh: Json, moment: str) -> list[Json]:
    """*conditions* with *fresh* in them; one of the same status and reason is kept as it is."""
    old = next((one for one in conditions if one.get("type") == fresh["type"]), None)
    if old is not None and old.get("status") == fresh["status"] and old.get("reason") == fresh["reason"]:
        return conditions
    same_status = old is not None and old.get("status") == fresh["status"]
    since = old.get("lastTransitionTime") if old is not None and same_status else moment
    made = {
        "type": fresh["type"],
        "status": fresh["status"],
        "lastUpdateTime": moment,
        "lastTransitionTime": since,
        "reason": fresh["reason"],
        "message": fresh["message"],
    }
    return [*(one for one in conditions if one is not old), made]


def without_condition(conditions: list[Json], kind: str) -> list[Json]:
    """*conditions* without the one of *kind*."""
    return [one for one in conditions if one.get("type") != kind]


def condition(kind: str, status: str, reason: str, message: str) -> Json:
    """A condition without its times."""
    return {"type": kind, "status": status, "reason": reason, "message": message}


def calculated(deployment: StoredObject, sets: list[StoredObject], new: StoredObject | None, moment: str) -> Json:
    """The status of a Deployment with the ReplicaSets *sets*, the *new* one among them; with all zeros."""

    def total(name: str, of: Iterable[StoredObject] = sets) -> int:
        return sum(status_of(one).get(name, 0) for one in of)

    available = total("availableReplicas")
    enough = available >= replicas_of(deployment) - max_unavailable(deployment)
    before = status_of(deployment)
    has = condition(
        "Available",
        "True" if enough else "False",
        "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
        f"Deployment {'has' if enough else 'does not have'} minimum availability.",
    )
    return {
        "observedGeneration": deployment.fields["metadata"].get("generation", 0),
        "replicas": total("replicas"),
        "updatedReplicas": total("replicas", [] if new is None else [new]),
        "readyReplicas": total("readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(sum(map(replicas_of, sets)) - available, 0),
        "terminatingReplicas": total("terminatingReplicas"),
        "collisionCount": before.get("collisionCount", 0),
        "conditions": set_condition(list(before.get("conditions") or ()), has, moment),
    }


def is_complete(deployment: StoredObject, status: Json) -> bool:
    """Whether all replicas are new and available."""
    wanted = replicas_of(deployment)
    counts = (status.get(name, 0) for name in ("updatedReplicas", "replicas", "availableReplicas"))
    seen = status.get("observedGeneration", 0) >= deployment.fields["metadata"].get("generation", 0)
    return seen and all(count == wanted for count in counts)


def with_progress(
    deployment: StoredObject, status: Json, sets: list[StoredObject], new: StoredObject | None, moment: str, now: float
) -> Json:
    """*status* with the conditions ``Progressing`` and ``ReplicaFailure`` of a rollout."""
    conditions = status["conditions"]
    deadline = progress_deadline(deployment)
    current = condition_of(deployment.fields, "Progressing")
    if deadline is None:
        conditions = without_condition(conditions, "Progressing")
    else:
        done = status["replicas"] == status["updatedReplicas"]
        if not (done and current is not None and current.get("reason") == "NewReplicaSetAvailable"):
            conditions = _progressing(deployment, status, new, moment, now - deadline)
    failures = [found for one in ([new] if new else []) + sets if (found := condition_of(one.fields, "ReplicaFailure"))]
    if failures:
        failed = failures[0]
        shown = condition("ReplicaFailure", "True", failed.get("reason", ""), failed.get("message", ""))
        conditions = set_condition(conditions, shown, failed.get("lastTransitionTime") or moment)
    else:
        conditions = without_condition(conditions, "ReplicaFailure")
    return {**status, "conditions": conditions}


def _progressing(
    deployment: StoredObject, status: Json, new: StoredObject | None, moment: str, too_old: float
) -> list[Json]:
    conditions: list[Json] = status["conditions"]
    current = condition_of(deployment.fields, "Progressing")
    subject = f'Deployment "{deployment.fields["metadata"]["name"]}"'
    if new is not None:
        subject = f'ReplicaSet "{new.fields["metadata"]["name"]}"'
    if is_complete(deployment, status):
        done = condition("Progressing", "True", "NewReplicaSetAvailable", f"{subject} has successfully progressed.")
        return set_condition(conditions, done, moment)
    if _has_progressed(status_of(deployment), status):
        fresh = condition("Progressing", "True", "ReplicaSetUpdated", f"{subject} is progressing.")
        made = set_condition(without_condition(conditions, "Progressing"), fresh, moment)
        if current is not None and current.get("status") == "True":
            made[-1]["lastTransitionTime"] = current.get("lastTransitionTime")
        return made
    if current is None or current.get("reason") in ("NewReplicaSetAvailable", "ProgressDeadlineExceeded"):
        return conditions
    updated = unix_time(current.get("lastUpdateTime"))
    if updated is not None and updated < too_old:
        late = condition("Progressing", "False", "ProgressDeadlineExceeded", f"{subject} has timed out progressing.")
        return set_condition(conditions, late, moment)
    return conditions


def _has_progressed(before: Json, after: Json) -> bool:
    def old_pods(status: Json) -> int:
        return int(status.get("replicas", 0)) - int(status.get("updatedReplicas", 0))

    return old_pods(after) < old_pods(before) or any(
        after.get(name, 0) > before.get(name, 0) for name in ("updatedReplicas", "readyReplicas", "availableReplicas")
    )
