"""Kinds besides pods and nodes that plugins wait for or ask about, and how they are watched."""

from __future__ import annotations

from typing import Any

from trio_sched.kube_client.kinds import Kind
from trio_sched.objects.any_object import AnyObject
from trio_sched.objects.device_class import DeviceClass
from trio_sched.plugin_api.cluster_events import Resource


def _storage(plural: str, *, namespaced: bool = False) -> Kind[Any]:
    return Kind(group="storage.k8s.io", version="v1", plural=plural, namespaced=namespaced, type=AnyObject)


def _resource(plural: str, *, namespaced: bool = False) -> Kind[Any]:
    return Kind(group="resource.k8s.io", version="v1", plural=plural, namespaced=namespaced, type=AnyObject)


KINDS: dict[str, tuple[str, Kind[Any]]] = {
    Resource.PERSISTENT_VOLUME: (
        "PersistentVolume",
        Kind(version="v1", plural="persistentvolumes", namespaced=False, type=AnyObject),
    ),
    Resource.PERSISTENT_VOLUME_CLAIM: (
        "PersistentVolumeClaim",
        Kind(version="v1", plural="persistentvolumeclaims", namespaced=True, type=AnyObject),
    ),
    Resource.CSI_NODE: ("CSINode", _storage("csinodes")),
    Resource.CSI_DRIVER: ("CSIDriver", _storage("csidrivers")),
    Resource.VOLUME_ATTACHMENT: ("VolumeAttachment", _storage("volumeattachments")),
    Resource.CSI_STORAGE_CAPACITY: ("CSIStorageCapacity", _storage("csistoragecapacities", namespaced=True)),
    Resource.STORAGE_CLASS: ("StorageClass", _storage("storageclasses")),
    Resource.RESOURCE_CLAIM: ("ResourceClaim", _resource("resourceclaims", namespaced=True)),
    Resource.RESOURCE_SLICE: ("ResourceSlice", _resource("resourceslices")),
    Resource.DEVICE_CLASS: (
        "DeviceClass",
        Kind(group="resource.k8s.io", version="v1", plural="deviceclasses", namespaced=False, type=DeviceClass),
    ),
}
"""Resource in cluster events → the name under which plugins ask for its objects, and how it is watched."""


def kind_of(resource: str) -> tuple[str, Kind[Any]] | None:
    """How *resource* is watched; None if it is watched anyway, or is not written ``plural.version.group``."""
    if resource in KINDS:
        return KINDS[resource]
    parts = resource.split(".", 2)
    if len(parts) < 3:
        return None
    plural, version, group = parts
    # Whether it is namespaced does not matter for following all of them.
    return resource, Kind(group=group, version=version, plural=plural, namespaced=True, type=AnyObject)
