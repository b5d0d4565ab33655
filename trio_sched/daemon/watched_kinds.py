"""The kinds besides pods and nodes that plugins can wait for and read, and how they are watched: one row each."""

from __future__ import annotations

from typing import Any

from trio_sched.kube_client.kinds import Kind
from trio_sched.objects.any_object import AnyObject
from trio_sched.objects.device_class import DeviceClass
from trio_sched.objects.disruption_budget import PodDisruptionBudget
from trio_sched.objects.namespace import Namespace
from trio_sched.objects.persistent_volume import PersistentVolume, PersistentVolumeClaim
from trio_sched.objects.storage import CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment
from trio_sched.objects.workload import ReplicaSet, ReplicationController, Service, StatefulSet


def _core(plural: str, type_: type[Any], *, namespaced: bool = True) -> Kind[Any]:
    return Kind(version="v1", plural=plural, namespaced=namespaced, type=type_)


def _grouped(group: str, plural: str, type_: type[Any], *, namespaced: bool = False) -> Kind[Any]:
    return Kind(group=group, version="v1", plural=plural, namespaced=namespaced, type=type_)


KINDS: dict[str, Kind[Any]] = {
    "Namespace": _core("namespaces", Namespace, namespaced=False),
    "Service": _core("services", Service),
    "ReplicationController": _core("replicationcontrollers", ReplicationController),
    "ReplicaSet": _grouped("apps", "replicasets", ReplicaSet, namespaced=True),
    "StatefulSet": _grouped("apps", "statefulsets", StatefulSet, namespaced=True),
    "PodDisruptionBudget": _grouped("policy", "poddisruptionbudgets", PodDisruptionBudget, namespaced=True),
    "PersistentVolume": _core("persistentvolumes", PersistentVolume, namespaced=False),
    "PersistentVolumeClaim": _core("persistentvolumeclaims", PersistentVolumeClaim),
    "CSINode": _grouped("storage.k8s.io", "csinodes", CSINode),
    "CSIDriver": _grouped("storage.k8s.io", "csidrivers", CSIDriver),
    "VolumeAttachment": _grouped("storage.k8s.io", "volumeattachments", VolumeAttachment),
    "CSIStorageCapacity": _grouped("storage.k8s.io", "csistoragecapacities", CSIStorageCapacity, namespaced=True),
    "StorageClass": _grouped("storage.k8s.io", "storageclasses", StorageClass),
    "ResourceClaim": _grouped("resource.k8s.io", "resourceclaims", AnyObject, namespaced=True),
    "ResourceSlice": _grouped("resource.k8s.io", "resourceslices", AnyObject),
    "DeviceClass": _grouped("resource.k8s.io", "deviceclasses", DeviceClass),
}
"""The name under which plugins read its objects → how it is watched."""


def kind_of(resource: str) -> tuple[str, Kind[Any]] | None:
    """The name and the watch of a *resource* of cluster events, or of a kind that plugins read.

    Returns:
        None if it is watched anyway, or is neither known nor written ``plural.version.group``.
    """
    name = resource.rpartition("/")[2]
    if name in KINDS:
        return name, KINDS[name]
    parts = resource.split(".", 2)
    if len(parts) < 3:
        return None
    plural, version, group = parts
    # Whether it is namespaced does not matter for following all of them.
    return resource, Kind(group=group, version=version, plural=plural, namespaced=True, type=AnyObject)
