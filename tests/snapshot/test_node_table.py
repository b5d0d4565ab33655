from random import Random

import msgspec
import numpy as np
import pytest
from pod_infos import pod_info

from trio_sched.objects.node import Node
from trio_sched.snapshot.labels.pod_selector import PodSelector
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.node_table import NodeTable
from trio_sched.snapshot.pod_info import PodInfo
from trio_sched.testing import make_table, node, pod

GPU = "example.com/gpu"


def table_of(*names: str) -> NodeTable:
    return make_table([node(name, cpu=str(i + 1), labels={"zone": name}) for i, name in enumerate(names)])


def holders(table: NodeTable, image: str) -> tuple[int, int, list[int]]:
    size, count, positions = NodeColumns(table).image_holders(image)
    return size, count, list(positions)


def test_a_node_becomes_a_column_entry() -> None:
    table = make_table(
        [
            node(
                "n",
                cpu="2",
                memory="4Gi",
                pods=7,
                allocatable={GPU: 3},
                taints=["a:NoSchedule"],
                unschedulable=True,
                declared_features=["F"],
            )
        ]
    )
    views = table.views
    assert views.allocatable[:, 0].tolist() == [2000, 4 << 30, 0, 3]
    assert (views.allowed_pods[0], views.unschedulable[0]) == (7, True)
    assert table.taint_lists.values[views.taint_sets[0]][0].key == "a"
    assert table.feature_lists.values[views.feature_sets[0]] == ("F",)


def test_pods_add_up_and_go_again() -> None:
    table = make_table([node("a"), node("b", allocatable={GPU: 8})])
    table.add_pod(1, pod_info(pod("p", cpu="500m", memory="1Gi", requests={GPU: 2}, host_ports=[80])))
    table.add_pod(1, pod_info(pod("q")))
    columns = NodeColumns(table)
    assert columns.requested[:, 1].tolist() == [500, 1 << 30, 0, 2]
    assert columns.nonzero_requested[:, 1].tolist() == [600, (1 << 30) + (200 << 20)]
    assert columns.pod_count.tolist() == [0, 2]
    assert columns.host_port_users("TCP", 80) == [(1, {"0.0.0.0"})]
    removed = table.remove_pod(1, pod("p").uid)
    assert removed.pod.name == "p"
    assert NodeColumns(table).requested[:, 1].tolist() == [0, 0, 0, 0]
    assert NodeColumns(table).host_port_users("TCP", 80) == []
    assert [each.name for each in NodeColumns(table).node(1).pods] == ["q"]


def test_the_last_node_takes_the_place_of_a_removed_one() -> None:
    table = table_of("a", "b", "c")
    zones = NodeColumns(table).label_values("zone")
    assert zones.tolist() == [1, 2, 3]
    table.add_pod(2, pod_info(pod("p", cpu="100m", host_ports=[80])))
    gone = table.remove_node("a")
    assert gone == []
    assert table.names == ["c", "b"]
    assert table.row_of == {"c": 0, "b": 1}
    columns = NodeColumns(table)
    assert columns.allocatable[0].tolist() == [3000, 2000]
    assert columns.requested[0].tolist() == [100, 0]
    assert columns.label_values("zone").tolist() == [3, 2]
    assert columns.host_port_users("TCP", 80) == [(0, {"0.0.0.0"})]


def test_removing_a_node_returns_its_pods_and_frees_its_images() -> None:
    table = make_table([node("a", images={"i:1": 5}), node("b")], [pod("p", node_name="a")])
    (left,) = table.remove_node("a")
    assert left.pod.name == "p"
    assert holders(table, "i:1") == (0, 0, [])
    table.add_node(node("a"), [left])
    assert NodeColumns(table).pod_count.tolist() == [0, 1]


def test_an_update_shows_only_if_it_can_matter_to_a_plugin() -> None:
    table = table_of("a")
    same = node("a", cpu="1", labels={"zone": "a"})
    heartbeat = msgspec.structs.replace(
        same, metadata=msgspec.structs.replace(same.metadata, resource_version="99", generation=4)
    )
    position = table.node_log.position
    assert not table.update_node(heartbeat)
    assert table.node_log.since(position) == []
    assert NodeColumns(table).node(0).node.metadata.resource_version == "99"


