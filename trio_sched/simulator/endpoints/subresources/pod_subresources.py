"""The subresources of pods: ``binding`` and ``eviction``."""

from collections.abc import Collection
from typing import Any

from trio_sched.documents.json_values import Json
from trio_sched.simulator.admission.admission import topology_labels
from trio_sched.simulator.endpoints.messages import Request, Response
from trio_sched.simulator.endpoints.negotiation import read_object
from trio_sched.simulator.endpoints.subresources.disruption import Allowance, allowance, note_eviction, refusal
from trio_sched.simulator.endpoints.writing import delete_options
from trio_sched.simulator.errors.status_errors import ApiError, bad_request, conflict, precondition_failed
from trio_sched.simulator.errors.targets import Target
from trio_sched.simulator.label_matching import matches_labels
from trio_sched.simulator.pods.pod_phase import is_finished, phase_of
from trio_sched.simulator.registry.lifecycle import DeleteOptions, delete, require, write_fields
from trio_sched.simulator.storage.cluster_state import ClusterState
from trio_sched.simulator.storage.object_store import StoredObject
from trio_sched.simulator.storage.resource_types import ResourceType

_SUCCESS = Response(201, b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}')


def serve_binding(state: ClusterState, target: Target, request: Request) -> Response:
    """Bind the target, a pod, to the node that the body names.

    Raises:
        ApiError: as for `bind`; 400 or 415, the body is unreadable.
    """
    body = read_object(request.body, request.headers.get("content-type", ""))
    bind(state, target.resource, target.namespace, target.name, body, dry_run=request.dry_run)
    return _SUCCESS


def create_binding(state: ClusterState, target: Target, request: Request) -> Response:
    """Carry out a POST to the collection ``bindings``: the body names the pod as well.

    Raises:
        ApiError: as for `serve_binding`.
    """
    body = read_object(request.body, request.headers.get("content-type", ""))
    name = (body.get("metadata") or {}).get("name") or ""
    bind(state, state.types.core("pods"), target.namespace, name, body, dry_run=request.dry_run)
    return _SUCCESS


def bind(state: ClusterState, pods: ResourceType, namespace: str, name: str, body: Json, *, dry_run: bool) -> None:
    """Bind a pod to a node.

    Raises:
        ApiError: 404 no such pod; 409 bound already, gated, being deleted, or not the uid or version of the body;
        500 no target.
    """
    metadata = body.get("metadata") or {}
    if metadata.get("name") not in (None, "", name):
        message = f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})"
        raise bad_request(message)
    node = (body.get("target") or {}).get("name")
    if not node:
        raise ApiError(500, "", "target.name: Required value")
    stored = require(state, pods, namespace, name)
    fields = stored.fields
    old_metadata, spec = fields["metadata"], fields["spec"]
    uid = metadata.get("uid")
    if uid and uid != old_metadata["uid"]:
        raise precondition_failed(pods, stored.key, name, "UID", uid, old_metadata["uid"])
    version = metadata.get("resourceVersion")
    if version and version != str(stored.version):
        raise precondition_failed(pods, stored.key, name, "ResourceVersion", version, str(stored.version))
    if "deletionTimestamp" in old_metadata:
        why = f"pod {name} is being deleted, cannot be assigned to a host"
        raise conflict(pods, name, why, subresource="binding")
    if spec.get("nodeName"):
        why = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
        raise conflict(pods, name, why, subresource="binding")
    if spec.get("schedulingGates"):
        raise conflict(pods, name, f"pod {name} has non-empty .spec.schedulingGates", subresource="binding")
    if dry_run:
        return
    new_metadata = dict(old_metadata)
    labels = {**(metadata.get("labels") or {}), **topology_labels(state, node)}
    for part, added in (("annotations", metadata.get("annotations")), ("labels", labels)):
        if added:
            new_metadata[part] = {**(old_metadata.get(part) or {}), **added}
    status = dict(fields.get("status") or {})
    status.pop("nominatedNodeName", None)
    status["conditions"] = with_condition(
        status.get("conditions"), state.timestamp(), type="PodScheduled", status="True"
    )
    new = {**fields, "metadata": new_metadata, "spec": {**spec, "nodeName": node}, "status": status}
    state.store.replace("pods", stored, new)


