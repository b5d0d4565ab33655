import pytest
import trio
from trio.testing import MockClock

from trio_sched.simulator.controllers.work_queue import WorkQueue
from trio_sched.simulator.errors.status_errors import ApiError


async def test_of_several_times_for_the_same_step_the_earliest_counts(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    steps, taken = WorkQueue(), []

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


async def test_what_is_refused_does_not_end_the_others(
    nursery: trio.Nursery, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    steps, taken = WorkQueue(), []

    def act(key: str) -> None:
        if key == "bad":
            raise ApiError(403, "Forbidden", "not this one")
        taken.append(key)

    nursery.start_soon(steps.run)
    for key in ("bad", "good"):
        steps.plan(act, key, 1.0)
    await trio.sleep(2)
    assert taken == ["good"]
    assert "bad: a controller was refused what it tried: not this one" in caplog.text
