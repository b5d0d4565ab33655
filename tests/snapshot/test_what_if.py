from pod_infos import pod_info

from trio_sched.snapshot.labels.label_selection import EVERYTHING
from trio_sched.snapshot.labels.pod_selector import NamespacedMatcher, PodSelector
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.what_if import WhatIf
from trio_sched.testing import make_table, node, pod


def test_changes_touch_only_the_copy() -> None:
    table = make_table(
        [node("a"), node("b", taints=["t:NoSchedule"]), node("c")], [pod("p", cpu="1", node_name="b", host_ports=[80])]
    )
    what_if = WhatIf(table, [1, 2])
    assert what_if.nodes.names == ["b", "c"]
    new = pod("new", cpu="500m", requests={"example.com/gpu": 1})
    what_if.add_pod("c", pod_info(new))
    removed = what_if.remove_pod("b", pod("p").uid)
    assert removed.pod.name == "p"
    assert what_if.nodes.requested[0].tolist() == [0, 500]
    assert what_if.nodes.host_port_users("TCP", 80) == []
    assert NodeColumns(table).requested[0].tolist() == [0, 1000, 0]
    assert NodeColumns(table).pod_count.tolist() == [0, 1, 0]
    assert NodeColumns(table).host_port_users("TCP", 80) == [(1, {"0.0.0.0"})]


def test_ids_mean_the_same_in_the_copy() -> None:
    table = make_table(
        [node("a", taints=["x:NoSchedule"]), node("b", taints=["y:NoSchedule"], declared_features=["F"])]
    )
    nodes = WhatIf(table, [1]).nodes
    assert nodes.taint_sets.tolist() == [table.views.taint_sets[1]]
    assert nodes.taint_lists is NodeColumns(table).taint_lists
    assert nodes.feature_sets.tolist() == [table.views.feature_sets[1]]


def test_pods_of_the_copy_count_where_a_node_offers_the_resource() -> None:
    table = make_table([node("a", allocatable={"r.io/1": 9}), node("b")])
    what_if = WhatIf(table, [1, 0])
    for name in "ab":
        what_if.add_pod(name, pod_info(pod(f"on-{name}", requests={"r.io/1": 5, "r.io/2": 7})))
    row = what_if.nodes.resource_row("r.io/1")
    assert row is not None
    assert what_if.nodes.requested[row].tolist() == [5, 5]
    assert what_if.nodes.resource_row("r.io/2") is None
    assert what_if.nodes.node(0).requested("r.io/2") == 7
    assert NodeColumns(table).requested[row].tolist() == [0, 0]


def test_the_nodes_stand_in_the_order_they_were_asked_for() -> None:
    what_if = WhatIf(make_table([node("a", cpu=1), node("b", cpu=2), node("c", cpu=3)]), [2, 0])
    assert what_if.nodes.names == ["c", "a"]
    assert what_if.nodes.allocatable[0].tolist() == [3000, 1000]
    assert (what_if.nodes.position("a"), what_if.nodes.position("b")) == (1, None)


def test_pods_are_added_and_removed_in_the_copy_only() -> None:
    table = make_table([node("a")], [pod("p", node_name="a"), pod("q", node_name="a")])
    what_if = WhatIf(table, [0])
    removed = what_if.remove_pod("a", pod("p").uid)
    assert [one.pod.name for one in what_if.pods_on("a")] == ["q"]
    what_if.add_pod("a", removed)
    assert sorted(one.pod.name for one in what_if.pods_on("a")) == ["p", "q"]
    assert [one.name for one in NodeColumns(table).node(0).pods] == ["p", "q"]


def test_label_values_mean_the_same_in_the_copy() -> None:
    table = make_table([node("a", labels={"zone": "x"}), node("b", labels={"zone": "y"}), node("c")])
    NodeColumns(table).label_values("zone")
    nodes = WhatIf(table, [1, 2]).nodes
    assert nodes.label_values("zone").tolist() == NodeColumns(table).label_values("zone")[1:].tolist() == [2, 0]
    assert list(nodes.label_vocabulary("zone")) == [None, "x", "y"]


def test_a_label_that_is_first_asked_for_in_the_copy_means_the_same_in_the_original() -> None:
    table = make_table([node("a", labels={"zone": "x"}), node("b", labels={"zone": "y"})])
    assert WhatIf(table, [1]).nodes.label_values("zone").tolist() == [2]
    assert [NodeColumns(table).label_vocabulary("zone")[i] for i in NodeColumns(table).label_values("zone")] == [
        "x",
        "y",
    ]


def test_counts_of_pods_in_the_original_do_not_follow_the_copy() -> None:
    table = make_table([node("a"), node("b")], [pod("p", node_name="a")])
    every_pod = PodSelector((NamespacedMatcher(None, EVERYTHING),))
    assert NodeColumns(table).pod_counts(every_pod).tolist() == [1, 0]
    what_if = WhatIf(table, [0, 1])
    what_if.remove_pod("a", pod("p").uid)
    assert what_if.nodes.pod_counts(every_pod).tolist() == [0, 0]
    assert NodeColumns(table).pod_counts(every_pod).tolist() == [1, 0]
    assert NodeColumns(table).domain_counts(every_pod, "kubernetes.io/hostname").total == 1


def test_images_can_be_asked_for_in_the_copy() -> None:
    table = make_table([node("a", images={"i:1": 5}), node("b", images={"i:1": 5, "j:1": 7})])
    size, holders, positions = WhatIf(table, [1]).nodes.image_holders("i:1")
    assert (size, holders, list(positions)) == (5, 1, [0])


def test_the_copy_does_not_follow_the_original() -> None:
    table = make_table([node("a", cpu=1), node("b", cpu=2)], [pod("p", node_name="b")])
    what_if = WhatIf(table, [1])
    table.remove_pod(1, pod("p").uid)
    table.remove_node("a")
    assert what_if.nodes.names == ["b"]
    assert [one.pod.name for one in what_if.pods_on("b")] == ["p"]
    assert what_if.nodes.pod_count.tolist() == [1]
