"""What a pod may cost on all nodes together, and what is kept so that its next attempt gets further."""

from collections.abc import Callable
from typing import Any

import pytest

from plugins_builtin.dynamic_resources import device_allocator, device_selectors
from plugins_builtin.dynamic_resources.device_selectors import DeviceSelectors
from plugins_builtin.dynamic_resources.search_effort import Effort, SearchTimedOut, SelectorFailed
from trio_sched.objects.resource.resource_claim import DeviceConstraint, DeviceRequest
from trio_sched.snapshot.devices.device_models import DeviceModel
from trio_sched.snapshot.devices.device_pools import PoolDevice
from trio_sched.testing import (
    FakeHandle,
    device,
    device_class,
    device_request,
    node,
    pod,
    resource_claim,
    resource_slice,
    schedule,
)

DRIVER = "gpu.example.com"
SAME_MODEL = DeviceConstraint(match_attribute=f"{DRIVER}/model")
TIMED_OUT = "timed out trying to allocate devices"
HEAVY = "lists.range(1000).all(x, lists.range(900).all(y, x * y >= 0)) || true"


def cluster(nodes: int, devices: int, model: Callable[[int, int], str], *requests: DeviceRequest) -> FakeHandle:
    """Nodes ``n0``, ``n1``, … with devices of models, and a claim of devices of the same model."""
    slices = [
        resource_slice(f"n{n}", *(device(f"d{d}", attributes={"model": model(n, d)}) for d in range(devices)))
        for n in range(nodes)
    ]
    claim = resource_claim("c", *requests, constraints=[SAME_MODEL])
    return FakeHandle(
        known_objects={"DeviceClass": [device_class(DRIVER)], "ResourceSlice": slices, "ResourceClaim": [claim]}
    )


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The devices that each search has tried."""
    tried: list[int] = []
    run = device_allocator.DeviceSearch.run

    def counting(self: Any) -> Any:
        try:
            return run(self)
        finally:
            tried.append(self._tried)

    monkeypatch.setattr(device_allocator.DeviceSearch, "run", counting)
    monkeypatch.setattr("plugins_builtin.dynamic_resources.dynamic_resources.MAX_DEVICES_TRIED", 2_000)
    return tried


def test_exponential_searches_are_bounded_for_all_nodes_together(searches: list[int]) -> None:
    handle = cluster(30, 36, lambda n, d: f"{d % 3}" if d <= n else f"{d % 4}", device_request("gpu", count=13))
    outcome = schedule(
        pod("p", claims=["c"]), on=[node(f"n{n}") for n in range(30)], plugins=["DynamicResources"], handle=handle
    )
    assert outcome.error is not None
    assert TIMED_OUT in outcome.message
    assert len(searches) > 20
    assert sum(searches) < 3 * 2_000 + 30 * (64 + 2 * 36)


def test_nodes_that_look_the_same_are_given_up_once(searches: list[int]) -> None:
    handle = cluster(30, 36, lambda _n, d: f"{d % 4}", device_request("gpu", count=13))
    nodes = [node(f"n{n}") for n in range(30)]
    outcome = schedule(pod("p", claims=["c"]), on=nodes, plugins=["DynamicResources"], handle=handle)
    assert TIMED_OUT in outcome.message
    assert len(searches) == 1


def test_harmless_requests_do_not_count_however_many_nodes_there_are(searches: list[int]) -> None:
    handle = cluster(300, 32, lambda n, d: f"{n}-{d}", device_request("gpu", count=1))
    names = [f"n{n}" for n in range(300)]
    outcome = schedule(pod("p", claims=["c"]), on=map(node, names), plugins=["DynamicResources"], handle=handle)
    assert len(outcome.feasible) == 300


def pool_device(name: str, model: str) -> PoolDevice:
    one = device(name, attributes={"model": model})
    return PoolDevice(resource_slice("a", one), one, DeviceModel(DRIVER, one))


def test_costly_expressions_end_the_search_and_what_they_came_to_is_kept() -> None:
    selectors = DeviceSelectors()
    expression = f'{HEAVY} && device.attributes["{DRIVER}"].model == "x"'
    attempts = 0
    for _attempt in range(20):
        selectors.effort = Effort()
        attempts += 1
        try:
            for number in range(10):
                with pytest.raises(SelectorFailed, match="actual cost limit exceeded"):
                    selectors.matches(expression, pool_device(f"d{number}", f"m{number}"))
        except SearchTimedOut:
            continue
        break
    assert 1 < attempts < 10


def test_what_does_not_compile_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    compile_selector = device_selectors.compile_device_selector
    monkeypatch.setattr(
        device_selectors,
        "compile_device_selector",
        lambda text, **more: compiled.append(text) or compile_selector(text, **more),
    )
    selectors = DeviceSelectors()
    for number in range(3):
        with pytest.raises(SelectorFailed, match="CEL compile error"):
            selectors.matches("no such thing", pool_device(f"d{number}", "x"))
    assert compiled == ["no such thing"]


def test_expressions_and_answers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_selectors, "MAX_ANSWERS", 50)
    monkeypatch.setattr(device_selectors, "MAX_CHARACTERS", 2_000)
    selectors = DeviceSelectors()
    for number in range(100):
        for model in range(3):
            selectors.matches(f'device.attributes["{DRIVER}"].model == "{number}"', pool_device("d", f"m{model}"))
    kept = selectors._expressions
    assert sum(map(len, kept)) <= 2_000
    assert 0 < sum(len(one.answers) for one in kept.values()) <= 50
    assert sum(len(one.answers) for one in kept.values()) == selectors._answers
