import logging
import math
from typing import Any

import pytest
import trio
from attrs import define
from plugin_base import PluginBase
from trio.testing import MockClock

from trio_sched.daemon.hooks.blocking_hooks import BlockingHooks
from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.engine.hooks.hook_times import HookTimes
from trio_sched.plugin_api import (
    Action,
    EventRegistration,
    Hint,
    NodeView,
    Pod,
    PostFilterResult,
    Resource,
    hookimpl,
    on,
    unschedulable,
)
from trio_sched.testing import node, pod
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster


@define(eq=False)
class WallClock:
    """A clock that goes on only when a test, or a plugin that stands for a slow one, lets it."""

    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    own = [record for record in caplog.records if record.name == "trio_sched.daemon.hooks.blocking_hooks"]
    return [record.getMessage().partition(", and nothing else")[0] for record in own if record.levelname == "WARNING"]


def use_clock(cluster: VirtualCluster, clock: WallClock) -> None:
    assert cluster.scheduler.assembly is not None
    blocking = cluster.scheduler.assembly.blocking_hooks
    blocking.hook_times.clock = clock
    blocking.start()


async def log_of(caplog: pytest.LogCaptureFixture, plugin: type[Any], clock: WallClock, *pods: Pod) -> list[str]:
    async with virtual_cluster(nodes=3, plugins=[plugin]) as cluster:
        use_clock(cluster, clock)
        for one in pods or [pod("p")]:
            await cluster.create(one)
        await cluster.settle()
        await cluster.create(node("later"))
        await cluster.settle()
    return warnings(caplog)


