"""Recordings of clusters, replayed: the decisions are the same, or others for a reason."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trio
from plugin_base import PluginBase
from recorded_clusters import record

from trio_sched.config.feature_gates import DEFAULT_GATES
from trio_sched.daemon.settings import DaemonSettings
from trio_sched.plugin_api import CycleState, NodeColumns, NodeView, Pod, Status, Wait, hookimpl, unschedulable
from trio_sched.recording.folder import RecordingReader, segment_paths
from trio_sched.recording.records import Configured, Decided
from trio_sched.replaying.replay import ReplayPlan, replay, with_failure_policies
from trio_sched.replaying.replayed_cluster import BadRecording
from trio_sched.replaying.results import ReplayResult
from trio_sched.simulator import PretendExtender, leaving, scoring
from trio_sched.testing import VirtualCluster, namespace, node, pod, replayed_cluster
from trio_sched.testing.cluster_settings import cluster_settings

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
"""


def assert_same(result: ReplayResult, decisions: int) -> None:
    assert result.differences == []
    assert (result.decisions, result.different, dict(result.not_compared)) == (decisions, 0, {})


async def some_pods(cluster: VirtualCluster) -> None:
    for number in range(12):
        await cluster.create(pod(f"p{number}", cpu="500m", labels={"app": f"a{number % 3}"}))
    await cluster.create(pod("huge", cpu="500"))


def test_decisions_are_the_same_each_time_ties_included(tmp_path: Path) -> None:
    record(tmp_path, some_pods, nodes=9)
    first, second = replayed_cluster(tmp_path), replayed_cluster(tmp_path)
    assert_same(first, 13)
    assert first.digest == second.digest
    assert first.is_complete


def test_another_seed_gives_another_digest(tmp_path: Path) -> None:
    record(tmp_path / "a", some_pods, nodes=9)
    record(tmp_path / "b", some_pods, nodes=9, seed=8)
    assert replayed_cluster(tmp_path / "a").digest != replayed_cluster(tmp_path / "b").digest


async def preempting(cluster: VirtualCluster) -> None:
    for number in range(4):
        await cluster.create(pod(f"low-{number}", cpu="3", priority=1))
    await cluster.settle()
    await cluster.create(pod("high", cpu="3", priority=10))
    await cluster.settle()
    await cluster.delete(pod("high"))
    await cluster.create(pod("next", cpu="3"))


def test_preemptions_are_the_same(tmp_path: Path) -> None:
    record(tmp_path, preempting, nodes=4)
    result = replayed_cluster(tmp_path)
    assert result.differences == []
    assert result.decisions >= 7  # the preemptor is tried twice
    assert result.is_complete


class LastNode(PluginBase):
    """Likes the node with the greatest name, and asks for a moment before pods called slow are bound."""

    @hookimpl
    def score(self, pod: Pod, state: CycleState, nodes: NodeColumns) -> Any:
        names = list(nodes.names)
        return np.array([100 if name == max(names) else 0 for name in names], dtype=np.int64)

    @hookimpl
    def permit(self, pod: Pod, node_name: str, state: CycleState) -> Any:
        return Wait(5.0) if pod.name == "slow" else None


class FirstNode(LastNode):
    """The same with another opinion."""

    @hookimpl
    def score(self, pod: Pod, state: CycleState, nodes: NodeColumns) -> Any:
        names = list(nodes.names)
        return np.array([100 if name == min(names) else 0 for name in names], dtype=np.int64)


FirstNode.name = LastNode.name


async def with_slow_pod(cluster: VirtualCluster) -> None:
    await cluster.create(pod("fast"))
    await cluster.create(pod("slow"))
    await trio.sleep(60)
    await cluster.delete(pod("slow"))


def test_pods_that_wait_on_permit_and_are_rejected_are_the_same(tmp_path: Path) -> None:
    record(tmp_path, with_slow_pod, nodes=3, plugins=[LastNode])
    result = replayed_cluster(tmp_path, plugins=[LastNode], is_same_configuration=True)
    assert result.differences == []
    assert result.decisions > 2  # the slow one is tried again and again
    assert result.is_complete


def test_another_opinion_of_a_plugin_is_shown_with_the_scores(tmp_path: Path) -> None:
    record(tmp_path, some_pods, nodes=3, plugins=[LastNode])
    result = replayed_cluster(tmp_path, plugins=[FirstNode])
    first = result.differences[0]
    assert (first.pod, first.recorded, first.replayed) == ("default/p0", "node-3", "node-1")
    assert "LastNode +100" in first.why
    assert "node-1 scores" in first.why


async def for_two_zones(cluster: VirtualCluster) -> None:
    for number in range(4):
        await cluster.create(pod(f"plain-{number}", cpu="1", node_selector={"disk": "ssd"}))
    await cluster.create(pod("free", cpu="1"))


