from typing import Any

import pytest
from gangs import member
from msgspec import convert

from trio_sched.plugin_api import CycleState, NodeColumns, Placement, Pod, PodGroup, PodGroupInfo, Status
from trio_sched.testing import FakeHandle, make_plugin, make_table, node

RACKS = [
    node("a", labels={"rack": "r1"}),
    node("b", labels={"rack": "r2"}),
    node("c", labels={"rack": "r1"}),
    node("d"),
]
GROUP = PodGroupInfo("default", "g", (member("p", "g"),))


def group(key: str = "rack") -> PodGroup:
    topology: list[Any] = [{"key": key}] if key else []
    return convert(
        {
            "metadata": {"name": "g", "namespace": "default"},
            "spec": {"schedulingConstraints": {"topology": topology}},
        },
        PodGroup,
    )


def generated(*pods: Pod, of: PodGroup | None = None) -> Any:
    nodes = NodeColumns(make_table(RACKS))
    known = [] if of is None else [of]
    handle = FakeHandle(known_objects={"PodGroup": known}, grouped=list(pods), nodes=nodes)
    plugin = make_plugin("TopologyPlacementGenerator", handle=handle)
    return plugin.placement_generate(GROUP, nodes, CycleState())


def test_there_is_a_placement_for_each_domain() -> None:
    found = generated(member("p", "g"), of=group())
    assert sorted(found, key=lambda one: one.name) == [
        Placement("r1", frozenset({"a", "c"})),
        Placement("r2", frozenset({"b"})),
    ]


def test_without_a_topology_key_all_nodes_will_do() -> None:
    assert generated(member("p", "g"), of=group(key="")) is None


def test_a_key_that_no_node_has_leaves_no_placement() -> None:
    assert generated(member("p", "g"), of=group(key="nowhere")) == []


def test_the_group_stays_where_pods_of_it_are() -> None:
    assert generated(member("p", "g"), member("q", "g", node_name="b"), of=group()) == [
        Placement("r2", frozenset({"b"}))
    ]


@pytest.mark.parametrize(
    ("node_names", "text"),
    [
        (("a", "b"), "more than 1 domain found for pod group: r1, r2"),
        (("d",), "no topology domain found for pods on node d"),
        (("gone",), 'nodeinfo not found for node name "gone"'),
    ],
)
def test_pods_without_one_domain_are_an_error(node_names: tuple[str, ...], text: str) -> None:
    pods = [member(f"q{number}", "g", node_name=name) for number, name in enumerate(node_names)]
    status = generated(*pods, of=group())
    assert isinstance(status, Status)
    assert status.message == f"cannot determine domain for already scheduled pods: {text}"


def test_a_group_that_is_gone_and_one_without_pods_are_errors() -> None:
    assert generated(member("p", "g")).message == 'podgroup.scheduling.k8s.io "g" not found'
    assert generated(of=group()).message == "pod group state not found for pod group default/g"