def disrupt(
    state: ClusterState, pods: ResourceType, pod: StoredObject, reason: str, message: str, *, phase: str | None = None
) -> StoredObject:
    """Write the condition ``DisruptionTarget`` of a pod that is about to be deleted, and its *phase*, if any."""
    status = dict(pod.fields.get("status") or {})
    if phase is not None:
        status["phase"] = phase
    status["conditions"] = with_condition(
        status.get("conditions"),
        state.timestamp(),
        type="DisruptionTarget",
        status="True",
        reason=reason,
        message=message,
    )
    return write_fields(state, pods, pod, status=status)


def with_condition(conditions: list[Json] | None, moment: str, *, type: str, status: str, **more: Any) -> list[Json]:
    """*conditions* with the one of this *type* set again; its transition time moves only when its status does."""
    return with_conditions(conditions, moment, (type,), status, **more)


def with_conditions(
    conditions: list[Json] | None, moment: str, types: Collection[str], status: str, **more: Any
) -> list[Json]:
    """The conditions with several types set, in this order at the end."""
    before: Json = {}
    updated = []
    for condition in conditions or ():
        known = condition.get("type", "")
        if known in types:
            before[known] = condition
        else:
            updated.append(condition)
    for type in types:
        since = moment
        if type in before and before[type].get("status") == status:
            since = before[type].get("lastTransitionTime")
        updated.append({"type": type, "status": status, "lastProbeTime": None, "lastTransitionTime": since, **more})
    return updated


def serve_eviction(state: ClusterState, target: Target, request: Request) -> Response:
    """Evict the target, a pod.

    Raises:
        ApiError: as for `evict`; 400 or 415, the body is unreadable.
    """
    body = read_object(request.body, request.headers.get("content-type", ""))
    options = delete_options(body.get("deleteOptions"), request)
    evict(state, target.resource, target.namespace, target.name, options)
    return _SUCCESS


def evict(state: ClusterState, pods: ResourceType, namespace: str, name: str, options: DeleteOptions) -> StoredObject:
    """Delete a pod unless a disruption budget protects it.

    Raises:
        ApiError: 404 no such pod; 429 a budget allows no disruption now; 500 several budgets select the pod.
    """
    stored = require(state, pods, namespace, name)
    fields = stored.fields
    unprotected = is_finished(fields) or phase_of(fields) == "Pending" or "deletionTimestamp" in fields["metadata"]
    if not unprotected:
        _check_budget(state, namespace, name, fields, dry_run=options.dry_run)
        if not options.dry_run:
            stored = disrupt(state, pods, stored, "EvictionByEvictionAPI", "Eviction API: evicting")
    return delete(state, pods, stored, options)


def _check_budget(state: ClusterState, namespace: str, name: str, fields: Json, *, dry_run: bool) -> None:
    labels = fields["metadata"].get("labels") or {}
    budgets = [
        budget
        for budget in state.store.collection("poddisruptionbudgets.policy").in_order(namespace)
        if matches_labels(budget.fields["spec"].get("selector"), labels)
    ]
    if not budgets:
        return
    if len(budgets) > 1:
        message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise ApiError(500, "InternalError", message)
    budget = budgets[0]
    left: Allowance = allowance(state, budget)
    if _is_unhealthy(fields):
        policy = budget.fields["spec"].get("unhealthyPodEvictionPolicy")
        if policy == "AlwaysAllow" or 0 < left.desired_healthy <= left.current_healthy:
            return
    details = refusal(budget, left)
    if details is not None:
        message = "Cannot evict pod as it would violate the pod's disruption budget."
        raise ApiError(429, "TooManyRequests", message, details)
    if not dry_run:
        note_eviction(state, budget, left, name)


def _is_unhealthy(fields: Json) -> bool:
    conditions = (fields.get("status") or {}).get("conditions") or ()
    return not any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)
