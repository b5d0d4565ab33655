import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest
import trio

from trio_sched.daemon.signals import stop_on_signal

STUCK = """
import time, trio
from trio_sched.daemon.signals import stop_on_signal

async def main():
    stop = trio.Event()
    async with trio.open_nursery() as nursery:
        await nursery.start(stop_on_signal, stop)
        print("ready", flush=True)
        await stop.wait()
        print("stopping", flush=True)
        time.sleep(60)  # the event loop does not answer any more

trio.run(main)
"""
ALL = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


@pytest.fixture(autouse=True)
def _handlers_as_before() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in ALL}
    yield
    assert {number: signal.getsignal(number) for number in ALL} == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_the_first_signal_requests_the_stop(number: signal.Signals) -> None:
    stop = trio.Event()
    async with trio.open_nursery() as nursery:
        await nursery.start(stop_on_signal, stop)
        assert not stop.is_set()
        signal.raise_signal(number)
        with trio.fail_after(5):
            await stop.wait()
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2])
async def test_user_signals_are_logged_and_change_nothing(
    number: signal.Signals, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    stop = trio.Event()
    async with trio.open_nursery() as nursery:
        await nursery.start(stop_on_signal, stop)
        signal.raise_signal(number)
        await trio.testing.wait_all_tasks_blocked()
        assert not stop.is_set()
        assert [record.signal for record in caplog.records] == [number.name]  # type: ignore[attr-defined]
        signal.raise_signal(signal.SIGTERM)
        await stop.wait()
        signal.raise_signal(number)  # still harmless while the daemon ends
        nursery.cancel_scope.cancel()


async def test_a_second_hangup_does_not_hurry_the_stop() -> None:
    stop = trio.Event()
    async with trio.open_nursery() as nursery:
        await nursery.start(stop_on_signal, stop)
        signal.raise_signal(signal.SIGHUP)
        await stop.wait()
        signal.raise_signal(signal.SIGHUP)  # a shell and its terminal both send one
        nursery.cancel_scope.cancel()


async def test_hangups_stay_ignored_where_nohup_has_started_the_process() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        stop = trio.Event()
        async with trio.open_nursery() as nursery:
            await nursery.start(stop_on_signal, stop)
            os.kill(os.getpid(), signal.SIGHUP)
            await trio.testing.wait_all_tasks_blocked()
            assert not stop.is_set()
            nursery.cancel_scope.cancel()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_second_signal_ends_the_process_even_if_nothing_has_read_the_first() -> None:
    program = STUCK.replace("await stop.wait()", "while True: pass  # a plugin's endless loop")
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        for _ in range(200):  # two that are sent at once may arrive as one
            process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.05)
                break
        assert process.poll() == 1
        process.kill()


@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_the_second_signal_ends_the_process_even_if_it_is_stuck(first: signal.Signals, second: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", STUCK], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(first)
        assert process.stdout.readline() == "stopping\n"
        process.send_signal(second)
        assert process.wait(10) == 1
