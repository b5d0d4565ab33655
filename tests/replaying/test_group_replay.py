"""Pod groups, replayed: where their pods fit and what their condition says is the same, or another for a reason."""

from pathlib import Path
from typing import Any

import pytest
import trio
from gangs import GANG_GATES, condition_of, member
from plugin_base import PluginBase
from recorded_clusters import record
from workloads_of_1_35 import member_of_workload, workload

from trio_sched.plugin_api import CycleState, Pod, hookimpl, unschedulable
from trio_sched.recording.folder import RecordingReader
from trio_sched.recording.recording_settings import RecordingSettings
from trio_sched.recording.records import Decided, GroupTried, PlacesReleased
from trio_sched.replaying.group_attempts import NOT_ASKED
from trio_sched.replaying.results import ReplayResult
from trio_sched.simulator import PretendExtender, leaving
from trio_sched.testing import VirtualCluster, composite_pod_group, node, pod, pod_group, replayed_cluster

PROFILE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated, resources: \
[{name: cpu, weight: 1}]}}}]}]
"""

PROFILE_WITHOUT_PREEMPTION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {disabled: [{name: DefaultPreemption}]}}}]
"""


async def gang(cluster: VirtualCluster, name: str, size: int, *, topology_key: str = "", **fields: Any) -> None:
    await cluster.create(pod_group(name, min_count=size, topology_key=topology_key, priority=fields.get("priority")))
    for number in range(size):
        await cluster.create(member(f"{name}-{number}", name, **fields))
    await cluster.settle()


def tried(folder: Path) -> list[GroupTried]:
    records = (record for _follows, found in RecordingReader(folder).segments() for record in found)
    return [one for one in records if isinstance(one, GroupTried)]


def assert_same(result: ReplayResult) -> None:
    assert result.differences == []
    assert dict(result.not_compared) == {}
    assert result.is_complete


async def gangs_of_all_kinds(cluster: VirtualCluster) -> None:
    await gang(cluster, "fits", 4, cpu="1")
    await gang(cluster, "late", 4, cpu="1")
    assert condition_of(cluster, "late")["status"] == "False"
    await cluster.create(pod("alone", cpu="1"))
    await cluster.settle()
    for number in range(4):
        await cluster.delete(pod(f"fits-{number}"), grace_seconds=0)
    await cluster.settle()
    assert condition_of(cluster, "late")["status"] == "True"


def test_gangs_that_fit_or_have_to_wait_get_the_same_places_and_conditions(tmp_path: Path) -> None:
    record(tmp_path, gangs_of_all_kinds, nodes=[node(f"n{number}", cpu="2") for number in range(3)], gates=GANG_GATES)
    result = replayed_cluster(tmp_path)
    assert_same(result)
    reasons = [one.reason for one in tried(tmp_path)]
    assert reasons[0] == "Scheduled"
    assert "Unschedulable" in reasons
    assert reasons[-1] == "Scheduled"
    # Each attempt counts once for each pod and once for the group.
    assert result.decisions == sum(len(one.places) + 1 for one in tried(tmp_path)) + 1
    assert result.digest == replayed_cluster(tmp_path).digest


def test_the_placement_of_a_gang_in_one_zone_is_the_same(tmp_path: Path) -> None:
    async def fill(cluster: VirtualCluster) -> None:
        for number in range(3):
            await gang(cluster, f"g{number}", 2, topology_key="zone", cpu="1")

    nodes = [node(f"n{number}", cpu="2", labels={"zone": f"z{number % 4}"}) for number in range(8)]
    record(tmp_path, fill, nodes=nodes, gates=GANG_GATES | {"TopologyAwareWorkloadScheduling": True})
    assert_same(replayed_cluster(tmp_path))
    assert any(one.drawn for one in tried(tmp_path))  # which of the equally good zones was drawn


@pytest.mark.parametrize(
    ("version", "gates", "for_group"),
    [("1.36", {}, False), ("1.36", {"WorkloadAwarePreemption": True}, True), ("1.37", {}, True)],
    ids=["pod by pod", "for the group", "as one entity"],
)
def test_a_gang_that_preempts_gets_the_same_places_and_victims(
    tmp_path: Path, version: str, gates: dict[str, bool], for_group: bool
) -> None:
    async def fill(cluster: VirtualCluster) -> None:
        for number in range(2):
            await cluster.create(pod(f"low-{number}", cpu="2", node_name=f"n{number}"))
        await gang(cluster, "gang", 2, cpu="2", priority=10)
        assert condition_of(cluster, "gang")["status"] == "True"

    nodes = [node(f"n{number}", cpu="2") for number in range(2)]
    record(tmp_path, fill, nodes=nodes, gates=GANG_GATES | gates, emulated_version=version)
    assert_same(replayed_cluster(tmp_path))
    assert len(tried(tmp_path)) > 1
    victims = {tuple(sorted(one.victims or ())) for one in tried(tmp_path) if one.victims}
    assert len(victims) == (1 if for_group else 0)
    result = replayed_cluster(tmp_path, config=PROFILE_WITHOUT_PREEMPTION)
    evicted = [(one.recorded, one.replayed) for one in result.differences if one.recorded.startswith("evicts")]
    assert evicted == ([("evicts default/low-0, default/low-1", "evicts nothing")] if for_group else [])


