import trio
from trio.testing import MockClock

from trio_sched.daemon.hooks.hook_time_limit import HookScope, HookScopes, time_does_not_count
from trio_sched.daemon.limits import HOOK_SECONDS


async def test_the_time_starts_over_after_what_does_not_count(autojump_clock: MockClock) -> None:
    with HookScope() as scope:
        scope.start()
        await trio.sleep(HOOK_SECONDS - 1)
        with time_does_not_count():
            await trio.sleep(10 * HOOK_SECONDS)
        await trio.sleep(HOOK_SECONDS - 1)
        assert not scope.cancel_called
        await trio.sleep(2)
    assert scope.cancel_called
    assert trio.current_time() == 12 * HOOK_SECONDS - 1


async def test_the_time_does_not_count_as_long_as_one_of_several_tasks_says_so(autojump_clock: MockClock) -> None:
    async def wait(seconds: float) -> None:
        with time_does_not_count():
            await trio.sleep(seconds)

    with HookScope() as scope:
        scope.start()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait, 1)
            nursery.start_soon(wait, 5 * HOOK_SECONDS)
    assert not scope.cancel_called


async def test_a_task_that_has_outlived_its_call_does_not_change_the_limit(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    async def outlive() -> None:
        with time_does_not_count():
            await trio.sleep(10)
        with time_does_not_count():
            await trio.sleep(10)

    with HookScopes().open() as scope:
        scope.start()
        nursery.start_soon(outlive)
        await trio.sleep(1)
        scope.stop()
        await trio.sleep(10)
        assert scope.ends == float("inf")
        scope.start()
        await trio.sleep(5)
        assert scope.ends == 11 + HOOK_SECONDS


async def test_scopes_are_cancelled_when_their_call_takes_too_long_and_only_then(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    scopes = HookScopes()
    nursery.start_soon(scopes.run)
    with scopes.open() as idle, scopes.open() as busy:
        await trio.sleep(7)
        busy.start()
        await trio.sleep_forever()
    assert (idle.cancel_called, busy.cancel_called) == (False, True)
    assert trio.current_time() == 7 + HOOK_SECONDS
    with scopes.open() as idle:
        await trio.sleep(10 * HOOK_SECONDS)
    assert not idle.cancel_called
