"""Plugins that ask for another attempt at a later time."""

import math
from typing import Any, ClassVar

import pytest
import trio
from plugin_base import PluginBase
from trio.testing import MockClock

from trio_sched.plugin_api import EventRegistration, Handle, Pod, Status, hookimpl, unschedulable
from trio_sched.testing import pod
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster


class Opening(PluginBase):
    """Lets pods pass from a certain time on, and asks for an attempt then; logs the times of attempts."""

    opens_at: ClassVar = 100.0
    asks: ClassVar = True
    handles: ClassVar[list[Handle]] = []

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        type(self).handles.append(handle)

    def verdict(self, pod: Pod) -> Status | None:
        now = self.handle.now()
        type(self).log.append(now)
        if now >= self.opens_at:
            return None
        if self.asks:
            self.handle.retry_after(pod, self.opens_at - now)
        return unschedulable("not open yet")

    @hookimpl
    def events_to_register(self) -> list[EventRegistration]:
        return []


class OpeningFilter(Opening):
    @hookimpl
    def pre_filter(self, pod: Pod) -> Status | None:
        return self.verdict(pod)


class OpeningGate(Opening):
    @hookimpl
    def pre_enqueue(self, pod: Pod) -> Status | None:
        return self.verdict(pod)


@pytest.fixture(autouse=True)
def _forget() -> None:
    for plugin in (OpeningFilter, OpeningGate):
        plugin.log.clear()
    Opening.handles.clear()


def incoming(cluster: VirtualCluster, event: str) -> int:
    assert cluster.scheduler.assembly is not None
    counters = cluster.scheduler.assembly.scheduler.queue.counters.incoming
    return sum(count for (_, label), count in counters.items() if label == event)


def timers(cluster: VirtualCluster) -> int:
    assert cluster.scheduler.assembly is not None
    return len(cluster.scheduler.assembly.scheduler.queue.retries)


@pytest.mark.parametrize("plugin", [OpeningFilter, OpeningGate])
async def test_a_pod_is_tried_again_at_the_time_that_a_plugin_asks_for(
    plugin: type[Opening], autojump_clock: MockClock
) -> None:
    async with virtual_cluster(nodes=1, plugins=[plugin]) as cluster:
        await cluster.create(pod("p"))
        await trio.sleep_until(99.9)
        assert cluster.pod("p").node_name == ""
        assert timers(cluster) == 1
        await trio.sleep_until(100.5)
        assert cluster.pod("p").node_name == "node-1"
        assert timers(cluster) == 0
        assert incoming(cluster, "PluginRetry") == 1
    assert plugin.log[-1] == pytest.approx(100, abs=0.1)
    assert len(plugin.log) <= 3  # nothing but the first attempt and the one that was asked for


async def test_without_being_asked_for_it_waits(autojump_clock: MockClock) -> None:
    class Silent(OpeningFilter):
        asks = False

    async with virtual_cluster(nodes=1, plugins=[Silent]) as cluster:
        await cluster.create(pod("p"))
        await trio.sleep_until(150)
        assert cluster.pod("p").node_name == ""
        assert incoming(cluster, "PluginRetry") == 0


async def test_the_backoff_is_respected(autojump_clock: MockClock) -> None:
    class Impatient(OpeningFilter):
        opens_at = 0.5  # the backoff takes a second

    async with virtual_cluster(
        nodes=1, plugins=[Impatient], gates={"SchedulerPopFromBackoffQ": False}, scheduler=False
    ) as cluster:
        await cluster.create(pod("p"))
        await cluster.start_scheduler()
        began = trio.current_time()
        Impatient.opens_at = began + 0.5
        await trio.sleep_until(began + 5)
        assert cluster.pod("p").node_name == "node-1"
    assert sorted({round(moment - began) for moment in Impatient.log}) == [0, 1]


