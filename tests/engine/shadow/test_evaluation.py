import pytest

from trio_sched.engine.shadow.evaluation import nodes_to_find


@pytest.mark.parametrize(
    ("nodes", "percentage", "found"),
    [(10, 30, 10), (99, 0, 99), (100, 0, 100), (400, 0, 188), (1000, 0, 420), (1000, 40, 400), (6000, 0, 300)],
)
def test_kube_scheduler_stops_after_so_many_feasible_nodes(nodes: int, percentage: int, found: int) -> None:
    assert nodes_to_find(nodes, percentage) == found
