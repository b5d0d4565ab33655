import logging
import math
import threading
import time
from typing import Any

import pytest
import trio
from attrs import evolve
from plugin_base import PluginBase
from trio.testing import MockClock

from trio_sched.daemon.hooks.loop_sampler import LoopSampler, Stack
from trio_sched.plugin_api import NodeView, Pod, hookimpl
from trio_sched.testing import pod, virtual_cluster


def compute_slowly(seconds: float) -> None:
    """Compute for so long by the clock of the thread: where it has no processor, nor may have the one that samples."""
    ends = time.thread_time() + seconds
    while time.thread_time() < ends:
        sum(range(100))


class Slow(PluginBase):
    @hookimpl
    def filter_node(self, pod: Pod, node: NodeView) -> None:
        compute_slowly(0.25)


def test_a_turn_that_takes_long_is_sampled() -> None:
    sampler = LoopSampler(0.01, math.inf, lambda _seconds, _stack: None)
    with sampler.running():
        sampler.turn_begins()
        compute_slowly(0.1)
        sampler.turn_ends()
        stack = sampler.take()
        assert stack is not None
        names = [code.co_name for code, _line in stack]
        assert names.index("compute_slowly") < names.index("test_a_turn_that_takes_long_is_sampled")
        assert sampler.take() is None
        compute_slowly(0.05)  # the loop waits: whatever runs now is none of its tasks
        assert sampler.take() is None


def test_a_turn_that_does_not_end_is_reported_while_it_lasts_and_again_later() -> None:
    reports: list[tuple[float, str]] = []

    def report(seconds: float, stack: Stack) -> None:
        reports.append((seconds, stack[0][0].co_name))

    def compute_until_it_is_seen() -> None:
        until = time.monotonic() + 20.0
        while len(reports) < 3 and time.monotonic() < until:
            pass

    sampler = LoopSampler(0.001, 0.01, report)
    with sampler.running():
        sampler.turn_begins()
        compute_until_it_is_seen()
        sampler.turn_ends()
    (first, name), (second, _), (third, _) = reports[:3]
    assert name == "compute_until_it_is_seen"
    assert 0.01 <= first < second < third
    assert (second >= 0.02, third >= 0.04) == (True, True)


def test_its_thread_ends_with_the_block_and_sleeps_while_nothing_happens() -> None:
    sampler = LoopSampler(0.001, math.inf, lambda _seconds, _stack: None)
    before = threading.active_count()
    with sampler.running():
        for _ in range(50):
            sampler.turn_begins()
            sampler.turn_ends()
        time.sleep(0.02)
        assert sampler._is_parked
        assert threading.active_count() == before + 1
    assert threading.active_count() == before


async def test_a_hook_that_blocks_is_named_with_its_place_and_where_it_stood(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with virtual_cluster(nodes=1, plugins=[Slow]) as cluster:
        await cluster.create(pod("p"))
        await cluster.settle()
    (record,) = [one for one in caplog.records if "blocks the scheduler" in one.getMessage()]
    fields: dict[str, Any] = record.__dict__
    code = Slow.filter_node.__code__
    assert fields["file"] == f"{__file__}, line {code.co_firstlineno}"
    assert fields["stoodAt"].startswith(f"{__file__}, line ")
    assert fields["stoodAt"].endswith("(in compute_slowly)")


async def test_also_if_hooks_are_not_timed_one_by_one(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with virtual_cluster(nodes=1, plugins=[Slow]) as cluster:
        cluster.scheduler.assembly.hook_times.switch_off()
        await cluster.create(pod("p"))
        await cluster.settle()
    (record,) = [one for one in caplog.records if "blocks the scheduler" in one.getMessage()]
    assert record.getMessage().startswith("plugin Slow blocks the scheduler: filter_node took ")


async def test_the_budget_can_be_set(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    async with virtual_cluster(nodes=1, plugins=[Slow], scheduler=False) as cluster:
        cluster._settings = evolve(cluster._settings, plugin_budget_seconds=5.0)
        await cluster.start_scheduler()
        await cluster.create(pod("p"))
        await cluster.settle()
        await trio.sleep(1)
    assert "blocks the scheduler" not in caplog.text


def test_while_a_turn_is_stuck_something_else_may_be_done_in_the_thread() -> None:
    calls: list[tuple[float, float]] = []

    def meanwhile(seconds: float, step: float) -> None:
        calls.append((seconds, step))
        time.sleep(step)

    sampler = LoopSampler(0.001, 0.01, lambda _seconds, _stack: None)
    sampler.while_stuck = meanwhile
    with sampler.running():
        sampler.turn_begins()
        until = time.monotonic() + 20.0
        while len(calls) < 2 and time.monotonic() < until:
            pass
        sampler.turn_ends()
    assert 0.01 <= calls[0][0] < calls[1][0]
