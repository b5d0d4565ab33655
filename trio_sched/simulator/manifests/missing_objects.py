"""What the pods of a dump refer to, and the dump does not have: it was made of too few kinds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from trio_sched.simulator.manifests.manifests import Manifest
from trio_sched.simulator.pods.pod_phase import is_finished
from trio_sched.simulator.raw_objects import Json


def missing_objects(manifests: Sequence[Manifest]) -> Counter[str]:
    """Resource, as kubectl calls it → how many objects running pods of a dump refer to, and *manifests* lack."""
    there = {_key(one.fields) for one in manifests if one.fields["kind"] in _RESOURCES}
    wanted = {
        key for one in manifests if _is_running(one.fields) for key in _references(one.fields) if key not in there
    }
    return Counter(_RESOURCES[kind] for kind, _namespace, _name in wanted)


_RESOURCES = {
    "Node": "nodes",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "PriorityClass": "priorityclasses",
    "ResourceClaim": "resourceclaims",
    "RuntimeClass": "runtimeclasses",
}
_BUILT_IN = frozenset({"system-cluster-critical", "system-node-critical"})


def _key(fields: Json) -> tuple[str, str, str]:
    metadata = fields["metadata"]
    return fields["kind"], metadata.get("namespace") or "", metadata.get("name") or ""


def _is_running(fields: Json) -> bool:
    if fields["kind"] != "Pod" or not fields["metadata"].get("uid") or not fields["spec"].get("nodeName"):
        return False
    return not is_finished(fields)


def _references(pod: Json) -> Iterator[tuple[str, str, str]]:
    spec, namespace = pod["spec"], pod["metadata"].get("namespace") or ""
    yield "Node", "", spec["nodeName"]
    if (priority := spec.get("priorityClassName")) and priority not in _BUILT_IN:
        yield "PriorityClass", "", priority
    if runtime := spec.get("runtimeClassName"):
        yield "RuntimeClass", "", runtime
    for volume in spec.get("volumes") or ():
        if claim := volume.get("persistentVolumeClaim"):
            yield "PersistentVolumeClaim", namespace, claim["claimName"]
    for used in spec.get("resourceClaims") or ():
        if name := used.get("resourceClaimName"):
            yield "ResourceClaim", namespace, name
    for made in (pod.get("status") or {}).get("resourceClaimStatuses") or ():
        if name := made.get("resourceClaimName"):
            yield "ResourceClaim", namespace, name
