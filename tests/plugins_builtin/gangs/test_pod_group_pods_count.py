import numpy as np
from gangs import member

from trio_sched.plugin_api import CycleState, NodeColumns, Placement, PlacementAssignments, PodGroupInfo
from trio_sched.testing import FakeHandle, make_plugin, make_table, node

GROUP = PodGroupInfo("default", "g", (member("p", "g"),))
NODES = NodeColumns(make_table([node("n")]))
STATE = CycleState()


def test_the_score_is_how_many_pods_have_a_node() -> None:
    handle = FakeHandle(grouped=[member("a", "g", node_name="n"), member("p", "g")])
    plugin = make_plugin("PodGroupPodsCount", handle=handle)
    placement = PlacementAssignments(Placement("r", frozenset({"n"})), NODES, ((GROUP.pods[0], "n"),))
    assert plugin.placement_score(GROUP, placement, STATE) == 2


def test_the_placement_with_the_most_pods_gets_100() -> None:
    plugin = make_plugin("PodGroupPodsCount")
    assert plugin.normalize_placement_score(GROUP, np.array([3, 7, 1]), STATE).tolist() == [42, 100, 14]


def test_no_pods_at_all_are_an_error() -> None:
    plugin = make_plugin("PodGroupPodsCount")
    status = plugin.normalize_placement_score(GROUP, np.array([0, 0]), STATE)
    assert status.message == "no pods from pod group are assigned to any of the candidate placements"
    lost = plugin.placement_score(GROUP, PlacementAssignments(Placement(), NODES, ()), STATE)
    assert lost.message == "pod group state not found for pod group default/g"
