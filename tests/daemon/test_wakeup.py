import pytest
import trio
from trio.testing import MockClock

from trio_sched.daemon.wakeup import Bell


async def test_a_ring_before_anybody_waits_is_not_lost(autojump_clock: MockClock) -> None:
    bell = Bell()
    bell.ring()
    with trio.fail_after(1):
        await bell.wait()
    assert trio.current_time() == 0


async def test_many_rings_wake_once(autojump_clock: MockClock) -> None:
    bell = Bell()
    bell.ring()
    bell.ring()
    await bell.wait()
    with pytest.raises(trio.TooSlowError):
        with trio.fail_after(1):
            await bell.wait()


async def test_a_wait_that_is_given_up_does_not_use_up_the_next_ring(autojump_clock: MockClock) -> None:
    bell = Bell()
    with trio.move_on_after(1):
        await bell.wait()
    bell.ring()
    with trio.fail_after(1):
        await bell.wait()
    assert trio.current_time() == 1
