from trio_sched.objects.pod_requests import pod_usage
from trio_sched.snapshot.node_table import PlacedPod
from trio_sched.snapshot.what_if import WhatIf
from trio_sched.testing import make_table, node, pod


def test_a_try_touches_only_the_copy() -> None:
    table = make_table(
        [node("a"), node("b", taints=["t:NoSchedule"]), node("c")], [pod("p", cpu="1", node_name="b", host_ports=[80])]
    )
    what_if = WhatIf(table, [1, 2])
    assert what_if.nodes.names == ["b", "c"]
    new = pod("new", cpu="500m", requests={"example.com/gpu": 1})
    what_if.add_pod("c", PlacedPod(new, pod_usage(new)))
    removed = what_if.remove_pod("b", pod("p").uid)
    assert removed.pod.name == "p"
    assert what_if.nodes.requested[0].tolist() == [0, 500]
    assert what_if.nodes.host_port_users("TCP", 80) == []
    assert table.columns.requested[0].tolist() == [0, 1000, 0]
    assert table.columns.pod_count.tolist() == [0, 1, 0]
    assert table.columns.host_port_users("TCP", 80) == [(1, {"0.0.0.0"})]


def test_ids_mean_the_same_in_the_copy() -> None:
    table = make_table(
        [node("a", taints=["x:NoSchedule"]), node("b", taints=["y:NoSchedule"], declared_features=["F"])]
    )
    nodes = WhatIf(table, [1]).nodes
    assert nodes.taint_sets.tolist() == [table.views.taint_sets[1]]
    assert nodes.taint_lists is table.columns.taint_lists
    assert nodes.feature_sets.tolist() == [table.views.feature_sets[1]]


def test_a_resource_met_only_in_the_copy_leaves_the_original_whole() -> None:
    table = make_table([node("a")])
    assert table.columns.requested.shape == (3, 1)
    what_if = WhatIf(table, [0])
    for i in range(5):
        new = pod(f"p{i}", requests={f"r.io/{i}": i + 1})
        what_if.add_pod("a", PlacedPod(new, pod_usage(new)))
    row = what_if.nodes.resource_row("r.io/4")
    assert row is not None
    assert what_if.nodes.requested[row].tolist() == [5]
    assert table.columns.resource_row("r.io/4") == row
    assert table.columns.requested[row].tolist() == table.columns.allocatable[row].tolist() == [0]
    table.add_pod(0, PlacedPod(pod("q", requests={"r.io/4": 7}), pod_usage(pod("q", requests={"r.io/4": 7}))))
    assert table.columns.requested[row].tolist() == [7]
