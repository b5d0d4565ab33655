"""How many disruptions a PodDisruptionBudget allows, and what the refusal of an eviction (429) says.

A cluster has a controller that keeps the budgets' status; if one does (``observedGeneration`` or conditions are set)
its figures are used, otherwise they are computed from the pods for each eviction.
"""

import math

from attrs import frozen

from trio_sched.documents.json_values import Json
from trio_sched.simulator.label_matching import matches_labels
from trio_sched.simulator.pods.pod_phase import is_finished
from trio_sched.simulator.registry.lifecycle import write_fields
from trio_sched.simulator.storage.cluster_state import ClusterState
from trio_sched.simulator.storage.object_store import StoredObject

_PROCESSING_SECONDS = 10
"""After how long to try again when the controller of budgets has not seen one."""


@frozen(kw_only=True)
class Allowance:
    """What a budget permits right now; all figures count pods.

    Attributes:
        observed: a controller keeps the figures.
        outdated: it has not seen the budget as it is.
    """

    current_healthy: int
    desired_healthy: int
    expected: int
    disruptions: int
    observed: bool
    outdated: bool = False


def allowance(state: ClusterState, budget: StoredObject) -> Allowance:
    """What *budget* permits right now."""
    status = budget.fields.get("status") or {}
    if status.get("observedGeneration") or status.get("conditions"):
        return Allowance(
            current_healthy=status.get("currentHealthy", 0),
            desired_healthy=status.get("desiredHealthy", 0),
            expected=status.get("expectedPods", 0),
            disruptions=status.get("disruptionsAllowed", 0),
            observed=True,
            outdated=status.get("observedGeneration", 0) < budget.fields["metadata"].get("generation", 0),
        )
    spec, namespace = budget.fields["spec"], budget.fields["metadata"]["namespace"]
    healthy = expected = 0
    for pod in state.store.collection("pods").in_order(namespace):
        metadata, pod_status = pod.fields["metadata"], pod.fields.get("status") or {}
        if is_finished(pod.fields):
            continue
        if matches_labels(spec.get("selector"), metadata.get("labels") or {}):
            expected += 1
            healthy += "deletionTimestamp" not in metadata and _ready(pod_status)
    if spec.get("maxUnavailable") is not None:
        desired = max(expected - _share(spec["maxUnavailable"], expected), 0)
    else:
        desired = _share(spec.get("minAvailable", 1), expected)
    return Allowance(
        current_healthy=healthy,
        desired_healthy=desired,
        expected=expected,
        disruptions=max(healthy - desired, 0),
        observed=False,
    )


def refusal(budget: StoredObject, left: Allowance) -> Json | None:
    """Why a budget allows no disruption now, as details of the answer; None if it does."""
    if not left.outdated and left.disruptions > 0:
        return None
    why = f"The disruption budget {budget.fields['metadata']['name']}"
    if left.outdated:
        cause = {"reason": "DisruptionBudget", "message": f"{why} is still being processed by the server."}
        return {"causes": [cause], "retryAfterSeconds": _PROCESSING_SECONDS}
    conditions = (budget.fields.get("status") or {}).get("conditions") or ()
    condition: Json = next((one for one in conditions if one.get("type") == "DisruptionAllowed"), {})
    if condition.get("reason") == "SyncFailed" and condition.get("message"):
        why += f" does not allow evicting pods currently because it failed sync: {condition['message']}"
    elif left.current_healthy <= left.desired_healthy:
        why += f" needs {left.desired_healthy} healthy pods and has {left.current_healthy} currently"
    else:
        why += " does not allow evicting pods currently"
    return {"causes": [{"reason": "DisruptionBudget", "message": why}]}


def note_eviction(state: ClusterState, budget: StoredObject, left: Allowance, pod_name: str) -> None:
    """Count one disruption in a budget whose status is kept by a controller."""
    if not left.observed:
        return
    status = dict(budget.fields["status"])
    status["disruptionsAllowed"] = left.disruptions - 1
    status["disruptedPods"] = {**(status.get("disruptedPods") or {}), pod_name: state.timestamp()}
    resource = state.types.of_kind("policy/v1", "PodDisruptionBudget")
    assert resource is not None  # a built-in type
    write_fields(state, resource, budget, status=status)


def _ready(status: Json) -> bool:
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in status.get("conditions") or ())


def _share(amount: int | str, total: int) -> int:
    """A count, or a percentage of *total* rounded up."""
    if isinstance(amount, int):
        return amount
    return math.ceil(int(amount.removesuffix("%")) * total / 100)
