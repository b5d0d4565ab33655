import numpy as np
import pytest

from trio_sched.objects.pod_requests import pod_resources
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.pod_info import PodInfo
from trio_sched.testing import make_table, node, pod

NODES = [
    node("a", cpu="1", labels={"zone": "x"}, images={"i:1": 5}),
    node("b", cpu="2", labels={"zone": "y"}),
    node("c", cpu="3", images={"i:1": 5}, taints=["t:NoSchedule"]),
    node("d", cpu="4", labels={"zone": "x"}, unschedulable=True),
]
PODS = [pod("p", cpu="500m", host_ports=[80], node_name="c"), pod("q", requests={"example.com/gpu": 1}, node_name="d")]


@pytest.fixture
def everything() -> NodeColumns:
    return NodeColumns(make_table(NODES, PODS))


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        (None, ["a", "b", "c", "d"]),
        (slice(1, 3), ["b", "c"]),
        (np.array([3, 0]), ["d", "a"]),
        (np.array([], dtype=np.intp), []),
    ],
    ids=["all", "slice", "array", "none"],
)
def test_a_part_shows_the_same_as_the_whole(everything: NodeColumns, rows: object, names: list[str]) -> None:
    part = everything if rows is None else everything.take(rows)  # type: ignore[arg-type]
    assert (part.names, len(part), part.total_nodes) == (names, len(names), 4)
    positions = ["abcd".index(name) for name in names]
    for column in ("allocatable", "requested", "nonzero_requested"):
        assert np.array_equal(getattr(part, column), getattr(everything, column)[:, positions])
    for column in ("pod_count", "allowed_pods", "unschedulable", "taint_sets", "feature_sets"):
        assert np.array_equal(getattr(part, column), getattr(everything, column)[positions])
    assert np.array_equal(part.label_values("zone"), everything.label_values("zone")[positions])
    assert [view.name for view in part] == names
    for position, name in enumerate(names):
        assert part.name(position) == part.node(position).name == name
        assert part.position(name) == position
    for name in set("abcd") - set(names):
        assert part.position(name) is None
    assert part.position("nowhere") is None
    size, holders, here = part.image_holders("i:1")
    assert (size, holders) == (5, 2)
    assert sorted(part.name(position) for position in here) == sorted({"a", "c"} & set(names))
    assert [part.name(position) for position, _ips in part.host_port_users("TCP", 80)] == [n for n in names if n == "c"]


def test_a_part_of_a_part_is_a_part_of_the_whole(everything: NodeColumns) -> None:
    assert everything.take(slice(1, 4)).take(np.array([2, 0])).names == ["d", "b"]
    assert everything.take(np.array([3, 2, 1])).take(slice(1, 3)).names == ["c", "b"]


def test_one_node_as_one_thing(everything: NodeColumns) -> None:
    view = everything.node(2)
    assert (view.name, view.node, view.labels) == ("c", NODES[2], NODES[2].labels)
    assert [taint.key for taint in view.taints] == ["t"]
    assert [p.name for p in view.pods] == ["p"]
    assert {port.port for port in view.host_ports} == {80}
    assert (view.allocatable("cpu"), view.requested("cpu")) == (3000, 500)
    assert (view.allocatable("example.com/gpu"), view.requested("never/heard")) == (0, 0)
    assert everything.node(3).requested("example.com/gpu") == 1


def test_resources_have_names_and_rows(everything: NodeColumns) -> None:
    assert list(everything.resource_names)[:3] == ["cpu", "memory", "ephemeral-storage"]
    assert everything.resource_row("memory") == 1
    assert everything.resource_row("never/heard") is None


def test_the_first_taint_list_is_the_empty_one(everything: NodeColumns) -> None:
    assert everything.taint_lists[0] == ()
    assert everything.feature_lists[0] == ()
    assert everything.taint_sets.tolist() == [0, 0, 1, 0]


def test_versions_differ_after_every_change_of_a_node_or_its_pods() -> None:
    table = make_table(NODES, PODS)
    columns = NodeColumns(table)
    seen = [columns.versions.tolist()]

    def only_row_changed(row: int) -> bool:
        seen.append(NodeColumns(table).versions.tolist())
        return [i for i in range(len(seen[-1])) if seen[-1][i] != seen[-2][i]] == [row]

    (first,) = table.pods[2].values()
    table.add_pod(0, PodInfo(more := pod("more"), pod_resources(more)))
    assert only_row_changed(0)
    table.update_pod(2, first, pod("p", cpu="500m", host_ports=[80], node_name="c", labels={"new": "label"}))
    assert only_row_changed(2)
    table.update_node(node("b", cpu="2", labels={"zone": "z"}))
    assert only_row_changed(1)
    table.remove_pod(0, more.uid)
    assert only_row_changed(0)
    assert columns.take(np.array([2, 0])).versions.tolist() == [seen[-1][2], seen[-1][0]]


def test_a_version_of_a_copy_is_never_one_of_the_table() -> None:
    table = make_table(NODES, PODS)
    known = {(name, version) for name, version in zip(table.names, NodeColumns(table).versions.tolist(), strict=True)}
    for _ in range(3):
        copy = table.copy_of_rows([2])
        assert ("c", NodeColumns(copy).versions[0]) in known  # nothing has changed yet
        copy.remove_pod(0, next(iter(copy.pods[0])))
        without = ("c", int(NodeColumns(copy).versions[0]))
        assert without not in known
        known.add(without)
    for number in range(5):
        table.add_pod(2, PodInfo(one := pod(f"more-{number}"), pod_resources(one)))
        assert ("c", int(NodeColumns(table).versions[2])) not in known
