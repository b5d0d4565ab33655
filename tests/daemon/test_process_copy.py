"""Questions that are answered in a copy of the process."""

import gc
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import trio
import trio.lowlevel

from trio_sched.daemon import process_copy
from trio_sched.daemon.process_copy import CopyFailed, ProcessCopy


async def run_in_copy(function: Callable[[], bytes], timeout_seconds: float = 60.0) -> bytes:
    copy = ProcessCopy(lambda _question: function(), lambda: 0)
    try:
        return await copy.ask(b"", timeout_seconds=timeout_seconds)
    finally:
        copy.close()


def is_there(pid: int) -> bool:
    """Whether the process runs: one that has ended stays a directory until its parent has asked for its status."""
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


async def until(reached: Callable[[], bool]) -> None:
    """Wait for other processes, which no simulated clock knows."""
    with trio.fail_after(20):
        while not reached():  # noqa: ASYNC110
            await trio.sleep(0.001)


async def test_the_result_comes_back_and_what_was_changed_does_not() -> None:
    changed = [0]

    def answer(question: bytes) -> bytes:
        changed[0] += 1
        return b"%d %d " % (changed[0], os.getpid()) + question

    copy = ProcessCopy(answer, lambda: 0)
    for _ in range(2):
        count, pid, question = (await copy.ask(b"x" * 300_000, timeout_seconds=60)).split()
        assert (count, question) == (b"1", b"x" * 300_000)
        assert int(pid) != os.getpid()
    assert changed == [0]
    copy.close()


async def test_other_tasks_run_meanwhile() -> None:
    ticks = 0

    async def count() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        assert await run_in_copy(lambda: str(sum(range(10**6))).encode()) == b"499999500000"
        nursery.cancel_scope.cancel()
    assert ticks > 100


@pytest.mark.parametrize(
    ("done_since", "is_new", "number"), [(0, False, b"2"), (1000, False, b"1"), (1000, True, b"2")]
)
async def test_a_copy_is_asked_again_while_the_process_is_busy(done_since: int, is_new: bool, number: bytes) -> None:
    state, done = [b"1"], [5]
    copy = ProcessCopy(lambda _question: state[0], lambda: done[0])
    assert await copy.ask(b"", timeout_seconds=60) == b"1"
    state[0] = b"2"
    done[0] += done_since
    assert await copy.ask(b"", timeout_seconds=60, is_new=is_new) == number
    copy.close()


async def test_a_copy_that_is_old_is_not_asked_however_busy_the_process_is(monkeypatch: pytest.MonkeyPatch) -> None:
    state, done = [b"1"], [5]
    copy = ProcessCopy(lambda _question: state[0], lambda: done[0])
    assert await copy.ask(b"", timeout_seconds=60) == b"1"
    state[0] = b"2"
    done[0] += 1_000_000
    monkeypatch.setattr(process_copy, "KEPT_SECONDS", 0.0)
    assert await copy.ask(b"", timeout_seconds=60) == b"2"
    copy.close()


async def test_another_copy_is_made_where_the_one_that_was_kept_has_died() -> None:
    done = [0]
    copy = ProcessCopy(lambda _question: b"%d" % os.getppid(), lambda: done[0])
    kept = int(await copy.ask(b"", timeout_seconds=60))
    os.kill(kept, signal.SIGKILL)
    await until(lambda: not is_there(kept))
    done[0] = 1000
    assert int(await copy.ask(b"", timeout_seconds=60)) != kept
    copy.close()


async def test_a_failure_is_told_with_its_words() -> None:
    with pytest.raises(CopyFailed, match="ZeroDivisionError"):
        await run_in_copy(lambda: bytes(1 // 0))


async def test_a_copy_that_dies_costs_itself() -> None:
    with pytest.raises(CopyFailed, match="was ended"):
        await run_in_copy(lambda: os.kill(os.getpid(), signal.SIGKILL) or b"")


async def test_an_answer_that_never_comes_is_given_up() -> None:
    def forever() -> bytes:
        while True:
            pass

    with pytest.raises(CopyFailed, match=r"longer than 0\.2 s"):
        await run_in_copy(forever, timeout_seconds=0.2)


async def test_a_copy_whose_answer_nobody_waits_for_any_more_is_ended(tmp_path: Path) -> None:
    file = tmp_path / "pid"

    def sleep() -> bytes:
        file.with_suffix(".new").write_text(str(os.getpid()))
        file.with_suffix(".new").rename(file)
        signal.pause()
        return b""

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_in_copy, sleep)
        await until(file.exists)
        assert is_there(int(file.read_text()))
        nursery.cancel_scope.cancel()
    await until(lambda: not is_there(int(file.read_text())))


async def test_locks_of_other_threads_do_not_matter() -> None:
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        held.set()
        release.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        assert await run_in_copy(lambda: b"fine") == b"fine"
    finally:
        release.set()
        thread.join()


async def test_no_process_and_no_file_is_left() -> None:
    before = set(os.listdir("/proc/self/fd"))
    for _ in range(5):
        await run_in_copy(lambda: b"fine")
    assert len(os.listdir("/proc/self/fd")) <= len(before)
    await until(lambda: not Path(f"/proc/self/task/{os.getpid()}/children").read_text())


@pytest.mark.filterwarnings("error")
async def test_a_copy_that_is_kept_ends_with_what_asks_it() -> None:
    copy = ProcessCopy(lambda _question: b"%d" % os.getppid(), lambda: 0)
    kept = int(await copy.ask(b"", timeout_seconds=60))
    assert is_there(kept)
    del copy
    gc.collect()
    await until(lambda: not is_there(kept))


async def test_the_copy_leaves_scarce_processors_to_the_scheduler() -> None:
    before = os.nice(0)
    assert int(await run_in_copy(lambda: str(os.nice(0)).encode())) > before
    assert os.nice(0) == before
