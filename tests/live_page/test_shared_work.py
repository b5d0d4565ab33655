"""What the live page shows of a replica that shares the work."""

import io
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from attrs import define, field
from live_reader import LiveReader
from rich.console import Console
from sharded_replicas import replicas_of, sharding_of
from trio.testing import MockClock

from trio_sched.cli.live.top_screen import screen
from trio_sched.daemon.serving.pages.live.live_facts import LiveFacts
from trio_sched.engine.sharding.owned_shards import UnderWay
from trio_sched.engine.sharding.ownership import shard_of
from trio_sched.live_page import shared_work
from trio_sched.live_page.live_state import LiveState
from trio_sched.live_page.reader import LiveReader as ReaderOfTop
from trio_sched.objects.pod import Pod
from trio_sched.simulator import KubeletPace
from trio_sched.testing import node, pod
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster
from trio_sched.testing.scheduler_process import SchedulerProcess

HOST = "kubernetes.io/hostname"
NAMES = [f"n{number}" for number in range(12)]
SLOW_STOP = KubeletPace(stop_seconds=20.0)


@define(eq=False)
class Shown:
    """What a page of one replica shows."""

    state: LiveState
    reader: LiveReader = field(factory=LiveReader)

    @staticmethod
    def of(process: SchedulerProcess) -> "Shown":
        assert process.assembly is not None
        shown = Shown(LiveState(LiveFacts(process.assembly).source()))
        shown.refresh()
        shown.reader.take_snapshot(json.loads(json.dumps(shown.state.snapshot())))
        return shown

    def refresh(self) -> dict[str, Any]:
        """The delta as it comes out of JSON."""
        delta: dict[str, Any] = {}
        for _ in self.state.refresh(delta):
            pass
        delta = json.loads(json.dumps(delta))
        if delta and self.reader.sequence:
            self.reader.take_delta(delta)
        return delta

    @property
    def work(self) -> dict[str, Any]:
        found: dict[str, Any] = self.reader.summary["shard_work"]
        return found

    def top(self) -> str:
        """What ``trio-sched top`` prints."""
        reader, printed = ReaderOfTop(), io.StringIO()
        data = json.dumps(self.state.snapshot())
        reader.take(f"event: snapshot\nid: 1\ndata: {data}\n\n".encode())
        Console(file=printed, width=120, highlight=False, emoji=False, markup=False).print(screen(reader, 30))
        text = printed.getvalue()
        assert len(text.splitlines()) <= 30
        return text


async def decided_by(cluster: VirtualCluster, shard: int, **details: Any) -> Pod:
    """Create a pod that *shard* of two decides on; the UIDs of pods, and so their shards, are random."""
    for number in range(50):
        await cluster.create(pod(f"p-{number}", gates=["wait"], **details))
        found = cluster.pod(f"p-{number}")
        if shard_of(found.uid, 2) == shard:
            await cluster.patch(found, {"spec": {"schedulingGates": None}})
            return found
        await cluster.delete(found)
    raise AssertionError("no UID of the shard")


async def test_a_replica_shows_its_shards_with_their_nodes_and_pods(autojump_clock: MockClock) -> None:
    async with replicas_of([node(name, cpu=4) for name in NAMES], shards=4, replicas=2) as replicas:
        for number in range(30):
            await replicas.cluster.create(pod(f"p-{number}", cpu="100m"))
        await replicas.cluster.settle()
        of_shards = {name: shard_of(name, 4) for name in NAMES}
        nodes_of_all = 0
        for process, ready in zip(replicas.running, replicas.ready(), strict=True):
            shown = Shown.of(process)
            held = {"ready": ready, "taking_over": [], "giving_back": []}
            nodes = shown.reader.nodes()
            own = [name for name in NAMES if of_shards[name] in ready]
            pods = sum(nodes[name]["pods"] for name in own)
            assert shown.reader.summary["shards"] == {"count": 4, "replicas": 2, **held}
            assert shown.work == {"nodes": len(own), "pods": pods, "pending": [], "nominated": 0, "asked": 0}
            assert {name: row["shard"] for name, row in nodes.items()} == of_shards
            nodes_of_all += len(own)
            assert (
                f"shards {ready[0]}, {ready[1]} of 4, one of 2 replicas: {len(own)} nodes, {pods} pods" in shown.top()
            )
        assert nodes_of_all == len(NAMES)