def test_another_configuration_shows_the_pods_of_a_gang_that_it_moves(tmp_path: Path) -> None:
    async def fill(cluster: VirtualCluster) -> None:
        await gang(cluster, "gang", 2, cpu="1")

    record(tmp_path, fill, nodes=[node("small", cpu="2"), node("large", cpu="16")], gates=GANG_GATES)
    result = replayed_cluster(tmp_path, config=PROFILE)
    assert {(one.pod, one.recorded, one.replayed) for one in result.differences} == {
        ("default/gang-0", "large", "small"),
        ("default/gang-1", "large", "small"),
    }


class Closed(PluginBase):
    """Rejects the pods of the gang."""

    @hookimpl
    def pre_filter(self, pod: Pod, state: CycleState) -> Any:
        return unschedulable("closed") if pod.group_key else None


def test_a_gang_that_is_not_schedulable_any_more_is_shown_with_why_and_its_condition(tmp_path: Path) -> None:
    async def fill(cluster: VirtualCluster) -> None:
        await gang(cluster, "gang", 2, cpu="1")

    record(tmp_path, fill, nodes=2, gates=GANG_GATES)
    differences = replayed_cluster(tmp_path, plugins=[Closed]).differences
    assert [one.replayed for one in differences] == ["rejected by Closed", "rejected by Closed", "Unschedulable"]
    assert "closed" in differences[0].why
    assert (differences[2].pod, differences[2].recorded) == ("pod group default/gang", "Scheduled")


class Asks(PluginBase):
    """Takes its time after a pod has fitted nowhere."""

    @hookimpl
    async def post_filter(self, pod: Pod, diagnosis: Any, state: CycleState) -> None:
        await trio.sleep(1)


def test_attempts_in_the_middle_of_which_something_happens_are_counted(tmp_path: Path) -> None:
    async def fill(cluster: VirtualCluster) -> None:
        await cluster.create(pod_group("gang", min_count=2))
        for number in range(2):
            await cluster.create(member(f"g{number}", "gang", cpu="500"))
        await trio.sleep(0.5)
        await cluster.create(node("late", cpu="1"))

    record(tmp_path, fill, nodes=2, gates=GANG_GATES, plugins=[Asks])
    result = replayed_cluster(tmp_path, plugins=[Asks], is_same_configuration=True)
    (reason,) = result.not_compared
    assert reason == "attempts of pod groups, while something else happened or an extender failed"
    assert result.differences == []


def asked_gangs(folder: RecordingSettings | Path) -> PretendExtender:
    """Record a gang and a pod that fit, and a gang that does not, with an extender."""

    async def fill(cluster: VirtualCluster) -> None:
        await gang(cluster, "gang", 2, cpu="1")
        await cluster.create(pod("alone", cpu="1"))
        await gang(cluster, "large", 3, cpu="12")

    extender = PretendExtender(answers={"filter": leaving(lambda name: name != "node-1", "not there")})
    config = "extenders: [{urlPrefix: 'http://extender.test', filterVerb: filter, nodeCacheCapable: true}]\n"
    config = f"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n{config}"
    nodes = [node(f"node-{number}", cpu="16") for number in range(3)]
    record(folder, fill, nodes=nodes, gates=GANG_GATES, extenders=[extender], config=config)
    return extender


@pytest.mark.parametrize("hashes", [False, True])
def test_attempts_are_made_again_with_what_extenders_have_said(hashes: bool, tmp_path: Path) -> None:
    extender = asked_gangs(RecordingSettings(folder=tmp_path, hash_names=hashes))
    asked = len(extender.asked)
    assert_same(replayed_cluster(tmp_path))
    assert len(extender.asked) == asked > 0
    reasons = [one.reason for one in tried(tmp_path)]
    assert reasons[0] == "Scheduled"
    assert set(reasons[1:]) == {"Unschedulable"}
    rejecting = [plugin for one in tried(tmp_path) for _node, plugins in one.places for plugin in plugins]
    assert "NodeResourcesFit" in rejecting


