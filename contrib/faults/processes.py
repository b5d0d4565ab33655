"""Faults of the scheduler's own process: suspended, killed, without descriptors, with a clock that jumps."""

from __future__ import annotations

import signal
import socket
from contextlib import ExitStack
from pathlib import Path

import trio

from contrib.faults.cluster import Cluster

FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")
"""The library in Debian's package faketime."""
SILENT_CLIENTS = 100
FEW_FILES = 64


async def suspend(here: Cluster, *, seconds: float) -> None:
    """The scheduler is stopped where it is."""
    here.scheduler.suspend()
    await trio.sleep(seconds)
    here.scheduler.resume()


async def suspend_in_bind(here: Cluster) -> None:
    """It is stopped between the sending of a bind and its response, which arrives meanwhile."""
    here.relay.delay_seconds = 0.4
    for _ in range(3):
        await here.create_pod()
    await trio.sleep(0.6)  # the watch has shown them, the binds are on their way
    here.scheduler.suspend()
    await trio.sleep(4)
    here.relay.delay_seconds = 0.0
    here.scheduler.resume()


async def killed_with_backlog(here: Cluster, *, number: int) -> float:
    """It ends while many pods wait; the time is that of a new process, start-up included."""
    await here.scheduler.stop(number)
    for _ in range(200):
        await here.create_pod()
    return await here.restart_scheduler()


async def killed_in_binds(here: Cluster) -> float:
    """It is killed while binds are under way."""
    here.relay.delay_seconds = 0.2
    for _ in range(20):
        await here.create_pod()
    await trio.sleep(0.5)
    await here.scheduler.stop(signal.SIGKILL)
    here.relay.delay_seconds = 0.0
    return await here.restart_scheduler()


async def few_files(here: Cluster) -> float:
    """It may open few files, and many clients connect to its port and say nothing."""
    command = ["prlimit", f"--nofile={FEW_FILES}:{FEW_FILES}", *here.scheduler.command]
    async with here.changed_scheduler(command=command, has_endpoints=False):
        with ExitStack() as clients:
            for _ in range(SILENT_CLIENTS):
                client = clients.enter_context(socket.socket())
                client.setblocking(False)
                client.connect_ex(("127.0.0.1", here.secure_port))
            await trio.sleep(1)
            here.relay.reset_all()  # it has to connect again, too
            return await here.seconds_to_bind()


async def unread_log(here: Cluster) -> float:
    """Its log goes into a pipe that nobody reads."""
    command = [*here.scheduler.command, "-v=6"]
    async with here.changed_scheduler(command=command, is_log_read=False, has_endpoints=False):
        for _ in range(200):
            await here.create_pod()
        await trio.sleep(2)
        return await here.seconds_to_bind()


async def truncated_log(here: Cluster) -> None:
    """Its log is rotated by truncation, as copytruncate does."""
    with here.scheduler.log_file.open("r+b") as log:
        log.truncate(0)


async def jump(here: Cluster, *, by_seconds: int) -> float:
    """The clock of the machine jumps."""
    offset = here.folder / "offset"
    offset.write_text("+0")
    environment = {
        "LD_PRELOAD": str(FAKETIME),
        "FAKETIME_TIMESTAMP_FILE": str(offset),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    async with here.changed_scheduler(environment=environment, has_endpoints=False):
        offset.write_text(f"{by_seconds:+d}")
        await trio.sleep(1)
        return await here.seconds_to_bind()
