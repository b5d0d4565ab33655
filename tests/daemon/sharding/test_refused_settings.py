"""What several replicas cannot do at a time is refused at the start, and when the configuration is reloaded."""

from pathlib import Path
from typing import Any, ClassVar

import pytest
from attrs import evolve
from plugin_base import PluginBase
from sharded_replicas import HEAD, replicas_of
from trio.testing import MockClock

from trio_sched.daemon.reload import ReloadRefused
from trio_sched.daemon.sharding.sharded_profiles import ShardingRefused
from trio_sched.daemon.sharding.sharding import NotWithSharding
from trio_sched.errors import TrioSchedError
from trio_sched.plugin_api import Pod, Status, hookimpl
from trio_sched.testing import node
from trio_sched.testing.cluster import virtual_cluster

SHARDED = HEAD + "sharding: {shards: 2}\n"


class Binds(PluginBase):
    """Binds in its own way."""

    @hookimpl
    async def bind(self, pod: Pod, node_name: str, state: Any) -> Status | None:
        return None


class OnLeaderOnly(PluginBase):
    """Has a task of which there must be one."""

    run_on_leader_only: ClassVar[bool] = True

    @hookimpl
    async def run(self) -> None:
        pass


async def refusal(**details: Any) -> TrioSchedError:
    async with virtual_cluster(leader_elect=True, scheduler=False, **details) as cluster:
        with pytest.raises(TrioSchedError):
            await cluster.start_scheduler()
        return await cluster.scheduler.failed()


async def test_a_plugin_that_binds_pods_is_refused(autojump_clock: MockClock) -> None:
    error = await refusal(config=SHARDED, plugins=[Binds])
    assert isinstance(error, ShardingRefused)
    assert str(error) == (
        "profile 'default-scheduler' does not work with sharding: Binds would bind pods without naming their version; "
        "disable it at bind"
    )


async def test_a_profile_without_the_default_binder_is_refused(autojump_clock: MockClock) -> None:
    without = "profiles: [{schedulerName: default-scheduler, plugins: {bind: {disabled: [{name: DefaultBinder}]}}}]\n"
    error = await refusal(config=SHARDED + without, plugins=[Binds])
    assert "Binds would bind pods" in str(error)


async def test_a_plugin_with_a_task_that_runs_on_the_leader_only_is_refused(autojump_clock: MockClock) -> None:
    error = await refusal(config=SHARDED, plugins=[OnLeaderOnly])
    assert "OnLeaderOnly has a task that runs on the leader only, and there is none; disable it" in str(error)


async def test_recording_is_refused(autojump_clock: MockClock, tmp_path: Path) -> None:
    async with virtual_cluster(config=SHARDED, leader_elect=True, scheduler=False, record=tmp_path) as cluster:
        with pytest.raises(NotWithSharding) as caught:
            await cluster.start_scheduler()
        await cluster.scheduler.failed()
    assert str(caught.value) == (
        "recording decisions (--record) does not work with sharding yet; leave out one of both"
    )


async def test_another_number_of_shards_needs_another_start(autojump_clock: MockClock) -> None:
    async with replicas_of([node("n")], shards=2, replicas=1) as replicas:
        cluster = replicas.cluster
        config = evolve(cluster._settings.config, sharding=None)
        await cluster.reload(config)  # like every field that cannot change, it is kept, and the log says so
        assembly = cluster.scheduler.assembly
        assert assembly is not None
        assert assembly.settings.config.sharding is not None
        with pytest.raises(ReloadRefused):
            await cluster.reload(plugins=[Binds])
