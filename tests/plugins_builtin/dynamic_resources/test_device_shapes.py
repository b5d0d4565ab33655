"""What is kept about claims of a shape equals what a search of each node finds."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from plugins_builtin.dynamic_resources.device_allocator import AllocatorFeatures, DeviceSearch
from plugins_builtin.dynamic_resources.device_requests import WantedClaim
from plugins_builtin.dynamic_resources.device_selectors import DeviceSelectors
from plugins_builtin.dynamic_resources.device_shapes import MAX_SHAPES, Shape, Shapes, shape_key
from plugins_builtin.dynamic_resources.search_effort import AllocationFailed
from trio_sched.objects.resource.resource_claim import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceConstraint,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from trio_sched.plugin_api import NodeDevicesCache
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing import (
    device,
    device_class,
    device_request,
    make_table,
    node,
    resource_claim,
    resource_slice,
    sub_request,
)

DRIVER = "gpu.example.com"
CLASS = device_class(DRIVER)
SELECTORS = (
    f'device.attributes["{DRIVER}"].model == "a"',
    f'device.attributes["{DRIVER}"].?model.orValue("") != "a"',
    f'device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) > 0',
)

devices = st.builds(
    dict,
    attributes=st.dictionaries(st.sampled_from(["model", "numa"]), st.sampled_from(["a", "b"]), max_size=2),
    capacity=st.sampled_from([{"memory": "40Gi"}, {"memory": "80Gi"}]),
    taints=st.sampled_from([(), ("broken:NoSchedule",), ("slow=yes:NoExecute",)]),
    allow_multiple_allocations=st.sampled_from([None, None, None, True]),
)
nodes_with_devices = st.lists(st.lists(devices, max_size=4), min_size=1, max_size=6)
options = st.fixed_dictionaries(
    {
        "count": st.sampled_from([1, 1, 2, None]),
        "selectors": st.lists(st.sampled_from(SELECTORS), max_size=1),
        "tolerations": st.sampled_from([(), ("broken:NoSchedule",)]),
        "capacity": st.sampled_from([None, None, {"memory": "60Gi"}, {"cores": 1}]),
    }
)


@st.composite
def requests(draw: st.DrawFn, number: int) -> Any:
    if draw(st.booleans()):
        return device_request(f"r{number}", **draw(options))
    alternatives = [sub_request(f"s{i}", **draw(options)) for i in range(draw(st.integers(1, 2)))]
    return device_request(f"r{number}", first_available=alternatives)


@st.composite
def claims(draw: st.DrawFn) -> list[ResourceClaim]:
    found = []
    for number in range(draw(st.integers(1, 2))):
        constraint = draw(st.sampled_from(["", "match_attribute", "distinct_attribute"]))
        constraints = [DeviceConstraint(**{constraint: f"{DRIVER}/numa"})] if constraint else []
        asked = [draw(requests(i)) for i in range(draw(st.integers(1, 2)))]
        found.append(resource_claim(f"c{number}", *asked, constraints=constraints))
    return found


def allocation(pool: str, name: str, share_id: str | None = None) -> AllocationResult:
    result = DeviceRequestAllocationResult("r", DRIVER, pool, name, share_id=share_id, consumed_capacity=None)
    return AllocationResult(devices=DeviceAllocationResult(results=(result,)))


@settings(max_examples=120, deadline=None)
@given(nodes_with_devices, claims(), st.sets(st.tuples(st.integers(0, 5), st.integers(0, 3))))
def test_nodes_are_judged_as_a_search_judges_them(
    on_nodes: list[list[dict[str, Any]]], asked: list[ResourceClaim], taken: set[tuple[int, int]]
) -> None:
    table = make_table([node(f"n{i}") for i in range(len(on_nodes))])
    for i, here in enumerate(on_nodes):
        table.devices.put(resource_slice(f"n{i}", *[device(f"d{k}", **one) for k, one in enumerate(here)]))
    for i, k in taken:
        is_shared = i < len(on_nodes) and k < len(on_nodes[i]) and on_nodes[i][k]["allow_multiple_allocations"]
        table.devices.allocated.add(allocation(f"n{i}", f"d{k}", "share" if is_shared else None))
    selectors, features, wanted = DeviceSelectors(), AllocatorFeatures(), [WantedClaim(one) for one in asked]
    cache, nodes = NodeDevicesCache(), NodeColumns(table)
    shape = Shape.of(wanted, selectors, lambda _name: CLASS, features)

    def search(position: int) -> bool:
        run = DeviceSearch(
            wanted, cache.get(nodes, position), table.devices.allocated, selectors, lambda _n: CLASS, lambda _d: True
        )
        return run.run() is not None

    for _time in range(2):
        for position in range(len(on_nodes)):
            try:
                expected: bool | None = search(position)
            except AllocationFailed:
                expected = None

            def answer(position: int = position) -> tuple[bool, int]:
                return search(position), 0

            try:
                judged = shape.answer(cache.get(nodes, position), table.devices.allocated, answer)
            except AllocationFailed:
                judged = None
            assert judged is None or judged[0] == expected
            if expected is None:
                assert judged is None


def test_nodes_that_look_the_same_are_searched_once() -> None:
    table = make_table([node(f"n{i}") for i in range(50)])
    for i in range(50):
        table.devices.put(resource_slice(f"n{i}", device("d0"), device("d1")))
    cache, nodes, searches = NodeDevicesCache(), NodeColumns(table), []
    shape = Shape.of([WantedClaim(resource_claim("c"))], DeviceSelectors(), lambda _n: CLASS, AllocatorFeatures())

    def search() -> tuple[bool, int]:
        searches.append(1)
        return True, 0

    def judge_all() -> None:
        for i in range(50):
            shape.answer(cache.get(nodes, i), table.devices.allocated, search)

    judge_all()
    judge_all()
    assert len(searches) == 1
    table.devices.allocated.add(allocation("n7", "d1"))
    judge_all()
    assert len(searches) == 2


def test_shapes_are_bounded_and_forgotten_with_the_classes() -> None:
    shapes = Shapes(DeviceSelectors(), lambda _n: CLASS, AllocatorFeatures())
    first = [WantedClaim(resource_claim("c", device_request(count=1)))]
    kept = shapes.of(first, version=1)
    assert shapes.of([WantedClaim(resource_claim("d", device_request(count=1)))], version=1) is kept
    for count in range(2, MAX_SHAPES + 2):
        shapes.of([WantedClaim(resource_claim("c", device_request(count=count)))], version=1)
    assert shapes.of(first, version=1) is not kept
    kept = shapes.of(first, version=1)
    assert shapes.of(first, version=2) is not kept


def test_the_key_of_a_shape_is_what_the_claims_ask_for() -> None:
    a, b = resource_claim("a"), resource_claim("b", namespace="other")
    assert shape_key([a]) == shape_key([b])
    assert shape_key([a, b]) != shape_key([a])
