"""Devices, resource claims and pod groups for tests.

slices = resource_slice("node-1", device("gpu-0", attributes={"model": "a100"}, capacity={"memory": "40Gi"}))
claim = resource_claim("training", device_request("gpu", "gpu.example.com", selectors=["..."]))
pod("train-0", claims=["training"])
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from trio_sched.objects.amounts.quantity import Quantity
from trio_sched.objects.metadata import ObjectMeta, OwnerReference
from trio_sched.objects.pod_groups.composite_pod_group import (
    AllCompositeDisruptionMode,
    CompositeBasicSchedulingPolicy,
    CompositeDisruptionMode,
    CompositeGangSchedulingPolicy,
    CompositePodGroup,
    CompositePodGroupSchedulingPolicy,
    CompositePodGroupSpec,
    WorkloadReference,
)
from trio_sched.objects.pod_groups.pod_group import (
    BasicSchedulingPolicy,
    GangSchedulingPolicy,
    PodGroup,
    PodGroupResourceClaim,
    PodGroupSchedulingConstraints,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
    TopologyConstraint,
)
from trio_sched.objects.resource.device_class import DeviceClass, DeviceClassSpec
from trio_sched.objects.resource.device_taint_rule import DeviceTaintRule, DeviceTaintRuleSpec, DeviceTaintSelector
from trio_sched.objects.resource.resource_claim import (
    AllocationResult,
    CapacityRequirements,
    CELDeviceSelector,
    DeviceAllocationResult,
    DeviceClaim,
    DeviceConstraint,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
    ResourceClaimStatus,
)
from trio_sched.objects.resource.resource_slice import (
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceTaint,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from trio_sched.objects.selector import NodeSelector
from trio_sched.testing.builders import taint, toleration

DRIVER = "gpu.example.com"
"""The driver of devices whose driver does not matter; device classes of this name select its devices."""


def device(
    name: str = "gpu-0",
    *,
    attributes: Mapping[str, str | int | bool | DeviceAttribute] | None = None,
    capacity: Mapping[str, Quantity | DeviceCapacity] | None = None,
    taints: Iterable[str | DeviceTaint] = (),
    **more: Any,
) -> Device:
    """A device.

    Args:
        name: its name.
        attributes: by name; a version is a ``DeviceAttribute(version=…)``.
        capacity: quantities by name.
        taints: as ``kubectl taint`` writes them; see `trio_sched.testing.taint`.
        more: other fields of `Device`.
    """
    return Device(
        name=name,
        attributes={key: _attribute(value) for key, value in (attributes or {}).items()} or None,
        capacity={
            key: value if isinstance(value, DeviceCapacity) else DeviceCapacity(value=value)
            for key, value in (capacity or {}).items()
        }
        or None,
        taints=tuple(one if isinstance(one, DeviceTaint) else _device_taint(one) for one in taints) or None,
        **more,
    )


def _attribute(value: str | int | bool | DeviceAttribute) -> DeviceAttribute:
    if isinstance(value, bool):
        return DeviceAttribute(bool_=value)
    if isinstance(value, int):
        return DeviceAttribute(int_=value)
    return DeviceAttribute(string=value) if isinstance(value, str) else value


def _device_taint(text: str) -> DeviceTaint:
    found = taint(text)
    return DeviceTaint(key=found.key, value=found.value, effect=found.effect)


def resource_slice(
    node: str | NodeSelector | None = None,
    *devices: Device,
    name: str = "",
    driver: str = DRIVER,
    pool: str = "",
    generation: int = 1,
    slices: int = 1,
    **more: Any,
) -> ResourceSlice:
    """A resource slice.

    Args:
        node: the node of the devices, or a selector of nodes; None for all nodes.
        devices: its devices.
        name: its name; by default from pool and driver.
        driver: the driver that publishes it.
        pool: the pool that it belongs to; by default the name of the node.
        generation: of the pool.
        slices: how many slices the pool has.
        more: other fields of `ResourceSliceSpec`.
    """
    pool = pool or (node if isinstance(node, str) else "pool")
    spread = {"shared_counters", "per_device_node_selection"} & more.keys()
    return ResourceSlice(
        metadata=ObjectMeta(name=name or f"{pool}-{driver}"),
        spec=ResourceSliceSpec(
            driver=driver,
            pool=ResourcePool(name=pool, generation=generation, resource_slice_count=slices),
            node_name=node if isinstance(node, str) else None,
            node_selector=node if isinstance(node, NodeSelector) else None,
            all_nodes=True if node is None and not spread else None,
            devices=devices or None,
            **more,
        ),
    )


def device_taint_rule(
    name: str = "rule",
    taint_text: str = "example.com/broken:NoExecute",
    *,
    driver: str | None = None,
    pool: str | None = None,
    device: str | None = None,
) -> DeviceTaintRule:
    """A rule by which an administrator taints devices.

    Args:
        name: its name.
        taint_text: the taint as ``kubectl taint`` writes it; see `trio_sched.testing.taint`.
        driver: of the devices; None: any.
        pool: of the devices; None: any.
        device: the name of the device; None: any.
    """
    return DeviceTaintRule(
        metadata=ObjectMeta(name=name, uid=f"uid-of-{name}"),
        spec=DeviceTaintRuleSpec(
            device_selector=DeviceTaintSelector(driver=driver, pool=pool, device=device),
            taint=_device_taint(taint_text),
        ),
    )


def device_class(name: str = DRIVER, *selectors: str, extended_resource_name: str | None = None) -> DeviceClass:
    """A device class; without *selectors*, CEL expressions, it selects the devices of the driver *name*."""
    selectors = selectors or (f'device.driver == "{name}"',)
    return DeviceClass(
        metadata=ObjectMeta(name=name),
        spec=DeviceClassSpec(selectors=_selectors(selectors), extended_resource_name=extended_resource_name),
    )


def device_request(
    name: str = "gpu",
    class_name: str = DRIVER,
    *,
    count: int | None = 1,
    selectors: Iterable[str] = (),
    tolerations: Iterable[str | DeviceToleration] = (),
    capacity: Mapping[str, Quantity] | None = None,
    admin_access: bool | None = None,
    first_available: Iterable[DeviceSubRequest] = (),
) -> DeviceRequest:
    """A request of a claim.

    Args:
        name: its name.
        class_name: the device class.
        count: how many devices; None for all.
        selectors: CEL expressions.
        tolerations: of device taints; see `trio_sched.testing.toleration`.
        capacity: needed of each device.
        admin_access: for monitoring, of devices that others use.
        first_available: alternatives (see `sub_request`) instead of everything but the name.
    """
    alternatives = tuple(first_available)
    if alternatives:
        return DeviceRequest(name=name, first_available=alternatives)
    wanted = sub_request("", class_name, count=count, selectors=selectors, tolerations=tolerations, capacity=capacity)
    return DeviceRequest(
        name=name,
        exactly=ExactDeviceRequest(
            device_class_name=wanted.device_class_name,
            selectors=wanted.selectors,
            allocation_mode=wanted.allocation_mode,
            count=wanted.count,
            admin_access=admin_access,
            tolerations=wanted.tolerations,
            capacity=wanted.capacity,
        ),
    )


def sub_request(
    name: str,
    class_name: str = DRIVER,
    *,
    count: int | None = 1,
    selectors: Iterable[str] = (),
    tolerations: Iterable[str | DeviceToleration] = (),
    capacity: Mapping[str, Quantity] | None = None,
) -> DeviceSubRequest:
    """An alternative of a prioritised list; the arguments are those of `device_request`."""
    return DeviceSubRequest(
        name=name,
        device_class_name=class_name,
        selectors=_selectors(selectors),
        allocation_mode="All" if count is None else "ExactCount",
        count=count or 0,
        tolerations=tuple(map(_device_toleration, tolerations)) or None,
        capacity=CapacityRequirements(requests=dict(capacity)) if capacity else None,
    )


def _selectors(expressions: Iterable[str]) -> tuple[DeviceSelector, ...] | None:
    return tuple(DeviceSelector(cel=CELDeviceSelector(expression=one)) for one in expressions) or None


def _device_toleration(text: str | DeviceToleration) -> DeviceToleration:
    if isinstance(text, DeviceToleration):
        return text
    found = toleration(text)
    return DeviceToleration(key=found.key, operator=found.operator, value=found.value, effect=found.effect)


def resource_claim(
    name: str = "claim",
    *requests: DeviceRequest,
    namespace: str = "default",
    constraints: Iterable[DeviceConstraint] = (),
    owner: OwnerReference | None = None,
    allocated: Iterable[DeviceRequestAllocationResult] = (),
    node_selector: NodeSelector | None = None,
    reserved_for: Iterable[str] = (),
) -> ResourceClaim:
    """A claim; without *requests* for one device of the default class.

    Args:
        name: its name.
        requests: see `device_request`.
        namespace: its namespace.
        constraints: across its devices.
        owner: the pod that it was made for.
        allocated: its devices, if it is allocated.
        node_selector: where these can be used.
        reserved_for: UIDs of the pods that may use it.
    """
    results = tuple(allocated)
    return ResourceClaim(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=f"uid-of-{namespace}/{name}",
            owner_references=(owner,) if owner is not None else None,
        ),
        spec=ResourceClaimSpec(
            devices=DeviceClaim(requests=requests or (device_request(),), constraints=tuple(constraints) or None)
        ),
        status=ResourceClaimStatus(
            allocation=AllocationResult(devices=DeviceAllocationResult(results=results), node_selector=node_selector)
            if results
            else None,
            reserved_for=tuple(
                ResourceClaimConsumerReference(resource="pods", name=uid.rpartition("/")[2], uid=uid)
                for uid in reserved_for
            )
            or None,
        ),
    )


def pod_group(
    name: str = "gang",
    *,
    namespace: str = "default",
    min_count: int | None = None,
    topology_key: str = "",
    claims: Iterable[str | PodGroupResourceClaim] = (),
    disruption_mode: str | None = None,
    priority: int | None = None,
    preemption_policy: str | None = None,
    parent: str | None = None,
) -> PodGroup:
    """A pod group: a gang with *min_count*, else one whose pods are scheduled one by one.

    Args:
        name: its name; pods name it as their *group*.
        namespace: its namespace, and that of its pods.
        min_count: how many pods are scheduled together at least.
        topology_key: the node label of which all its nodes must have the same value.
        claims: what its pods share: names of ResourceClaims, which stand for themselves, or full entries.
        disruption_mode: ``Pod`` or ``PodGroup``.
        priority: ``spec.priority``.
        preemption_policy: ``spec.preemptionPolicy``, from 1.37 on.
        parent: the composite pod group that it is below, from 1.37 on.
    """
    return PodGroup(
        metadata=ObjectMeta(name=name, namespace=namespace, uid=f"uid-of-{namespace}/{name}"),
        spec=PodGroupSpec(
            scheduling_policy=PodGroupSchedulingPolicy(basic=BasicSchedulingPolicy())
            if min_count is None
            else PodGroupSchedulingPolicy(gang=GangSchedulingPolicy(min_count=min_count)),
            scheduling_constraints=PodGroupSchedulingConstraints(topology=(TopologyConstraint(key=topology_key),))
            if topology_key
            else None,
            resource_claims=tuple(
                [
                    PodGroupResourceClaim(name=one, resource_claim_name=one) if isinstance(one, str) else one
                    for one in claims
                ]
            )
            or None,
            disruption_mode=disruption_mode,
            priority=priority,
            preemption_policy=preemption_policy,
            parent_composite_pod_group_name=parent,
        ),
    )


def composite_pod_group(
    name: str = "tree",
    *,
    namespace: str = "default",
    min_group_count: int | None = None,
    parent: str | None = None,
    topology_key: str = "",
    disrupted_together: bool = False,
    priority: int | None = None,
    preemption_policy: str | None = None,
) -> CompositePodGroup:
    """A group of pod groups: a gang with *min_group_count*, else one whose child groups are scheduled independently.

    Args:
        name: its name; its children name it as their *parent*.
        namespace: its namespace, and that of its children.
        min_group_count: how many child groups are scheduled together at least.
        parent: the composite pod group that it is below.
        topology_key: the node label of which all nodes of its pods must have the same value.
        disrupted_together: whether all pods below it are evicted together.
        priority: ``spec.priority``; all pods need that of the root.
        preemption_policy: ``spec.preemptionPolicy``.
    """
    return CompositePodGroup(
        metadata=ObjectMeta(name=name, namespace=namespace, uid=f"uid-of-composite-{namespace}/{name}"),
        spec=CompositePodGroupSpec(
            parent_composite_pod_group_name=parent,
            workload_ref=WorkloadReference("workload", name),
            scheduling_policy=CompositePodGroupSchedulingPolicy(basic=CompositeBasicSchedulingPolicy())
            if min_group_count is None
            else CompositePodGroupSchedulingPolicy(gang=CompositeGangSchedulingPolicy(min_group_count)),
            scheduling_constraints=PodGroupSchedulingConstraints(topology=(TopologyConstraint(key=topology_key),))
            if topology_key
            else None,
            disruption_mode=CompositeDisruptionMode(all=AllCompositeDisruptionMode()) if disrupted_together else None,
            priority=priority,
            preemption_policy=preemption_policy,
        ),
    )
