import pytest
import trio
from trio.testing import MockClock

from trio_sched.simulator.controllers.steps import Steps


async def test_of_several_times_for_the_same_step_the_earliest_counts(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    steps, taken = Steps(), []

    def note(key: str) -> None:
        taken.append((key, trio.current_time()))

    nursery.start_soon(steps.run)
    began = trio.current_time()
    for key, wait in (("a", 60.0), ("a", 1.0), ("a", 5.0), ("b", 2.0)):
        steps.plan(note, key, wait)
    assert steps.is_busy
    await trio.sleep(100)
    assert taken == [("a", pytest.approx(began + 1)), ("b", pytest.approx(began + 2))]
    assert not steps.is_busy
