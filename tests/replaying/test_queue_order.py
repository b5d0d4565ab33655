"""The order in which the queue returns pods is the same in a replay, timers and activations included."""

from pathlib import Path
from typing import Any

import pytest
import trio
from plugin_base import PluginBase
from recorded_clusters import record

from trio_sched.plugin_api import CycleState, Pod, hookimpl, unschedulable
from trio_sched.recording.folder import segment_paths
from trio_sched.recording.records import (
    BACKOFF,
    UNSCHEDULABLE,
    Activated,
    Decided,
    Flushed,
    Record,
    Requeued,
    encode_records,
)
from trio_sched.recording.segments import SegmentReader, SegmentWriter
from trio_sched.replaying.report import as_lines
from trio_sched.testing import VirtualCluster, node, pod, replayed_cluster


def records_of(path: Path) -> list[Record]:
    return [record for block in SegmentReader(path).blocks() for record in block]


async def more_than_fit(cluster: VirtualCluster) -> None:
    for number in range(12):
        await cluster.create(pod(f"p{number}", cpu="1", priority=number % 3))
    for number in range(6):
        await trio.sleep(3)
        await cluster.delete(pod(f"p{number}"), grace_seconds=0)
        await cluster.create(node(f"late-{number}", cpu="1"))
    await trio.sleep(400)  # what waits for an event is tried again after five minutes


def test_pods_that_back_off_and_wait_are_returned_in_the_same_order(tmp_path: Path) -> None:
    record(tmp_path, more_than_fit, nodes=[node("n", cpu="4"), node("full", cpu="100m")])
    result = replayed_cluster(tmp_path)
    assert result.out_of_order == []
    assert result.in_order == result.decisions > 12
    assert result.is_complete


def test_timers_of_the_queue_end_when_they_did(tmp_path: Path) -> None:
    async def fill(cluster: VirtualCluster) -> None:
        await cluster.create(pod("huge", cpu="500"))
        await trio.sleep(1)
        await cluster.create(node("small", cpu="1"))
        await trio.sleep(700)
        await cluster.delete(pod("huge"), grace_seconds=0)

    record(tmp_path, fill, nodes=1)
    (path,) = segment_paths(tmp_path)
    assert {one.timer for one in records_of(path) if isinstance(one, Flushed)} <= {BACKOFF, UNSCHEDULABLE}
    assert [one for one in records_of(path) if isinstance(one, Flushed) and one.timer == UNSCHEDULABLE]
    result = replayed_cluster(tmp_path)
    assert (result.in_order, result.out_of_order) == (result.decisions, [])


def test_the_order_is_not_compared_where_the_replay_begins_in_the_middle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trio_sched.recording.folder.MIN_SEGMENT_BYTES", 1)
    monkeypatch.setattr("trio_sched.recording.folder.MAX_SEGMENT_BYTES", 1)

    async def fill(cluster: VirtualCluster) -> None:
        await more_than_fit(cluster)
        decisions = cluster.scheduler.assembly.decisions
        assert decisions is not None
        decisions.state_repaired()  # the next batch begins a segment, which does not continue the one before
        await more_than_fit_again(cluster)

    record(tmp_path, fill, nodes=[node("n", cpu="2")])
    result = replayed_cluster(tmp_path)
    assert result.beginnings == 2
    assert (result.differences, result.out_of_order) == ([], [])
    assert 0 < result.in_order < result.decisions


async def more_than_fit_again(cluster: VirtualCluster) -> None:
    for number in range(6):
        await cluster.create(pod(f"q{number}", cpu="1", priority=number % 3))
        await trio.sleep(3)
        await cluster.create(node(f"later-{number}", cpu="1"))
    await trio.sleep(400)


class Turns(PluginBase):
    """Rejects a pod called second until there is a node for one called first."""

    @hookimpl
    def pre_filter(self, pod: Pod, state: CycleState) -> Any:
        return unschedulable("not its turn") if pod.name == "second" and not self.has_first else None

    @hookimpl
    def reserve(self, pod: Pod, node_name: str, state: CycleState) -> None:
        if pod.name == "first":
            Turns.has_first = True
            self.handle.activate([one for one in self.handle.objects("Pod") if one.name == "second"])

    has_first = False


def test_pods_that_a_plugin_activates_are_returned_in_the_same_order(tmp_path: Path) -> None:
    async def fill(cluster: VirtualCluster) -> None:
        await cluster.create(pod("second"))
        await trio.sleep(30)
        await cluster.create(pod("first"))

    record(tmp_path, fill, nodes=2, plugins=[Turns])
    (path,) = segment_paths(tmp_path)
    assert [len(one.uids) for one in records_of(path) if isinstance(one, Activated)] == [1]
    Turns.has_first = False
    result = replayed_cluster(tmp_path, plugins=[Turns], is_same_configuration=True)
    assert (result.differences, result.out_of_order) == ([], [])
    assert result.in_order == result.decisions > 2


def test_another_order_is_shown(tmp_path: Path) -> None:
    async def fill(cluster: VirtualCluster) -> None:
        for number in range(3):
            await cluster.create(pod(f"p{number}", priority=3 - number))

    record(tmp_path, fill, nodes=3)
    (path,) = segment_paths(tmp_path)
    records = records_of(path)
    decided = [number for number, one in enumerate(records) if isinstance(one, Decided)]
    first, second = decided[:2]
    records[first], records[second] = records[second], records[first]
    path.unlink()
    writer = SegmentWriter.create(path)
    writer.write([encode_records(records)])
    writer.close()
    result = replayed_cluster(tmp_path)
    assert result.out_of_order == ["the queue returned pod default/p1, and would return pod default/p0"]
    lines = list(as_lines(result, every_pod=False))
    assert "Other order: the queue returned pod default/p1, and would return pod default/p0" in lines


class Thinks(PluginBase):
    """Rejects a pod called never until some event, and takes its time after a pod has fitted nowhere."""

    @hookimpl
    def pre_filter(self, pod: Pod, state: CycleState) -> Any:
        return unschedulable("never") if pod.name == "never" else None

    @hookimpl
    async def post_filter(self, pod: Pod, diagnosis: Any, state: CycleState) -> None:
        await trio.sleep(3)


THINKS_FIRST = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    preFilter: {enabled: [{name: Thinks}]}
    postFilter: {disabled: [{name: "*"}], enabled: [{name: Thinks}, {name: DefaultPreemption}]}
"""


def test_a_nomination_is_compared_although_a_timer_has_ended_meanwhile(tmp_path: Path) -> None:
    async def fill(cluster: VirtualCluster) -> None:
        await cluster.create(pod("low", cpu="4", priority=1))
        await cluster.create(pod("never"))
        await trio.sleep(3.2)
        await cluster.create(node("late", cpu="100m"))  # the pod called never backs off
        await cluster.create(pod("high", cpu="4", priority=10))
        await trio.sleep(30)
        await cluster.delete(pod("never"), grace_seconds=0)

    gates = {"SchedulerPopFromBackoffQ": False}
    record(tmp_path, fill, nodes=[node("n", cpu="4")], plugins=[Thinks], gates=gates, config=THINKS_FIRST)
    records = records_of(segment_paths(tmp_path)[0])
    kinds = [one for one in records if isinstance(one, Decided | Flushed | Requeued)]
    number = next(number for number, one in enumerate(kinds) if isinstance(one, Requeued) and one.nominated)
    assert isinstance(kinds[number - 1], Flushed)
    result = replayed_cluster(tmp_path, plugins=[Thinks], is_same_configuration=True)
    assert (result.differences, dict(result.not_compared)) == ([], {})
