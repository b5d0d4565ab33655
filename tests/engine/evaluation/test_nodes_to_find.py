import pytest

from trio_sched.engine.evaluation.nodes_to_find import num_feasible_nodes_to_find


@pytest.mark.parametrize(
    ("count", "percentage", "enough"),
    [
        (10, 0, 10),
        (10, 30, 10),
        (99, 0, 99),
        (100, 0, 100),
        (400, 0, 188),
        (1000, 0, 420),
        (1000, 40, 400),
        (5000, 0, 500),
        (6000, 0, 300),
        (6000, 40, 2400),
    ],
)
def test_the_number_of_feasible_nodes_to_find_is_that_of_kube_scheduler(
    count: int, percentage: int, enough: int
) -> None:
    assert num_feasible_nodes_to_find(count, percentage) == enough
