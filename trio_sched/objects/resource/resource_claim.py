"""Resource claims: requests for devices, and which devices were allocated."""

from typing import Any

from msgspec import Struct, field

from trio_sched.objects.amounts.quantity import Quantity
from trio_sched.objects.metadata import NamespacedObject
from trio_sched.objects.selector import NodeSelector


class CELDeviceSelector(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A CEL expression about a device."""

    expression: str = ""


class DeviceSelector(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """What a device must fulfil; *cel* is the only form there is."""

    cel: CELDeviceSelector | None = None


class DeviceToleration(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A toleration of device taints."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class CapacityRequirements(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """The amounts of capacities that are needed of each device."""

    requests: dict[str, Quantity] | None = None


class ExactDeviceRequest(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``exactly`` of a request."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] | None = None
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] | None = None
    capacity: CapacityRequirements | None = None


class DeviceSubRequest(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """One alternative of a prioritised list."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] | None = None
    allocation_mode: str = ""
    count: int = 0
    tolerations: tuple[DeviceToleration, ...] | None = None
    capacity: CapacityRequirements | None = None


class DeviceRequest(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A request: either *exactly* one kind of device, or the first alternative that is available."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] | None = None


class DeviceConstraint(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A constraint across the devices of *requests*; of all requests if there are none."""

    requests: tuple[str, ...] | None = None
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class OpaqueDeviceConfiguration(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """Parameters for a driver, which nobody else reads."""

    driver: str = ""
    parameters: Any = None


class DeviceClaimConfiguration(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """Configuration for the devices of *requests*; of all requests if there are none."""

    requests: tuple[str, ...] | None = None
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``spec.devices`` of a claim."""

    requests: tuple[DeviceRequest, ...] | None = None
    constraints: tuple[DeviceConstraint, ...] | None = None
    config: tuple[DeviceClaimConfiguration, ...] | None = None


class ResourceClaimSpec(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``spec`` of a ResourceClaim."""

    devices: DeviceClaim = field(default_factory=DeviceClaim)


class DeviceRequestAllocationResult(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """An allocated device; *request* is ``request`` or ``request/subrequest``."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] | None = None
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] | None = None
    share_id: str | None = field(name="shareID", default=None)
    consumed_capacity: dict[str, Quantity] | None = None


class DeviceAllocationConfiguration(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """Configuration for allocated devices, and whether it is from the class or from the claim."""

    source: str = ""
    requests: tuple[str, ...] | None = None
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``status.allocation.devices``."""

    results: tuple[DeviceRequestAllocationResult, ...] | None = None
    config: tuple[DeviceAllocationConfiguration, ...] | None = None


class AllocationResult(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``status.allocation``: the devices, and the nodes on which these can be used (all without a selector)."""

    devices: DeviceAllocationResult = field(default_factory=DeviceAllocationResult)
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ResourceClaimConsumerReference(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """Who may use the claim."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceCondition(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A condition of an allocated device."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class AllocatedDeviceStatus(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """What the driver says about an allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = field(name="shareID", default=None)
    conditions: tuple[DeviceCondition, ...] | None = None


class ResourceClaimStatus(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``status`` of a ResourceClaim."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] | None = None
    devices: tuple[AllocatedDeviceStatus, ...] | None = None


class ResourceClaim(NamespacedObject, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A ``resource.k8s.io/v1`` ResourceClaim."""

    spec: ResourceClaimSpec = field(default_factory=ResourceClaimSpec)
    status: ResourceClaimStatus = field(default_factory=ResourceClaimStatus)


class ResourceClaimTemplateSpec(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``spec`` of a ResourceClaimTemplate: the claims that are made from it."""

    spec: ResourceClaimSpec = field(default_factory=ResourceClaimSpec)


class ResourceClaimTemplate(NamespacedObject, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A ``resource.k8s.io/v1`` ResourceClaimTemplate; its claims are made by kube-controller-manager."""

    spec: ResourceClaimTemplateSpec = field(default_factory=ResourceClaimTemplateSpec)
