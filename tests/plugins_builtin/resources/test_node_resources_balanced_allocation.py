from typing import Any

import pytest

from plugins_builtin.resources.node_resources_balanced_allocation import _evenness_of_two
from trio_sched.plugin_api import NodeResourcesBalancedAllocationArgs
from trio_sched.plugin_api.arguments import ResourceSpec
from trio_sched.testing import container, make_plugin, node, pod, schedule

BALANCED = "NodeResourcesBalancedAllocation"
GPU = "example.com/gpu"
Asked = dict[str, Any]
WITH_GPU = NodeResourcesBalancedAllocationArgs(resources=tuple(ResourceSpec(name=n) for n in ("cpu", "memory", GPU)))


def score(asked: Asked, used: Asked, has: Asked, further_nodes: int, args: Any = None) -> int:
    nodes = [node("n", **has), *(node(f"m{i}") for i in range(further_nodes))]
    outcome = schedule(
        pod(**asked),
        on=nodes,
        plugins=[BALANCED],
        pods=[pod("r", node_name="n", **used)],
        args={BALANCED: args} if args else None,
    )
    return outcome.raw_scores[BALANCED]["n"]


@pytest.mark.parametrize("further_nodes", [0, 20], ids=["few", "many"])
@pytest.mark.parametrize(
    ("used", "asked", "has", "expected"),
    [
        (("1500m", "4Gi"), ("500m", "1Gi"), ("8", "32Gi"), 74),
        (("7", "2Gi"), ("250m", "4Gi"), ("8", "16Gi"), 80),
        (("0", "0"), ("1", "1Gi"), ("2", "2Gi"), 75),
        (("0", "0"), ("2", "0"), ("2", "2Gi"), 50),
        (("9", "1Gi"), ("1", "1Gi"), ("2", "2Gi"), 87),
    ],
)
def test_scores_are_those_of_the_specification(
    used: tuple[str, str], asked: tuple[str, str], has: tuple[str, str], expected: int, further_nodes: int
) -> None:
    amounts = ({"cpu": cpu, "memory": memory} for cpu, memory in (asked, used, has))
    assert score(*amounts, further_nodes) == expected


@pytest.mark.parametrize("further_nodes", [0, 20], ids=["few", "many"])
def test_three_resources_are_balanced_by_their_deviation(further_nodes: int) -> None:
    asked = {"cpu": "1", "memory": "2Gi", "requests": {GPU: 2}}
    used = {"cpu": "2", "memory": "8Gi", "requests": {GPU: 1}}
    has = {"cpu": "16", "memory": "64Gi", "allocatable": {GPU: 4}}
    assert score(asked, used, has, further_nodes, WITH_GPU) == 64


@pytest.mark.parametrize("further_nodes", [0, 20], ids=["few", "many"])
def test_a_resource_that_the_node_or_the_pod_has_not_is_left_out(further_nodes: int) -> None:
    asked, used = {"cpu": "500m", "memory": "1Gi"}, {"cpu": "1500m", "memory": "4Gi"}
    without = score(asked, used, {"cpu": "8", "memory": "32Gi"}, further_nodes)
    has_some = {"cpu": "8", "memory": "32Gi", "allocatable": {GPU: 4}}
    assert score(asked, used, has_some, further_nodes, WITH_GPU) == without
    asked = {**asked, "requests": {GPU: 1}}
    assert score(asked, used, {"cpu": "8", "memory": "32Gi"}, further_nodes, WITH_GPU) == without
    assert score(asked, used, {"cpu": "8", "memory": "0"}, further_nodes) == 75


@pytest.mark.parametrize(
    ("used", "has", "expected"),
    [
        (2_966_063_776_943_644_578, 3_370_527_019_254_141_568, 55),
        (2_879_210_051_066_763_251, 3_998_902_848_703_837_848, 63),
        (2_991_441_693_173_995_956, 4_273_488_133_105_708_510, 64),
    ],
)
def test_numbers_beyond_what_a_float_holds_are_rounded_before_they_are_divided(
    used: int, has: int, expected: int
) -> None:
    assert _evenness_of_two(0, used, 100, has) == expected


def test_what_containers_do_not_ask_for_is_not_made_up() -> None:
    outcome = schedule(pod(containers=[container(), container()]), on=[node()], plugins=[BALANCED])
    assert outcome.raw_scores == {}
    assert outcome.state.skip_score == {BALANCED}


def test_pods_that_ask_for_the_same_have_one_signature() -> None:
    sign = make_plugin(BALANCED).sign
    assert sign(pod("a", cpu="1")) == sign(pod("b", cpu="1"))
    assert sign(pod("a", cpu="1")) != sign(pod("a", memory="1"))
