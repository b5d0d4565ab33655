import time

import trio

from trio_sched.simulator import jumping_clock


def test_the_clock_jumps() -> None:
    async def wait() -> float:
        await trio.sleep(80_000)
        return trio.current_time()

    assert trio.run(wait, clock=jumping_clock()) == 80_000


def test_jumps_end_at_steps() -> None:
    async def wait() -> list[tuple[float, float]]:
        woken = []

        async def sleep(seconds: float) -> None:
            await trio.sleep(seconds)
            woken.append((seconds, trio.current_time()))

        async with trio.open_nursery() as nursery:
            for seconds in (0.3, 0.5, 0.6, 80.1):
                nursery.start_soon(sleep, seconds)
        return sorted(woken)

    assert trio.run(wait, clock=jumping_clock(0.5)) == [(0.3, 0.5), (0.5, 0.5), (0.6, 1.0), (80.1, 80.5)]


def test_time_stands_still_while_a_thread_runs() -> None:
    async def wait() -> list[str]:
        told = []

        async def sleep() -> None:
            await trio.sleep(3600)
            told.append("an hour has passed")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(sleep)
            await trio.to_thread.run_sync(time.sleep, 0.05)
            told.append(f"the thread ended at {trio.current_time():g} s")
            await trio.Path(__file__).read_text(encoding="utf-8")
            told.append(f"the file was read at {trio.current_time():g} s")
        return told

    assert trio.run(wait, clock=jumping_clock()) == [
        "the thread ended at 0 s",
        "the file was read at 0 s",
        "an hour has passed",
    ]


def test_a_thread_that_is_abandoned_does_not_stop_the_clock_for_longer_than_it_runs() -> None:
    async def wait() -> float:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: trio.to_thread.run_sync(time.sleep, 0.02, abandon_on_cancel=True))
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        await trio.sleep(60)
        return trio.current_time()

    assert trio.run(wait, clock=jumping_clock()) == 60


def test_what_is_remembered_of_the_time_follows_every_jump() -> None:
    clock = jumping_clock()

    async def main() -> list[float]:
        began = trio.current_time()
        await trio.sleep(3)
        after_sleep = trio.current_time() - began
        clock.jump(2.5)
        return [after_sleep, trio.current_time() - began, clock.current_time() - began]

    assert trio.run(main, clock=clock) == [3, 5.5, 5.5]
