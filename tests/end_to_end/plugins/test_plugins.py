"""Third-party plugins: how profiles enable and configure them, and how they filter and score."""

import re
from collections import Counter
from typing import Any

import pytest
import trio
from attrs import frozen
from cluster_pods import create_pods
from ledger import Ledger, check_nothing_left
from plugin_base import PluginBase
from trio.testing import MockClock

from trio_sched.config.errors import ConfigError
from trio_sched.plugin_api import EventRegistration, NodeView, Pod, PostFilterResult, Status, hookimpl, unschedulable
from trio_sched.testing import pod
from trio_sched.testing.cluster import virtual_cluster


async def test_a_plugin_filters_and_scores(autojump_clock: MockClock) -> None:
    class OddOnly(PluginBase):
        @hookimpl
        def filter_node(self, pod: Pod, node: NodeView) -> Status | None:
            return None if int(node.name[-1]) % 2 else unschedulable("node is even")

        @hookimpl
        def score_node(self, node: NodeView) -> int:
            return 100 if node.name == "node-3" else 0

    async with virtual_cluster(nodes=6, plugins=[OddOnly]) as cluster:
        await create_pods(cluster, 10, cpu="10m")
        await cluster.create(pod("big", cpu=64))
        await cluster.settle()
        assert Counter(cluster.placements().values()) == {"node-3": 10, "": 1}
        (event,) = cluster.events("FailedScheduling")
        assert event.message == (
            "0/6 nodes are available: 6 Insufficient cpu. no new claims to deallocate, "
            "preemption: 0/6 nodes are available: 6 Preemption is not helpful for scheduling."
        )


async def test_a_plugin_gets_its_arguments(autojump_clock: MockClock) -> None:
    @frozen(kw_only=True)
    class FavouriteArgs:
        node: str

    class Favourite(PluginBase):
        Args = FavouriteArgs

        @hookimpl
        def filter_node(self, node: NodeView) -> Status | None:
            return None if node.name == self.args.node else unschedulable("not my favourite")

    config = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: Favourite
    args: {node: node-2}
"""
    async with virtual_cluster(nodes=5, plugins=[Favourite], config=config) as cluster:
        await create_pods(cluster, 5)
        await cluster.settle()
        assert set(cluster.placements().values()) == {"node-2"}


async def test_a_plugin_named_by_one_profile_runs_in_that_alone(autojump_clock: MockClock) -> None:
    class Second(PluginBase):
        @hookimpl
        def filter_node(self, node: NodeView) -> Status | None:
            return None if node.name == "node-2" else unschedulable("not the second")

    config = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: plain
- schedulerName: special
  plugins:
    filter:
      enabled: [{name: Second}]
"""
    async with virtual_cluster(nodes=5, plugins=[Second], config=config) as cluster:
        for number in range(5):
            await cluster.create(pod(f"plain-{number}", cpu=1, scheduler_name="plain"))
            await cluster.create(pod(f"special-{number}", cpu="100m", scheduler_name="special"))
        await cluster.settle()
        placements = cluster.placements()
        assert {placements[f"default/special-{number}"] for number in range(5)} == {"node-2"}
        assert len({placements[f"default/plain-{number}"] for number in range(5)}) > 1


async def test_an_unknown_plugin_keeps_the_scheduler_from_starting(autojump_clock: MockClock) -> None:
    config = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    filter:
      enabled: [{name: Uninstalled}]
"""
    with pytest.raises(ConfigError, match='FilterPlugin "Uninstalled" does not exist'):
        async with virtual_cluster(nodes=1, config=config):
            pass


async def test_a_nomination_by_post_filter_reserves_the_node(autojump_clock: MockClock) -> None:
    class Evictor(PluginBase):
        @hookimpl
        async def post_filter(self, pod: Pod) -> PostFilterResult | None:
            if pod.priority < 10:
                return PostFilterResult(unschedulable("not important enough"))
            await trio.sleep(0.5)
            self.log.append(pod.name)
            return PostFilterResult(nominated_node_name="node-2")

    config = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {postFilter: {disabled: [{name: DefaultPreemption}]}}
"""
    async with virtual_cluster(nodes=2, plugins=[Evictor], config=config) as cluster:
        history = Ledger(cluster)
        for name in ("a", "b"):
            await cluster.create(pod(name, cpu=4))
        await trio.sleep(5)
        victim = next(p for p in cluster.pods() if p.node_name == "node-2")
        await cluster.create(pod("important", cpu=4, priority=10))
        await trio.sleep(2)
        await cluster.create(pod("small", cpu=1))
        await cluster.delete(victim)
        await cluster.settle()
        assert Evictor.log == ["important"]
        assert (cluster.pod("important").node_name, cluster.pod("small").node_name) == ("node-2", "")
        history.check()
        check_nothing_left(cluster)


