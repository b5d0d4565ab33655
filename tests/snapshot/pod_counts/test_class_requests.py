"""Sums of what pods request, through the public API: ``nodes.pod_requests`` and its relatives."""

from random import Random

import msgspec
import numpy as np
import pytest
from pod_infos import pod_info

from trio_sched.objects.pod import Pod
from trio_sched.objects.selector import LabelSelector, LabelSelectorRequirement
from trio_sched.plugin_api import PodSelector, select_pods
from trio_sched.snapshot.node_columns import NodeColumns, NodeSet
from trio_sched.snapshot.node_table import NodeTable
from trio_sched.snapshot.pod_counts import class_requests, pod_index
from trio_sched.snapshot.what_if import WhatIf
from trio_sched.testing import make_table, node, pod

GPU = "nvidia.com/gpu"
NODES = [node(name, labels={"zone": zone}, allocatable={GPU: 8}) for name, zone in zip("abc", "112", strict=True)]
PODS = [
    pod("p", node_name="a", cpu="500m", memory="1Gi", labels={"app": "web"}),
    pod("q", node_name="a", cpu="250m", labels={"app": "web"}, requests={GPU: 2}),
    pod("r", node_name="b", cpu=1, labels={"app": "db"}),
    pod("s", node_name="b", cpu=2, namespace="other", labels={"app": "web"}),
    pod("t", node_name="c", cpu=4, labels={"app": "web"}),
]
WEB = select_pods({"app": "web"}, namespaces=["default"])


@pytest.mark.parametrize(
    ("selector", "resource", "expected"),
    [
        (WEB, "cpu", [750, 0, 4000]),
        (WEB, "memory", [2**30, 0, 0]),
        (WEB, GPU, [2, 0, 0]),
        (WEB, "example.com/none", [0, 0, 0]),
        (select_pods({"app": "web"}), "cpu", [750, 2000, 4000]),
        (select_pods(namespaces=("other",)), "cpu", [0, 2000, 0]),
        (select_pods(), "cpu", [750, 3000, 4000]),
        (
            select_pods(LabelSelector(match_expressions=(LabelSelectorRequirement("app", "NotIn", ("web",)),))),
            "cpu",
            [0, 1000, 0],
        ),
    ],
)
def test_requests_are_summed_per_node_zone_and_cluster(
    selector: PodSelector, resource: str, expected: list[int]
) -> None:
    nodes = NodeColumns(make_table(NODES, PODS))
    assert nodes.pod_requests(selector, resource).tolist() == expected
    assert nodes.take(slice(1, 3)).pod_requests(selector, resource).tolist() == expected[1:]
    assert nodes.total_requests(selector, resource) == sum(expected)
    zones = nodes.domain_requests(selector, resource, "zone")
    by_zone = {zone: int(zones.counts[nodes.label_value_id("zone", zone)]) for zone in "12"}  # type: ignore[index]
    assert by_zone == {"1": expected[0] + expected[1], "2": expected[2]}
    only = NodeSet("not a", lambda columns: np.array([name != "a" for name in columns.names]))
    limited = nodes.domain_requests(selector, resource, "zone", only)
    assert limited.total == expected[1] + expected[2]


def test_they_follow_every_placement_without_looking_at_all_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    table = make_table(NODES, PODS)
    nodes = NodeColumns(table)
    assert nodes.total_requests(WEB, "cpu") == 4750
    for walk in ("each_pod", "each_pod_info"):
        monkeypatch.delattr(pod_index, walk)
    table.add_pod(table.row_of["b"], pod_info(pod("new", node_name="b", cpu=1, labels={"app": "web"})))
    assert nodes.pod_requests(WEB, "cpu").tolist() == [750, 1000, 4000]
    table.remove_pod(table.row_of["a"], PODS[0].uid)
    assert nodes.pod_requests(WEB, "cpu").tolist() == [250, 1000, 4000]
    assert nodes.total_requests(WEB, "cpu") == 5250
    other = select_pods({"app": "db"})
    assert nodes.total_requests(other, "cpu") == 1000  # of a new selector, by classes of pods


