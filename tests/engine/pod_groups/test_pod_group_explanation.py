from gangs import member

from trio_sched.engine.evaluation.decision import SchedulingFailure
from trio_sched.engine.evaluation.scheduling_cycle import SchedulingCycle
from trio_sched.engine.pod_groups.pod_group_explanation import explain, shortage
from trio_sched.engine.pod_groups.pod_group_results import (
    GroupResult,
    PlacementResult,
    group_unschedulable,
    other_pod_failed,
)
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_requests import DEFAULT_OPTIONS
from trio_sched.plugin_api import CycleState, NodeColumns, Placement, failure
from trio_sched.testing import make_profile, make_table, node, pod

PLUGINS = ["NodeResourcesFit", "NodeAffinity"]


def lacks(waiting: Pod, *nodes_: object, running: tuple[Pod, ...] = ()) -> str:
    table = make_table(nodes_, running)
    cycle = SchedulingCycle(make_profile(PLUGINS), table, waiting, {}, CycleState())
    failed = cycle.find_feasible()
    assert isinstance(failed, SchedulingFailure)
    return shortage(waiting, failed, NodeColumns(table), DEFAULT_OPTIONS)


def test_the_smallest_amount_that_is_missing_is_named() -> None:
    gpu = "nvidia.com/gpu"
    nodes = [node("a", cpu="8", allocatable={gpu: 4}), node("b", cpu="8", allocatable={gpu: 8})]
    running = (pod("r", requests={gpu: 6}, node_name="b"),)
    assert lacks(member("p", "g", requests={gpu: 6}), *nodes, running=running) == f"pod default/p lacks 2 {gpu}"


def test_amounts_are_given_in_units_that_people_read() -> None:
    one = node("a", cpu="2", memory="4Gi")
    wants = member("p", "g", cpu="2500m", memory="6656Mi")
    assert lacks(wants, one) == "pod default/p lacks 500m cpu and 2.5Gi memory"


def test_if_no_amount_is_missing_the_reasons_are_given() -> None:
    text = lacks(member("p", "g", node_selector={"zone": "b"}), node("a"))
    assert text == "pod default/p: 0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."


def test_the_sentence_says_how_many_fit_and_where() -> None:
    result = GroupResult(group_unschedulable(), shortage="pod default/p lacks 1 cpu", fitting=7)
    assert explain(result, 8) == "7 of 8 pods fit; pod default/p lacks 1 cpu"
    one = PlacementResult(name="r1", fitting=7, shortage="pod default/p lacks 1 cpu")
    result.placement, result.tried = Placement("r1", frozenset({"n"})), (one,)
    assert explain(result, 8, topology_key="rack") == "7 of 8 pods fit; pod default/p lacks 1 cpu in any rack"
    result.tried = (one, one, one)
    assert explain(result, 8, topology_key="rack").endswith(' in any rack; most fit in "r1"')


def test_errors_and_groups_without_a_shortage_are_given_as_they_are() -> None:
    assert explain(GroupResult(other_pod_failed(failure("broken"))), 8).endswith("pod group: broken")
    assert explain(GroupResult(group_unschedulable("too few")), 8) == "pod group is unschedulable, too few"
