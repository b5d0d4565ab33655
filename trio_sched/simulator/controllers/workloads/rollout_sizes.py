"""How large the ReplicaSets of a Deployment are to be. Source: ``deployment_util.go`` of kube-controller-manager."""

import math
from typing import Any, Final

from trio_sched.documents.json_values import Json
from trio_sched.simulator.admission.annotations import number_in
from trio_sched.simulator.storage.object_store import StoredObject

DESIRED_REPLICAS: Final = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS: Final = "deployment.kubernetes.io/max-replicas"


def scaled(amount: Any, total: int, *, up: bool) -> int:
    """A count, or a percentage of *total*, rounded up or down."""
    if isinstance(amount, str):
        try:
            share = int(amount.removesuffix("%")) * total / 100
        except ValueError:
            return 0
        return math.ceil(share) if up else math.floor(share)
    return int(amount or 0)


def fenceposts(surge: Any, unavailable: Any, wanted: int) -> tuple[int, int]:
    """How many pods more, and how many fewer than *wanted* there may be; one of them is not zero."""
    more, fewer = scaled(surge, wanted, up=True), scaled(unavailable, wanted, up=False)
    return (more, 1) if not more and not fewer else (more, fewer)


def replicas_of(stored: StoredObject) -> int:
    """How many pods a workload is to have."""
    return int(stored.fields["spec"].get("replicas", 1))


def status_of(stored: StoredObject) -> Json:
    """The status of an object."""
    return stored.fields.get("status") or {}


def annotations_of(stored: StoredObject) -> Json:
    """The annotations of an object."""
    return stored.fields["metadata"].get("annotations") or {}


def rolls(deployment: StoredObject) -> bool:
    """Whether the pods of a Deployment are replaced a few at a time."""
    return bool((deployment.fields["spec"].get("strategy") or {}).get("type") != "Recreate")


def _limits(deployment: StoredObject) -> tuple[int, int]:
    wanted = replicas_of(deployment)
    if not rolls(deployment):
        return 0, 0
    update = (deployment.fields["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    return fenceposts(update.get("maxSurge"), update.get("maxUnavailable"), wanted)


def max_surge(deployment: StoredObject) -> int:
    """How many pods a Deployment may have beyond its replicas."""
    return _limits(deployment)[0]


def max_unavailable(deployment: StoredObject) -> int:
    """How many replicas of a Deployment may be unavailable."""
    wanted = replicas_of(deployment)
    return min(_limits(deployment)[1], wanted) if wanted else 0


def new_size(deployment: StoredObject, total: int, current: int) -> int:
    """The size of the new ReplicaSet, given its *current* one and the *total* of all."""
    wanted = replicas_of(deployment)
    if not rolls(deployment):
        return wanted
    most = wanted + max_surge(deployment)
    return current if total >= most else current + min(most - total, wanted - current)


def proportional_sizes(deployment: StoredObject, active: list[StoredObject]) -> dict[str, int]:
    """Key of each active ReplicaSet → its size, when a Deployment is scaled in the middle of a rollout."""
    wanted = replicas_of(deployment)
    allowed = wanted + max_surge(deployment) if wanted else 0
    to_add = allowed - sum(map(replicas_of, active))
    if not to_add:
        return {one.key: replicas_of(one) for one in active}
    newer_first = sorted(active, key=_age, reverse=to_add > 0)
    ordered = sorted(newer_first, key=replicas_of, reverse=True)
    sizes, added = {}, 0
    for one in ordered:
        share = _share(deployment, one, to_add - added)
        sizes[one.key] = replicas_of(one) + share
        added += share
    largest = ordered[0].key
    sizes[largest] = max(sizes[largest] + to_add - added, 0)
    return sizes


def _age(stored: StoredObject) -> tuple[str, str]:
    metadata = stored.fields["metadata"]
    return metadata.get("creationTimestamp") or "", metadata["name"]


def _share(deployment: StoredObject, one: StoredObject, left: int) -> int:
    size, wanted = replicas_of(one), replicas_of(deployment)
    if not size or not left:
        return 0
    if not wanted:
        fraction = -size
    else:
        before = number_in(annotations_of(one).get(MAX_REPLICAS)) or status_of(deployment).get("replicas", 0)
        fraction = 0 if not before else _rounded(size * (wanted + max_surge(deployment)) / before) - size
    return min(fraction, left) if left > 0 else max(fraction, left)


def _rounded(number: float) -> int:
    return math.floor(number + 0.5)
