"""What becomes of pods when a plugin fails that does not fail closed."""

import logging
from typing import Any, ClassVar

import numpy as np
import pytest
import trio
from plugin_base import PluginBase
from trio.testing import MockClock

from trio_sched.cli.flags.failure_policies import FailurePolicyError, read_failure_policies
from trio_sched.cli.plugin_loading.chosen_plugins import PointsByPlugin
from trio_sched.config.load import load_configuration
from trio_sched.config.resolved_profile import resolve_profiles
from trio_sched.engine.hooks.failure_policy import FailurePolicy
from trio_sched.engine.hooks.plugin_errors import BadPlugin, UnknownPlugin
from trio_sched.engine.registry.plugin_registry import PluginRegistry
from trio_sched.plugin_api import Input, NodeColumns, Pod, Status, Verdicts, hookimpl, unschedulable
from trio_sched.testing import node, pod, virtual_cluster

CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


@pytest.fixture
def moody() -> Any:
    """A plugin that refuses node a, but fails while it is broken; its answers may be cached."""

    class Moody(PluginBase):
        depends_on: ClassVar[frozenset[Input]] = frozenset({Input.NODE})
        is_broken: ClassVar[bool] = False
        calls: ClassVar[list[str]] = []

        @hookimpl
        def filter(self, pod: Pod, nodes: NodeColumns) -> Verdicts:
            self.calls.append(pod.name)
            if type(self).is_broken:
                raise LookupError("out of order")
            return Verdicts.where(np.array([name != "a" for name in nodes.names], dtype=bool), unschedulable("not a"))

        @hookimpl
        def sign(self, pod: Pod) -> str:
            return "all alike"

    return Moody


async def test_neutral_answers_are_not_kept(
    moody: Any, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    moody.on_failure = "open"
    async with virtual_cluster(nodes=[node("a")], plugins=[moody]) as cluster:
        moody.is_broken = True
        await cluster.create(pod("one"))
        await cluster.create(pod("two"))
        await trio.sleep(5)
        assert cluster.pod("one").node_name == cluster.pod("two").node_name == "a"
        assert cluster.scheduler.assembly.scheduler.plugin_failures.totals["Moody", "filter"] == 2
        moody.is_broken = False
        await cluster.create(pod("three"))
        await trio.sleep(5)
        assert cluster.pod("three").node_name == ""
        await cluster.create(pod("four"))  # as three: from the cache
        await trio.sleep(5)
        assert cluster.pod("four").node_name == ""
        assert moody.calls.count("four") == 0
        moody.is_broken = True
        await cluster.create(node("b"))
        await trio.sleep(30)
        assert cluster.pod("three").node_name
    assert "plugin Moody failed at filter: filter raised LookupError: out of order" in caplog.text


async def test_a_plugin_that_fails_too_often_is_skipped_for_a_while(
    moody: Any, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with virtual_cluster(nodes=[node("a")], plugins=[moody], failure_policies={"Moody": "skip:3"}) as cluster:
        moody.is_broken = True
        await cluster.create(pod("one"))
        await trio.sleep(20)
        assert cluster.pod("one").node_name == "a"
        assert moody.calls == ["one"] * 3
        failures = cluster.scheduler.assembly.scheduler.plugin_failures
        assert failures.skipped == {"Moody": True}
        assert "plugin Moody is skipped for 60 s after 3 failures in a row" in caplog.text
        moody.is_broken = False
        await trio.sleep(60)
        await cluster.create(pod("two"))
        await trio.sleep(5)
        assert cluster.pod("two").node_name == ""
        assert failures.skipped == {"Moody": False}
        assert "plugin Moody is called again after it was skipped" in caplog.text


class LatePostBind(PluginBase):
    """Never returns from post_filter."""

    on_failure: ClassVar[str] = "open"

    @hookimpl
    def filter_node(self, pod: Pod) -> Status:
        return unschedulable("never")

    @hookimpl
    async def post_filter(self, pod: Pod) -> None:
        await trio.sleep_forever()


async def test_a_hook_that_is_late_counts_as_a_failure(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1, plugins=[LatePostBind]) as cluster:
        await cluster.create(pod("one"))
        await trio.sleep(70)
        failures = cluster.scheduler.assembly.scheduler.plugin_failures
        assert failures.totals["LatePostBind", "post_filter"] == 1
        assert "took longer" not in str(cluster.events(about="one"))


async def test_policies_of_a_virtual_cluster_are_checked_and_outlive_a_reload(
    moody: Any, autojump_clock: MockClock
) -> None:
    for policies, problem in {("Mody", "open"): "did you mean 'Moody'", ("Moody", "ajar"): "no failure policy"}.items():
        with pytest.raises((UnknownPlugin, ValueError), match=problem):
            async with virtual_cluster(plugins=[moody], failure_policies=dict([policies])):
                pass
    async with virtual_cluster(nodes=[node("a")], plugins=[moody], failure_policies={"Moody": "open"}) as cluster:
        await cluster.reload(plugins=[moody])
        moody.is_broken = True
        await cluster.create(pod("one"))
        await cluster.wait_scheduled("one")


async def test_a_plugin_without_neutral_answers_cannot_fail_open(autojump_clock: MockClock) -> None:
    class Binder(PluginBase):
        on_failure = "open"

        @hookimpl
        async def bind(self, pod: Pod, node_name: str) -> None: ...

    with pytest.raises(BadPlugin, match="it has 'bind', for which there is no neutral answer"):
        async with virtual_cluster(nodes=1, plugins=[Binder]):
            pass


def test_the_flag_is_checked_against_the_profiles() -> None:
    registry = PluginRegistry.discover()
    profiles = resolve_profiles(load_configuration(CONFIG), PointsByPlugin(registry))
    read = read_failure_policies(["NodeName=open", "ImageLocality=skip:7", "NodeName=closed"], profiles, registry)
    assert read == {"NodeName": FailurePolicy(), "ImageLocality": FailurePolicy(skip_after=7)}
    for entry, problem in {
        "NodeNam=open": "no profile enables a plugin named 'NodeNam'; did you mean 'NodeName'?",
        "NodeName": "write NAME=closed, NAME=open or NAME=skip:N",
        "NodeName=opn": "'opn' is no failure policy",
    }.items():
        with pytest.raises(FailurePolicyError, match=f"--plugin-failure-policy={entry}: {problem}".replace("?", r"\?")):
            read_failure_policies([entry], profiles, registry)
    with pytest.raises(BadPlugin, match="it can only fail closed"):
        read_failure_policies(["DefaultBinder=open"], profiles, registry)
