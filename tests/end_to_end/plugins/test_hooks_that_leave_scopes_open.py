"""Hooks that leave nurseries or cancel scopes open: they cost their pods, not the daemon, whose task they run in."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from typing import Any, ClassVar

import pytest
import trio
from plugin_base import PluginBase
from trio.testing import MockClock

from trio_sched.plugin_api import Pod, hookimpl
from trio_sched.testing import pod, virtual_cluster

UNLUCKY = ("unlucky-1", "unlucky-2", "unlucky-3")


class LeavesOpen(PluginBase):
    """Calls *leave* for unlucky pods; each of the hooks can be the one."""

    hook: ClassVar[str] = ""
    leave: ClassVar[Any] = None
    kept: ClassVar[list[Any]] = []

    async def _at(self, hook: str, pod: Pod) -> None:
        if hook == self.hook and pod.name in UNLUCKY:
            await type(self).leave(self.kept)

    @hookimpl
    async def pre_bind(self, pod: Pod) -> None:
        await self._at("pre_bind", pod)

    @hookimpl
    async def post_bind(self, pod: Pod) -> None:
        await self._at("post_bind", pod)

    @hookimpl
    async def post_filter(self, pod: Pod) -> None:
        await self._at("post_filter", pod)


async def a_nursery(kept: list[Any]) -> None:
    manager = trio.open_nursery()
    kept.append(manager)
    nursery = await manager.__aenter__()
    nursery.start_soon(trio.sleep_forever)


async def nurseries_and_scopes(kept: list[Any]) -> None:
    await a_nursery(kept)
    trio.move_on_after(3).__enter__()
    await a_nursery(kept)
    trio.fail_after(5).__enter__()


async def a_nursery_with_a_failing_task(kept: list[Any]) -> None:
    async def fail() -> None:
        await trio.sleep(2)
        raise KeyError("late")

    await a_nursery(kept)
    kept[-1]._nursery.start_soon(fail)


async def a_scope(_kept: list[Any]) -> None:
    trio.CancelScope(deadline=trio.current_time() + 5).__enter__()


async def a_generator(kept: list[Any]) -> None:
    async def numbers() -> AsyncIterator[int]:
        with trio.fail_after(5):
            for number in range(3):
                yield number
                await trio.sleep(0.1)

    found = numbers()
    kept.append(found)
    async for _number in found:
        break


@pytest.mark.parametrize(
    "leave", [a_nursery, nurseries_and_scopes, a_nursery_with_a_failing_task, a_scope, a_generator]
)
@pytest.mark.parametrize("hook", ["pre_bind", "post_bind", "post_filter"])
async def test_what_is_left_open_costs_the_pod(
    hook: str, leave: Any, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    LeavesOpen.hook, LeavesOpen.leave = hook, staticmethod(leave)
    async with virtual_cluster(nodes=2, plugins=[LeavesOpen]) as cluster:
        for name in UNLUCKY:
            await cluster.create(pod(name, cpu="900" if hook == "post_filter" else "10m"))
        await trio.sleep(100)
        for number in range(40):  # every task that binds pods has its turn
            await cluster.create(pod(f"p{number}", cpu="10m"))
        await trio.sleep(20)
        assert all(cluster.pod(f"p{number}").node_name for number in range(40))
        assert [bool(cluster.pod(name).node_name) for name in UNLUCKY] == [hook == "post_bind"] * 3
        await cluster.stop_scheduler()
        cluster.scheduler.raise_failure()
        for generator in (one for one in LeavesOpen.kept if isinstance(one, AsyncGenerator)):
            with suppress(RuntimeError):  # its scope has been abandoned
                await generator.aclose()
    assert f"plugin LeavesOpen failed at {hook}: {hook} raised " in caplog.text
    assert "LeftOpen: it has returned inside of " in caplog.text
    LeavesOpen.kept.clear()
