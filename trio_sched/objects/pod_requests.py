"""What a pod requests of a node: resources and host ports, in whole base units.

Source: the pod requests rules of Kubernetes 1.36 (containers, sidecars, init containers, in-place resize, pod level,
overhead).
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from msgspec import Struct

from trio_sched.objects.amounts.quantity import NANO, Quantity, parse_nano, to_milli, to_units
from trio_sched.objects.pod import Container, ContainerStatus, NodeAllocatableResourceClaimStatus, Pod, PodStatus
from trio_sched.objects.resized_amounts import (
    NanoAmounts,
    Resized,
    actual_amounts,
    allocated_amounts,
    most,
    most_feasible,
    parse_amounts,
    raise_to,
    wanted_amounts,
)

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"

DEFAULT_CPU_MILLI = 100
"""The CPU request that scoring assumes for a container without one."""
DEFAULT_MEMORY_BYTES = 200 * 1024 * 1024
"""The memory request that scoring assumes for a container without one."""

_Requests = tuple[tuple[tuple[str, Quantity], ...], ...]
_MAX_KNOWN_RESOURCES = 4096
_MAX_REQUESTS = 16
"""Containers, and requests of one, up to which a pod's are kept: the limit above is none for what is huge."""
_known_resources: dict[_Requests, "PodResources"] = {}
"""What pods with these requests use; for pods where nothing else matters."""

