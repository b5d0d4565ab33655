"""What a replica shows of its shards, and what can be read of all of them."""

import json
from typing import Any

from sharded_replicas import replicas_of, sharding_of
from trio.testing import MockClock

from trio_sched.daemon.serving.messages import Request
from trio_sched.daemon.serving.pages.explain_page import ExplainPage
from trio_sched.daemon.serving.pages.scheduler_pages import SchedulerPages
from trio_sched.testing import node, pod
from trio_sched.testing.cluster import virtual_cluster
from trio_sched.testing.scheduler_process import SchedulerProcess


async def page_of(process: SchedulerProcess) -> dict[str, Any]:
    assert process.assembly is not None
    path = "/debug/scheduler/shards"
    pages = SchedulerPages(process.assembly, ExplainPage(process.assembly))
    response = await pages.handlers()[path](Request(method="GET", path=path, target=path))
    found: dict[str, Any] = json.loads(response.body)
    return found


async def test_a_replica_says_what_it_holds_and_what_waits_there(autojump_clock: MockClock) -> None:
    async with replicas_of([node("n", cpu=1)], shards=2, replicas=2) as replicas:
        await replicas.cluster.create(pod("p", cpu=2))
        await replicas.cluster.settle()
        decider = sharding_of(replicas.owner(0)).owned.decider(replicas.cluster.pod("p"))
        process = replicas.owner(decider)
        page = await page_of(process)
        assert (page["replica"], page["replicas"]) == (process.identity, ["scheduler-1", "scheduler-2"])
        own, other = page["shards"][decider], page["shards"][1 - decider]
        assert own == {
            "shard": decider,
            "lease": f"kube-scheduler-shard-{decider}-of-2",
            "holder": process.identity,
            "state": "ready",
            "pending": 1,
        }
        assert (other["state"], other["pending"]) == ("of another replica", 0)
        assert (page["underWay"], page["repellingTerms"]) == (0, {"known": 0, "notAgreedOn": 0})
        assert process.assembly is not None
        _type, pieces = await process.assembly.metrics.pages.metrics.render("")
        text = b"".join(pieces).decode()
        assert f'trio_sched_shard_ready{{shard="{decider}"}} 1' in text
        assert f'trio_sched_shard_pending_pods{{shard="{decider}"}} 1' in text
        assert "trio_sched_shard_fenced_pods_total 0" in text


async def test_a_scheduler_that_shares_nothing_says_so(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1) as cluster:
        assert "sharding" in (await page_of(cluster.scheduler))["hint"]
        assert cluster.scheduler.assembly is not None
        _type, pieces = await cluster.scheduler.assembly.metrics.pages.metrics.render("")
        assert "trio_sched_shard_ready{" not in b"".join(pieces).decode()


async def test_what_sharding_adds_is_not_timed_like_a_plugin_of_another_package(autojump_clock: MockClock) -> None:
    async with replicas_of([node("n", cpu=1)], shards=1, replicas=1) as replicas:
        assembly = replicas.running[0].assembly
        assert assembly is not None
        timed = [hook.plugin for hook in assembly.hook_times.hooks]
        assert timed == []