def test_another_weight_shows_exactly_the_pods_that_it_moves(tmp_path: Path) -> None:
    nodes = [node("a", cpu="8", labels={"disk": "ssd"}), node("b", cpu="16"), node("c", cpu="8")]
    record(tmp_path, for_two_zones, nodes=nodes, plugins=[LastNode], config=with_weight(1))
    same = replayed_cluster(tmp_path, config=with_weight(2), plugins=[LastNode])
    assert same.differences == []
    moved = replayed_cluster(tmp_path, config=with_weight(0), plugins=[LastNode])
    assert [one.pod for one in moved.differences] == ["default/free"]  # the others have one node


def with_weight(weight: int) -> str:
    chosen = f"{{name: LastNode, weight: {weight}}}"
    point = f"enabled: [{chosen}]" if weight else "disabled: [{name: LastNode}]"
    return f"{CONFIG}profiles: [{{plugins: {{multiPoint: {{{point}}}}}}}]\n"


def test_what_a_shorter_list_of_filters_lets_pass_is_shown_with_the_filter(tmp_path: Path) -> None:
    record(tmp_path, some_pods, nodes=3)
    config = f"{CONFIG}profiles: [{{plugins: {{multiPoint: {{disabled: [{{name: NodeResourcesFit}}]}}}}}}]\n"
    (huge,) = (one for one in replayed_cluster(tmp_path, config=config).differences if one.pod == "default/huge")
    assert huge.recorded == "rejected by NodeResourcesFit"
    assert huge.replayed.startswith("node-")


def test_a_recording_of_several_segments_is_the_same_also_without_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trio_sched.recording.folder.MIN_SEGMENT_BYTES", 1)
    monkeypatch.setattr("trio_sched.recording.folder.MAX_SEGMENT_BYTES", 1)
    monkeypatch.setattr("trio_sched.daemon.recording.recording_thread._COLLECT_SECONDS", 0.001)

    created = 0

    async def fill(cluster: VirtualCluster) -> None:
        nonlocal created
        while created < 500 and (created < 30 or len(segment_paths(tmp_path)) < 4):  # the thread has its own pace
            await cluster.create(pod(f"p{created}", cpu="1m"))
            await cluster.settle()
            created += 1

    record(tmp_path, fill, nodes=5)
    paths = segment_paths(tmp_path)
    assert len(paths) > 2
    whole = replayed_cluster(tmp_path)
    assert_same(whole, created)
    assert whole.beginnings == 1
    paths[0].unlink()
    rest = replayed_cluster(tmp_path)
    assert rest.differences == []
    assert rest.beginnings == 1
    paths[-2].unlink()
    assert replayed_cluster(tmp_path).differences == []


