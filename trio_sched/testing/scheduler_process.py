"""One scheduler of a virtual cluster, which can be stopped and killed like a process."""

from __future__ import annotations

import math
from random import Random
from typing import Final

import httpx
import trio
from attrs import define, field

from trio_sched.daemon.assemble import assemble
from trio_sched.daemon.assembly import Assembly
from trio_sched.daemon.clients import open_clients
from trio_sched.daemon.plugins.plugin_http import HttpTransport
from trio_sched.daemon.reload import ReloadRefused, ReloadRequests
from trio_sched.daemon.settings import DaemonSettings
from trio_sched.daemon.supervisor import run_daemon
from trio_sched.daemon.wake_up import WakeUp
from trio_sched.embedded import EmbeddedCaller
from trio_sched.engine.hooks.attempt_trace import AttemptTracer
from trio_sched.errors import TrioSchedError, first_leaf
from trio_sched.kube_client.http.pool import REQUEST_SECONDS
from trio_sched.kube_client.settings import ConnectionSettings
from trio_sched.simulator import ApiServer, InProcessTransport
from trio_sched.simulator.storage.clock import Clock

_SERVER: Final = "http://virtual.test"


@define(eq=False)
class SeverableTransport(httpx.AsyncBaseTransport):
    """A transport of one scheduler, to extenders for instance; once severed, every request fails."""

    transport: httpx.AsyncBaseTransport
    is_severed: bool = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send *request*, unless the transport is severed."""
        if self.is_severed:
            await trio.lowlevel.checkpoint()
            raise httpx.ConnectError("the scheduler was killed", request=request)
        return await self.transport.handle_async_request(request)


@define(eq=False)
class _SettingsInMemory:
    """Stands for the configuration file in `SchedulerProcess.reload`."""

    settings: DaemonSettings
    path: str = "the virtual cluster's configuration"

    def read(self) -> DaemonSettings:
        """The settings as they were set last."""
        return self.settings


@define(eq=False)
class SchedulerProcess:
    """One scheduler in a task that stands for its process; made by `VirtualCluster.start_scheduler`."""

    settings: DaemonSettings
    _api: ApiServer
    _to_extenders: SeverableTransport
    _random: Random
    _clock: Clock
    _tracer: AttemptTracer | None = None
    _endpoints: HttpTransport | None = None
    """Carries the requests of its plugins."""
    _stop: trio.Event = field(factory=trio.Event, init=False)
    _scope: trio.CancelScope = field(factory=trio.CancelScope, init=False)
    _has_started: trio.Event = field(factory=trio.Event, init=False)
    _has_ended: trio.Event = field(factory=trio.Event, init=False)
    _failure: TrioSchedError | None = field(default=None, init=False)
    assembly: Assembly | None = field(default=None, init=False)
    """The parts of its daemon; None before it is assembled."""
    _reload: ReloadRequests = field(init=False)
    _to_api: EmbeddedCaller = field(init=False)
    _rare_to_api: SeverableTransport = field(init=False)
    """Carries the requests of httpx clients."""

    def __attrs_post_init__(self) -> None:
        self._to_api = EmbeddedCaller(self._api, _SERVER, REQUEST_SECONDS)
        self._rare_to_api = SeverableTransport(InProcessTransport(self._api))
        self._reload = ReloadRequests(_SettingsInMemory(self.settings), WakeUp(), polls_files=False)

    @property
    def identity(self) -> str:
        """Its name in the lease."""
        return self.settings.identity

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return not self._has_ended.is_set()

    async def stop(self, *, drain_seconds: float | None = None) -> None:
        """Stop it as SIGTERM does; returns when it has ended.

        Args:
            drain_seconds: kill it after this time; None waits without limit.
        """
        self._stop.set()
        with trio.move_on_after(math.inf if drain_seconds is None else drain_seconds):
            await self._has_ended.wait()
        await self.kill()

    async def reload(self, settings: DaemonSettings) -> None:
        """Put other settings in force while it runs, as SIGHUP does with what the configuration file says.

        Raises:
            ReloadRefused: the former settings stay in force; the error says why.
        """
        await self.wait_started()
        assert self.assembly is not None
        self._reload.source = _SettingsInMemory(settings)
        finished = self.assembly.reloads.finished
        self._reload.requested.set()
        await finished.wait()
        if problem := self.assembly.reloads.last_problem:
            raise ReloadRefused(problem)

    async def kill(self) -> None:
        """End it as SIGKILL does: at once, without releasing the lease."""
        for link in (self._to_api, self._rare_to_api, self._to_extenders):
            link.is_severed = True
        self._scope.cancel()
        await self._has_ended.wait()

    @property
    def has_failed(self) -> bool:
        """Whether it has ended with an error that `failed` has not returned."""
        return self._failure is not None

    @property
    def problem(self) -> str:
        """The text of that error; empty if there is none."""
        return "" if self._failure is None else str(self._failure)

    async def failed(self) -> TrioSchedError:
        """Wait until it has ended with an error; returns it, after which `raise_failure` does not raise it.

        Raises:
            LookupError: it has ended without an error.
        """
        await self._has_ended.wait()
        failure, self._failure = self._failure, None
        if failure is None:
            raise LookupError(f"{self.identity} has ended without a failure")
        return failure

    def raise_failure(self) -> None:
        """Raise the error that it has ended with, unless `failed` has returned it."""
        if self._failure is not None:
            raise self._failure

    async def run(self) -> None:
        """Run the scheduler until it ends; called once."""
        connections = open_clients(
            self.settings.config,
            ConnectionSettings(server=_SERVER),
            caller=self._to_api,
            transport=self._rare_to_api,
            read_only=self.settings.shadow is not None,
            to_extenders=self._to_extenders,
            of_plugins=self._endpoints,
        )
        try:
            with self._scope:
                async with connections as clients:
                    self.assembly = assemble(
                        self.settings, clients, random=self._random, wall_clock=self._clock, tracer=self._tracer
                    )
                    await run_daemon(self.assembly, stop=self._stop, reload=self._reload, task_status=self)
        except* TrioSchedError as group:
            self._failure = first_leaf(group)
        finally:
            self._has_ended.set()
            self._has_started.set()

    def started(self, _value: object = None) -> None:
        """Called by the daemon when the caches are filled (it is the daemon's ``task_status``)."""
        self._has_started.set()

    async def wait_started(self) -> None:
        """Wait until the caches of the daemon are filled.

        Raises:
            TrioSchedError: it could not start.
        """
        await self._has_started.wait()
        self.raise_failure()