def test_selectors_and_resources_that_are_dropped_are_summed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_index, "_MAX_COUNTS", 2)
    monkeypatch.setattr(pod_index, "_MAX_RESOURCES", 2)
    nodes = NodeColumns(make_table(NODES, PODS))
    for _ in range(2):
        for resource, total in (("cpu", 4750), ("memory", 2**30), (GPU, 2)):
            assert nodes.total_requests(WEB, resource) == total
        for namespace in ("default", "other", "third"):
            assert nodes.total_requests(select_pods(namespaces=[namespace]), "cpu") in (5750, 2000, 0)


def test_a_copy_for_a_dry_run_sums_what_is_on_the_copied_nodes() -> None:
    table = make_table(NODES, PODS)
    assert NodeColumns(table).total_requests(WEB, "cpu") == 4750
    what_if = WhatIf(table, [table.row_of["a"]])
    assert what_if.nodes.total_requests(WEB, "cpu") == 750
    what_if.remove_pod("a", PODS[0].uid)
    assert what_if.nodes.pod_requests(WEB, "cpu").tolist() == [250]
    assert NodeColumns(table).total_requests(WEB, "cpu") == 4750


@pytest.mark.parametrize("seed", range(5))
def test_after_any_history_they_are_what_one_would_count(seed: int) -> None:
    random, table = Random(seed), make_table(NODES[:2])
    selectors = [WEB, select_pods(), select_pods({"app": "db"}), select_pods(namespaces=["other"])]
    on: dict[str, tuple[str, Pod]] = {}
    for step in range(300):
        action = random.random()
        if action < 0.5:
            name = random.choice(table.names)
            new = pod(
                f"p{step}",
                node_name=name,
                namespace=random.choice(["default", "other"]),
                cpu=f"{random.randrange(1000)}m",
                labels={"app": random.choice(["web", "db"])},
            )
            table.add_pod(table.row_of[name], pod_info(new))
            on[new.uid] = name, new
        elif action < 0.8 and on:
            uid = random.choice(list(on))
            name, _ = on.pop(uid)
            table.remove_pod(table.row_of[name], uid)
        elif action < 0.9 and on:
            uid = random.choice(list(on))
            name, old = on[uid]
            labels = {"app": random.choice(["web", "db"])}
            changed = msgspec.structs.replace(old, metadata=msgspec.structs.replace(old.metadata, labels=labels))
            table.update_pod(table.row_of[name], table.pods[table.row_of[name]][uid], changed)
            on[uid] = name, changed
        elif action < 0.95 and len(table.names) > 1:
            gone = random.choice(table.names)
            table.remove_node(gone)
            on = {uid: (name, one) for uid, (name, one) in on.items() if name != gone}
        else:
            table.add_node(node(f"n{step}", labels={"zone": random.choice("12")}))
        if step % 7 == 0:
            selector = random.choice(selectors)
            check(table, selector, on)
    for selector in selectors:
        check(table, selector, on)


def check(table: NodeTable, selector: PodSelector, on: dict[str, tuple[str, Pod]]) -> None:
    nodes = NodeColumns(table)
    expected = dict.fromkeys(table.names, 0)
    for name, one in on.values():
        if selector.matches_pod(one):
            expected[name] += pod_info(one).resources.requested.cpu_milli
    assert dict(zip(nodes.names, nodes.pod_requests(selector, "cpu").tolist(), strict=True)) == expected
    assert nodes.total_requests(selector, "cpu") == sum(expected.values())
    assert nodes.domain_requests(selector, "cpu", "zone").total == sum(expected.values())


def test_nothing_is_left_of_pods_that_are_gone() -> None:
    requests = class_requests.ClassRequests()
    requested = pod_info(PODS[1]).resources.requested
    key = ("default", (), False)
    requests.change(key, 3, requested, 1)
    requests.change(key, 3, requested, 1)
    requests.change(key, 3, requested, -1)
    requests.change(key, 3, requested, -1)
    assert requests._by_class == {}


def test_arguments_of_select_pods_that_cannot_be_meant() -> None:
    with pytest.raises(TypeError, match=r"must be a tuple or set of names: \('default',\)"):
        select_pods(namespaces="default")
    with pytest.raises(TypeError, match="labels must be a LabelSelector or a dict, not str"):
        select_pods("app=web")  # type: ignore[arg-type]  # that is the mistake
    assert select_pods({"a": "b"}, namespaces=("x", "y")) == select_pods({"a": "b"}, namespaces={"y", "x"})