async def test_a_hook_that_blocks_is_named_with_the_time_it_took(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    clock = WallClock()

    class Sleeper(PluginBase):
        @hookimpl
        def reserve(self, pod: Pod) -> None:
            clock.seconds += 2

    assert await log_of(caplog, Sleeper, clock) == ["plugin Sleeper blocks the scheduler: reserve took 2.00 s"]


async def test_the_calls_for_single_nodes_are_added_up(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    clock = WallClock()

    class Slow(PluginBase):
        @hookimpl
        def filter_node(self, pod: Pod, node: NodeView) -> None:
            clock.seconds += 0.05

    assert await log_of(caplog, Slow, clock) == ["plugin Slow blocks the scheduler: filter_node took 0.15 s in 3 calls"]


async def test_an_async_hook_that_waits_does_not_block_and_one_that_computes_does(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    clock = WallClock()

    class Waiting(PluginBase):
        @hookimpl
        async def pre_bind(self, pod: Pod) -> None:
            await trio.sleep(10)
            clock.seconds += 0.01
            await trio.sleep(10)

        @hookimpl
        async def post_bind(self, pod: Pod) -> None:
            await trio.sleep(10)
            clock.seconds += 3
            await trio.sleep(10)

    assert await log_of(caplog, Waiting, clock) == ["plugin Waiting blocks the scheduler: post_bind took 3.00 s"]


async def test_a_background_task_that_blocks_is_named(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    clock = WallClock()

    class Computing(PluginBase):
        @hookimpl
        async def run(self) -> None:
            await trio.sleep(100)
            clock.seconds += 1
            await trio.sleep_forever()

        @hookimpl
        def reserve(self) -> None:
            return None

    assert await log_of(caplog, Computing, clock) == ["plugin Computing blocks the scheduler: run took 1.00 s"]


async def test_a_hint_function_that_blocks_is_named(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    clock = WallClock()

    class Hinting(PluginBase):
        @hookimpl
        def filter_node(self, node: NodeView) -> Any:
            return unschedulable("no")

        @hookimpl
        def events_to_register(self) -> list[EventRegistration]:
            def hint(pod: Pod, old: object, new: object) -> Hint:
                clock.seconds += 1
                return Hint.SKIP

            return [on(Resource.NODE, Action.ADD, hint)]

    found = await log_of(caplog, Hinting, clock)
    assert found[0].startswith("plugin Hinting blocks the scheduler: hint took 1.00 s")


async def test_the_time_of_hooks_that_a_hook_calls_is_not_its_own(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    clock = WallClock()

    class Slow(PluginBase):
        @hookimpl
        def filter_node(self, pod: Pod, node: NodeView) -> Any:
            clock.seconds += 1 if self.log else 0
            return unschedulable("no")

        @hookimpl
        def post_filter(self, pod: Pod, state: Any) -> PostFilterResult | None:
            self.log.append(pod)
            self.handle.dry_run_preemption(pod, state, ["node-1"], 1)
            return None

    running = [pod("r", node_name="node-1"), pod("p", priority=5)]
    assert all("post_filter" not in line for line in await log_of(caplog, Slow, clock, *running))
    assert "filter_node took" in caplog.text


def turns(blocking: BlockingHooks, clock: WallClock, hook: BoundHook, *seconds: float) -> None:
    """Turns of the event loop, in each of which *hook* takes so long."""
    for taken in seconds:
        blocking.after_io_wait(0)
        hook.function(taken)
        blocking.before_io_wait(0)


def watched(name: str = "reserve") -> tuple[BlockingHooks, WallClock, BoundHook]:
    clock = WallClock()

    def block(seconds: float) -> None:
        clock.seconds += seconds

    hook = BoundHook("P", name, block, "p 1.0", code=block.__code__)
    times = HookTimes(clock)
    times.install([hook])
    return BlockingHooks(times), clock, hook


def test_a_hook_that_blocks_again_and_again_is_one_line_per_interval(caplog: pytest.LogCaptureFixture) -> None:
    blocking, clock, hook = watched()
    blocking.start()
    turns(blocking, clock, hook, *[1.0] * 30, 4.0, *[1.0] * 40)
    assert warnings(caplog) == [
        "plugin P blocks the scheduler: reserve took 1.00 s",
        "plugin P blocks the scheduler: reserve took 4.00 s, the longest of 57 times",
    ]
    assert blocking.last == ("P", "reserve")


def test_what_was_counted_is_logged_when_the_interval_is_over(caplog: pytest.LogCaptureFixture) -> None:
    blocking, clock, hook = watched()
    blocking.start()
    turns(blocking, clock, hook, 1.0, 2.0)
    clock.seconds += 60
    turns(blocking, clock, hook, 0.0)
    assert warnings(caplog)[1:] == ["plugin P blocks the scheduler: reserve took 2.00 s"]


def test_hooks_are_timed_at_the_start_and_after_the_loop_was_blocked_only(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    blocking, clock, hook = watched()
    plain = hook.function
    blocking.start()
    assert hook.function is not plain
    clock.seconds += 6
    turns(blocking, clock, hook, 0.0)
    assert hook.function is plain
    turns(blocking, clock, hook, 1.0)
    assert "nothing else ran for 1.00 s; hooks of plugins are timed for 300 s" in caplog.text
    assert warnings(caplog) == []  # it was not timed
    turns(blocking, clock, hook, 1.0)
    assert warnings(caplog) == ["plugin P blocks the scheduler: reserve took 1.00 s"]
    clock.seconds += 301
    turns(blocking, clock, hook, 0.0)
    assert hook.function is plain


def test_many_short_turns_of_a_task_are_not_added_to_one_in_which_something_else_blocks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    blocking, clock, run = watched("run")
    blocking.start()
    clock.seconds += 6
    turns(blocking, clock, run, *[0.01] * 500)  # calls of run are timed also while nothing else is
    blocking.after_io_wait(0)
    clock.seconds += 1
    blocking.before_io_wait(0)
    assert warnings(caplog) == []


def test_a_short_call_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    blocking, clock, hook = watched()
    blocking.start()
    blocking.after_io_wait(0)
    hook.function(0.02)
    clock.seconds += 3  # something else blocks
    blocking.before_io_wait(0)
    assert warnings(caplog) == []


async def test_without_plugins_of_other_packages_the_event_loop_is_not_watched(autojump_clock: MockClock) -> None:
    class Other(PluginBase):
        @hookimpl
        def reserve(self) -> None:
            return None

    for plugins, is_watched in (([], False), ([Other], True)):
        async with virtual_cluster(nodes=1, plugins=plugins) as cluster:
            assert cluster.scheduler.assembly is not None
            blocking = cluster.scheduler.assembly.blocking_hooks
            assert (not math.isnan(blocking._turn_began)) is is_watched


def test_a_hook_that_does_not_return_is_logged_with_its_stack_and_what_ends_the_process(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def innermost() -> None: ...

    blocking, _clock, _hook = watched()
    (found,) = (hook for hook in blocking.hook_times.hooks)
    assert found.code is not None
    stack = ((innermost.__code__, 9), (found.code, 7), (test_a_short_call_is_not_logged.__code__, 1))
    blocking._log_stuck(12.0, stack)
    assert blocking.last == ("P", "reserve")
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert record.getMessage().startswith(
        f"plugin {found.plugin} has stopped the scheduler: {found.hook} has not returned for 12 s"
    )
    assert [line.rpartition(", in ")[2] for line in vars(record)["stack"]] == ["innermost", "block"]
    blocking._log_stuck(24.0, stack[:1])
    assert caplog.messages[1] == "nothing has run for 24 s"