def test_attempts_with_pods_that_extenders_were_not_asked_about_are_counted(tmp_path: Path) -> None:
    asked_gangs(tmp_path)
    result = replayed_cluster(tmp_path, plugins=[Closed])
    assert not result.not_compared
    shown = {one.pod: one.replayed for one in result.differences}
    assert shown["default/gang-0"] == "rejected by Closed"
    both = "[{urlPrefix: 'http://extender.test', filterVerb: filter, nodeCacheCapable: true}]"
    config = f"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nextenders: {both}\n"
    other = tmp_path / "other"
    record(other, gangs_of_all_kinds, nodes=[node(f"n{number}", cpu="2") for number in range(3)], gates=GANG_GATES)
    assert set(replayed_cluster(other, config=config).not_compared) == {NOT_ASKED}


def test_places_that_a_gang_has_held_for_too_long_are_released_at_the_same_moment(tmp_path: Path) -> None:
    async def fill(cluster: VirtualCluster) -> None:
        await cluster.create(pod("large", cpu="2"))
        await trio.sleep(1)
        await cluster.create(pod_group("gang", min_count=3))
        for number in range(3):
            await cluster.create(member(f"g{number}", "gang", cpu="2"))
        await trio.sleep(100)
        for number in range(4):  # they would fit where the gang holds places
            await cluster.create(pod(f"small-{number}", cpu="500m"))
            await trio.sleep(50)
        for number in range(3):
            await cluster.delete(pod(f"g{number}"), grace_seconds=0)

    record(tmp_path, fill, nodes=[node(f"n{number}", cpu="2") for number in range(3)], gates=GANG_GATES)
    records = [one for _follows, found in RecordingReader(tmp_path).segments() for one in found]
    released = next(one.now for one in records if isinstance(one, PlacesReleased))
    waited = {one.uid for one in records if isinstance(one, Decided) and not one.node and one.now < released}
    assert waited & {one.uid for one in records if isinstance(one, Decided) and one.node and one.now >= released}
    assert_same(replayed_cluster(tmp_path))


async def trees(cluster: VirtualCluster) -> None:
    for tree in ("fits", "late"):
        await cluster.create(composite_pod_group(tree, min_group_count=2))
        for leaf in (f"{tree}-a", f"{tree}-b"):
            await cluster.create(pod_group(leaf, min_count=2, parent=tree))
            for number in range(2):
                await cluster.create(member(f"{leaf}-{number}", leaf, cpu="1"))
        await cluster.settle()
    for leaf in ("fits-a", "fits-b"):
        for number in range(2):
            await cluster.delete(pod(f"{leaf}-{number}"), grace_seconds=0)
    await trio.sleep(30)
    assert condition_of(cluster, "late-b")["status"] == "True"


@pytest.mark.parametrize("hashes", [False, True])
def test_trees_of_groups_get_the_same_places_and_conditions(hashes: bool, tmp_path: Path) -> None:
    gates = {"GenericWorkload": True, "CompositePodGroup": True, "TopologyAwareWorkloadScheduling": True}
    options = {"kubernetes_version": "1.37", "emulated_version": "1.37", "gates": gates}
    nodes = [node(f"n{number}", cpu="2") for number in range(3)]
    record(RecordingSettings(folder=tmp_path, hash_names=hashes), trees, nodes=nodes, **options)
    result = replayed_cluster(tmp_path)
    assert_same(result)
    reasons = [one.reason for one in tried(tmp_path)]
    assert (reasons[0], reasons[-1], "Unschedulable" in reasons) == ("Scheduled", "Scheduled", True)
    assert {len(one.places) for one in tried(tmp_path)} == {4}


async def gangs_of_workloads(cluster: VirtualCluster) -> None:
    await cluster.create(workload("training", workers=2))
    for name, key in (("whole-0", "0"), ("part", ""), ("whole-1", "0")):
        await cluster.create(member_of_workload(name, "training", "workers", key))
    await cluster.settle()
    await cluster.create(member_of_workload("large", "training", "workers", cpu="2"))
    await cluster.settle()


def test_gangs_of_the_workloads_of_1_35_get_the_same_places(tmp_path: Path) -> None:
    nodes = [node(f"n{number}", cpu="2") for number in range(2)]
    record(tmp_path, gangs_of_workloads, nodes=nodes, gates=GANG_GATES, kubernetes_version="1.35")
    assert {one.key for one in tried(tmp_path)} == {"default/training:workers", "default/training:workers:0"}
    assert_same(replayed_cluster(tmp_path))