async def test_a_background_task_feeds_a_filter(autojump_clock: MockClock) -> None:
    class Weather(PluginBase):
        sunny = False

        @hookimpl
        async def run(self) -> None:
            await trio.sleep(30)
            self.sunny = True
            self.handle.activate([p for p in self.waiting])

        @hookimpl
        def filter_node(self, pod: Pod) -> Status | None:
            self.waiting = [pod]
            return None if self.sunny else unschedulable("it rains")

        @hookimpl
        def events_to_register(self) -> list[EventRegistration]:
            return []

    async with virtual_cluster(nodes=1, plugins=[Weather]) as cluster:
        await cluster.create(pod("p"))
        await trio.sleep(29)
        assert cluster.pod("p").node_name == ""
        await trio.sleep(2)
        assert cluster.pod("p").node_name == "node-1"


@pytest.mark.parametrize("hook", ["filter_node", "score_node", "pre_filter", "reserve", "permit", "post_bind"])
async def test_a_failing_hook_costs_the_pod_one_attempt_and_other_pods_none(
    hook: str, autojump_clock: MockClock
) -> None:
    def stumble(self: PluginBase, pod: Pod) -> Any:
        if pod.name == "unlucky" and self.handle.now() < began + 0.5:
            self.log.append(hook)
            raise RuntimeError("stumbled")
        return 0 if hook == "score_node" else None

    began = trio.current_time()
    stumble.__name__ = hook
    members = {"__module__": __name__, hook: hookimpl(stumble)}
    stumbling = type("Stumbling", (PluginBase,), members)
    async with virtual_cluster(nodes=2, plugins=[stumbling]) as cluster:
        history = Ledger(cluster)
        await cluster.create(pod("unlucky"))
        await create_pods(cluster, 5)
        await cluster.settle()
        assert set(stumbling.log) == {hook}
        assert len(history.binds) == 6
        history.check()
        failures = cluster.events("FailedScheduling")
        assert len(failures) == (0 if hook == "post_bind" else 1)
        assert all("stumbled" in event.message for event in failures)
        check_nothing_left(cluster)


async def test_a_class_wins_over_an_installed_plugin_of_the_same_name(autojump_clock: MockClock) -> None:
    class NodeName(PluginBase):
        @hookimpl
        def filter_node(self, node: NodeView) -> Status | None:
            return unschedulable("mine")

    async with virtual_cluster(nodes=1, plugins=[NodeName]) as cluster:
        await cluster.create(pod("p"))
        await cluster.settle()
        assert "1 mine." in cluster.events("FailedScheduling")[0].message


async def test_a_plugin_that_only_has_a_background_task_is_started(autojump_clock: MockClock) -> None:
    class Background(PluginBase):
        @hookimpl
        async def run(self) -> None:
            self.log.append(self.handle.profile_name)
            await trio.sleep_forever()

    async with virtual_cluster(nodes=1, plugins=[Background]) as cluster:
        await cluster.settle()
        assert Background.log == ["default-scheduler"]


async def test_a_forgotten_mark_is_logged_when_the_plugin_is_loaded(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    class Forgetful(PluginBase):
        depend_on = ()

        @hookimpl
        def reserve(self) -> None: ...

        def filter_node(self, node: NodeView) -> None: ...

    async with virtual_cluster(nodes=1, plugins=[Forgetful]):
        pass
    assert re.search(r"plugin Forgetful from class \S+Forgetful: Forgetful.filter_node has the name of", caplog.text)
    assert "Forgetful.depend_on means nothing; did you mean 'depends_on'?" in caplog.text
