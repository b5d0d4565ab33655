"""A server as a process that can be stopped, killed, suspended and started again."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import trio
from attrs import define, field

READY_SECONDS = 120.0
STOP_SECONDS = 60.0
POLL_SECONDS = 0.02


class ServerDied(Exception):
    """A server did not become ready, or has ended before."""


@define(eq=False)
class ServerProcess:
    """A process that is started again and again with the same command."""

    command: Sequence[str]
    log_file: Path
    environment: Mapping[str, str] = field(factory=dict)
    """Variables besides those of this process."""
    is_log_read: bool = True
    """If not, its output goes into a pipe that nobody reads."""
    process: trio.Process | None = field(init=False, default=None)

    async def start(self) -> None:
        """Start it; whether it is ready is another question."""
        with self.log_file.open("ab") as log:
            output = log if self.is_log_read else subprocess.PIPE
            environment = {**os.environ, **self.environment}
            self.process = await trio.lowlevel.open_process(
                list(self.command), stdout=output, stderr=subprocess.STDOUT, env=environment
            )

    async def wait_until(self, is_ready: Callable[[], Awaitable[bool]]) -> None:
        """Wait until it is ready.

        Raises:
            ServerDied: it has ended, or is not ready after `READY_SECONDS`.
        """
        with trio.move_on_after(READY_SECONDS):
            while not await is_ready():
                if self.has_ended:
                    break
                await trio.sleep(POLL_SECONDS)
            else:
                return
        lines = self.log_file.read_text(errors="replace").splitlines()[-5:]
        raise ServerDied("\n".join([f"{self.log_file.stem} did not become ready:", *lines]))

    @asynccontextmanager
    async def running(
        self, is_ready: Callable[[], Awaitable[bool]], *, end_with: int = signal.SIGTERM
    ) -> AsyncIterator[None]:
        """Run it in the block, which begins when it is ready; *end_with* is the signal at its end.

        Raises:
            ServerDied: it did not become ready.
        """
        await self.start()
        try:
            await self.wait_until(is_ready)
            yield
        finally:
            with trio.CancelScope(shield=True):
                await self.stop(end_with)

    async def stop(self, number: int = signal.SIGTERM) -> None:
        """End it with a signal, and wait for its end; if it is suspended, let it go on first."""
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(number)
            self.resume()
        with trio.CancelScope(shield=True):
            with trio.move_on_after(STOP_SECONDS) as waiting:
                await self.process.wait()
            if waiting.cancelled_caught:
                self.process.kill()
                await self.process.wait()
        self.process = None

    def suspend(self) -> None:
        """Stop it where it is; the kernel goes on acknowledging what it is sent."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    @property
    def has_ended(self) -> bool:
        """Whether there is no process."""
        return self.process is None or self.process.poll() is not None
