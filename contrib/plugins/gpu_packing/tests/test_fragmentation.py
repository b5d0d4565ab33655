from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from trio_sched_gpu_packing.demand import MILLI, Demand, Shape
from trio_sched_gpu_packing.fragmentation import NodeStates, Weights, fragmentation, share_losses

ONE_POD = Weights(filled=0, one_pod=1)
FILLED = Weights(filled=1, one_pod=0)

shapes = st.builds(
    Shape,
    cpu_milli=st.integers(0, 8000),
    gpus=st.just(1),
    milli=st.integers(1, MILLI - 1),
    models=st.sampled_from([None, frozenset({"a"}), frozenset({"a", "b"})]),
) | st.builds(Shape, cpu_milli=st.integers(0, 8000), gpus=st.integers(1, 4), milli=st.just(MILLI))
mixes = st.dictionaries(shapes, st.integers(1, 50), min_size=1, max_size=6)
nodes = st.lists(
    st.tuples(
        st.integers(0, 16000),
        st.lists(st.integers(0, MILLI), min_size=4, max_size=4),
        st.sampled_from(["a", "b", ""]),
    ),
    min_size=1,
    max_size=5,
)


def states(demand: Demand, given_nodes: list[tuple[int, list[int], str]]) -> NodeStates:
    models = ["a", "b", ""]
    return NodeStates(
        cpu_milli=np.array([cpu for cpu, _, _ in given_nodes], dtype=np.int64),
        idle=np.array([idle for _, idle, _ in given_nodes], dtype=np.int64),
        model=np.array([models.index(model) for _, _, model in given_nodes], dtype=np.intp),
        usable=np.array([demand.usable_on(model) for model in models]),
    )


def by_definition(counts: dict[Shape, int], cpu: int, idle: list[int], model: str, *, filled: bool) -> float:
    """Pod by pod, as the papers and the docstring say it."""
    lost = 0.0
    for shape, count in counts.items():
        fitting = [left for left in idle if left >= shape.milli]
        hosts = (shape.models is None or model in shape.models) and cpu >= shape.cpu_milli
        if not hosts or len(fitting) < shape.gpus:
            share = sum(idle)
        elif filled:
            left, cpu_left = list(idle), cpu
            while cpu_left >= shape.cpu_milli and sum(one >= shape.milli for one in left) >= 1:
                places = [gpu for gpu, one in enumerate(left) if one >= shape.milli][: shape.gpus]
                if len(places) < shape.gpus:
                    break
                for gpu in places:
                    left[gpu] -= shape.milli
                cpu_left -= shape.cpu_milli
            share = sum(left)
        else:
            share = sum(idle) - sum(fitting)
        lost += share * count / sum(counts.values())
    return lost


@given(counts=mixes, some=nodes)
def test_it_is_what_the_paper_defines(counts: dict[Shape, int], some: list[tuple[int, list[int], str]]) -> None:
    demand = Demand.of(counts)
    found = fragmentation(demand, states(demand, some), ONE_POD)
    assert found == pytest.approx([by_definition(counts, *node, filled=False) for node in some])


@example(counts={Shape(cpu_milli=0, gpus=1, milli=1): 1}, some=[(0, [0, 0, 0, 1], "a")])
@given(counts=mixes, some=nodes)
def test_a_filled_node_is_left_with_what_no_further_pod_fits_on(
    counts: dict[Shape, int], some: list[tuple[int, list[int], str]]
) -> None:
    demand = Demand.of(counts)
    found = fragmentation(demand, states(demand, some), FILLED)
    assert found == pytest.approx([by_definition(counts, *node, filled=True) for node in some])


@given(counts=mixes, some=nodes)
def test_nodes_that_look_alike_are_evaluated_once(
    counts: dict[Shape, int], some: list[tuple[int, list[int], str]]
) -> None:
    demand = Demand.of(counts)
    many = [(cpu, idle[turn:] + idle[:turn], model) for turn, (cpu, idle, model) in product(range(20), some * 2)]
    many = [(cpu, idle[turn % 4 :] + idle[: turn % 4], model) for turn, (cpu, idle, model) in enumerate(many)]
    found = fragmentation(demand, states(demand, many), Weights())
    alone = [fragmentation(demand, states(demand, [one]), Weights())[0] for one in many[: len(some)]]
    assert found[: len(some)] == pytest.approx(alone)


def test_an_idle_core_does_not_make_seven_gpus_usable() -> None:
    demand = Demand.of({Shape(1000, 1, MILLI): 1})
    one_core = states(demand, [(1000, [MILLI] * 4, "")])
    assert fragmentation(demand, one_core, ONE_POD).tolist() == [0]
    assert fragmentation(demand, one_core, FILLED).tolist() == [3 * MILLI]


def test_without_expected_pods_nothing_is_fragmented() -> None:
    demand = Demand.of({Shape(1000, 0, 0): 7})
    assert fragmentation(demand, states(demand, [(1000, [MILLI] * 4, "")]), Weights()).tolist() == [0]


def test_a_share_costs_least_where_it_leaves_what_is_asked_for() -> None:
    demand = Demand.of({Shape(0, 1, 470): 1, Shape(0, 1, MILLI): 1})
    losses = share_losses(demand, 470, states(demand, [(1000, [MILLI, 530, 480, 400], "")]), ONE_POD)[0]
    assert losses.argmin() == 2
    assert losses[3] == np.inf


def test_mixes_are_as_far_apart_as_their_frequencies() -> None:
    a, b = Shape(0, 1, 500), Shape(0, 1, MILLI)
    assert Demand.of({a: 1}).distance(Demand.of({b: 1})) == 1
    assert Demand.of({a: 3, b: 1}).distance(Demand.of({a: 1, b: 1})) == pytest.approx(0.25)
    assert Demand().distance(Demand.of({a: 1})) == 1
    assert Demand().distance(Demand()) == 0
