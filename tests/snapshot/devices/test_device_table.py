from typing import Any

import pytest
from msgspec.structs import replace

from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.resource.device_taint_rule import DeviceTaintRule, DeviceTaintRuleSpec, DeviceTaintSelector
from trio_sched.objects.resource.resource_claim import DeviceRequestAllocationResult, ResourceClaim
from trio_sched.objects.resource.resource_slice import (
    Counter,
    CounterSet,
    Device,
    DeviceCounterConsumption,
    DeviceTaint,
    ResourceSlice,
)
from trio_sched.objects.selector import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from trio_sched.snapshot.devices.allocated_devices import DeviceId
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.node_devices import BadNodeSelector, NodeDevices, NodeDevicesCache
from trio_sched.snapshot.node_table import NodeTable
from trio_sched.testing import device, device_taint_rule, node, resource_claim, resource_slice

DRIVER = "gpu.example.com"


def table_of(*objects: Any, nodes: tuple[str, ...] = ("a", "b")) -> NodeTable:
    table = NodeTable()
    for name in nodes:
        table.add_node(node(name, labels={"zone": name}))
    for one in objects:
        table.devices.put(one)
    return table


def seen(table: NodeTable, name: str, cache: NodeDevicesCache | None = None) -> NodeDevices:
    columns = NodeColumns(table)
    position = columns.position(name)
    assert position is not None
    return (cache or NodeDevicesCache()).get(columns, position)


def names(found: NodeDevices) -> list[str]:
    return [f"{one.id.pool}/{one.id.device}" for one in found.devices]


def in_zone(value: str, operator: str = "In") -> NodeSelector:
    requirement = NodeSelectorRequirement(key="zone", operator=operator, values=(value,))
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(requirement,)),))


def given(*devices: str, share_id: str | None = None, **more: Any) -> ResourceClaim:
    results = [DeviceRequestAllocationResult("gpu", DRIVER, "a", name, share_id=share_id, **more) for name in devices]
    return resource_claim("c", allocated=results)


# --- pools ---------------------------------------------------------------------------------------------------------


def test_devices_of_a_node_come_by_driver_pool_slice_and_position() -> None:
    table = table_of(
        resource_slice("a", device("z"), device("y"), name="s2", slices=2),
        resource_slice("a", device("x"), name="s1", slices=2),
        resource_slice("a", device("w"), pool="other"),
        resource_slice("a", device("v"), driver="a.example.com"),
        resource_slice("b", device("u")),
    )
    assert names(seen(table, "a")) == ["a/v", "a/x", "a/z", "a/y", "other/w"]
    assert names(seen(table, "b")) == ["b/u"]
    assert seen(table, "a").is_local


def test_pools_with_binding_conditions_come_last() -> None:
    table = table_of(
        resource_slice("a", device("x", binding_conditions=("ready",)), pool="p1"),
        resource_slice("a", device("y"), pool="p2"),
    )
    assert names(seen(table, "a")) == ["p2/y", "p1/x"]


def test_slices_for_all_nodes_for_some_and_per_device() -> None:
    table = table_of(
        resource_slice(None, device("everywhere"), pool="p1"),
        resource_slice(in_zone("b"), device("in-b"), pool="p2"),
        resource_slice(
            None,
            device("on-a", node_name="a"),
            device("near-b", node_selector=in_zone("b")),
            pool="p3",
            per_device_node_selection=True,
        ),
    )
    assert names(seen(table, "a")) == ["p1/everywhere", "p3/on-a", "p3/near-b"]
    assert names(seen(table, "b")) == ["p1/everywhere", "p2/in-b", "p3/on-a", "p3/near-b"]
    assert not seen(table, "a").is_local


def test_a_selector_that_cannot_be_evaluated_is_an_error() -> None:
    with pytest.raises(BadNodeSelector, match='Unsupported value: "Near"'):
        seen(table_of(resource_slice(in_zone("b", "Near"), device())), "a")