async def test_shards_are_shown_as_they_are_taken_over(autojump_clock: MockClock) -> None:
    async with replicas_of([node(name, cpu=4) for name in NAMES], shards=2, replicas=2) as replicas:
        first, second = replicas.running
        shown = Shown.of(first)
        (ready,) = shown.reader.summary["shards"]["ready"]
        await replicas.cluster.create(pod("huge", cpu=100))
        await trio.sleep(1)
        during: list[dict[str, Any]] = []

        def look(_change: object) -> None:  # "huge" is given another version
            shown.refresh()
            during.append(shown.reader.summary["shards"])

        replicas.cluster.api.store.collection("pods").listen(look)
        await second.kill()
        await trio.sleep(40)
        shown.refresh()
        assert (during[0]["ready"], during[0]["taking_over"]) == ([ready], [1 - ready])
        held = {"ready": [0, 1], "taking_over": [], "giving_back": []}
        assert shown.reader.summary["shards"] == {"count": 2, "replicas": 1, **held}
        assert shown.work["nodes"] == len(NAMES)
        fresh = Shown.of(first).reader
        assert (fresh.summary, fresh.nodes()) == (shown.reader.summary, shown.reader.nodes())


async def test_a_shard_is_shown_as_given_back_while_something_is_under_way_for_it(autojump_clock: MockClock) -> None:
    async with replicas_of([node(name, cpu=4) for name in NAMES], shards=2, replicas=1) as replicas:
        first = replicas.running[0]
        shown, owned = Shown.of(first), sharding_of(first).owned
        owned.under_way["uid"] = UnderWay(frozenset({0, 1}), owned.seen, "")
        await replicas.start(1)
        shown.refresh()
        shards = shown.reader.summary["shards"]
        assert (shards["replicas"], len(shards["ready"]), len(shards["giving_back"])) == (2, 1, 1)
        assert shown.work["nodes"] == len(NAMES)
        assert f"({shards['giving_back'][0]} being given back) of 2" in shown.top()
        owned.ended("uid")
        await trio.sleep(10)
        shown.refresh()
        assert shown.reader.summary["shards"] == {**shards, "giving_back": []}


@asynccontextmanager
async def place_is_kept() -> AsyncGenerator[tuple[Shown, Shown, Pod], None]:
    """The pages of the replicas that decide on a pod, and that evict another one for it."""
    names = [next(name for name in NAMES if shard_of(name, 2) == shard) for shard in (0, 1)]
    nodes = [node(name, cpu=4) for name in names]
    async with replicas_of(nodes, shards=2, replicas=2, kubelets=SLOW_STOP) as replicas:
        for name in names:
            await replicas.cluster.create(pod(f"low-{name}", cpu=4, node_selector={HOST: name}))
        await replicas.cluster.settle()
        deciding, owning = Shown.of(replicas.owner(0)), Shown.of(replicas.owner(1))
        high = await decided_by(replicas.cluster, 0, cpu=2, priority=10, node_selector={HOST: names[1]})
        await trio.sleep(3)
        yield deciding, owning, high
        await replicas.cluster.settle()
        for shown in (deciding, owning):
            shown.refresh()
            assert {**shown.work, "pods": 0} == {"nodes": 1, "pods": 0, "pending": [], "nominated": 0, "asked": 0}


async def test_a_pod_that_waits_for_another_replica_is_counted_by_both(autojump_clock: MockClock) -> None:
    async with place_is_kept() as (deciding, owning, _high):
        assert set(deciding.refresh()["summary"]) >= {"shard_work"}
        assert "shards" not in owning.refresh()["summary"]
        assert deciding.work == {"nodes": 1, "pods": 1, "pending": [[0, 1]], "nominated": 1, "asked": 0}
        assert (owning.work["pending"], owning.work["nominated"], owning.work["asked"]) == ([], 0, 1)
        for shown in (deciding, owning):
            assert [shown.refresh() for _ in range(6)] == [{}] * 6
        assert "pending in this replica: " in deciding.top()
        assert "nominated to others 1  of others, waiting here 0  by shard 0: 1" in deciding.top()
        assert "nominated to others 0  of others, waiting here 1  by shard none" in owning.top()


async def test_many_pending_pods_are_counted_now_and_then_and_at_once_for_other_shards(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_work, "_COUNTED_EVERY_TIME", 4)
    async with replicas_of([node("n0", cpu=1)], shards=2, replicas=2) as replicas:
        first, second = replicas.running
        for number in range(40):
            await replicas.cluster.create(pod(f"huge-{number}", cpu=2))
        await trio.sleep(5)
        shown = Shown.of(first)
        ((shard, before),) = shown.work["pending"]
        await decided_by(replicas.cluster, shard, cpu=2)
        await trio.sleep(5)
        shown.refresh()
        assert shown.work["pending"] == [[shard, before]]
        for _ in range(1 + (before + 1) // 4):
            shown.refresh()
        assert shown.work["pending"] == [[shard, before + 1]]
        await second.stop()
        await trio.sleep(5)
        shown.refresh()
        assert shown.work["pending"] == sorted([[shard, before + 1], [1 - shard, 40 - before]])


async def test_a_scheduler_that_shares_nothing_sends_nothing_about_shards(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=2) as cluster:
        shown = Shown.of(cluster.scheduler)
        assert not {"shards", "shard_work"} & shown.reader.summary.keys()
        assert "shard" not in shown.reader.nodes()["node-1"]
        assert "shard" not in shown.top()
