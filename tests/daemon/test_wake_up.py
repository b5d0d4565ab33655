import pytest
import trio
from trio.testing import MockClock

from trio_sched.daemon.wake_up import WakeUp


async def test_set_before_the_wait_is_not_lost(autojump_clock: MockClock) -> None:
    wake_up = WakeUp()
    wake_up.set()
    with trio.fail_after(1):
        await wake_up.wait()
    assert trio.current_time() == 0


async def test_set_many_times_wakes_once(autojump_clock: MockClock) -> None:
    wake_up = WakeUp()
    wake_up.set()
    wake_up.set()
    await wake_up.wait()
    with pytest.raises(trio.TooSlowError):
        with trio.fail_after(1):
            await wake_up.wait()


async def test_a_cancelled_wait_does_not_use_up_the_next_set(autojump_clock: MockClock) -> None:
    wake_up = WakeUp()
    with trio.move_on_after(1):
        await wake_up.wait()
    wake_up.set()
    with trio.fail_after(1):
        await wake_up.wait()
    assert trio.current_time() == 1