def test_only_the_newest_generation_counts_and_a_pool_may_be_incomplete() -> None:
    old = resource_slice("a", device("old"), name="s1")
    new = resource_slice("a", device("new"), name="s2", generation=2, slices=2)
    table = table_of(old, new)
    (pool,) = seen(table, "a").pools
    assert (pool.is_incomplete, pool.devices) == (True, ())
    assert not seen(table, "a").is_local
    table.devices.put(resource_slice("a", device("newer"), name="s3", generation=2, slices=2))
    assert names(seen(table, "a")) == ["a/new", "a/newer"]


def test_a_pool_that_is_being_moved_to_other_nodes_is_dropped() -> None:
    table = table_of(
        resource_slice("a", device("x"), name="s1", pool="p", slices=2),
        resource_slice("b", device("x"), name="s2", pool="p", generation=2),
    )
    assert seen(table, "a").pools == ()
    assert names(seen(table, "b")) == ["p/x"]


def test_two_devices_of_one_name_make_a_pool_invalid() -> None:
    (pool,) = seen(table_of(resource_slice("a", device("x"), device("x"))), "a").pools
    assert pool.is_invalid
    assert str(pool) == f"{DRIVER}/a"


def counting(name: str, counter_set: str = "memory", counter: str = "bytes") -> Device:
    consumption = DeviceCounterConsumption(counter_set=counter_set, counters={counter: Counter(value="10Gi")})
    return device(name, consumes_counters=(consumption,))


@pytest.mark.parametrize(
    ("consumer", "is_invalid"),
    [(counting("x"), False), (counting("x", "disk"), True), (counting("x", counter="lanes"), True)],
)
def test_counters_have_to_exist(consumer: Device, is_invalid: bool) -> None:
    counters = CounterSet(name="memory", counters={"bytes": Counter(value="40Gi")})
    table = table_of(
        resource_slice("a", consumer, name="s1", slices=2),
        resource_slice("a", name="s2", slices=2, shared_counters=(counters,)),
    )
    (pool,) = seen(table, "a").pools
    assert pool.is_invalid == is_invalid
    if not is_invalid:
        assert pool.counter_sets == {"memory": {"bytes": 40 * 2**30 * 10**9}}
        assert pool.devices[0].consumes == (("memory", "bytes", 10 * 2**30 * 10**9),)
        (elsewhere,) = seen(table, "b").pools
        assert ([one.id.device for one in elsewhere.other_devices], elsewhere.devices) == (["x"], ())


# --- changes -------------------------------------------------------------------------------------------------------


def test_what_a_node_can_use_is_kept_until_one_of_its_slices_changes() -> None:
    table, cache = table_of(resource_slice("a", device("x")), resource_slice("b", device("x"))), NodeDevicesCache()
    of_a, of_b = seen(table, "a", cache), seen(table, "b", cache)
    table.devices.put(resource_slice("b", device("x"), device("y")))
    assert seen(table, "a", cache) is of_a
    assert names(seen(table, "b", cache)) == ["b/x", "b/y"]
    assert seen(table, "b", cache) is not of_b
    table.devices.remove("ResourceSlice", f"b-{DRIVER}")
    assert names(seen(table, "b", cache)) == []
    assert len(table.devices) == 1


def test_a_node_whose_devices_change_is_logged_as_changed() -> None:
    table = table_of(resource_slice("a", device("x")))
    position = table.pods_log.position
    table.devices.put(given("x"))
    assert table.pods_log.since(position) == [0]
    position, membership = table.pods_log.position, table.membership_generation
    table.devices.put(resource_slice(None, device("x")))
    assert table.membership_generation > membership


def test_devices_of_one_name_on_two_nodes_concern_both() -> None:
    table = table_of(
        resource_slice("a", device("x"), name="s1", pool="a", slices=2),
        resource_slice("b", device("x"), name="s2", pool="a", slices=2),
    )
    membership = table.membership_generation
    table.devices.put(given("x"))
    assert table.membership_generation > membership


def test_copies_of_rows_see_the_same_devices() -> None:
    table = table_of(resource_slice("b", device("x")))
    copy = table.copy_of_rows([1])
    assert names(seen(copy, "b")) == ["b/x"]
    assert copy.devices is table.devices


# --- allocations ---------------------------------------------------------------------------------------------------