async def test_a_timer_that_ends_while_the_pod_is_in_flight_has_it_tried_once_more(autojump_clock: MockClock) -> None:
    class Slow(PluginBase):
        """Rejects a pod late in its attempt; the timer of the attempt ends before that."""

        @hookimpl
        def pre_filter(self, pod: Pod) -> Status | None:
            type(self).log.append(self.handle.now())
            if self.handle.now() > type(self).log[0]:
                return None
            self.handle.retry_after(pod, 5)
            return unschedulable("not yet")

        @hookimpl
        async def post_filter(self, pod: Pod) -> None:
            await trio.sleep(20)

        @hookimpl
        def events_to_register(self) -> list[EventRegistration]:
            return []

    async with virtual_cluster(nodes=1, plugins=[Slow]) as cluster:
        await cluster.create(pod("p"))
        await trio.sleep(60)
        assert cluster.pod("p").node_name == "node-1"
        assert timers(cluster) == 0
    assert 20 <= Slow.log[-1] - Slow.log[0] < 30
    assert len(set(Slow.log)) == 2


async def test_timers_are_forgotten_with_the_pod(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1, plugins=[OpeningFilter]) as cluster:
        gone, stays = await cluster.create(pod("gone")), await cluster.create(pod("stays"))
        await trio.sleep(5)
        assert timers(cluster) == 2
        handle = Opening.handles[-1]
        handle.retry_after(gone, 10_000)  # later than what was asked for: that counts
        assert timers(cluster) == 2
        await cluster.delete(gone, grace_seconds=0)
        await trio.sleep(1)
        assert timers(cluster) == 1
        handle.retry_after(gone, 10)
        handle.retry_after(pod("never was"), 10)
        assert timers(cluster) == 1
        await trio.sleep_until(101)
        assert cluster.pod("stays").node_name
        handle.retry_after(stays, 10)
        assert timers(cluster) == 0


@pytest.mark.parametrize("seconds", [-1, math.nan, "5", None, True])
async def test_seconds_that_cannot_be_meant_fail_the_plugin_and_nothing_else(
    seconds: Any, autojump_clock: MockClock
) -> None:
    class Wrong(PluginBase):
        @hookimpl
        def pre_filter(self, pod: Pod) -> None:
            if pod.name == "bad":
                self.handle.retry_after(pod, seconds)

    async with virtual_cluster(nodes=1, plugins=[Wrong]) as cluster:
        await cluster.create(pod("bad"))
        await cluster.create(pod("good"))
        await trio.sleep(5)
        assert cluster.pod("good").node_name == "node-1"
        (event, *_) = cluster.events("FailedScheduling", about="bad")
        assert "Wrong" in event.message
        assert "handle.retry_after takes the seconds from now on" in event.message


async def test_endless_times_and_other_things_than_pods(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1, plugins=[OpeningFilter]) as cluster:
        OpeningFilter.log.clear()
        one = await cluster.create(pod("p", node_selector={"no": "such"}))
        handle = Opening.handles[-1]
        await trio.sleep(1)
        handle.retry_after(one, math.inf)
        assert timers(cluster) == 1
        with pytest.raises(TypeError, match="takes a pod, not str"):
            handle.retry_after("p", 5)  # type: ignore[arg-type]  # that is the mistake


class Impatient(PluginBase):
    """Has every pod tried again at once, from pre_enqueue and for ever."""

    @hookimpl
    def pre_enqueue(self, pod: Pod) -> Status | None:
        type(self).log.append(self.handle.now())
        self.handle.retry_after(pod, 0.0)
        return unschedulable("not yet")


class Mutual(PluginBase):
    """Every pod that comes into the queue has all others tried again at once."""

    @hookimpl
    def pre_enqueue(self, pod: Pod) -> None:
        type(self).log.append(self.handle.now())
        for one in self.handle.pending_pods():
            if one.pod.name != pod.name:
                self.handle.retry_after(one.pod, 0.0)


@pytest.mark.parametrize("plugin", [Impatient, Mutual])
async def test_time_passes_although_a_plugin_asks_for_a_retry_at_once_for_ever(
    plugin: type[PluginBase], autojump_clock: MockClock
) -> None:
    plugin.log.clear()
    async with virtual_cluster(nodes=1, plugins=[plugin], real_seconds=5) as cluster:
        for name in ("p", "q", "r"):
            await cluster.create(pod(name, cpu="1000"))
            await trio.sleep(5)
        await trio.sleep(60)
    assert 60 <= len(plugin.log) < 600