@pytest.mark.parametrize(
    "changed",
    [
        node("a", cpu="9", labels={"zone": "a"}),
        node("a", cpu="1", labels={"zone": "z"}),
        node("a", cpu="1", labels={"zone": "a"}, taints=["x:NoSchedule"]),
        node("a", cpu="1", labels={"zone": "a"}, unschedulable=True),
        node("a", cpu="1", labels={"zone": "a"}, annotations={"x": "y"}),
        node("a", cpu="1", labels={"zone": "a"}, images={"i:1": 1}),
        node("a", cpu="1", labels={"zone": "a"}, declared_features=["F"]),
    ],
)
def test_every_change_that_matters_is_logged(changed: Node) -> None:
    table = table_of("a", "b")
    position, generations = table.node_log.position, table.views.node_generation.tolist()
    assert table.update_node(changed)
    assert table.node_log.since(position) == [0]
    assert table.views.node_generation[0] > generations[0]
    assert table.views.node_generation[1] == generations[1]


def test_an_image_that_stays_keeps_the_size_first_reported() -> None:
    table = make_table([node("a", images={"i:1": 5, "j:1": 6})])
    table.update_node(node("a", images={"i:1": 9}))
    assert holders(table, "i:1") == (5, 1, [0])
    assert holders(table, "j:1") == (0, 0, [])


def test_pods_are_logged_apart_from_nodes() -> None:
    table = table_of("a", "b")
    node_position, usage_position = table.node_log.position, table.pods_log.position
    table.add_pod(1, pod_info(pod("p")))
    assert table.node_log.since(node_position) == []
    assert table.pods_log.since(usage_position) == [1]


def test_generations_tell_membership_from_change() -> None:
    table = table_of("a", "b")
    before = table.membership_generation
    table.update_node(node("a", cpu="7"))
    assert table.membership_generation == before
    changes = table.nodes_generation
    table.remove_node("b")
    assert table.membership_generation == before + 1
    assert table.nodes_generation == changes + 1


def test_a_label_column_is_made_when_first_asked_for_and_follows_from_then_on() -> None:
    table = table_of("a", "b")
    assert NodeColumns(table).label_values("disk").tolist() == [0, 0]
    table.update_node(node("b", labels={"disk": "ssd"}))
    table.add_node(node("c", labels={"disk": "hdd"}))
    assert NodeColumns(table).label_values("disk").tolist() == [0, 1, 2]
    assert list(NodeColumns(table).label_vocabulary("disk")) == [None, "ssd", "hdd"]
    assert NodeColumns(table).label_value_id("disk", "hdd") == 2
    assert NodeColumns(table).label_value_id("disk", "tape") is None


@pytest.mark.parametrize(
    ("changed", "steps"),
    [
        (node("a", cpu="9", labels={"zone": "a"}), 0),
        (node("a", cpu="1", labels={"zone": "a"}, annotations={"x": "y"}), 0),
        (node("a", cpu="1", labels={"zone": "z"}), 1),
        (node("a", cpu="1", labels={"zone": "a", "rack": "r"}), 1),
        (node("a", cpu="1", labels={"zone": "a"}, taints=["x:NoSchedule"]), 1),
    ],
)
def test_only_labels_and_the_spec_of_nodes_change_the_topology(changed: Node, steps: int) -> None:
    table = table_of("a", "b")
    before = table.topology.generation
    table.update_node(changed)
    assert table.topology.generation == before + steps


def test_nodes_that_come_and_go_change_the_topology_and_pods_do_not() -> None:
    table = table_of("a", "b")
    generations = [table.topology.generation]
    table.add_node(node("c"))
    generations.append(table.topology.generation)
    table.remove_node("a")
    generations.append(table.topology.generation)
    assert generations == sorted(set(generations))
    table.add_pod(0, pod_info(pod("p")))
    table.update_pod(0, table.pods[0][pod("p").uid], pod("p", labels={"x": "y"}))
    table.remove_pod(0, pod("p").uid)
    assert table.topology.generation == generations[-1]


