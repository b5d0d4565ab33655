"""One scheduler of a virtual cluster, which can be stopped and killed as a process can."""

from __future__ import annotations

import math
from functools import partial
from random import Random

import httpx
import trio
from attrs import define, field

from trio_sched.daemon.assembly import Assembly, assemble
from trio_sched.daemon.settings import Clients, DaemonSettings
from trio_sched.daemon.supervisor import run_daemon
from trio_sched.errors import TrioSchedError, first_leaf
from trio_sched.kube_client.connection import connect
from trio_sched.kube_client.settings import ConnectionSettings
from trio_sched.simulator.clock import Clock


@define(eq=False)
class Cable(httpx.AsyncBaseTransport):
    """Between one scheduler and the API server, or extenders; once it is cut, nothing gets through any more."""

    transport: httpx.AsyncBaseTransport
    is_cut: bool = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Carry *request* to the server, unless the cable is cut."""
        if self.is_cut:
            await trio.lowlevel.checkpoint()
            raise httpx.ConnectError("the scheduler was killed", request=request)
        return await self.transport.handle_async_request(request)


@define(eq=False)
class SchedulerProcess:
    """One scheduler, as a process would be; made by `VirtualCluster.start_scheduler`."""

    settings: DaemonSettings
    _cable: Cable
    _extender_cable: Cable
    _random: Random
    _clock: Clock
    _stop: trio.Event = field(factory=trio.Event, init=False)
    _scope: trio.CancelScope = field(factory=trio.CancelScope, init=False)
    _has_started: trio.Event = field(factory=trio.Event, init=False)
    _has_ended: trio.Event = field(factory=trio.Event, init=False)
    _failure: TrioSchedError | None = field(default=None, init=False)
    assembly: Assembly | None = field(default=None, init=False)
    """The parts of its daemon, once it has started."""

    @property
    def identity(self) -> str:
        """Its name in the lease."""
        return self.settings.identity

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return not self._has_ended.is_set()

    async def stop(self, *, drain_seconds: float | None = None) -> None:
        """End it as SIGTERM does; returns when it has ended.

        Args:
            drain_seconds: after so long it is killed; by default it takes the time that it takes.
        """
        self._stop.set()
        with trio.move_on_after(math.inf if drain_seconds is None else drain_seconds):
            await self._has_ended.wait()
        await self.kill()

    async def kill(self) -> None:
        """End it as SIGKILL does: at once, not even the lease is given back."""
        self._cable.is_cut = self._extender_cable.is_cut = True
        self._scope.cancel()
        await self._has_ended.wait()

    @property
    def has_failed(self) -> bool:
        """Whether it has ended by itself and nobody has asked `failed` for the reason."""
        return self._failure is not None

    async def failed(self) -> TrioSchedError:
        """Wait until it has ended by itself, and why; who asks for the reason is not told of it otherwise."""
        await self._has_ended.wait()
        failure, self._failure = self._failure, None
        if failure is None:
            raise LookupError(f"{self.identity} has ended without a failure")
        return failure

    def raise_failure(self) -> None:
        """Raise what it has died of, unless `failed` has told it."""
        if self._failure is not None:
            raise self._failure

    async def run(self) -> None:
        """Be the process; called once."""
        limits = self.settings.config.client_connection
        reach = partial(connect, ConnectionSettings(server="http://virtual.test"), transport=self._cable)
        reach_limited = partial(reach, qps=limits.qps, burst=limits.burst)
        try:
            with self._scope:
                async with reach_limited() as main, reach_limited() as events, reach() as leases:
                    clients = Clients(main=main, events=events, leases=leases, to_extenders=self._extender_cable)
                    self.assembly = assemble(self.settings, clients, random=self._random, wall_clock=self._clock)
                    await run_daemon(self.assembly, stop=self._stop, task_status=self)
        except* TrioSchedError as group:
            self._failure = first_leaf(group)
        finally:
            self._has_ended.set()
            self._has_started.set()

    def started(self, _value: object = None) -> None:
        """Said by the daemon: the caches are filled."""
        self._has_started.set()

    async def wait_started(self) -> None:
        """Wait until the daemon has seen the whole cluster.

        Raises:
            TrioSchedError: it could not start.
        """
        await self._has_started.wait()
        self.raise_failure()
