"""What a search for devices takes and gives back, in each version of kube-scheduler."""

from typing import Any

import pytest

from trio_sched.engine.evaluation.filtering import run_pre_filters
from trio_sched.objects.resource.resource_claim import (
    DeviceConstraint,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from trio_sched.objects.resource.resource_slice import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
    ResourceSlice,
)
from trio_sched.plugin_api import CycleState
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing import (
    FakeHandle,
    device,
    device_class,
    device_request,
    make_profile,
    make_table,
    node,
    pod,
    resource_claim,
    resource_slice,
    schedule,
)

DRA = "DynamicResources"
DRIVER, OTHER = "gpu.example.com", "nic.example.com"
CLASSES = [device_class(one, f'device.driver == "{one}"') for one in (DRIVER, OTHER)]
NUMA = f"{DRIVER}/numa"
OLD, NEW = (1, 36), (1, 37)
versions = pytest.mark.parametrize("version", [OLD, NEW], ids=["1.36", "1.37"])


def consuming(name: str, amount: int = 1, **more: Any) -> Device:
    consumed = DeviceCounterConsumption(counter_set="set", counters={"units": Counter(value=str(amount))})
    return device(name, consumes_counters=(consumed,), **more)


def counted(*devices: Device, driver: str = DRIVER, pool: str = "pool") -> list[ResourceSlice]:
    """A pool of the node a with one unit of a counter for all *devices*."""
    units = (CounterSet(name="set", counters={"units": Counter(value="1")}),)
    return [
        resource_slice("a", *devices, name=f"{driver}-devices", driver=driver, pool=pool, slices=2),
        resource_slice("a", name=f"{driver}-counters", driver=driver, pool=pool, slices=2, shared_counters=units),
    ]


def allocation(version: tuple[int, int], *objects: Any, **gates: bool) -> Any:
    """What is allocated on the node a to the claim c, which is among *objects*; None if nothing is.

    Raises:
        AssertionError: the attempt ended with an error; its text.
    """
    known: dict[str, list[Any]] = {"DeviceClass": list(CLASSES), "ResourceSlice": [], "ResourceClaim": []}
    for one in objects:
        known[type(one).__name__].append(one)
    handle = FakeHandle(known_objects=known, gates=gates, emulated_version=version)
    waiting = pod("p", claims=["c"])
    outcome = schedule(waiting, on=[node("a")], plugins=[DRA], handle=handle)
    if outcome.error is not None:
        raise AssertionError(outcome.error.message)
    if not outcome.feasible:
        return None
    handle.nodes = NodeColumns(make_table([node("a")]))
    profile, state = make_profile([DRA], handle=handle), CycleState()
    plugin = profile.plugins[DRA]
    run_pre_filters(profile.pre_filter, waiting, handle.nodes, state)
    plugin.filter(waiting, handle.nodes, state)
    assert plugin.reserve(waiting, "a", state) is None
    claim = handle.object("ResourceClaim", "c", "default")
    assert isinstance(claim, ResourceClaim)
    in_flight = handle.nodes.devices.claims.in_flight(claim.metadata.uid)
    assert in_flight is not None
    return in_flight.allocation


def devices(version: tuple[int, int], *objects: Any, **gates: bool) -> list[str] | None:
    found = allocation(version, *objects, **gates)
    return None if found is None else [one.device for one in found.devices.results]


def constraint(**attribute: str) -> DeviceConstraint:
    return DeviceConstraint(**attribute)


# --- counters -------------------------------------------------------------------------------------------------------


@versions
def test_a_tainted_device_gives_its_counters_back_since_1_37(version: tuple[int, int]) -> None:
    slices = counted(consuming("x", taints=["broken:NoSchedule"]), consuming("y"))
    assert devices(version, *slices, resource_claim("c")) == (None if version == OLD else ["y"])


@versions
def test_a_device_that_a_constraint_rejects_gives_its_counters_back_since_1_37(version: tuple[int, int]) -> None:
    slices = counted(consuming("x"), consuming("y", attributes={"numa": 1}))
    claim = resource_claim("c", constraints=[constraint(match_attribute=NUMA)])
    assert devices(version, *slices, claim) == (None if version == OLD else ["y"])


