"""Resources of nodes and pods, shared by NodeResourcesFit and NodeResourcesBalancedAllocation."""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from trio_sched.plugin_api import Container, Handle, Int64Array, NodeColumns, Pod, ResourceOptions
from trio_sched.plugin_api.behaviour import Behaviour
from trio_sched.plugin_api.features import Features

FLOAT_EXACT_BELOW = 2**53 // 100
"""Up to here 100 times a number is exact as a float, and the floor of a float division equals integer division."""

FEW = 6
"""For so few nodes plain integers are faster than arrays, whose operations cost about a microsecond each."""

DEVICE_CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"

_COMMON = frozenset({"cpu", "memory", "ephemeral-storage"})


def resource_options(handle: Handle) -> ResourceOptions:
    """Which parts of a pod spec count as requests, by the feature gates and the version."""
    features = Features.of(handle.feature_enabled)
    return ResourceOptions(
        pod_level=features.pod_level_resources,
        pod_level_resize=features.in_place_pod_level_resources_vertical_scaling,
        resize_of_whole_pod=Behaviour.of(handle).resize_of_whole_pod,
    )


def columns_of(names: Sequence[str], nodes: NodeColumns, *, nonzero: bool) -> tuple[Int64Array, Int64Array]:
    """What is allocatable and what is requested of the resources *names*, each of shape (len(names), nodes).

    With *nonzero*, containers without requests for CPU or memory count with default requests.
    """
    if tuple(names) == ("cpu", "memory"):  # the default arguments: rows 0 and 1, no copy
        return nodes.allocatable[:2], nodes.nonzero_requested if nonzero else nodes.requested[:2]
    allocatable = np.zeros((len(names), len(nodes)), dtype=np.int64)
    used = np.zeros_like(allocatable)
    for i, name in enumerate(names):
        row = nodes.resource_row(name)
        if row is not None:
            allocatable[i] = nodes.allocatable[row]
            used[i] = nodes.nonzero_requested[row] if nonzero and name in ("cpu", "memory") else nodes.requested[row]
    return allocatable, used


def device_class_maps(resource: str, handle: Handle) -> bool:
    """Whether a DeviceClass maps to the extended resource *resource*; it is left to DynamicResources then."""
    for device_class in handle.objects("DeviceClass"):
        if resource in (device_class.extended_resource_name, DEVICE_CLASS_PREFIX + device_class.name):
            return True
    return False


def mentions_scalars(pod: Pod) -> bool:
    """Whether the pod mentions a resource other than the common ones; parses no amounts, so zero requests count too."""
    spec = pod.spec
    for container in (*(spec.containers or ()), *(spec.init_containers or ())):
        if container.resources is not None and not _COMMON.issuperset(container.resources.requests or ()):
            return True
    of_pod = spec.resources.requests if spec.resources is not None else None
    return not _COMMON.issuperset(of_pod or ()) or not _COMMON.issuperset(spec.overhead or ())


def request_signature(pod: Pod) -> Hashable:
    """A value that is equal for pods whose requests are written the same way; fast, because no amount is parsed."""
    spec, status = pod.spec, pod.status
    resized = (
        status.container_statuses or status.init_container_statuses or status.resources or status.allocated_resources
    )
    return (
        _container_signatures(spec.containers),
        _container_signatures(spec.init_containers),
        _pairs(spec.resources.requests) if spec.resources is not None else None,
        _pairs(spec.overhead),
        pod.uid if resized else None,
    )


def _container_signatures(containers: Sequence[Container] | None) -> Hashable:
    if not containers:
        return ()
    return tuple(
        [(one.restart_policy, None if one.resources is None else _pairs(one.resources.requests)) for one in containers]
    )


def _pairs(mapping: Mapping[str, object] | None) -> Hashable:
    return tuple(mapping.items()) if mapping else None
