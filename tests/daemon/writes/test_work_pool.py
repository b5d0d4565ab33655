import weakref
from functools import partial

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from trio_sched.daemon.writes.work_pool import WorkPool


async def test_jobs_are_started_in_the_order_in_which_they_were_given(nursery: trio.Nursery) -> None:
    pool, done = WorkPool(1), []

    async def job(number: int) -> None:
        done.append(number)

    for number in range(5):
        pool.submit(partial(job, number))
    nursery.start_soon(pool.run)
    await pool.drained()
    assert done == [0, 1, 2, 3, 4]


async def test_no_more_jobs_run_at_once_than_there_are_tasks(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    pool, running, most = WorkPool(3), 0, 0

    async def job() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await trio.sleep(1)
        running -= 1

    nursery.start_soon(pool.run)
    for _ in range(7):
        pool.submit(job)
    assert pool.unfinished == 7
    await pool.drained()
    assert (most, trio.current_time(), pool.unfinished) == (3, 3.0, 0)


async def test_idle_tasks_run_later_jobs(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    pool, done = WorkPool(2), trio.Event()

    async def job() -> None:
        done.set()

    nursery.start_soon(pool.run)
    await wait_all_tasks_blocked()
    pool.submit(job)
    with trio.fail_after(1):
        await done.wait()
    assert trio.current_time() == 0


async def test_all_tasks_that_wait_for_the_pool_to_drain_are_woken(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    pool = WorkPool(1)
    nursery.start_soon(pool.run)
    pool.submit(partial(trio.sleep, 5))
    async with trio.open_nursery() as waiters:
        waiters.start_soon(pool.drained)
        waiters.start_soon(pool.drained)
    assert trio.current_time() == 5.0


async def test_waiting_for_an_idle_pool_returns_at_once(autojump_clock: MockClock) -> None:
    with trio.fail_after(1):
        await WorkPool(1).drained()
    assert trio.current_time() == 0


async def test_a_job_added_while_draining_is_waited_for(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    pool = WorkPool(1)
    nursery.start_soon(pool.run)

    async def first() -> None:
        await trio.sleep(1)
        pool.submit(partial(trio.sleep, 1))

    pool.submit(first)
    await pool.drained()
    assert trio.current_time() == 2.0


async def test_what_a_job_raises_ends_the_pool() -> None:
    pool = WorkPool(2)

    async def job() -> None:
        raise ZeroDivisionError

    pool.submit(job)
    with pytest.RaisesGroup(ZeroDivisionError, flatten_subgroups=True):
        await pool.run()
    assert pool.unfinished == 0


async def test_discarded_jobs_are_not_run_and_not_waited_for(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    pool, ran = WorkPool(1), list[int]()

    async def job(number: int) -> None:
        await trio.sleep(2)
        ran.append(number)

    for number in range(3):
        pool.submit(partial(job, number))
    pool.discard_waiting()
    await pool.drained()  # no task has started one yet
    nursery.start_soon(pool.run)
    for number in range(3, 6):
        pool.submit(partial(job, number))
    await trio.sleep(1)
    pool.discard_waiting()
    await pool.drained()
    assert (ran, trio.current_time()) == ([3], 2)


async def test_idle_tasks_keep_nothing_of_the_jobs_they_have_run(nursery: trio.Nursery) -> None:
    pool = WorkPool(2)

    class Pod:
        async def run(self) -> None:
            await trio.lowlevel.checkpoint()

    nursery.start_soon(pool.run)
    pods = [Pod() for _ in range(5)]
    gone = [weakref.ref(one) for one in pods]
    for one in pods:
        pool.submit(partial(one.run))
    del one
    pods.clear()
    await pool.drained()
    await wait_all_tasks_blocked()
    assert [found() for found in gone] == [None] * 5


async def test_how_long_jobs_wait_and_run_is_measured(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    pool = WorkPool(2)
    nursery.start_soon(pool.run)
    for seconds in (3, 4, 5):
        pool.submit(partial(trio.sleep, seconds))
    await trio.sleep(3.5)
    assert pool.times.running_seconds() == (3.5 + 0.5, 3.5)
    await pool.drained()
    assert (pool.times.waited.count, pool.times.waited.sum) == (3, 3.0)
    assert (pool.times.worked.count, pool.times.worked.sum) == (3, 12.0)
    assert pool.times.running_seconds() == (0, 0)


async def test_a_job_that_fails_is_not_measured_for_ever() -> None:
    pool = WorkPool(1)

    async def job() -> None:
        raise ZeroDivisionError

    pool.submit(job)
    with pytest.RaisesGroup(ZeroDivisionError, flatten_subgroups=True):
        await pool.run()
    assert (pool.times.worked.count, pool.times.running_seconds()) == (1, (0, 0))
