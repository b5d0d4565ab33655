"""The hooks that keep a process from ending are found and named."""

import pytest
import trio
from trio.testing import MockClock

from trio_sched.daemon.hooks.hook_calls import make_call, run_in_background
from trio_sched.daemon.limits import MAX_END_SECONDS
from trio_sched.daemon.shutdown_watchdog import wait_for_overdue_hooks
from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.engine.hooks.plugin_calls import HookCall


async def refuse_to_end() -> None:
    try:
        await trio.sleep_forever()
    finally:
        with trio.CancelScope(shield=True):
            await trio.sleep(100)


@pytest.mark.parametrize("hook", ["pre_bind", "bind", "run"])
async def test_a_hook_that_goes_on_after_it_was_cancelled_is_named(autojump_clock: MockClock, hook: str) -> None:
    bound, ending = BoundHook("Stubborn", hook, refuse_to_end), trio.Event()
    async with trio.open_nursery() as nursery:
        if hook == "run":
            nursery.start_soon(run_in_background, bound)
        else:
            nursery.start_soon(make_call, HookCall(bound, ()))
        await trio.sleep(3)
        nursery.cancel_scope.cancel()
        ending.set()
        with trio.CancelScope(shield=True):
            assert await wait_for_overdue_hooks(ending) == [f"{hook} of plugin Stubborn"]
        assert trio.current_time() == 3 + MAX_END_SECONDS


async def test_where_hooks_end_in_time_none_is_named_however_long_the_rest_takes(autojump_clock: MockClock) -> None:
    ending = trio.Event()
    with trio.move_on_after(1000) as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run_in_background, BoundHook("Quick", "run", trio.sleep_forever))
            await trio.sleep(1)
            nursery.cancel_scope.cancel()
        ending.set()
        await wait_for_overdue_hooks(ending)
    assert scope.cancelled_caught
