"""The kinds besides pods and nodes that plugins can wait for and read, and how they are watched: one row each."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from trio_sched.engine.queueing_hints import HintTable, watched_resources
from trio_sched.kube_client.kinds import NODE_KIND, POD_KIND, Kind
from trio_sched.objects.any_object import AnyObject
from trio_sched.objects.device_class import DeviceClass
from trio_sched.objects.device_taint_rule import DeviceTaintRule
from trio_sched.objects.disruption_budget import PodDisruptionBudget
from trio_sched.objects.namespace import Namespace
from trio_sched.objects.persistent_volume import PersistentVolume, PersistentVolumeClaim
from trio_sched.objects.pod_group import PodGroup
from trio_sched.objects.resource_claim import ResourceClaim
from trio_sched.objects.resource_slice import ResourceSlice
from trio_sched.objects.storage import CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment
from trio_sched.objects.workload import ReplicaSet, ReplicationController, Service, StatefulSet
from trio_sched.plugin_api.cluster_events import Action
from trio_sched.plugin_api.handle import KindNotWatched


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
    "ResourceClaim": _grouped("resource.k8s.io", "resourceclaims", ResourceClaim, namespaced=True),
    "ResourceSlice": _grouped("resource.k8s.io", "resourceslices", ResourceSlice),
    "DeviceClass": _grouped("resource.k8s.io", "deviceclasses", DeviceClass),
    "DeviceTaintRule": Kind(
        group="resource.k8s.io", version="v1beta2", plural="devicetaintrules", namespaced=False, type=DeviceTaintRule
    ),
    "PodGroup": Kind(group="scheduling.k8s.io", version="v1alpha2", plural="podgroups", namespaced=True, type=PodGroup),
}
"""The name under which plugins read its objects → how it is watched."""

WATCHED_ANYWAY: Mapping[str, Kind[Any]] = {"Node": NODE_KIND, "Pod": POD_KIND}
"""The kinds that plugins see as columns."""


def wanted_kinds(tables: Mapping[str, HintTable], watches: Iterable[str]) -> dict[str, Action]:
    """What to watch, and after which changes pods move: what plugins have registered for or read.

    Args:
        tables: what the plugins of each profile have registered for.
        watches: the kinds that plugins read.
    """
    wanted = watched_resources(tables)
    waited_for = {resource.rpartition("/")[2] for resource in wanted}
    wanted.update({kind: Action(0) for kind in watches if kind not in waited_for})
    return wanted


def by_kind(wanted: Mapping[str, Action]) -> dict[str, tuple[str, Action]]:
    """The name under which plugins read the objects → the resource in cluster events, and its part of *wanted*."""
    found = ((kind_of(resource), resource, actions) for resource, actions in wanted.items())
    return {kind[0]: (resource, actions) for kind, resource, actions in found if kind is not None}


def check_kind(wanted: Collection[str], kind: str) -> None:
    """Check that objects of *kind* can be read.

    Args:
        wanted: what is watched, as in cluster events.
        kind: the name under which a plugin reads objects.

    Raises:
        KindNotWatched: it is not watched; the error says how it would be.
    """
    watched = {found[0] for found in map(kind_of, wanted) if found is not None}
    if kind in watched:
        return
    if kind in ("Node", "Pod"):
        raise KindNotWatched(kind, "pods and nodes are not read by kind: use handle.nodes")
    found = kind_of(kind)
    if found is not None and found[0] == kind:
        raise KindNotWatched(kind)
    close = [kind.rpartition("/")[2]] if found is not None else difflib.get_close_matches(kind, {*KINDS, *watched}, n=1)
    if close:
        raise KindNotWatched(kind, f"did you mean {close[0]!r}?")
    raise KindNotWatched(
        kind,
        f"there is no kind {kind!r} that trio-sched knows; write plural.version.group, like 'widgets.v1.example.com', "
        "both here and in watches",
    )


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
