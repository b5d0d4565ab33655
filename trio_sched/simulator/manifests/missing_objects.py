"""What the pods of a dump refer to, and the dump does not have: it was made of too few kinds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from attrs import frozen

from trio_sched.documents.json_values import Json
from trio_sched.simulator.manifests.manifests import Manifest
from trio_sched.simulator.pods.pod_phase import is_finished

_Key = tuple[str, str, str]
"""Kind, namespace, name."""
_RESOURCES: Final = {
    "DeviceClass": "deviceclasses",
    "Namespace": "namespaces",
    "Node": "nodes",
    "PersistentVolume": "persistentvolumes",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "PodGroup": "podgroups",
    "PriorityClass": "priorityclasses",
    "ResourceClaim": "resourceclaims",
    "ResourceClaimTemplate": "resourceclaimtemplates",
    "RuntimeClass": "runtimeclasses",
    "StorageClass": "storageclasses",
}
_BUILT_IN: Final = frozenset({"system-cluster-critical", "system-node-critical"})
_CLAIM: Final = "PersistentVolumeClaim"
_DEVICE_CLAIM: Final = "ResourceClaim"


@frozen
class MissingObjects:
    """Resource, as kubectl calls it → how many objects pods of a dump refer to that are not in it."""

    running: Counter[str]
    """What pods refer to that have a node: the cluster had it."""
    pending: Counter[str]
    """What only pods without a node refer to: the cluster may lack it, too."""


def missing_objects(manifests: Sequence[Manifest]) -> MissingObjects:
    """What the unfinished pods of a dump among *manifests* refer to, themselves or through claims, and these lack."""
    there = {_key(one.fields): one.fields for one in manifests if one.built_in_kind in _RESOURCES}
    pods = [one.fields for one in manifests if one.built_in_kind == "Pod" and _is_dumped(one.fields)]
    needs_namespaces = any(map(_selects_namespaces, pods))
    running: set[_Key] = set()
    pending: set[_Key] = set()
    for pod in pods:
        wanted = running if pod["spec"].get("nodeName") else pending
        wanted.update(_references(pod))
        if needs_namespaces:
            running.add(("Namespace", "", pod["metadata"].get("namespace") or ""))
    for wanted in running, pending:
        for key in [key for key in wanted if key in there and key[0] in _REFERENCES_OF]:
            wanted.update(_REFERENCES_OF[key[0]](there[key]))
    running -= there.keys()
    return MissingObjects(_counted(running), _counted(pending - there.keys() - running))


def _counted(keys: Iterable[_Key]) -> Counter[str]:
    return Counter(_RESOURCES[kind] for kind, _namespace, _name in keys)


def _key(fields: Json) -> _Key:
    metadata = fields["metadata"]
    return fields["kind"], metadata.get("namespace") or "", metadata.get("name") or ""


def _is_dumped(pod: Json) -> bool:
    return bool(pod["metadata"].get("uid")) and not is_finished(pod)


def _selects_namespaces(pod: Json) -> bool:
    """Whether a term of inter-pod affinity needs the labels of namespaces."""
    affinity = pod["spec"].get("affinity") or {}
    for kind in "podAffinity", "podAntiAffinity":
        rules = affinity.get(kind) or {}
        terms = [*(rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ())]
        preferred = rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms += [one.get("podAffinityTerm") or {} for one in preferred]
        if any(term.get("namespaceSelector") for term in terms):  # an empty one selects all
            return True
    return False


def _references(pod: Json) -> Iterator[_Key]:
    spec, namespace = pod["spec"], pod["metadata"].get("namespace") or ""
    if node := spec.get("nodeName"):
        yield "Node", "", node
    if (priority := spec.get("priorityClassName")) and priority not in _BUILT_IN:
        yield "PriorityClass", "", priority
    if runtime := spec.get("runtimeClassName"):
        yield "RuntimeClass", "", runtime
    if group := (spec.get("schedulingGroup") or {}).get("podGroupName"):
        yield "PodGroup", namespace, group
    for volume in spec.get("volumes") or ():
        if claim := volume.get("persistentVolumeClaim"):
            yield _CLAIM, namespace, claim["claimName"]
    made = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    for one in made:
        if name := one.get("resourceClaimName"):
            yield _DEVICE_CLAIM, namespace, name
    for used in spec.get("resourceClaims") or ():
        if name := used.get("resourceClaimName"):
            yield _DEVICE_CLAIM, namespace, name
        elif used.get("name") not in [one.get("name") for one in made]:
            yield "ResourceClaimTemplate", namespace, used.get("resourceClaimTemplateName") or ""


def _volume_or_class(claim: Json) -> Iterator[_Key]:
    """The volume that *claim* is bound to, or the class that is to provide one."""
    spec = claim["spec"]
    if volume := spec.get("volumeName"):
        yield "PersistentVolume", "", volume
    elif storage_class := spec.get("storageClassName"):
        yield "StorageClass", "", storage_class


def _device_classes(claim: Json) -> Iterator[_Key]:
    """The classes of the devices of *claim*, which may be a template, as long as none are allocated."""
    if (claim.get("status") or {}).get("allocation"):
        return
    spec = claim["spec"].get("spec") or claim["spec"]
    for request in (spec.get("devices") or {}).get("requests") or ():
        for wanted in (request.get("exactly") or {}, *(request.get("firstAvailable") or ())):
            if name := wanted.get("deviceClassName"):
                yield "DeviceClass", "", name


_REFERENCES_OF: Final[Mapping[str, Callable[[Json], Iterator[_Key]]]] = {
    _CLAIM: _volume_or_class,
    _DEVICE_CLAIM: _device_classes,
    "ResourceClaimTemplate": _device_classes,
}