def test_a_recording_that_is_cut_off_anywhere_has_the_decisions_before_the_cut(tmp_path: Path) -> None:
    record(tmp_path, some_pods, nodes=3)
    (path,) = segment_paths(tmp_path)
    whole = path.read_bytes()
    counts = []
    for length in range(0, len(whole), len(whole) // 15):
        path.write_bytes(whole[:length])
        result = replayed_cluster(tmp_path)
        assert result.different == 0
        counts.append(result.decisions)
    assert counts == sorted(counts)
    assert counts[0] == 0


def test_decisions_with_extenders_are_made_again_without_asking_them(tmp_path: Path) -> None:
    answers = {"filter": leaving(lambda name: name != "node-2"), "prioritize": scoring({"node-3": 10})}
    extender = PretendExtender("http://extender.test", answers)
    verbs = "filterVerb: filter, prioritizeVerb: prioritize, weight: 5, nodeCacheCapable: true"
    config = f"{CONFIG}extenders: [{{urlPrefix: 'http://extender.test', {verbs}}}]\n"
    record(tmp_path, few_pods, nodes=3, extenders=[extender], config=config)
    asked = len(extender.asked)
    result = replayed_cluster(tmp_path)
    assert_same(result, 6)
    assert len(extender.asked) == asked > 0


async def few_pods(cluster: VirtualCluster) -> None:
    for number in range(6):
        await cluster.create(pod(f"p{number}", cpu="500m"))


class Quotas(PluginBase):
    """Rejects all pods unless there is a namespace that is called open."""

    watches = ("Namespace",)

    @hookimpl
    def pre_filter(self, pod: Pod, state: CycleState) -> Any:
        names = {one.metadata.name for one in self.handle.objects("Namespace")}
        return None if "open" in names else unschedulable("closed")


def test_a_configuration_that_was_reloaded_is_reloaded_in_the_replay(tmp_path: Path) -> None:
    config = f"{CONFIG}profiles: [{{plugins: {{multiPoint: {{enabled: [{{name: Quotas}}]}}}}}}]\n"
    without = f"{CONFIG}profiles: [{{plugins: {{multiPoint: {{disabled: [{{name: NodeResourcesFit}}]}}}}}}]\n"

    async def fill(cluster: VirtualCluster) -> None:
        await cluster.create(pod("huge", cpu="500"))
        await cluster.settle()
        await cluster.reload(without)
        await cluster.settle()
        cluster.assert_scheduled("huge")
        await cluster.create(namespace("open"))
        await cluster.reload(config, plugins=[Quotas])
        await cluster.create(pod("last", cpu="1"))
        await cluster.settle()
        cluster.assert_scheduled("last")

    record(tmp_path, fill, nodes=2)

    def settings_of(recorded: Configured) -> DaemonSettings:
        plugins = [Quotas] if "Quotas" in recorded.configuration else []
        return cluster_settings(recorded.configuration, DEFAULT_GATES, plugins, False)

    assert_same(replay(ReplayPlan(folder=tmp_path, settings_of=settings_of)), 3)


class Readiness(PluginBase):
    """Refuses nodes on which a pod is not ready."""

    @hookimpl
    def filter_node(self, pod: Pod, node: NodeView, state: CycleState) -> Status | None:
        conditions = [condition for one in node.pods for condition in one.status.conditions or ()]
        return (
            unschedulable("unready") if ("Ready", "False") in [(one.type, one.status) for one in conditions] else None
        )


def test_what_only_a_plugin_that_comes_later_reads_is_recorded_from_then_on(tmp_path: Path) -> None:
    config = f"{CONFIG}profiles: [{{plugins: {{multiPoint: {{enabled: [{{name: Readiness}}]}}}}}}]\n"

    async def fill(cluster: VirtualCluster) -> None:
        await cluster.create(pod("a", cpu="1"))
        await cluster.settle()
        a = cluster.pod("a")
        unready = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
        await cluster.patch(a, unready, subresource="status")
        await cluster.settle()
        await cluster.reload(config, plugins=[Readiness])
        await cluster.create(pod("b", cpu="1", node_selector={"kubernetes.io/hostname": a.node_name}))
        await cluster.settle()
        cluster.assert_pending("b")

    record(tmp_path, fill, nodes=2)

    def settings_of(recorded: Configured) -> DaemonSettings:
        plugins = [Readiness] if "Readiness" in recorded.configuration else []
        return cluster_settings(recorded.configuration, DEFAULT_GATES, plugins, False)

    result = replay(ReplayPlan(folder=tmp_path, settings_of=settings_of))
    assert_same(result, 3)
    assert result.beginnings == 2


def test_what_was_repaired_in_the_cache_is_another_beginning(tmp_path: Path) -> None:
    async def fill(cluster: VirtualCluster) -> None:
        await cluster.create(pod("a", cpu="1"))
        await cluster.settle()
        decisions = cluster.scheduler.assembly.decisions
        assert decisions is not None
        decisions.state_repaired()
        await cluster.create(pod("b", cpu="1"))

    record(tmp_path, fill, nodes=2)
    result = replayed_cluster(tmp_path)
    assert (result.decisions, result.differences, result.beginnings) == (2, [], 2)


class Fails(PluginBase):
    """Fails each time."""

    @hookimpl
    def filter(self, pod: Pod, state: CycleState, nodes: NodeColumns) -> Any:
        raise RuntimeError("out of order")


@pytest.mark.parametrize("policy", ["open", "closed", "skip:2"])
def test_the_failure_policy_of_a_plugin_is_in_force_in_the_replay(tmp_path: Path, policy: str) -> None:
    async def fill(cluster: VirtualCluster) -> None:
        for number in range(4):
            await cluster.create(pod(f"p{number}"))
        await trio.sleep(5)
        for number in range(4):
            await cluster.delete(pod(f"p{number}"), grace_seconds=0)

    record(tmp_path, fill, nodes=2, plugins=[Fails], failure_policies={"Fails": policy})
    result = replayed_cluster(tmp_path, plugins=[Fails], is_same_configuration=True)
    assert result.differences == []
    assert result.decisions >= 4
    records = (one for _follows, found in RecordingReader(tmp_path).segments() for one in found)
    placed = {bool(one.node) for one in records if isinstance(one, Decided)}
    assert placed == {"open": {True}, "closed": {False}, "skip:2": {False, True}}[policy]


def test_a_failure_policy_that_is_none_is_refused() -> None:
    settings = cluster_settings(CONFIG, DEFAULT_GATES, [Fails], False)
    recorded = Configured(0.0, CONFIG, {}, {}, {"Fails": "maybe", "Unknown": "open"})
    with pytest.raises(BadRecording, match="'maybe' is no failure policy"):
        with_failure_policies(settings, recorded)
