"""Extended resources that devices stand behind: requests for devices in place of amounts.

Source: extended resources backed by DRA of kube-scheduler 1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import define, field

from plugins_builtin.dynamic_resources.device_requests import EXACT_COUNT
from plugins_builtin.resources.resources import DEVICE_CLASS_PREFIX
from trio_sched.plugin_api import Container, DeviceClass, DeviceRequest, ExactDeviceRequest, Handle, Pod, parse_nano

NANO = 10**9


@define(eq=False)
class ResourceClasses:
    """Which device class stands behind which extended resource."""

    _handle: Handle
    _version: int = -1
    _class_of: dict[str, str] = field(factory=dict)

    def class_of(self, resource: str) -> str | None:
        """The name of the device class, or None."""
        version = self._handle.version("DeviceClass")
        if version != self._version:
            self._version = version
            self._class_of = _class_names(self._handle.objects("DeviceClass"))
        return self._class_of.get(resource)


def _class_names(classes: Iterable[DeviceClass]) -> dict[str, str]:
    """The class of each resource: of several the youngest counts, of equally old ones the first by name."""
    found: dict[str, DeviceClass] = {}
    for one in classes:
        if one.extended_resource_name:
            other = found.get(one.extended_resource_name)
            if other is None or _wins(one, other):
                found[one.extended_resource_name] = one
    names = {resource: one.name for resource, one in found.items()}
    for one in classes:
        names[DEVICE_CLASS_PREFIX + one.name] = one.name
    return names


def _wins(one: DeviceClass, other: DeviceClass) -> bool:
    mine, others = one.metadata.creation_timestamp or "", other.metadata.creation_timestamp or ""
    return mine > others if mine != others else one.name < other.name


def device_requests(
    pod: Pod, class_of: Mapping[str, str]
) -> tuple[tuple[DeviceRequest, ...], tuple[dict[str, str], ...]]:
    """The requests for devices in place of some extended resources of *pod*, and which container uses which.

    Args:
        pod: the pod.
        class_of: the resources that devices provide, with their classes.
    """
    init = pod.spec.init_containers or ()
    containers = (*init, *(pod.spec.containers or ()))
    is_short_lived = [i < len(init) and one.restart_policy != "Always" for i, one in enumerate(containers)]
    requests: list[DeviceRequest] = []
    mappings: list[dict[str, str]] = []
    for resource in sorted(class_of):
        long_lived: list[DeviceRequest | None] = [None] * len(containers)
        of_resource: list[dict[str, str]] = []
        for i, container in enumerate(containers):
            if not is_short_lived[i]:
                long_lived[i], mapped = _request(i, container, resource, class_of[resource], ())
                of_resource += mapped
        largest, short_lived = _short_lived(containers, is_short_lived, resource, class_of[resource], long_lived)
        if largest is not None:
            requests.append(largest)
        requests += (one for one in long_lived if one is not None)
        mappings += of_resource + short_lived
    requests.sort(key=lambda one: one.name)
    return tuple(requests), tuple(mappings)


def _short_lived(
    containers: Sequence[Container],
    is_short_lived: Sequence[bool],
    resource: str,
    class_name: str,
    long_lived: Sequence[DeviceRequest | None],
) -> tuple[DeviceRequest | None, list[dict[str, str]]]:
    """Init containers use what later containers will use, and of the rest together what the largest one needs."""
    largest: DeviceRequest | None = None
    names: set[str] = set()
    mappings: list[dict[str, str]] = []
    for i, container in enumerate(containers):
        if not is_short_lived[i]:
            continue
        request, mapped = _request(i, container, resource, class_name, long_lived[i:])
        mappings += mapped
        if request is not None:
            names.add(request.name)
            if largest is None or _count(largest) < _count(request):
                largest = request
    if largest is not None:
        names.discard(largest.name)
        for one in mappings:
            if one["requestName"] in names:
                one["requestName"] = largest.name
    return largest, mappings


def _request(
    index: int, container: Container, resource: str, class_name: str, reusable: Sequence[DeviceRequest | None]
) -> tuple[DeviceRequest | None, list[dict[str, str]]]:
    """The request of one container beyond *reusable*, None if it needs none; and the requests that it uses."""
    requested = (container.resources.requests if container.resources is not None else None) or {}
    if resource not in requested:
        return None, []
    nano = parse_nano(requested[resource])
    if nano == 0 or nano % NANO:
        return None, []
    wanted, reused = nano // NANO, 0
    mappings: list[dict[str, str]] = []

    def uses(name: str) -> None:
        mappings.append({"containerName": container.name, "resourceName": resource, "requestName": name})

    for other in reusable:
        if other is not None:
            reused += _count(other)
            uses(other.name)
            if reused >= wanted:
                return None, mappings
    name = f"container-{index}-request-{sorted(requested).index(resource)}"
    uses(name)
    exactly = ExactDeviceRequest(device_class_name=class_name, allocation_mode=EXACT_COUNT, count=wanted - reused)
    return DeviceRequest(name=name, exactly=exactly), mappings


def _count(request: DeviceRequest) -> int:
    return 0 if request.exactly is None else request.exactly.count
