"""Functions that run in a copy of the process."""

import os
import signal
import threading

import pytest
import trio
import trio.lowlevel

from trio_sched.daemon.process_copy import CopyFailed, run_in_copy


async def test_the_result_comes_back_and_what_was_changed_does_not() -> None:
    changed = [0]

    def function() -> bytes:
        changed[0] = 1
        return b"x" * 300_000 + str(os.getpid()).encode()

    received = await run_in_copy(function, timeout_seconds=60)
    assert received.startswith(b"x" * 300_000)
    assert int(received[300_000:]) != os.getpid()
    assert changed == [0]


async def test_other_tasks_run_meanwhile() -> None:
    ticks = 0

    async def count() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        assert await run_in_copy(lambda: str(sum(range(10**6))).encode(), timeout_seconds=60) == b"499999500000"
        nursery.cancel_scope.cancel()
    assert ticks > 100


async def test_a_failure_is_told_with_its_words() -> None:
    with pytest.raises(CopyFailed, match="ZeroDivisionError"):
        await run_in_copy(lambda: bytes(1 // 0), timeout_seconds=60)


async def test_a_copy_that_dies_costs_itself() -> None:
    with pytest.raises(CopyFailed, match=f"ended by signal {signal.SIGKILL.value}"):
        await run_in_copy(lambda: os.kill(os.getpid(), signal.SIGKILL) or b"", timeout_seconds=60)


async def test_a_copy_that_never_ends_is_ended() -> None:
    def forever() -> bytes:
        while True:
            pass

    with pytest.raises(CopyFailed, match=r"longer than 0\.2 s"):
        await run_in_copy(forever, timeout_seconds=0.2)


async def test_locks_of_other_threads_do_not_matter() -> None:
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        held.set()
        release.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        assert await run_in_copy(lambda: b"fine", timeout_seconds=60) == b"fine"
    finally:
        release.set()
        thread.join()


async def test_no_process_and_no_file_is_left() -> None:
    before = set(os.listdir("/proc/self/fd"))
    for _ in range(5):
        await run_in_copy(lambda: b"fine", timeout_seconds=60)
    assert len(os.listdir("/proc/self/fd")) <= len(before)
    with pytest.raises(ChildProcessError):
        await trio.to_thread.run_sync(os.waitpid, -1, os.WNOHANG)


async def test_the_copy_leaves_scarce_processors_to_the_scheduler() -> None:
    before = os.nice(0)
    assert int(await run_in_copy(lambda: str(os.nice(0)).encode(), timeout_seconds=20)) > before
    assert os.nice(0) == before