def test_allocations_of_claims_are_counted_once() -> None:
    table = table_of(given("x", "y"))
    allocated = table.devices.allocated
    assert set(allocated.dedicated) == {DeviceId(DRIVER, "a", "x"), DeviceId(DRIVER, "a", "y")}
    table.devices.put(given("x"))
    assert [one.device for one in allocated.dedicated] == ["x"]
    assert allocated.has(DeviceId(DRIVER, "a", "x"))
    table.devices.remove("ResourceClaim", "c", "default")
    assert not allocated.dedicated
    assert table.devices.claims.get("default", "c") is None


def test_admin_access_takes_nothing() -> None:
    assert not table_of(given("x", admin_access=True)).devices.allocated.dedicated


def test_what_is_consumed_of_shared_devices_is_summed_up() -> None:
    shared = given("x", share_id="one", consumed_capacity={"memory": "1Gi"})
    other = replace(
        given("x", share_id="two", consumed_capacity={"memory": "500Mi"}), metadata=ObjectMeta("d", "default", "u")
    )
    table = table_of(shared, other)
    (use,) = table.devices.allocated.consumed.values()
    assert (use.shares, dict(use.consumed)) == (2, {"memory": 1524 * 2**20 * 10**9})
    table.devices.remove("ResourceClaim", "c", "default")
    assert use.consumed["memory"] == 500 * 2**20 * 10**9
    table.devices.remove("ResourceClaim", "d", "default")
    assert not table.devices.allocated.consumed
    assert not table.devices.allocated.shared


def version(claim: ResourceClaim, number: int, **more: Any) -> ResourceClaim:
    return replace(claim, metadata=replace(claim.metadata, resource_version=str(number)), **more)


def test_the_newer_of_watched_and_assumed_counts() -> None:
    pending, allocated = resource_claim("c"), given("x")
    table = table_of(version(pending, 9))
    claims = table.devices.claims
    assert claims.assume(version(allocated, 10))
    claims.put(version(pending, 9))
    assert claims.get("default", "c") == version(allocated, 10)
    assert len(table.devices.allocated.dedicated) == 1
    claims.restore("default", "c")
    assert claims.get("default", "c") == version(pending, 9)
    assert not table.devices.allocated.dedicated
    claims.put(version(allocated, 12))
    assert claims.assume(version(pending, 11))
    assert claims.get("default", "c") == version(allocated, 12)
    assert not claims.assume(version(replace(pending, metadata=ObjectMeta("c", "default", "another")), 13))
    assert len(claims) == 1
    assert list(claims) == [version(allocated, 12)]


def test_allocations_in_flight_are_taken_by_all_that_share_them() -> None:
    table = table_of()
    claims, allocation = table.devices.claims, given("x").status.allocation
    assert allocation is not None
    claims.add_in_flight("u", allocation)
    claims.add_in_flight("u", allocation)
    in_flight = claims.in_flight("u")
    assert in_flight is not None
    assert (in_flight.allocation, in_flight.sharers) == (allocation, 2)
    assert not claims.end_in_flight("u")
    assert len(table.devices.allocated.dedicated) == 1
    assert claims.end_in_flight("u")
    assert claims.in_flight("u") is None
    assert not claims.end_in_flight("u")
    assert not table.devices.allocated.dedicated
    claims.add_in_flight("u", allocation)
    claims.add_in_flight("u", allocation)
    assert claims.end_in_flight("u", is_written=True)


# --- taint rules ---------------------------------------------------------------------------------------------------


def rule(name: str, **selector: str) -> DeviceTaintRule:
    spec = DeviceTaintRuleSpec(DeviceTaintSelector(**selector), DeviceTaint(key=name, effect="NoSchedule"))
    return DeviceTaintRule(ObjectMeta(name), spec)


def taints(table: NodeTable, name: str = "a") -> dict[str, list[str]]:
    return {one.id.device: [taint.key for taint in one.device.taints or ()] for one in seen(table, name).devices}