def test_another_version_of_a_pod_takes_the_place_of_the_old_one() -> None:
    table = make_table([node("a")], [pod("p", node_name="a", cpu="1")])
    position = table.pods_log.position
    one = table.pods[0][pod("p").uid]
    table.update_pod(0, one, pod("p", node_name="a", cpu="1", labels={"new": "label"}))
    assert [each.labels for each in NodeColumns(table).node(0).pods] == [{"new": "label"}]
    assert NodeColumns(table).requested[0].tolist() == [1000]
    assert table.pods_log.since(position) == []


def test_columns_cannot_be_written_to() -> None:
    columns = NodeColumns(table_of("a"))
    for column in (
        columns.allocatable,
        columns.requested,
        columns.pod_count,
        columns.unschedulable,
        columns.label_values("zone"),
        columns.pod_counts(PodSelector(())),
    ):
        with pytest.raises(ValueError, match="read-only"):
            column[...] = 0


def test_columns_grow_beyond_their_first_capacity_and_their_first_resources() -> None:
    names = [f"n{i}" for i in range(200)]
    table = make_table([node(name, cpu=str(i), allocatable={f"r.io/{i % 9}": i}) for i, name in enumerate(names)])
    NodeColumns(table).label_values("kubernetes.io/hostname")
    assert NodeColumns(table).names == names
    assert NodeColumns(table).allocatable[0].tolist() == [1000 * i for i in range(200)]
    row = NodeColumns(table).resource_row("r.io/8")
    assert row is not None
    assert NodeColumns(table).allocatable[row].sum() == sum(range(8, 200, 9))
    assert table.topology.capacity >= 200


def test_a_resource_has_a_row_while_some_node_offers_it() -> None:
    table = table_of("a")
    table.add_pod(0, pod_info(pod("p", requests={GPU: 1})))
    columns = NodeColumns(table)
    assert columns.resource_row(GPU) is None
    assert (columns.requested_of(GPU).tolist(), columns.allocatable_of(GPU).tolist()) == ([0], [0])
    assert (columns.node(0).requested(GPU), columns.node(0).allocatable(GPU)) == (1, 0)
    table.add_node(node("b", allocatable={GPU: 4}))
    table.add_pod(1, pod_info(pod("q", requests={GPU: 3})))
    row = columns.resource_row(GPU)
    assert row is not None
    assert (columns.requested[row].tolist(), columns.allocatable[row].tolist()) == ([1, 3], [0, 4])
    assert (columns.requested_of(GPU).tolist(), columns.allocatable_of(GPU).tolist()) == ([1, 3], [0, 4])
    second = columns.take(np.array([1]))
    assert (second.requested_of(GPU).tolist(), second.allocatable_of(GPU).tolist()) == ([3], [4])
    for column in (columns.requested_of(GPU), columns.allocatable_of("other.example/one")):
        with pytest.raises(ValueError, match="read-only"):
            column[...] = 0
    table.remove_pod(0, pod("p").uid)
    assert columns.requested[row].tolist() == [0, 3]
    table.update_node(node("b"))
    assert (columns.resource_row(GPU), columns.resource_names[row]) == (None, "")
    table.update_node(node("b", allocatable={"other.example/one": 4}))
    assert columns.resource_row("other.example/one") == row
    assert columns.requested[row].tolist() == [0, 0]


