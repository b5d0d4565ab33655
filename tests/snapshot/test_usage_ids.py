"""Rows have the same usage id exactly if their amounts are equal, whatever happened before."""

from random import Random

import pytest

from trio_sched.objects.node import Node
from trio_sched.objects.pod_requests import pod_resources
from trio_sched.snapshot import usage_ids
from trio_sched.snapshot.node_table import NodeTable
from trio_sched.snapshot.pod_info import PodInfo
from trio_sched.testing import make_table, node, pod


class Situation:
    """Nodes of few sizes and pods of few templates that come and go."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.table: NodeTable = make_table([self.a_node(f"n{i}") for i in range(6)])
        self.pods = 0

    def a_node(self, name: str) -> Node:
        more = {"example.com/gpu": 2} if self.rng.random() < 0.2 else {}
        return node(name, cpu=self.rng.choice([4, 8]), allocatable=more)

    def step(self) -> None:
        self.rng.choices([self.place, self.remove, self.change_node, self.replace_node], weights=[6, 4, 1, 1])[0]()

    def place(self) -> None:
        self.pods += 1
        one = pod(f"p{self.pods}", cpu=self.rng.choice(["100m", "300m", None]))
        if self.rng.random() < 0.1:
            one = pod(f"p{self.pods}", requests={"example.com/gpu": "1"})
        self.table.add_pod(self.rng.randrange(self.table.count), PodInfo(one, pod_resources(one)))

    def remove(self) -> None:
        row = self.rng.randrange(self.table.count)
        if self.table.pods[row]:
            self.table.remove_pod(row, self.rng.choice(list(self.table.pods[row])))

    def change_node(self) -> None:
        self.table.update_node(self.a_node(self.rng.choice(self.table.names)))

    def replace_node(self) -> None:
        self.table.remove_node(self.rng.choice(self.table.names))
        self.table.add_node(self.a_node(f"m{self.rng.randrange(10**9)}"))

    def check(self) -> int:
        """The number of different ids."""
        views, seen = self.table.views, {}
        for row in self.rng.sample(range(self.table.count), self.table.count):
            amounts = (
                tuple(views.allocatable[:, row].tolist()),
                tuple(views.requested[:, row].tolist()),
                tuple(views.nonzero_requested[:, row].tolist()),
                int(views.pod_count[row]),
                int(views.allowed_pods[row]),
            )
            (usage_id,) = self.table.usage_ids_of([row])
            assert seen.setdefault(amounts, usage_id) == usage_id
        assert len(set(seen.values())) == len(seen)
        return len(seen)


@pytest.mark.parametrize("max_ids", [4096, 3])
@pytest.mark.parametrize("seed", range(20))
def test_ids_are_equal_where_amounts_are(monkeypatch: pytest.MonkeyPatch, seed: int, max_ids: int) -> None:
    monkeypatch.setattr(usage_ids, "_MAX_IDS", max_ids)
    situation = Situation(seed)
    for _ in range(150):
        situation.step()
        if situation.rng.random() < 0.6:
            situation.check()


def test_pods_that_are_like_no_other_leave_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_ids, "_MAX_IDS", 50)
    table = make_table([node("n")])
    for number in range(1000):
        one = pod(f"p{number}", cpu="100m", host_ports=[80])  # not added up once for all pods of a template
        table.usage_ids_of([0])
        table.add_pod(0, PodInfo(one, pod_resources(one)))
        table.usage_ids_of([0])
        table.remove_pod(0, one.uid)
    assert len(table.usage_ids._after) <= 2 * (50 + 4) + 1


def test_an_id_means_the_same_for_as_long_as_the_epoch_does() -> None:
    situation = Situation(1)
    table = situation.table
    meaning: dict[tuple[int, int], tuple[object, ...]] = {}
    for _ in range(300):
        situation.step()
        for row in range(table.count):
            found = (table.views.requested[:, row].tolist(), table.views.allocatable[:, row].tolist())
            (number,) = table.usage_ids_of([row])
            assert meaning.setdefault((table.usage_ids.epoch, number), found) == found


def test_ids_that_are_asked_for_together_are_of_one_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_ids, "_MAX_IDS", 0)
    table = make_table([node("a"), node("b", cpu="1"), node("c", cpu="2")])
    rows = list(range(table.count))
    for number in range(100):
        one = pod(f"p{number}", cpu=f"{number}m", host_ports=[80])
        for row in rows:
            table.add_pod(row, PodInfo(one, pod_resources(one)))
        ids = table.usage_ids_of(rows)
        assert len(set(ids)) == len(ids)
        assert table.usage_ids_of(rows) == ids
    assert table.usage_ids.epoch > 2
