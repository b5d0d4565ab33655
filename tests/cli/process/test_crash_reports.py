"""In processes, because they end."""

import resource
import signal
import subprocess
import sys
from typing import Final

import pytest
from full_pipe import full_pipe

from trio_sched.cli.process.crash_reports import crash_reports

SECONDS: Final = 30
PROGRAM: Final = """
import faulthandler, resource, sys, threading, time, trio
from trio_sched.cli.process.crash_reports import crash_reports
from trio_sched.cli.process.queued_streams import queued_streams
from trio_sched.cli.process.standard_streams import standard_error, standard_output
from trio_sched.daemon.logs.log_queue import drain_logs

def wait_in_a_thread():
    time.sleep(60)

async def wait_in_a_task():
    await trio.sleep_forever()

def sleeping_hook():
    print("ready", flush=True)
    while True:
        time.sleep(1)  # a signal just before the system call does not end it, so it must not be the only one

def spinning_hook():
    print("ready", flush=True)
    while True:
        pass

async def waiting_hook():
    print("ready", flush=True)
    await trio.sleep_forever()

async def main():
    threading.Thread(target=wait_in_a_thread, daemon=True).start()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait_in_a_task)
        await trio.sleep(0.01)
        STATEMENT

with standard_error(), standard_output(), queued_streams(), crash_reports(core_files=False):
    trio.run(main)
"""


def started(statement: str, stderr: int = subprocess.PIPE) -> subprocess.Popen[str]:
    program = [sys.executable, "-c", PROGRAM.replace("STATEMENT", statement)]
    process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=stderr, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("statement", ["sleeping_hook()", "spinning_hook()", "await waiting_hook()"])
def test_sigquit_says_all_stacks_and_tasks_and_ends_the_process_whatever_the_loop_does(statement: str) -> None:
    with started(statement) as process:
        process.send_signal(signal.SIGQUIT)
        _out, said = process.communicate(timeout=SECONDS)
    assert process.returncode == 2
    threads, _, tasks = said.partition("SIGQUIT: the stacks of all threads are above; tasks:\n")
    assert "in wait_in_a_thread" in threads
    assert tasks.startswith("<init>\n")
    assert "  __main__.main\n" in tasks
    assert "    __main__.wait_in_a_task\n      - wait_in_a_task (<string>:12)\n      - sleep_forever (" in tasks
    assert ("waiting_hook (<string>" in tasks) if "await" in statement else (f"in {statement[:-2]}" in threads)
    assert tasks.endswith("SIGQUIT: quit\n")


def test_sigquit_ends_a_process_whose_log_nobody_reads() -> None:
    with full_pipe() as unread, started("sleeping_hook()", unread) as process:
        process.send_signal(signal.SIGQUIT)
        assert process.wait(SECONDS) == 2


def test_a_crash_leaves_the_stacks_and_no_core_file() -> None:
    statement = "print(resource.getrlimit(resource.RLIMIT_CORE)[0]); drain_logs(); faulthandler._sigsegv()"
    program = [sys.executable, "-c", PROGRAM.replace("STATEMENT", statement)]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert done.returncode == -signal.SIGSEGV
    assert done.stdout == "0\n"
    assert "in wait_in_a_thread" in done.stderr


@pytest.mark.parametrize("asked", [True, False])
def test_core_files_are_only_limited_unless_asked_and_all_is_as_before_afterwards(asked: bool) -> None:
    limit, handler = resource.getrlimit(resource.RLIMIT_CORE), signal.getsignal(signal.SIGQUIT)
    resource.setrlimit(resource.RLIMIT_CORE, (min(4096, limit[1]) if limit[1] >= 0 else 4096, limit[1]))
    given = resource.getrlimit(resource.RLIMIT_CORE)
    try:
        with crash_reports(core_files=asked):
            assert resource.getrlimit(resource.RLIMIT_CORE) == ((given[0] if asked else 0), given[1])
            assert signal.getsignal(signal.SIGQUIT) != handler
        assert resource.getrlimit(resource.RLIMIT_CORE) == given
        assert signal.getsignal(signal.SIGQUIT) == handler
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, limit)