def test_the_columns_are_as_large_as_what_nodes_have_however_much_they_had() -> None:
    table = table_of("stays")
    for i in range(500):
        table.add_node(
            node(
                f"n{i}",
                allocatable={f"example.com/{i}": 1},
                taints=[f"t{i}:NoSchedule"],
                declared_features=[f"F{i}"],
                labels={f"key-{i}": "value"},
            )
        )
        NodeColumns(table).label_values(f"key-{i}")
    columns = NodeColumns(table)
    assert (len(columns.resource_names), len(columns.taint_lists), len(columns.feature_lists)) == (503, 501, 501)
    for i in range(499):
        table.remove_node(f"n{i}")
    assert len(columns.resource_names) <= 64
    assert len(columns.taint_lists) <= 64
    assert len(columns.feature_lists) <= 64
    assert table._store.capacity == table.topology.capacity == 64
    assert columns.allocatable.shape[1] == 2
    row = columns.resource_row("example.com/499")
    assert row is not None
    assert columns.allocatable[row].tolist() == [0, 1]
    assert [taint.key for taint in columns.taint_lists[int(columns.taint_sets[1])]] == ["t499"]
    assert columns.feature_lists[int(columns.feature_sets[1])] == ("F499",)


def test_a_pod_with_thousands_of_resources_takes_no_place_in_the_columns() -> None:
    table = table_of("a")
    before = NodeColumns(table).requested.shape
    table.add_pod(0, pod_info(pod("p", requests={f"example.com/{i}": i % 2 for i in range(5000)})))
    assert NodeColumns(table).requested.shape == before


def test_after_any_history_the_columns_are_those_of_a_fresh_table() -> None:
    rng = Random(7)
    table = NodeTable()
    pods: dict[str, PodInfo] = {}
    table.topology.column("zone")
    for step in range(1500):
        name = f"n{rng.randrange(12)}"
        made = node(
            name,
            cpu=str(rng.randrange(1, 9)),
            labels={"zone": rng.choice("abc")},
            taints=[f"t{rng.randrange(100)}:NoSchedule"] if rng.random() < 0.3 else (),
            images={rng.choice(["i:1", "j:1"]): 5},
            allocatable={f"r.io/{rng.randrange(100)}": rng.randrange(3)},
        )
        if name not in table.row_of:
            table.add_node(made)
        elif rng.random() < 0.3:
            for gone in table.remove_node(name):
                del pods[gone.pod.uid]
        elif rng.random() < 0.4:
            table.update_node(made)
        elif table.pods[table.row_of[name]] and rng.random() < 0.5:
            uid = rng.choice(list(table.pods[table.row_of[name]]))
            table.remove_pod(table.row_of[name], uid)
            del pods[uid]
        else:
            requests = {f"r.io/{rng.randrange(100)}": rng.randrange(3)}
            new = pod_info(
                pod(f"p{step}", cpu=f"{rng.randrange(900)}m", requests=requests, host_ports=[step + 1], node_name=name)
            )
            table.add_pod(table.row_of[name], new)
            pods[new.pod.uid] = new
    fresh = make_table(table.nodes, [each.pod for each in pods.values()])
    assert fresh.names == table.names
    for column in ("nonzero_requested", "pod_count", "allowed_pods", "unschedulable"):
        assert np.array_equal(getattr(fresh.views, column), getattr(table.views, column)), column
    expected, found = NodeColumns(fresh), NodeColumns(table)
    assert sorted(filter(None, expected.resource_names)) == sorted(filter(None, found.resource_names))
    for resource in expected.resource_names:
        rows = expected.resource_row(resource), found.resource_row(resource)
        assert expected.allocatable[rows[0]].tolist() == found.allocatable[rows[1]].tolist()
        assert expected.requested[rows[0]].tolist() == found.requested[rows[1]].tolist()
    taints = [[view.taint_lists[i] for i in view.taint_sets] for view in (expected, found)]
    assert taints[0] == taints[1]
    for key in ("zone", "kubernetes.io/hostname"):
        values = [
            [view.label_vocabulary(key)[i] for i in view.label_values(key)]
            for view in (NodeColumns(fresh), NodeColumns(table))
        ]
        assert values[0] == values[1]
    for image in ("i:1", "j:1"):
        assert sorted(NodeColumns(fresh).image_holders(image)[2]) == sorted(NodeColumns(table).image_holders(image)[2])
    for row in range(table.count):
        assert fresh.host_ports.of_row(row) == table.host_ports.of_row(row)
