"""Faults of one of three schedulers that elect a leader."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import trio
from attrs import define, field

from contrib.benchmarks.scheduler_process import write_kubeconfig
from contrib.control_plane.server_process import ServerProcess
from contrib.control_plane.servers import SCHEDULER_TOKEN, free_port
from contrib.faults.cluster import Cluster, eventually, scheduler_command
from contrib.faults.relay import Relay

REPLICAS = 3
ELECTED_SECONDS = 60.0
POLL_SECONDS = 0.05


@define(eq=False)
class Replica:
    """One of the schedulers, behind a relay of its own."""

    server: ServerProcess
    relay: Relay
    secure_port: int

    async def leads(self) -> bool:
        """Whether it says that it leads."""
        try:
            async with httpx.AsyncClient(verify=False, trust_env=False, timeout=2) as client:
                answer = await client.get(f"https://127.0.0.1:{self.secure_port}/metrics")
        except httpx.TransportError:
            return False
        return any(
            line.startswith("leader_election_master_status") and line.endswith(" 1")
            for line in answer.text.splitlines()
        )

    async def revive(self) -> None:
        """Start it again if it has ended, as a kubelet does."""
        if self.server.process is None or self.server.process.poll() is not None:
            self.server.process = None
            await self.server.start()


@define(eq=False)
class Replicas:
    """All of them."""

    here: Cluster
    members: list[Replica] = field(factory=list)

    async def leader(self) -> Replica:
        """The one that leads; waits until there is one."""
        with trio.fail_after(ELECTED_SECONDS):
            while True:
                for member in self.members:
                    if await member.leads():
                        return member
                await trio.sleep(POLL_SECONDS)


@asynccontextmanager
async def _replicas(here: Cluster) -> AsyncIterator[Replicas]:
    """Three replicas in place of the scheduler; one leads."""
    await here.scheduler.stop(signal.SIGKILL)
    here.has_endpoints = False
    everyone = Replicas(here)
    async with trio.open_nursery() as nursery:
        for number in range(REPLICAS):
            everyone.members.append(await nursery.start(_run_replica, here, number))
        try:
            await everyone.leader()
            await here.seconds_to_bind()
            yield everyone
        finally:
            with trio.CancelScope(shield=True):
                for member in everyone.members:
                    if member.server.process is not None and member.server.process.poll() is None:
                        member.server.resume()
                    await member.server.stop(signal.SIGKILL)
                lease = b"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
                await here.call(b"DELETE", lease)
                here.has_endpoints = True
                await here.restart_scheduler()
        nursery.cancel_scope.cancel()


async def _run_replica(
    here: Cluster, number: int, *, task_status: trio.TaskStatus[Replica] = trio.TASK_STATUS_IGNORED
) -> None:
    folder = here.folder / f"replica-{number}"
    folder.mkdir(exist_ok=True)
    async with Relay(here.plane.port).running() as relay:
        _write_kubeconfig(here, folder, relay)
        port = free_port()
        program = here.scheduler.command[: 3 if here.is_ours else 1]
        server = ServerProcess(scheduler_command(program, folder, port, leader_elect=True), folder / "scheduler.log")
        await server.start()
        task_status.started(Replica(server, relay, port))
        await trio.sleep_forever()


def _write_kubeconfig(here: Cluster, folder: Path, relay: Relay) -> None:
    server = f"https://127.0.0.1:{relay.port}"
    write_kubeconfig(folder / "kubeconfig", server=server, authority=here.authority, token=SCHEDULER_TOKEN)


async def leader_ends(here: Cluster, *, number: int) -> float:
    """The leader ends, in order or killed."""
    async with _replicas(here) as everyone:
        leader = await everyone.leader()
        assert leader.server.process is not None
        leader.server.process.send_signal(number)
        return await here.seconds_to_bind()


async def leader_suspended(here: Cluster) -> float:
    """The leader is suspended until another one leads, and goes on then; it must not bind anything."""
    async with _replicas(here) as everyone:
        leader = await everyone.leader()
        leader.server.suspend()
        measured = await here.seconds_to_bind()
        leader.server.resume()
        process = leader.server.process
        assert process is not None
        for _ in range(20):
            await here.create_pod()

        async def has_ended() -> bool:
            return process.poll() is not None

        if not await eventually(has_ended, within_seconds=30):
            raise AssertionError("a leader that lost its lease while it was suspended goes on")
        return measured


async def leader_cut_off(here: Cluster) -> float:
    """The leader loses its connections for good."""
    async with _replicas(here) as everyone:
        leader = await everyone.leader()
        leader.relay.refuse()
        leader.relay.reset_all()
        return await here.seconds_to_bind()


async def killed_and_suspended(here: Cluster, *, seconds: float) -> float:
    """Replicas are killed, ended, suspended and started again at random; in the end all run."""
    async with _replicas(here) as everyone:
        ends = trio.current_time() + seconds
        while trio.current_time() < ends:
            member = here.random.choice(everyone.members)
            await member.revive()
            assert member.server.process is not None
            member.server.process.send_signal(
                here.random.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP, signal.SIGCONT])
            )
            await trio.sleep(here.random.uniform(0.5, 4))
        for member in everyone.members:
            await member.revive()
            member.server.resume()
        return await here.seconds_to_bind()