@versions
def test_a_shared_device_gives_its_counters_back_with_its_last_share_since_1_37(version: tuple[int, int]) -> None:
    slices = counted(
        consuming("x", allow_multiple_allocations=True),
        consuming("y", allow_multiple_allocations=True, attributes={"model": "y"}),
    )
    only_y = f'device.attributes["{DRIVER}"].?model.orValue("") == "y"'
    claim = resource_claim("c", device_request("any"), device_request("one", selectors=[only_y]))
    assert devices(version, *slices, claim) == (None if version == OLD else ["y", "y"])


@versions
def test_the_counters_of_a_device_shared_by_id_alone_are_counted_once_since_1_37(version: tuple[int, int]) -> None:
    slices = counted(consuming("x", allow_multiple_allocations=True))
    share = DeviceRequestAllocationResult(request="gpu", driver=DRIVER, pool="pool", device="x", share_id="s")
    others = resource_claim("others", allocated=[share])
    assert devices(version, *slices, others, resource_claim("c")) == (None if version == OLD else ["x"])


@versions
def test_pools_of_two_drivers_with_one_name_have_counters_of_their_own_since_1_37(version: tuple[int, int]) -> None:
    slices = [*counted(consuming("x")), *counted(consuming("y"), driver=OTHER)]
    claim = resource_claim("c", device_request("gpu"), device_request("nic", OTHER))
    assert devices(version, *slices, claim) == (None if version == OLD else ["x", "y"])


@versions
def test_slices_with_counters_of_another_node_do_not_matter_since_1_37(version: tuple[int, int]) -> None:
    units = (CounterSet(name="set", counters={"units": Counter(value="1")}),)
    elsewhere = resource_slice("b", name="counters", slices=2, shared_counters=units)  # the other slice is missing
    asked = [resource_slice("a", device("x")), elsewhere, resource_claim("c", device_request(count=None))]
    if version == NEW:
        assert devices(version, *asked) == ["x"]
    else:
        with pytest.raises(AssertionError, match=f"resource pool {DRIVER}/b is currently being updated"):
            devices(version, *asked)


@versions
def test_counters_in_a_slice_of_another_node_count_for_devices_of_the_pool(version: tuple[int, int]) -> None:
    in_pool, counters = counted(consuming("x"), consuming("y"))
    units = counters.spec.shared_counters
    counters = resource_slice("b", name="counters", pool="pool", slices=2, shared_counters=units)
    assert devices(version, in_pool, counters, resource_claim("c")) == ["x"]
    assert devices(version, in_pool, counters, resource_claim("c", device_request(count=2))) is None


# --- all devices, different devices ---------------------------------------------------------------------------------


@versions
def test_all_devices_with_counters_are_allocated(version: tuple[int, int]) -> None:
    claim = resource_claim("c", device_request(count=None))
    assert devices(version, *counted(consuming("x"), consuming("y", 0)), claim) == ["x", "y"]
    assert devices(version, *counted(consuming("x"), consuming("y")), claim) is None


@versions
def test_a_request_for_all_devices_fails_where_one_is_used_up_since_1_37(version: tuple[int, int]) -> None:
    shared = [device(name, capacity={"memory": "1Gi"}, allow_multiple_allocations=True) for name in "xy"]
    share = DeviceRequestAllocationResult(
        request="gpu", driver=DRIVER, pool="a", device="x", share_id="s", consumed_capacity={"memory": "1Gi"}
    )
    others = resource_claim("others", allocated=[share])
    claim = resource_claim("c", device_request(count=None, capacity={"memory": "1Gi"}))
    slice_ = resource_slice("a", *shared)
    assert devices(version, slice_, others, claim) == (["y"] if version == OLD else None)
    assert devices(version, slice_, claim) == ["x", "y"]


@versions
def test_all_devices_leaves_out_what_could_never_serve_the_request(version: tuple[int, int]) -> None:
    shared = [
        device(name, capacity={"memory": size}, allow_multiple_allocations=True)
        for name, size in (("small", "1Gi"), ("large", "4Gi"))
    ]
    claim = resource_claim("c", device_request(count=None, capacity={"memory": "2Gi"}))
    assert devices(version, resource_slice("a", *shared), claim) == ["large"]


@versions
def test_every_device_of_a_request_is_distinct_since_1_37(version: tuple[int, int]) -> None:
    slice_ = resource_slice("a", *(device(f"d{i}", attributes={"numa": n}) for i, n in enumerate((1, 2, 1, 3))))
    claim = resource_claim("c", device_request(count=3), constraints=[constraint(distinct_attribute=NUMA)])
    assert devices(version, slice_, claim) == ["d0", "d1", "d2" if version == OLD else "d3"]


