"""What the RuntimeClass of a pod adds to it: its overhead, and where it can run.

Source: the admission plugin RuntimeClass.
"""

from __future__ import annotations

from typing import Final

from trio_sched.documents.json_values import Json
from trio_sched.objects.amounts.quantity import parse_nano
from trio_sched.simulator.errors.status_errors import ApiError, forbidden
from trio_sched.simulator.storage.cluster_state import ClusterState
from trio_sched.simulator.storage.resource_types import ResourceType

RUNTIME_CLASSES: Final = "runtimeclasses.node.k8s.io"


def admit_runtime_class(state: ClusterState, resource: ResourceType, fields: Json) -> None:
    """Add to a new pod what its RuntimeClass says.

    Raises:
        ApiError: 403, there is none of that name, or the pod says something else.
    """
    spec: Json = fields["spec"]
    name = spec.get("runtimeClassName")

    def rejected(why: str) -> ApiError:
        return forbidden(resource, fields["metadata"].get("name") or "", why)

    found = state.store.get(RUNTIME_CLASSES, name) if name else None
    if name and found is None:
        raise rejected(f'pod rejected: RuntimeClass "{name}" not found')
    if spec.get("overhead") and (found is None or "overhead" not in found.fields):
        raise rejected("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
    if found is None:
        return
    overhead, scheduling = found.fields.get("overhead"), found.fields.get("scheduling") or {}
    if overhead is not None:
        wanted = overhead.get("podFixed") or {}
        if "overhead" in spec and _amounts(spec["overhead"]) != _amounts(wanted):
            raise rejected("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
        spec["overhead"] = dict(wanted)
    own = spec.get("nodeSelector") or {}
    for name, value in (scheduling.get("nodeSelector") or {}).items():
        if own.get(name, value) != value:
            why = f"runtimeClass.scheduling.nodeSelector[{name}] = {value}; pod.spec.nodeSelector[{name}] = {own[name]}"
            raise rejected(f"conflict: {why}")
        spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), name: value}
    given = spec.get("tolerations") or []
    added = [dict(one) for one in scheduling.get("tolerations") or () if one not in given]
    if added:
        spec["tolerations"] = [*given, *added]


def _amounts(quantities: Json) -> dict[str, int]:
    return {name: parse_nano(quantity) for name, quantity in quantities.items()}