def test_rules_taint_the_devices_that_they_select() -> None:
    published: ResourceSlice = resource_slice("a", device("x", taints=["own:NoSchedule"]), device("y"))
    table = table_of(published, rule("one", device="x"))
    assert taints(table) == {"x": ["own", "one"], "y": []}
    table.devices.put(rule("one", driver=DRIVER))
    assert taints(table) == {"x": ["own", "one"], "y": ["one"]}
    table.devices.put(rule("two", pool="b"))
    table.devices.put(resource_slice("a", device("y")))
    assert taints(table) == {"y": ["one"]}
    table.devices.remove("DeviceTaintRule", "one")
    assert taints(table) == {"y": []}
    table.devices.remove("DeviceTaintRule", "unknown")


def test_a_device_that_moves_to_another_slice_of_its_node_is_still_followed() -> None:
    table = table_of(resource_slice("a", device("x"), name="old", pool="a", generation=1))
    table.devices.put(resource_slice("a", device("x"), name="new", pool="a", generation=2))
    table.devices.remove("ResourceSlice", "old")
    changed: list[str | None] = []
    table.devices.on_change = changed.append
    table.devices.put(given("x"))
    assert changed == ["a"]


def test_slices_of_two_nodes_with_one_device_leave_nothing_behind() -> None:
    table = table_of(*(resource_slice(name, device("x"), name=name, pool="a") for name in ("a", "b")))
    for name in ("a", "b"):
        table.devices.remove("ResourceSlice", name)
    table.devices.put(resource_slice("b", device("x"), name="b", pool="a"))
    changed: list[str | None] = []
    table.devices.on_change = changed.append
    table.devices.put(given("x"))
    assert changed == ["b"]


def test_a_node_keeps_its_slice_when_the_one_for_all_nodes_goes() -> None:
    table = table_of(resource_slice(None, device("y"), name="all", pool="a", slices=2))
    table.devices.put(resource_slice("a", device("x"), name="local", pool="a", slices=1, generation=2))
    table.devices.remove("ResourceSlice", "all")
    assert names(seen(table, "a")) == ["a/x"]


def test_nodes_without_slices_have_no_generation() -> None:
    table = table_of(resource_slice("a", device("x"), name="local", pool="a", slices=2))
    table.devices.put(resource_slice(None, device("y"), name="all", pool="a", slices=2))
    table.devices.remove("ResourceSlice", "local")
    assert not table.devices.generation_of_node


@pytest.mark.parametrize("is_shared", [False, True], ids=["for a node", "for all nodes"])
def test_nothing_is_kept_of_slices_and_nodes_that_are_gone(is_shared: bool) -> None:
    slices = [resource_slice("a", device("x"), name="local", pool="a")]
    if is_shared:
        slices.append(resource_slice(None, device("y"), name="all", pool="b"))
    table, caches = table_of(*slices), [NodeDevicesCache(), NodeDevicesCache(partitionable=False)]
    for cache in caches:
        assert len(names(seen(table, "a", cache))) == len(slices)
    if is_shared:
        table.remove_node("a")
    else:
        table.devices.remove("ResourceSlice", "local")
    assert not any(table.devices.put_together.values())


def test_slices_of_a_pool_with_many_nodes_concern_all_nodes() -> None:
    count = 150
    pool = [resource_slice(f"n{n}", device(f"d{n}"), name=f"s{n}", pool="p", slices=count) for n in range(count)]
    table = table_of(*pool[:-1], nodes=tuple(f"n{n}" for n in range(count)))
    cache = NodeDevicesCache()
    assert seen(table, "n0", cache).pools[0].is_incomplete
    changed: list[str | None] = []
    table.devices.on_change = changed.append
    table.devices.put(pool[-1])
    assert changed == [None]
    assert names(seen(table, "n0", cache)) == ["p/d0"]
    assert not seen(table, "n0", cache).pools[0].other_devices


def test_a_rule_without_selector_taints_no_device_and_one_with_an_empty_selector_all() -> None:
    meant = device_taint_rule("all")
    nothing = replace(
        meant, metadata=replace(meant.metadata, name="none"), spec=DeviceTaintRuleSpec(taint=meant.spec.taint)
    )
    table = table_of(resource_slice("a", device("gpu-0")), nothing)
    assert not any(one.device.taints for one in seen(table, "a").devices)
    table.devices.put(meant)
    assert all(one.device.taints for one in seen(table, "a").devices)