def test_distinct_devices_can_differ_in_the_type_of_the_attribute_and_must_have_it() -> None:
    values: tuple[Any, ...] = (DeviceAttribute(strings=("1",)), 1, "1", True)
    slice_ = resource_slice("a", *(device(f"d{i}", attributes={"numa": one}) for i, one in enumerate(values)))
    only = constraint(distinct_attribute=NUMA)
    claim = resource_claim("c", device_request(count=3), constraints=[only])
    # A list is of no known type without its gate: it can be the first device only.
    assert devices(NEW, slice_, claim) == ["d0", "d1", "d2"]
    lacking = resource_slice("a", device("x"), device("y", attributes={"numa": 1}), device("z"))
    assert devices(NEW, lacking, resource_claim("c", constraints=[only])) == ["y"]
    assert devices(NEW, lacking, resource_claim("c", device_request(count=2), constraints=[only])) is None


# --- capacities -----------------------------------------------------------------------------------------------------


def in_steps(value: str, lowest: str, step: str) -> ResourceSlice:
    valid = CapacityRequestPolicyRange(min=lowest, step=step)
    policy = CapacityRequestPolicy(default=lowest, valid_range=valid)
    capacity = {"units": DeviceCapacity(value=value, request_policy=policy)}
    return resource_slice("a", device("x", capacity=capacity, allow_multiple_allocations=True))


def asking(amount: str) -> ResourceClaim:
    return resource_claim("c", device_request(capacity={"units": amount}))


def consumed(version: tuple[int, int], slice_: ResourceSlice, amount: str, **gates: bool) -> str:
    (result,) = allocation(version, slice_, asking(amount), **gates).devices.results
    return str(result.consumed_capacity["units"])


@versions
def test_what_is_rounded_to_a_step_is_written_as_the_step_is_since_1_37(version: tuple[int, int]) -> None:
    assert consumed(version, in_steps("1M", "1k", "1k"), "1500") == ("2000" if version == OLD else "2k")
    assert consumed(version, in_steps("1Gi", "1Ki", "1Ki"), "1025") == "2Ki"


@versions
def test_a_request_that_64_bits_cannot_round_fails_since_1_37(version: tuple[int, int]) -> None:
    slice_, claim = in_steps("1M", "0", "2"), asking(str(2**63 - 1))
    if version == OLD:
        assert devices(version, slice_, claim) is None
        return
    with pytest.raises(AssertionError) as failed:
        devices(version, slice_, claim)
    assert str(failed.value).endswith(
        'capacity "units": capacity request cannot be represented in the device\'s range arithmetic: '
        "rounding request 9223372036854775807 up to the next step passes MaxInt64"
    )
    with pytest.raises(AssertionError, match="request 9223372036854775808 exceeds MaxInt64"):
        devices(version, slice_, asking(str(2**63)))


@versions
def test_negative_capacity_fails_since_1_37(version: tuple[int, int]) -> None:
    slice_ = resource_slice("a", device("x", capacity={"units": "1"}, allow_multiple_allocations=True))
    if version == OLD:
        assert devices(version, slice_, asking("-1")) == ["x"]
        return
    with pytest.raises(AssertionError, match=r'capacity "units": capacity value is negative$'):
        devices(version, slice_, asking("-1"))


@pytest.mark.parametrize(
    ("lowest", "step", "amount", "without", "with_gate"),
    [
        ("100m", "100m", "250m", "1", "300m"),
        ("100m", "100m", "950m", "1", "1"),
        ("0", "2", "1500m", "2", "2"),
        ("100u", "100m", "250m", "1", "1"),  # finer than milli: whole numbers for all of them
    ],
)
def test_ranges_are_in_milli_units_with_the_gate(
    lowest: str, step: str, amount: str, without: str, with_gate: str
) -> None:
    slice_ = in_steps("4", lowest, step)
    assert consumed(NEW, slice_, amount) == without
    assert consumed(NEW, slice_, amount, DRAFractionalCapacityRange=True) == with_gate


def test_with_the_gate_a_request_finer_than_milli_units_fails() -> None:
    with pytest.raises(AssertionError, match=r"request 100100u is not a representable milli value$"):
        devices(NEW, in_steps("4", "100m", "100m"), asking("100100u"), DRAFractionalCapacityRange=True)
