"""What is said when the daemon crashes or gets SIGQUIT: stacks and tasks, and no core file, which has tokens in it."""

import faulthandler
import os
import resource
import signal
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from types import FrameType
from typing import Final

import trio

from trio_sched.daemon.logs.log_queue import drain_logs
from trio_sched.daemon.task_stacks import frames_of, walk_tasks

_STDERR: Final = 2
_QUIT_EXIT_CODE: Final = 2
"""The exit code of programs in Go that end so."""
_MOST_TASKS: Final = 1000
_MOST_FRAMES: Final = 50


@contextmanager
def crash_reports(*, core_files: bool) -> Iterator[None]:
    """While in the block, the stacks of all threads are written when the process crashes, and on SIGQUIT.

    That is done whatever the threads do, the event loop included. SIGQUIT also writes all tasks, and ends the process.

    Args:
        core_files: leave the limit of core files as it is.
    """
    with _unwaited_stderr() as descriptor, _limited_core_files(core_files):
        crashes = not faulthandler.is_enabled()
        if crashes:
            faulthandler.enable(descriptor)
        before = signal.signal(signal.SIGQUIT, _say_tasks_and_exit)
        faulthandler.register(signal.SIGQUIT, descriptor, chain=True)
        try:
            yield
        finally:
            faulthandler.unregister(signal.SIGQUIT)
            signal.signal(signal.SIGQUIT, before)
            if crashes:
                faulthandler.disable()


@contextmanager
def _limited_core_files(is_wanted: bool) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (soft if is_wanted else 0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))


@contextmanager
def _unwaited_stderr() -> Iterator[int]:
    """A descriptor of standard error: one that does not wait for a reader, if that is a pipe or a terminal."""
    opened = None
    mode = os.fstat(_STDERR).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
        with suppress(OSError):  # another system than Linux, or the pipe of another user
            # The file is opened again: that others have to wait is not to be changed.
            opened = os.open(f"/proc/self/fd/{_STDERR}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        yield _STDERR if opened is None else opened
    finally:
        if opened is not None:
            os.close(opened)


def _say_tasks_and_exit(_number: int, _frame: FrameType | None) -> None:
    try:
        sys.stderr.write(f"SIGQUIT: the stacks of all threads are above; tasks:\n{_tasks()}SIGQUIT: quit\n")
        sys.stderr.flush()
        drain_logs()
    finally:
        os._exit(_QUIT_EXIT_CODE)


def _tasks() -> str:
    """All tasks, those of the event loop that does not come round included."""
    try:
        root = trio.lowlevel.current_root_task()
    except RuntimeError:
        return "none: the event loop does not run\n"
    lines = []
    for depth, task in islice(walk_tasks(root), _MOST_TASKS):
        margin = "  " * depth
        lines.append(f"{margin}{task.name}\n")
        lines += [f"{margin}  - {line}\n" for line in islice(frames_of(task), _MOST_FRAMES)]
    return "".join(lines)
