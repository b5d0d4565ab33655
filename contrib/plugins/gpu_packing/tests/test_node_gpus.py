import pytest
from trio_sched_gpu_packing.demand import MILLI, Shape, UnusableRequest, shape_of
from trio_sched_gpu_packing.node_gpus import choose, idle_gpus, parse_indexes

from trio_sched.testing import node_affinity, pod, term

SHARE, WHOLE = Shape(0, 1, 400), Shape(0, 2, MILLI)
MILLI_RESOURCE = "example.com/gpu-milli"


@pytest.mark.parametrize(
    ("text", "indexes"),
    [("0", (0,)), ("3,1", (3, 1)), ("", None), ("a", None), ("1,", None), ("-1", None), ("²", None), ("1" * 9, None)],
)
def test_annotations_of_others_are_read_with_care(text: str, indexes: tuple[int, ...] | None) -> None:
    assert parse_indexes(text) == indexes


def test_pods_have_the_gpus_that_they_were_given() -> None:
    assert idle_gpus(3, [(SHARE, (1,)), (WHOLE, (0, 2)), (SHARE, (1,))]) == [0, 200, 0]


def test_pods_of_others_are_assumed_where_they_leave_least() -> None:
    assert idle_gpus(3, [(SHARE, None), (SHARE, (2,)), (Shape(0, 1, MILLI), None)]) == [0, 1000, 200]
    assert idle_gpus(2, [(SHARE, (7,)), (SHARE, (0, 1)), (SHARE, None)]) == [200, 600]
    assert idle_gpus(1, [(WHOLE, None), (SHARE, None)]) == [0]  # more than there is: not even that ends it
    assert idle_gpus(1, [(SHARE, (0,)), (Shape(0, 1, MILLI), (0,))]) == [0]


def test_the_gpu_that_is_left_with_least_is_chosen() -> None:
    assert choose([1000, 500, 450, 300], SHARE) == (2,)
    assert choose([1000, 500, 1000, 1000], WHOLE) == (0, 2)
    assert choose([1000, 500], WHOLE) == (0,)


@pytest.mark.parametrize(
    ("units", "per_gpu", "shape"),
    [
        (2, 1, Shape(500, 2, MILLI)),
        (470, 1000, Shape(500, 1, 470)),
        (3000, 1000, Shape(500, 3, MILLI)),
        (25, 100, Shape(500, 1, 250)),
        (0, 100, Shape(500, 0, 0)),
    ],
)
def test_shapes(units: int, per_gpu: int, shape: Shape) -> None:
    assert shape_of(pod(cpu="500m", requests={MILLI_RESOURCE: units}), MILLI_RESOURCE, per_gpu, "model") == shape


def test_one_and_a_half_gpus_cannot_be_had() -> None:
    with pytest.raises(
        UnusableRequest, match=r"pod requests 1500 of example\.com/gpu-milli, which is more than one GPU"
    ):
        shape_of(pod(requests={MILLI_RESOURCE: 1500}), MILLI_RESOURCE, 1000, "model")


def test_models_are_those_that_the_pod_selects() -> None:
    def models(**selected: object) -> frozenset[str] | None:
        return shape_of(pod(requests={"a.b/gpu": 1}, **selected), "a.b/gpu", 1, "model").models  # type: ignore[arg-type]

    assert models() is None
    assert models(node_selector={"model": "T4"}) == {"T4"}
    assert models(affinity=node_affinity(term("model In T4 A10"))) == {"T4", "A10"}
    assert models(affinity=node_affinity(term("model NotIn T4"))) is None
    assert models(affinity=node_affinity(term("model In T4"), term("zone In a"))) is None
