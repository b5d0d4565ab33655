"""Resource slices: the devices that a driver offers, with their attributes, capacities, taints and shared counters."""

from msgspec import Struct, field

from trio_sched.objects.amounts.quantity import Quantity
from trio_sched.objects.metadata import NamedObject
from trio_sched.objects.selector import NodeSelector


class DeviceAttribute(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """The value of an attribute; exactly one field is set. Lists need the gate DRAListTypeAttributes."""

    int_: int | None = field(name="int", default=None)
    bool_: bool | None = field(name="bool", default=None)
    string: str | None = None
    version: str | None = None
    ints: tuple[int, ...] | None = None
    bools: tuple[bool, ...] | None = None
    strings: tuple[str, ...] | None = None
    versions: tuple[str, ...] | None = None


class CapacityRequestPolicyRange(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``validRange``: from *min* to *max*, in steps from *min*."""

    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """How much of a capacity may be requested, and how much is consumed without a request."""

    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] | None = None
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """One capacity of a device."""

    value: Quantity = ""
    request_policy: CapacityRequestPolicy | None = None


class Counter(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A shared counter, or how much of one a device consumes."""

    value: Quantity = ""


class CounterSet(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """Counters that devices of a pool share."""

    name: str = ""
    counters: dict[str, Counter] | None = None


class DeviceCounterConsumption(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """What a device consumes of a counter set when it is allocated."""

    counter_set: str = ""
    counters: dict[str, Counter] | None = None


class DeviceTaint(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A taint of a device; *time_added* stays RFC 3339 text."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class NodeAllocatableResourceMapping(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """How much a device takes of a resource of its node: what is consumed of a capacity, times a multiplier."""

    capacity_key: str | None = None
    """The capacity; without one, it is the multiplier alone."""
    allocation_multiplier: Quantity | None = None


class NodeAllocatableMapping(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """How much of a resource of its node a device is: a fixed amount, or what is consumed of a capacity, multiplied."""

    capacity_key: str | None = None
    capacity_multiplier: Quantity | None = None
    device_multiplier: Quantity | None = None


class NodeAllocatableOverhead(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """How much of a resource of its node a device takes besides: for each pod that uses it, and for each container."""

    per_pod: Quantity | None = None
    per_container: Quantity | None = None


class NodeAllocatableResource(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """What a device has to do with a resource of its node; since 1.37, in place of `NodeAllocatableResourceMapping`."""

    mapping: NodeAllocatableMapping | None = None
    overhead: NodeAllocatableOverhead | None = None


class Device(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A device; attributes and capacities by ``name`` (of the driver's domain) or ``domain/name``."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] | None = None
    capacity: dict[str, DeviceCapacity] | None = None
    consumes_counters: tuple[DeviceCounterConsumption, ...] | None = None
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] | None = None
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] | None = None
    allow_multiple_allocations: bool | None = None
    node_allocatable_resource_mappings: dict[str, NodeAllocatableResourceMapping] | None = None
    node_allocatable_resources: dict[str, NodeAllocatableResource] | None = None


class ResourcePool(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """The pool that a slice is part of; it is complete with *resource_slice_count* slices of one generation."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``spec`` of a ResourceSlice."""

    driver: str = ""
    pool: ResourcePool = field(default_factory=ResourcePool)
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    devices: tuple[Device, ...] | None = None
    per_device_node_selection: bool | None = None
    shared_counters: tuple[CounterSet, ...] | None = None


class ResourceSlice(NamedObject, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A ``resource.k8s.io/v1`` ResourceSlice."""

    spec: ResourceSliceSpec = field(default_factory=ResourceSliceSpec)
