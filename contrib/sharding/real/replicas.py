"""The processes, each behind a relay of its own, and the faults that they get."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any, Final

import trio
from attrs import define, field

from contrib.benchmarks.scheduler_process import TRIO_SCHED, write_configuration, write_kubeconfig
from contrib.control_plane.control_plane import ControlPlane
from contrib.control_plane.server_process import ServerProcess
from contrib.control_plane.servers import SCHEDULER_TOKEN
from contrib.faults.relay import Mode, Relay

LEASE_SECONDS: Final = 4
ELECTION: Final = {
    "leaderElect": True,
    "leaseDuration": f"{LEASE_SECONDS}s",
    "renewDeadline": "3s",
    "retryPeriod": "500ms",
}
_LOOK_SECONDS: Final = 0.2


@define(eq=False)
class Replica:
    """A process, and its connections."""

    name: str
    server: ServerProcess
    relay: Relay
    random: Random
    is_to_run: bool = field(default=False, init=False)
    ended: list[int] = field(factory=list, init=False)
    """Exit codes with which it has ended by itself."""

    async def start(self) -> None:
        """Start it."""
        self.is_to_run = True
        await self.server.start()

    async def stop(self, number: int) -> None:
        """End it with a signal."""
        self.is_to_run = False
        await self.server.stop(number)

    async def keep_running(self) -> None:
        """Start it again when it has ended by itself, as a kubelet does."""
        while True:
            await trio.sleep(_LOOK_SECONDS)
            process = self.server.process
            if self.is_to_run and process is not None and (code := process.poll()) is not None:
                self.ended.append(code)
                await self.server.start()


@asynccontextmanager
async def replica(
    plane: ControlPlane, folder: Path, name: str, sharding: Mapping[str, Any], random: Random
) -> AsyncIterator[Replica]:
    """A replica whose files are in *folder*; it is started, and gone when the block is left."""
    async with Relay(plane.port).running() as relay:
        config = configuration(plane, folder, f"https://127.0.0.1:{relay.port}", sharding)
        command = [*TRIO_SCHED, f"--config={config}", "--secure-port=0", "-v=2"]
        made = Replica(name, ServerProcess(command, folder / "scheduler.log"), relay, random)
        try:
            await made.start()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(made.keep_running)
                yield made
                nursery.cancel_scope.cancel()
        finally:
            with trio.CancelScope(shield=True):
                await made.stop(signal.SIGKILL)


def configuration(plane: ControlPlane, folder: Path, server: str, sharding: Mapping[str, Any]) -> Path:
    """The configuration of a scheduler that reaches the API server as *server*; the only one without *sharding*."""
    folder.mkdir()
    kubeconfig = folder / "kubeconfig"
    write_kubeconfig(kubeconfig, server=server, authority=plane.files.authority, token=SCHEDULER_TOKEN)
    path = write_configuration(folder, kubeconfig)
    if sharding:
        content = json.loads(path.read_text())
        path.write_text(json.dumps({**content, "leaderElection": ELECTION, "sharding": sharding}))
    return path


async def kill(one: Replica, seconds: float) -> None:
    """It is killed, and started again later."""
    await one.stop(signal.SIGKILL)
    await trio.sleep(seconds / 2)
    await one.start()


async def suspend(one: Replica, seconds: float) -> None:
    """It is stopped, for longer than its leases are valid, and goes on with what it was about to do."""
    if not one.server.has_ended:
        one.server.suspend()
        await trio.sleep(LEASE_SECONDS + seconds / 2)
        one.server.resume()


async def cut_off(one: Replica, seconds: float) -> None:
    """Its connections are reset, and it gets no others."""
    one.relay.refuse()
    one.relay.reset_all()
    await trio.sleep(seconds)
    await one.relay.listen()


async def silence(one: Replica, seconds: float) -> None:
    """Nothing passes in either direction; what was sent meanwhile arrives when its sender has given it up."""
    one.relay.mode = Mode.HOLD
    one.relay.hold_all()
    await trio.sleep(seconds)
    one.relay.mode = Mode.FORWARD
    one.relay.release_all()


async def hold_answers(one: Replica, seconds: float) -> None:
    """Its requests arrive, and it learns nothing of them."""
    one.relay.hold_answers()
    await trio.sleep(seconds)
    one.relay.release_answers()


async def delay(one: Replica, seconds: float) -> None:
    """Everything takes longer, in both directions."""
    one.relay.delay_seconds = one.random.uniform(0.2, 2.0)
    await trio.sleep(seconds)
    one.relay.delay_seconds = 0.0


FAULTS: Final[Mapping[str, Callable[[Replica, float], Awaitable[None]]]] = {
    "killed": kill,
    "stopped": suspend,
    "cut off": cut_off,
    "silent": silence,
    "without answers": hold_answers,
    "delayed": delay,
}
"""Kills, stops, and partitions of four kinds."""
_WEIGHTS: Final = (4, 4, 1, 2, 1, 1)
TOGETHER: Final = 0.25
"""How often the next fault comes before the former is over, to another replica."""


def choose(random: Random) -> str:
    """The name of a fault."""
    return random.choices(list(FAULTS), _WEIGHTS)[0]


async def inject(one: Replica, name: str) -> None:
    """Make a fault, and end it."""
    await FAULTS[name](one, one.random.uniform(0.3, 2.5) * LEASE_SECONDS)