_NON_MISSING: NanoAmounts = {CPU: DEFAULT_CPU_MILLI * NANO // 1000, MEMORY: DEFAULT_MEMORY_BYTES * NANO}


class ResourceOptions(Struct, frozen=True, gc=False):
    """Which parts of a pod count, by feature gates; as these are by default."""

    pod_level: bool = True
    """``spec.resources`` (gate PodLevelResources)."""
    pod_level_resize: bool = True
    """``status.resources`` (gate InPlacePodLevelResourcesVerticalScaling)."""
    device_claims: bool = False
    """``status.nodeAllocatableResourceClaimStatuses`` (gate DRANodeAllocatableResources)."""
    resize_of_whole_pod: bool = False
    """No gate: whether a pod that is resized holds the highest of the sums that it wants, has and is allocated, as
    since 1.37, instead of the sum of what each container holds at most."""


DEFAULT_OPTIONS = ResourceOptions()


class ResourceAmounts(Struct, frozen=True, gc=False):
    """Amounts in the integer units of node resources.

    Each is rounded up once, on the whole pod. *scalars* holds extended resources, huge pages and the like, sorted by
    name; a name that was requested with amount 0 is included.
    """

    cpu_milli: int = 0
    memory_bytes: int = 0
    ephemeral_storage_bytes: int = 0
    scalars: tuple[tuple[str, int], ...] = ()

    def amounts(self) -> tuple[tuple[str, int], ...]:
        """All of them, by the names of the resources."""
        return (
            ("cpu", self.cpu_milli),
            ("memory", self.memory_bytes),
            ("ephemeral-storage", self.ephemeral_storage_bytes),
            *self.scalars,
        )

    def amount(self, resource: str) -> int:
        """The amount of *resource*; 0 if there is none."""
        match resource:
            case "cpu":
                return self.cpu_milli
            case "memory":
                return self.memory_bytes
            case "ephemeral-storage":
                return self.ephemeral_storage_bytes
        for name, amount in self.scalars:
            if name == resource:
                return amount
        return 0


class HostPort(Struct, frozen=True, gc=False):
    """A port of the node itself that a pod occupies."""

    ip: str
    protocol: str
    port: int


class PodResources(Struct, frozen=True, gc=False):
    """What a pod uses of its node.

    *requested* is what filters count, *nonzero_cpu_milli* and *nonzero_memory_bytes* (with defaults for containers that
    request nothing) what scores count.
    """

    requested: ResourceAmounts
    nonzero_cpu_milli: int
    nonzero_memory_bytes: int
    host_ports: tuple[HostPort, ...]


def pod_resources(pod: Pod, options: ResourceOptions = DEFAULT_OPTIONS) -> PodResources:
    """What *pod* uses of its node once it runs there, with resizes in progress; one object for pods of one template."""
    requests = _requests_of_plain_pod(pod)
    if requests is None:
        return _pod_resources(pod, options)
    known = _known_resources.get(requests)
    if known is None:
        if len(_known_resources) >= _MAX_KNOWN_RESOURCES:
            _known_resources.clear()
        known = _known_resources[requests] = _pod_resources(pod, options)
    return known


def has_same_resources(old: Pod, new: Pod) -> bool:
    """Whether all that the requests of a pod follow from is the same in two versions; cheaper than adding them up."""
    a, b = old.spec, new.spec
    if a is not b and not (
        a.containers == b.containers
        and a.init_containers == b.init_containers
        and a.resources == b.resources
        and a.overhead == b.overhead
    ):
        return False
    s, t = old.status, new.status
    if s is t:
        return True
    if s.node_allocatable_resource_claim_statuses != t.node_allocatable_resource_claim_statuses:
        return False
    before, after = _actual_resources(s), _actual_resources(t)
    return before == after and (not before or _resize_is_infeasible(old) == _resize_is_infeasible(new))


def _actual_resources(status: PodStatus) -> list[tuple[object, ...]]:
    """What the containers and the pod as a whole say that they have; most do not."""
    found: list[tuple[object, ...]] = []
    for statuses in (status.container_statuses, status.init_container_statuses):
        for one in statuses or ():
            if one.resources is not None or one.allocated_resources is not None:
                found.append((one.name, one.resources, one.allocated_resources))
    if status.resources is not None or status.allocated_resources is not None:
        found.append((status.resources, status.allocated_resources))
    return found


def _requests_of_plain_pod(pod: Pod) -> _Requests | None:
    """The requests of each container, if these alone say what *pod* uses; else None."""
    spec, status = pod.spec, pod.status
    if spec.init_containers or spec.resources is not None or spec.overhead or status.resources is not None:
        return None
    if status.node_allocatable_resource_claim_statuses:
        return None
    requests: list[tuple[tuple[str, Quantity], ...]] = []
    for container in spec.containers or ():
        if container.ports:
            return None
        of_container = container.resources.requests if container.resources is not None else None
        requests.append(tuple(of_container.items()) if of_container else ())
        if len(requests[-1]) > _MAX_REQUESTS:
            return None
    if len(requests) > _MAX_REQUESTS:
        return None
    for container_status in status.container_statuses or ():
        if container_status.resources is not None or container_status.allocated_resources is not None:
            return None
    return tuple(requests)


def _pod_resources(pod: Pod, options: ResourceOptions) -> PodResources:
    requested = nano_requests(pod, options, use_status=True)
    spec = pod.spec
    defaults = _NON_MISSING
    if options.pod_level and spec.resources is not None and _has_supported(spec.resources.requests):
        # No defaults for containers where the pod as a whole has a request.
        defaults = {name: amount for name, amount in _NON_MISSING.items() if name not in requested}
    if not defaults or (
        _all_ask_for_cpu_and_memory(spec.containers) and _all_ask_for_cpu_and_memory(spec.init_containers)
    ):
        nonzero = requested
    else:
        nonzero = nano_requests(pod, options, use_status=True, defaults=defaults)
    return PodResources(
        requested=to_amounts(requested),
        nonzero_cpu_milli=to_milli(nonzero.get(CPU, 0)),
        nonzero_memory_bytes=to_units(nonzero.get(MEMORY, 0)),
        host_ports=host_ports(pod),
    )


def _all_ask_for_cpu_and_memory(containers: tuple[Container, ...] | None) -> bool:
    for container in containers or ():
        requests = container.resources.requests if container.resources is not None else None
        if not requests or CPU not in requests or MEMORY not in requests:
            return False
    return True


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """The host ports *pod* occupies: of its sidecars, then of its containers."""
    found: list[HostPort] = []
    for container in pod.spec.init_containers or ():
        if container.ports and container.restart_policy == "Always":
            found.extend(_container_host_ports(container))
    for container in pod.spec.containers or ():
        if container.ports:
            found.extend(_container_host_ports(container))
    return tuple(found)


def _container_host_ports(container: Container) -> Iterable[HostPort]:
    for port in container.ports or ():
        if port.host_port > 0:
            yield HostPort(port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)


def nano_requests(
    pod: Pod,
    options: ResourceOptions = DEFAULT_OPTIONS,
    *,
    use_status: bool = False,
    use_pod_level: bool = True,
    defaults: Mapping[str, int] | None = None,
) -> NanoAmounts:
    """Exact requests of *pod*, overhead included.

    Args:
        pod: the pod.
        options: which feature gates are on.
        use_status: count what a running pod holds during an in-place resize.
        use_pod_level: let ``spec.resources`` override the sum of the containers.
        defaults: amounts for containers that do not name the resource; an explicit zero stays zero.
    """
    if not use_status:
        return _requests(pod, options, None, use_pod_level, defaults)
    infeasible = _resize_is_infeasible(pod)
    if not options.resize_of_whole_pod:
        return _requests(pod, options, most_feasible if infeasible else most, use_pod_level, defaults)
    highest: NanoAmounts = {}
    for resized in (
        (actual_amounts, allocated_amounts) if infeasible else (wanted_amounts, actual_amounts, allocated_amounts)
    ):
        raise_to(highest, _requests(pod, options, resized, use_pod_level, defaults))
    return highest


def _requests(
    pod: Pod,
    options: ResourceOptions,
    resized: Resized | None,
    use_pod_level: bool,
    defaults: Mapping[str, int] | None,
) -> NanoAmounts:
    """The sum over *pod*; *resized* gives the amounts of what has some in its status, None leaves the status alone."""
    spec, status = pod.spec, pod.status
    statuses = {} if resized is None else {s.name: s for s in status.container_statuses or ()}
    total: NanoAmounts = {}
    for container in spec.containers or ():
        _add(total, _container_requests(container, statuses.get(container.name), resized, defaults))
    if spec.init_containers:
        init_statuses = {} if resized is None else {s.name: s for s in status.init_container_statuses or ()}

        def requests_of(container: Container, is_sidecar: bool) -> NanoAmounts:
            known = init_statuses.get(container.name) if is_sidecar or options.resize_of_whole_pod else None
            return _container_requests(container, known, resized, defaults)

        _add_init_containers(total, spec.init_containers, requests_of)
    if options.device_claims:
        for claim in status.node_allocatable_resource_claim_statuses or ():
            _add(total, claimed_amounts(claim, len(claim.containers or ())))
    if use_pod_level and options.pod_level and spec.resources is not None and _has_supported(spec.resources.requests):
        total.update(_pod_level_requests(pod, options, resized))
    if spec.overhead:
        _add(total, parse_amounts(spec.overhead))
    return total


def claimed_amounts(claim: NodeAllocatableResourceClaimStatus, containers: int) -> NanoAmounts:
    """What the devices of *claim* take of their node for a pod of which so many *containers* use them."""
    total = dict(parse_amounts(claim.resources))
    for one in claim.mapping or ():
        if one.quantity is not None:
            _add(total, {one.name: parse_nano(one.quantity)})
    for overhead in claim.overhead or ():
        per_pod, per_container = (
            0 if amount is None else parse_nano(amount) for amount in (overhead.per_pod, overhead.per_container)
        )
        _add(total, {overhead.name: per_pod + per_container * containers})
    return total


def nano_limits(pod: Pod) -> NanoAmounts:
    """Exact limits of *pod* by its spec; overhead counts for resources that are limited."""
    spec = pod.spec

    def limits_of(container: Container, _is_sidecar: bool = False) -> NanoAmounts:
        return parse_amounts(container.resources.limits if container.resources is not None else None)

    total: NanoAmounts = {}
    for container in spec.containers or ():
        _add(total, limits_of(container))
    _add_init_containers(total, spec.init_containers or (), limits_of)
    if spec.resources is not None:
        limits = parse_amounts(spec.resources.limits)
        total.update((name, amount) for name, amount in limits.items() if _is_supported_at_pod_level(name))
    _add(total, {name: amount for name, amount in parse_amounts(spec.overhead).items() if total.get(name)})
    return total


def _add_init_containers(
    total: NanoAmounts, containers: Iterable[Container], amounts_of: Callable[[Container, bool], NanoAmounts]
) -> None:
    """Add the sidecars to *total*, and raise it to what the pod needs while any of the others runs.

    Args:
        total: of the containers.
        containers: the init containers, in order.
        amounts_of: the amounts of a container; the flag says whether it is a sidecar.
    """
    sidecars: NanoAmounts = {}
    peak: NanoAmounts = {}
    for container in containers:
        is_sidecar = container.restart_policy == "Always"
        amounts = amounts_of(container, is_sidecar)
        if is_sidecar:
            _add(total, amounts)
            _add(sidecars, amounts)
            raise_to(peak, sidecars)
        else:
            amounts = dict(amounts)
            _add(amounts, sidecars)
            raise_to(peak, amounts)
    raise_to(total, peak)


def _pod_level_requests(pod: Pod, options: ResourceOptions, resized: Resized | None) -> NanoAmounts:
    assert pod.spec.resources is not None  # the caller looked
    amounts = parse_amounts(pod.spec.resources.requests)
    status = pod.status
    if resized is not None and options.pod_level_resize and status.resources is not None:
        amounts = resized(amounts, status.resources, status.allocated_resources)
    return {name: amount for name, amount in amounts.items() if _is_supported_at_pod_level(name)}


def _container_requests(
    container: Container,
    status: ContainerStatus | None,
    resized: Resized | None,
    defaults: Mapping[str, int] | None,
) -> NanoAmounts:
    amounts = parse_amounts(container.resources.requests if container.resources is not None else None)
    if resized is not None and status is not None and status.resources is not None:
        amounts = resized(amounts, status.resources, status.allocated_resources)
    if defaults:
        amounts = {**defaults, **amounts}
    return amounts


def _resize_is_infeasible(pod: Pod) -> bool:
    for condition in pod.status.conditions or ():
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _add(into: NanoAmounts, amounts: Mapping[str, int]) -> None:
    for name, amount in amounts.items():
        into[name] = into.get(name, 0) + amount


def _is_supported_at_pod_level(name: str) -> bool:
    return name in (CPU, MEMORY) or name.startswith("hugepages-")


def _has_supported(requests: Mapping[str, Quantity] | None) -> bool:
    return any(_is_supported_at_pod_level(name) for name in requests or ())


def to_amounts(nano: Mapping[str, int]) -> ResourceAmounts:
    """Round exact amounts up to the integer units of node resources; other names are dropped."""
    cpu = memory = storage = 0
    scalars: list[tuple[str, int]] = []
    for name, amount in nano.items():
        if name == CPU:
            cpu = to_milli(amount)
        elif name == MEMORY:
            memory = to_units(amount)
        elif name == EPHEMERAL_STORAGE:
            storage = to_units(amount)
        elif name != PODS and is_scalar(name):
            scalars.append((name, to_units(amount)))
    return ResourceAmounts(cpu, memory, storage, tuple(sorted(scalars)))


@lru_cache(maxsize=4096)  # names are few and are asked about for every pod and node
def is_scalar(name: str) -> bool:
    """Whether *name* is a scalar resource: one that is counted besides CPU, memory, storage and pods."""
    return (
        is_extended(name)
        or name.startswith("hugepages-")
        or "kubernetes.io/" in name
        or name.startswith("attachable-volumes-")
    )


def is_extended(name: str) -> bool:
    """Whether *name* is an extended resource: one with a domain other than Kubernetes' own."""
    return (
        "/" in name
        and "kubernetes.io/" not in name
        and not name.startswith("requests.")
        and is_qualified_name(f"requests.{name}")
    )


def is_qualified_name(name: str) -> bool:
    """Whether *name* has the form ``[dns-subdomain/]name`` of label keys and resource names."""
    prefix, slash, rest = name.rpartition("/")
    if slash and not _is_dns_subdomain(prefix):
        return False
    return 0 < len(rest) <= 63 and is_label_text(rest)


def is_label_text(text: str) -> bool:
    """Whether *text* consists of alphanumerics with ``-_.`` inside, as label names and values must."""
    return (
        text.isascii() and text[:1].isalnum() and text[-1:].isalnum() and all(c.isalnum() or c in "-_." for c in text)
    )


def _is_dns_subdomain(text: str) -> bool:
    return (
        0 < len(text) <= 253
        and all(
            part[:1].isalnum() and part[-1:].isalnum() and all(c.isalnum() or c == "-" for c in part)
            for part in text.split(".")
        )
        and text.isascii()
        and text == text.lower()
    )
