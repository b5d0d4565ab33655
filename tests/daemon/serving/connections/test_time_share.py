"""Work for strangers gets a share of the event loop's time, and what asks for little gets it first."""

import gc
import sys

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from trio_sched.daemon.serving.connections import time_share
from trio_sched.daemon.serving.connections.time_share import Rank, TimeShare, timed

LOW, HIGH = (False, 0.0), (False, 1.0)


async def served(share: TimeShare, waiting: dict[str, Rank]) -> list[str]:
    """The order in which those that wait have their turns, if each spends a second."""
    order = []

    async def ask(name: str, rank: Rank) -> None:
        await share.turn(rank)
        order.append(name)
        share.spend(1.0)

    share.spend(share.burst_seconds + 1.0)
    async with trio.open_nursery() as nursery:
        for name, rank in waiting.items():
            nursery.start_soon(ask, name, rank)
            await wait_all_tasks_blocked()
        nursery.start_soon(share.run)
        await trio.sleep(100.0)
        nursery.cancel_scope.cancel()
    return order


async def test_more_than_the_share_has_to_wait(autojump_clock: MockClock) -> None:
    share = TimeShare(share=0.25, burst_seconds=0.5)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(share.run)
        began = trio.current_time()
        for _ in range(20):
            await share.turn(LOW)
            share.spend(0.25)
        assert 17.0 <= trio.current_time() - began <= 20.0  # five seconds of work, a quarter of the time
        nursery.cancel_scope.cancel()


async def test_a_quiet_time_is_not_saved_up_for_later(autojump_clock: MockClock) -> None:
    share = TimeShare(share=0.5, burst_seconds=1.0)
    await trio.sleep(1000.0)
    share.spend(1.5)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(share.run)
        began = trio.current_time()
        await share.turn(LOW)
        assert trio.current_time() - began == pytest.approx(1.0, abs=0.1)
        nursery.cancel_scope.cancel()


async def test_nobody_waits_long_for_what_was_spent_without_a_turn(autojump_clock: MockClock) -> None:
    share = TimeShare(share=0.5, burst_seconds=1.0)
    share.spend(1000.0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(share.run)
        began = trio.current_time()
        await share.turn(LOW)
        assert trio.current_time() - began == pytest.approx(2.0, abs=0.1)
        nursery.cancel_scope.cancel()


async def test_who_has_spent_less_comes_first(autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_share, "TURN_SECONDS", 1000.0)
    share = TimeShare(share=0.5, burst_seconds=1.0)
    waiting = {"much": (False, 0.2), "crowd": (True, 0.0), "little": (False, 0.1)}
    assert await served(share, waiting) == ["little", "much", "crowd"]


async def test_the_newest_and_the_oldest_take_turns(autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_share, "TURN_SECONDS", 1000.0)
    share = TimeShare(share=0.5, burst_seconds=1.0)
    order = await served(share, dict.fromkeys("abcdef", LOW))
    assert "".join(order) == "faebdc"


async def test_turns_are_given_at_once_if_there_is_time_for_them(autojump_clock: MockClock) -> None:
    share = TimeShare(share=0.5, burst_seconds=0.02)
    given: list[int] = []

    async def ask(number: int) -> None:
        await share.turn(LOW)
        given.append(number)

    async with trio.open_nursery() as nursery:
        share.spend(0.03)
        for number in range(20):
            nursery.start_soon(ask, number)
        await wait_all_tasks_blocked()
        await trio.sleep(1.0)
        nursery.start_soon(share.run)
        for _ in range(4):
            await trio.lowlevel.checkpoint()
        assert len(given) == 20
        nursery.cancel_scope.cancel()


async def test_who_waits_too_long_is_told_and_forgotten(autojump_clock: MockClock) -> None:
    share = TimeShare(share=0.001, burst_seconds=0.1)
    share.spend(0.2)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(share.run)
        began = trio.current_time()
        with pytest.raises(trio.TooSlowError):
            await share.turn(LOW)
        assert trio.current_time() - began == time_share.TURN_SECONDS
        nursery.cancel_scope.cancel()
    assert not share._waiting


async def test_only_the_steps_of_a_task_count(autojump_clock: MockClock) -> None:
    steps: list[float] = []

    async def work() -> str:
        await trio.sleep(10.0)
        with trio.move_on_after(5.0):
            await trio.sleep_forever()
        return "done"

    assert await timed(work(), steps.append) == "done"
    assert len(steps) == 3
    assert sum(steps) < 1.0


async def test_errors_go_through_and_leave_nothing_behind(autojump_clock: MockClock) -> None:
    async def fail() -> None:
        with trio.move_on_after(1.0):
            await trio.sleep_forever()
        raise KeyError("oops")

    gc.collect()
    gc.disable()
    try:
        error: KeyError | None = None
        try:
            await timed(fail(), lambda _seconds: None)
        except KeyError as raised:
            error = raised
        assert error is not None
        error.__traceback__ = error.__context__ = None
        assert sys.getrefcount(error) <= 2  # newer Pythons do not count the argument
    finally:
        gc.enable()
