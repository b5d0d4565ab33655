"""The kinds besides pods and nodes that plugins can wait for and read, and how they are watched: one row each."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from trio_sched.engine.hooks.plugin_errors import BadPlugin
from trio_sched.engine.queue.queueing_hints import HintTable, watched_resources
from trio_sched.engine.registry.profile import Profile
from trio_sched.errors import nearest_name
from trio_sched.kube_client.kinds import NODE_KIND, POD_KIND, Kind
from trio_sched.objects.any_object import AnyObject, CustomHead
from trio_sched.objects.config_map import ConfigMap
from trio_sched.objects.disruption_budget import PodDisruptionBudget
from trio_sched.objects.namespace import Namespace
from trio_sched.objects.pod_groups.composite_pod_group import CompositePodGroup
from trio_sched.objects.pod_groups.pod_group import PodGroup
from trio_sched.objects.pod_groups.workload import (
    DaemonSet,
    Deployment,
    Job,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from trio_sched.objects.resource.device_class import DeviceClass
from trio_sched.objects.resource.device_taint_rule import DeviceTaintRule
from trio_sched.objects.resource.resource_claim import ResourceClaim
from trio_sched.objects.resource.resource_slice import ResourceSlice
from trio_sched.objects.storage.persistent_volume import PersistentVolume, PersistentVolumeClaim
from trio_sched.objects.storage.storage import CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment
from trio_sched.plugin_api.cluster_events import Action
from trio_sched.plugin_api.custom_resources import CustomResource, Watched
from trio_sched.plugin_api.features import Features
from trio_sched.plugin_api.handle import KindNotWatched

_is_version = re.compile(r"v[0-9]+((alpha|beta)[0-9]+)?").fullmatch


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
    "Deployment": _grouped("apps", "deployments", Deployment, namespaced=True),
    "DaemonSet": _grouped("apps", "daemonsets", DaemonSet, namespaced=True),
    "Job": _grouped("batch", "jobs", Job, namespaced=True),
    "ConfigMap": _core("configmaps", ConfigMap),
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
    "CompositePodGroup": Kind(
        group="scheduling.k8s.io",
        version="v1alpha3",
        plural="compositepodgroups",
        namespaced=True,
        type=CompositePodGroup,
    ),
}
"""The name under which plugins read its objects → how it is watched."""

_BY_DEFAULT: Mapping[str, str] = {"PodGroup": "generic_workload", "CompositePodGroup": "composite_pod_group"}
"""What is watched also if no plugin asks for it → the field of `Features` that has to be on."""

WATCHED_ANYWAY: Mapping[str, Kind[Any]] = {"Node": NODE_KIND, "Pod": POD_KIND}
"""The kinds that plugins see as columns."""


def wanted_kinds(
    profiles: Mapping[str, Profile], tables: Mapping[str, HintTable], features: Features | None = None
) -> dict[Watched, Action]:
    """What to watch, and after which changes pods move: what plugins have registered for or read.

    Args:
        profiles: with the plugins.
        tables: what the plugins of each profile have registered for.
        features: add the kinds that are watched by default; None: no kind is.

    Raises:
        BadPlugin: two plugins declare a custom resource in different ways.
    """
    declared = declared_resources(profiles, tables)
    wanted: dict[Watched, Action] = {
        declared.get(resource, resource): actions for resource, actions in watched_resources(tables).items()
    }
    waited_for = {resource.rpartition("/")[2] for resource in wanted if isinstance(resource, str)}
    by_default = [kind for kind, gate in _BY_DEFAULT.items() if features is not None and getattr(features, gate)]
    for watched in [*(kind for profile in profiles.values() for kind in profile.watches), *by_default]:
        kind = declared.get(watched, watched) if isinstance(watched, str) else watched
        if kind not in waited_for:
            wanted.setdefault(kind, Action(0))
    return wanted


def declared_resources(
    profiles: Mapping[str, Profile], tables: Mapping[str, HintTable]
) -> dict[str, CustomResource[Any]]:
    """The custom resources that plugins have declared, by ``plural.version.group``.

    Raises:
        BadPlugin: two plugins declare one in different ways.
    """
    found: dict[str, tuple[str, CustomResource[Any]]] = {}
    sources: dict[str, str] = {}
    uses: list[tuple[str, Any]] = []
    for profile in profiles.values():
        sources |= profile.sources
        for plugin, instance in profile.plugins.items():
            uses += ((plugin, kind) for kind in getattr(instance, "watches", None) or ())
            uses += ((plugin, kind) for kind in getattr(instance, "writes", None) or ())
    uses += ((entry.plugin, entry.custom_resource) for table in tables.values() for entry in table.entries)
    for plugin, kind in uses:
        if isinstance(kind, CustomResource):
            other, first = found.setdefault(kind.resource, (plugin, kind))
            if first != kind:
                problem = (
                    f"it declares {kind!r}, but plugin {other!r} declares {first!r}; both must declare it in the same "
                    "way, for instance by importing one declaration"
                )
                raise BadPlugin(plugin, sources.get(plugin, "?"), problem)
    return {resource: kind for resource, (_, kind) in found.items()}


def by_kind(wanted: Mapping[Watched, Action]) -> dict[Watched, tuple[str, Action]]:
    """The name under which plugins read the objects → the resource in cluster events, and its part of *wanted*."""
    found = ((kind_of(resource), str(resource), actions) for resource, actions in wanted.items())
    return {kind[0]: (resource, actions) for kind, resource, actions in found if kind is not None}


def check_kind(wanted: Collection[Watched], kind: Watched) -> None:
    """Check that objects of *kind* can be read.

    Args:
        wanted: what is watched, as in cluster events.
        kind: the name under which a plugin reads objects.

    Raises:
        KindNotWatched: it is not watched; the error says how it would be.
        TypeError: it is no name of a kind.
    """
    watched = {found[0] for found in map(kind_of, wanted) if found is not None}
    if kind in watched or kind in WATCHED_ANYWAY:
        return
    if isinstance(kind, CustomResource):
        same = next((one for one in watched if isinstance(one, CustomResource) and str(one) == str(kind)), None)
        fix = f"it is watched as {same!r}: use the same declaration everywhere" if same else ""
        raise KindNotWatched(str(kind), fix or "put its CustomResource into the watches of the plugin that reads it")
    if not isinstance(kind, str):
        raise TypeError(f"a kind is given as text or as CustomResource, not as {kind!r}")
    if any(kind == str(one) for one in watched):
        raise KindNotWatched(kind, "a plugin has declared it with CustomResource: read it by that declaration")
    found = kind_of(kind)
    if found is not None and found[0] == kind:
        raise KindNotWatched(kind)
    names = {*KINDS, *WATCHED_ANYWAY, *map(str, watched)}
    close = kind.rpartition("/")[2] if found is not None else nearest_name(kind, names)
    if close:
        raise KindNotWatched(kind, f"did you mean {close!r}?")
    raise KindNotWatched(
        kind,
        f"there is no kind {kind!r} that trio-sched knows; declare it with CustomResource, and use that here and in "
        "watches",
    )


def kind_of(resource: Watched) -> tuple[Watched, Kind[Any]] | None:
    """The name and the watch of a *resource* of cluster events, or of a kind that plugins read.

    Returns:
        None if it is watched anyway, or is neither known, declared nor written ``plural.version.group``, or
        ``plural.version`` in the core group.
    """
    if isinstance(resource, CustomResource):
        return resource, kind_of_declared(resource)
    name = resource.rpartition("/")[2]
    if name in KINDS:
        return name, KINDS[name]
    plural, _, rest = resource.partition(".")
    version, _, group = rest.partition(".")
    if not group and not _is_version(version):  # plural.version is of the core group
        return None
    # Whether it is namespaced does not matter for following all of them.
    return resource, Kind(group=group, version=version, plural=plural, namespaced=True, type=AnyObject)


def kind_of_declared(resource: CustomResource[Any]) -> Kind[Any]:
    """How a custom resource is watched and written."""

    def decode(_head: CustomHead, raw: bytes) -> Any:
        return resource.decode(raw)

    return Kind(
        group=resource.group,
        version=resource.version,
        plural=resource.plural,
        namespaced=resource.namespaced,
        type=CustomHead,
        keep_raw=decode,
    )
