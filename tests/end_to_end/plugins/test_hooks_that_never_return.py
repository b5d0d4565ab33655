"""Hooks that are awaited for ever: they are cancelled, named, and hold up nobody else for longer than the limit."""

from typing import Any

import pytest
import trio
from plugin_base import PluginBase
from trio.testing import MockClock

from trio_sched.daemon.limits import HOOK_SECONDS, MAX_PARALLEL_BINDS, PRE_BIND_SECONDS
from trio_sched.engine.hooks.plugin_errors import BadPlugin
from trio_sched.plugin_api import SKIP, Diagnosis, Pod, PostFilterResult, Status, hookimpl
from trio_sched.testing import make_plugin, node, pod
from trio_sched.testing.cluster import virtual_cluster

BIND_FIRST = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    bind:
      enabled: [{name: Binding}, {name: DefaultBinder}]
      disabled: [{name: "*"}]
"""


async def test_binds_that_never_return_do_not_stop_those_of_other_pods(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    class Binding(PluginBase):
        @hookimpl
        async def bind(self, pod: Pod) -> Status | None:
            if pod.labels.get("stuck"):
                await trio.sleep_forever()
            return SKIP

    async with virtual_cluster(nodes=1, plugins=[Binding], config=BIND_FIRST) as cluster:
        for number in range(MAX_PARALLEL_BINDS):
            await cluster.create(pod(f"stuck-{number}", cpu="1m", labels={"stuck": "yes"}))
        await trio.sleep(1)
        await cluster.create(pod("p", cpu="1m"))
        await trio.sleep(HOOK_SECONDS)
        assert cluster.pod("p").node_name == "node-1"
        await trio.sleep(1)
        event = cluster.events("FailedScheduling", about="stuck-0")[0]
        assert event.message == (
            'running Bind plugin "Binding": bind took longer than 60 s and was cancelled; '
            "give what it waits for a timeout of its own"
        )
        assert "plugin Binding failed at bind: bind took longer than 60 s" in caplog.text
        await trio.sleep(200)
        assert cluster.scheduler.assembly is not None
        assert cluster.pod("stuck-0").node_name == ""


async def test_a_bind_that_does_not_return_when_it_is_cancelled_has_failed_too(autojump_clock: MockClock) -> None:
    class Binding(PluginBase):
        @hookimpl
        async def bind(self, pod: Pod) -> None:
            with trio.CancelScope() as scope:
                try:
                    await trio.sleep_forever()
                finally:
                    scope.cancel()
                    self.log.append(pod.name)
                    raise LookupError("mine")

    async with virtual_cluster(nodes=1, plugins=[Binding], config=BIND_FIRST) as cluster:
        await cluster.create(pod("p"))
        await trio.sleep(HOOK_SECONDS + 1)
        assert "took longer than 60 s" in cluster.events("FailedScheduling")[0].message


async def test_hooks_that_succeed_although_it_was_too_late_have_succeeded(autojump_clock: MockClock) -> None:
    class Binding(PluginBase):
        """Works in threads, during which a clock that jumps goes on as far as it can."""

        @hookimpl
        async def bind(self, pod: Pod) -> Status | None:
            with trio.CancelScope(shield=True):
                await trio.sleep(2 * HOOK_SECONDS)
            return SKIP

    class Later(PluginBase):
        @hookimpl
        async def post_bind(self, pod: Pod) -> None:
            await trio.to_thread.run_sync(int)
            self.log.append(pod.name)

    async with virtual_cluster(nodes=1, plugins=[Binding, Later], config=BIND_FIRST) as cluster:
        for name in ("p", "q"):
            await cluster.create(pod(name))
            await cluster.settle(quiet_seconds=5 * HOOK_SECONDS)
            assert cluster.pod(name).node_name == "node-1"
        assert Later.log == ["p", "q"]
        assert cluster.events("FailedScheduling") == []


async def test_what_a_bind_waits_for_at_the_api_server_does_not_count(autojump_clock: MockClock) -> None:
    class Binding(PluginBase):
        @hookimpl
        async def bind(self, pod: Pod, node_name: str) -> Status | None:
            await trio.sleep(HOOK_SECONDS / 2)
            status = await self.handle.bind(pod, node_name)
            await trio.sleep(HOOK_SECONDS / 2)
            return status

    async with virtual_cluster(nodes=1, plugins=[Binding], config=BIND_FIRST) as cluster:
        cluster.api.faults.set_latency(HOOK_SECONDS / 3, verb="bind", resource="pods")
        await cluster.create(pod("p"))
        await cluster.settle()
        assert cluster.pod("p").node_name == "node-1"
        assert cluster.events("FailedScheduling") == []


async def test_post_binds_that_never_return_are_only_logged(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    class Stuck(PluginBase):
        @hookimpl
        async def post_bind(self, pod: Pod) -> None:
            await trio.sleep_forever()

    class Later(PluginBase):
        @hookimpl
        async def post_bind(self, pod: Pod) -> None:
            await trio.sleep(1)
            self.log.append(pod.name)

    async with virtual_cluster(nodes=1, plugins=[Stuck, Later]) as cluster:
        for number in range(2 * MAX_PARALLEL_BINDS):
            await cluster.create(pod(f"p{number}", cpu="1m"))
        await trio.sleep(2 * HOOK_SECONDS + 5)
        assert set(cluster.placements().values()) == {"node-1"}
        assert len(Later.log) == 2 * MAX_PARALLEL_BINDS
        assert cluster.events("FailedScheduling") == []
        assert "plugin Stuck failed at post_bind: post_bind took longer than 60 s and was cancelled" in caplog.text


async def test_a_post_filter_that_never_returns_does_not_stop_scheduling(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    class Stuck(PluginBase):
        @hookimpl
        async def post_filter(self, pod: Pod, diagnosis: Diagnosis) -> PostFilterResult | None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.sleep_forever)
            return None

    async with virtual_cluster(nodes=1, plugins=[Stuck]) as cluster:
        await cluster.create(pod("big", cpu=100))
        await trio.sleep(1)
        await cluster.create(pod("p"))
        await trio.sleep(HOOK_SECONDS)
        assert cluster.pod("p").node_name == "node-1"
        (event,) = cluster.events("FailedScheduling", about="big")
        assert "post_filter took longer than 60 s and was cancelled" in event.message
        await cluster.create(node("large", cpu=200))
        await trio.sleep(HOOK_SECONDS)
        assert cluster.pod("big").node_name == "large"


async def test_a_pre_bind_may_take_longer(autojump_clock: MockClock) -> None:
    class Slow(PluginBase):
        @hookimpl
        async def pre_bind(self, pod: Pod) -> None:
            await trio.sleep(9 * HOOK_SECONDS)

    async with virtual_cluster(nodes=1, plugins=[Slow]) as cluster:
        await cluster.create(pod("p"))
        await trio.sleep(11 * HOOK_SECONDS)
        assert cluster.pod("p").node_name == "node-1"


async def test_a_scheduler_that_stops_does_not_wait_for_hooks_that_never_return(autojump_clock: MockClock) -> None:
    class Binding(PluginBase):
        @hookimpl
        async def bind(self, pod: Pod) -> Any:
            await trio.sleep_forever()

    async with virtual_cluster(nodes=1, plugins=[Binding], config=BIND_FIRST) as cluster:
        await cluster.create(pod("p"))
        await trio.sleep(1)
        start = trio.current_time()
        await cluster.stop_scheduler()
        assert trio.current_time() - start < HOOK_SECONDS


class Preparing(PluginBase):
    @hookimpl
    async def pre_bind(self, pod: Pod) -> None:
        if pod.labels.get("stuck"):
            await trio.sleep_forever()


@pytest.mark.parametrize(("declared", "limit"), [(None, PRE_BIND_SECONDS), (90, 90)])
async def test_a_pre_bind_that_never_returns_is_named_and_then_cancelled(
    declared: float | None, limit: float, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    class Patient(Preparing):
        pre_bind_timeout_seconds = declared

    async with virtual_cluster(nodes=1, plugins=[Patient]) as cluster:
        await cluster.create(pod("stuck", labels={"stuck": "yes"}))
        await cluster.create(pod("p"))
        await trio.sleep(limit - 1)
        assert cluster.pod("p").node_name == "node-1"
        assert cluster.events("FailedScheduling") == []
        waits = "plugin Patient: pod default/stuck still waits for its pre_bind, which is cancelled when"
        assert caplog.messages.count(f"{waits} it takes longer than {limit:g} s") == 1
        await trio.sleep(2)
        (event,) = cluster.events("FailedScheduling")
        assert event.message.startswith(
            f'running PreBind plugin "Patient": pre_bind took longer than {limit:g} s and was'
        )
        (condition,) = [one for one in cluster.pod("stuck").status.conditions if one.type == "PodScheduled"]
        assert (condition.status, condition.reason) == ("False", "SchedulerError")


@pytest.mark.parametrize("declared", [0, -1, "60", True, float("nan"), float("inf"), 1e9])
def test_a_limit_of_pre_bind_that_is_none_is_refused(declared: object) -> None:
    class Patient(Preparing):
        pre_bind_timeout_seconds = declared

    with pytest.raises(BadPlugin, match="its pre_bind_timeout_seconds must be a number of seconds, more than 0"):
        make_plugin(Patient)
