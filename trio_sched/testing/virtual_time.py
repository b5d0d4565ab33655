"""Runs tests on a clock that jumps to the next deadline whenever every task waits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import trio

from trio_sched.simulation.simulated_cluster import same_order
from trio_sched.simulator import jumping_clock

T = TypeVar("T")


def run_virtual(function: Callable[..., Awaitable[T]], *args: Any) -> T:
    """Call the async *function* with *args*, and run it on a clock that jumps: hours of waiting take no time.

    For scripts, and for tests that are plain functions::

        async def watch() -> None:
            async with virtual_cluster(nodes=3, plugins=[MyPlugin]) as cluster:
                await cluster.create(pod("p"))
                await cluster.wait_scheduled("p")


        run_virtual(watch)

    Tasks run in the same order every time. The clock waits for threads that run (``trio.to_thread``, ``trio.Path``).

    Returns:
        What *function* returns.

    Raises:
        RuntimeError: trio runs already; ``await`` the function there.
    """
    with same_order():
        return trio.run(function, *args, clock=jumping_clock())
