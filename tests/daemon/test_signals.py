import signal
import subprocess
import sys

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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_the_first_signal_requests_the_stop(number: signal.Signals) -> None:
    before = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)}
    stop = trio.Event()
    async with trio.open_nursery() as nursery:
        await nursery.start(stop_on_signal, stop)
        assert not stop.is_set()
        signal.raise_signal(number)
        with trio.fail_after(5):
            await stop.wait()
        nursery.cancel_scope.cancel()
    assert {one: signal.getsignal(one) for one in before} == before


def test_the_second_signal_ends_the_process_even_if_it_is_stuck() -> None:
    with subprocess.Popen([sys.executable, "-c", STUCK], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "stopping\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 1
