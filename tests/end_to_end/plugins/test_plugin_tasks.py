"""Where and when the background tasks of plugins run, and what the instances of a plugin share."""

from typing import Any, ClassVar

import pytest
import trio
from plugin_base import PluginBase
from trio.testing import MockClock

from trio_sched.daemon.plugins.background_tasks import PluginTaskFailed
from trio_sched.daemon.reload import ReloadRefused
from trio_sched.engine.hooks.plugin_errors import BadPlugin
from trio_sched.plugin_api import Handle, NotLeading, hookimpl
from trio_sched.testing import make_plugin, pod
from trio_sched.testing.cluster import virtual_cluster
from trio_sched.testing.fake_handle import FakeHandle

TWO_PROFILES = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
- schedulerName: other
"""


class Running(PluginBase):
    """Logs when its task begins and ends, and in which profile."""

    @hookimpl
    async def run(self) -> None:
        type(self).log.append(("begins", self.handle.profile_name))
        try:
            await trio.sleep_forever()
        finally:
            type(self).log.append(("ends", self.handle.profile_name))


async def test_by_default_each_instance_runs(autojump_clock: MockClock) -> None:
    class Everywhere(Running): ...

    async with virtual_cluster(config=TWO_PROFILES, plugins=[Everywhere]):
        await trio.sleep(1)
        assert sorted(Everywhere.log) == [("begins", "default-scheduler"), ("begins", "other")]
    assert len(Everywhere.log) == 4


async def test_once_per_process_the_first_instance_runs(autojump_clock: MockClock) -> None:
    class Once(Running):
        run_once_per_process = True

    async with virtual_cluster(config=TWO_PROFILES, plugins=[Once]):
        await trio.sleep(1)
        assert Once.log == [("begins", "default-scheduler")]


class OnLeader(Running):
    run_on_leader_only = True
    run_once_per_process = True


@pytest.fixture(autouse=True)
def _empty_log() -> None:
    OnLeader.log.clear()


async def test_on_the_leader_only_it_begins_and_ends_with_leading(autojump_clock: MockClock) -> None:
    async with virtual_cluster(config=TWO_PROFILES, plugins=[OnLeader], leader_elect=True) as cluster:
        leader = cluster.scheduler
        await cluster.start_scheduler()
        await trio.sleep(60)
        assert [what for what, _ in OnLeader.log] == ["begins"]
        await leader.stop()
        assert [what for what, _ in OnLeader.log] == ["begins", "ends"]
        await trio.sleep(60)
        assert [what for what, _ in OnLeader.log] == ["begins", "ends", "begins"]


async def test_on_the_leader_only_a_failure_ends_the_scheduler_too_and_is_logged_with_its_traceback(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    class Failing(PluginBase):
        run_on_leader_only = True

        @hookimpl
        async def run(self) -> None:
            await trio.sleep(5)
            raise KeyError("oops")

    with pytest.raises(PluginTaskFailed, match="background task of plugin 'Failing' failed: KeyError"):
        async with virtual_cluster(plugins=[Failing], leader_elect=True) as cluster:
            await cluster.settle()
    assert "KeyError: 'oops'; it fails closed, so the scheduler ends" in caplog.text
    assert f'File "{__file__}", line' in caplog.text


async def test_one_of_a_plugin_that_fails_open_is_started_again(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    began: list[float] = []

    class Failing(PluginBase):
        @hookimpl
        async def run(self) -> None:
            began.append(trio.current_time())
            await trio.sleep(5)
            if len(began) < 3:
                raise KeyError("oops")

    for policy in ("open", "skip:2"):
        began.clear()
        async with virtual_cluster(nodes=1, plugins=[Failing], failure_policies={"Failing": policy}) as cluster:
            await trio.sleep(300)
            await cluster.create(pod("p"))
            await cluster.wait_scheduled("p")
        assert [later - began[0] for later in began] == [0, 65, 130]
    assert "background task of plugin 'Failing' failed: KeyError: 'oops'; it is started again in 60 s" in caplog.text


async def test_a_reload_to_one_that_fails_on_the_leader_leaves_the_former_one(autojump_clock: MockClock) -> None:
    class Failing(PluginBase):
        run_on_leader_only = True

        @hookimpl
        async def run(self) -> None:
            raise KeyError("oops")

    async with virtual_cluster(plugins=[OnLeader], leader_elect=True) as cluster:
        await trio.sleep(30)
        with pytest.raises(ReloadRefused, match="background task of plugin 'Failing' failed"):
            await cluster.reload(plugins=[Failing])
        await trio.sleep(30)
        assert [what for what, _ in OnLeader.log] == ["begins"]


async def test_without_an_election_it_begins_at_once(autojump_clock: MockClock) -> None:
    async with virtual_cluster(plugins=[OnLeader]):
        await trio.sleep(1)
        assert OnLeader.log == [("begins", "default-scheduler")]


async def test_a_reload_exchanges_it(autojump_clock: MockClock) -> None:
    async with virtual_cluster(plugins=[OnLeader], leader_elect=True) as cluster:
        await trio.sleep(30)
        await cluster.reload(plugins=[OnLeader])
        await trio.sleep(1)
        assert [what for what, _ in OnLeader.log] == ["begins", "begins", "ends"]
        await cluster.reload()
        await trio.sleep(1)
        assert [what for what, _ in OnLeader.log] == ["begins", "begins", "ends", "ends"]


async def test_a_reload_of_a_follower_does_not_begin_it(autojump_clock: MockClock) -> None:
    async with virtual_cluster(plugins=[OnLeader], leader_elect=True) as cluster:
        leader = cluster.scheduler
        await trio.sleep(30)
        await cluster.start_scheduler()
        await cluster.reload(plugins=[OnLeader])
        await trio.sleep(30)
        assert [what for what, _ in OnLeader.log] == ["begins", "begins", "ends"]
        await leader.stop()
        await trio.sleep(60)
        assert [what for what, _ in OnLeader.log] == ["begins", "begins", "ends", "ends", "begins"]


async def test_a_replica_that_does_not_lead_cannot_write(autojump_clock: MockClock) -> None:
    class Writing(PluginBase):
        writes: ClassVar = {"Node": ("patch",)}

        @hookimpl
        async def run(self) -> None:
            await trio.sleep(10)  # the lease is not acquired before background tasks begin
            try:
                await self.handle.patch("Node", "node-1", {"metadata": {"labels": {"by": "me"}}})
                type(self).log.append("written")
            except NotLeading as problem:
                type(self).log.append(problem)

    async with virtual_cluster(nodes=1, plugins=[Writing], leader_elect=True) as cluster:
        await trio.sleep(30)
        assert Writing.log == ["written"]
        await cluster.start_scheduler()
        await trio.sleep(30)
    assert isinstance(Writing.log[1], NotLeading)
    assert str(Writing.log[1]) == "the lease kube-system/kube-scheduler is not held by this process"


@pytest.mark.parametrize("attribute", ["run_once_per_process", "run_on_leader_only"])
async def test_what_they_declare_is_yes_or_no(attribute: str, autojump_clock: MockClock) -> None:
    wrong = type("Wrong", (Running,), {attribute: "yes"})
    with pytest.raises(BadPlugin, match=f"its {attribute} must be True or False; it is 'yes'"):
        async with virtual_cluster(plugins=[wrong]):
            pass


class Sharing(PluginBase):
    """Counts in a dict that all instances share."""

    made: ClassVar = 0

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self.counts: dict[str, int] = handle.shared(self.make)
        type(self).log.append(self.counts)

    @classmethod
    def make(cls) -> dict[str, int]:
        cls.made += 1
        return {}

    @hookimpl
    def pre_filter(self) -> None:
        self.counts[self.handle.profile_name] = self.counts.get(self.handle.profile_name, 0) + 1


async def test_the_instances_of_a_plugin_share_an_object_until_a_reload(autojump_clock: MockClock) -> None:
    class OtherPlugin(Sharing): ...

    Sharing.log.clear()
    Sharing.made = 0
    async with virtual_cluster(nodes=1, config=TWO_PROFILES, plugins=[Sharing, OtherPlugin]) as cluster:
        await cluster.create(pod("a"))
        await cluster.create(pod("b", scheduler_name="other"))
        await trio.sleep(1)
        assert Sharing.log[0] is Sharing.log[1]
        assert Sharing.log[0] == {"default-scheduler": 1, "other": 1}
        assert OtherPlugin.log[0] is not Sharing.log[0]
        assert Sharing.made == 1
        await cluster.reload(plugins=[Sharing])
        assert Sharing.log[2] is not Sharing.log[0]
        assert Sharing.made == 2


def test_a_fake_handle_shares_likewise() -> None:
    handle = FakeHandle()
    one, two = (make_plugin(Sharing, handle=handle) for _ in range(2))
    assert one.counts is two.counts
    assert make_plugin(Sharing).counts is not one.counts


async def test_a_factory_that_fails_fails_the_plugin(autojump_clock: MockClock) -> None:
    class Failing(PluginBase):
        def __init__(self, args: Any, handle: Handle) -> None:
            handle.shared(lambda: 1 // 0)

        @hookimpl
        def pre_filter(self) -> None: ...

    with pytest.raises(BadPlugin, match="initializing failed: ZeroDivisionError"):
        async with virtual_cluster(plugins=[Failing]):
            pass
