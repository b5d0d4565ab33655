"""The daemon's connections to the API server, opened with what counts their requests and what permits writes."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING

import trio
from attrs import define, field, frozen

from trio_sched.config.schema import SchedulerConfig
from trio_sched.daemon.metrics.requests import RequestLogs
from trio_sched.kube_client.connection import KubeClient, connect
from trio_sched.kube_client.errors import WriteNotPermitted
from trio_sched.kube_client.http.caller import Caller
from trio_sched.kube_client.reachability import Reachability
from trio_sched.kube_client.settings import ConnectionSettings
from trio_sched.objects.timestamps import SECOND_NS

if TYPE_CHECKING:
    import httpx

    from trio_sched.daemon.plugins.plugin_http import HttpTransport


@define(eq=False)
class WritePermit:
    """Until when this process may write, as it holds the lease *lock*; the leader elector sets it."""

    lock: str
    """``namespace/name``."""
    until: float = field(default=-math.inf, init=False)
    """By trio's clock; minus infinity: the lease is not held."""

    def check(self) -> None:
        """Check that no other candidate can lead at this moment.

        A process that was stopped, or whose machine slept, goes on where it was; its lease has expired meanwhile.

        Raises:
            WriteNotPermitted: the lease is not held, or was not renewed within the renew deadline.
        """
        if trio.current_time() > self.until:
            why = "is not held by this process" if self.until == -math.inf else "was not renewed in time"
            raise WriteNotPermitted(f"the lease {self.lock} {why}")


def _permit() -> None:
    pass


request_permit: ContextVar[Callable[[], None]] = ContextVar("request_permit", default=_permit)
"""What a task asks right before it sends a write, where several processes write; raises `WriteNotPermitted`."""


@define(eq=False)
class RequestPermit(WritePermit):
    """A permit that leaves it to the task, too, whether a write may be sent: some writes need more than others."""

    def check(self) -> None:
        """Check *lock*, then what the task asks for.

        Raises:
            WriteNotPermitted: it may not be written now.
        """
        WritePermit.check(self)
        request_permit.get()()


def refuse_write() -> None:
    """Permit no write.

    Raises:
        WriteNotPermitted: always.
    """
    raise WriteNotPermitted("this process is a shadow, which writes nothing")


@frozen(kw_only=True)
class Clients:
    """Connections to the API server; separate, so that a backlog of one does not hold up the others."""

    main: KubeClient
    events: KubeClient
    leases: KubeClient
    write_permit: WritePermit
    """Without it *main* writes nothing, if a leader is elected."""
    request_logs: RequestLogs
    """Count the requests of all of them."""
    to_extenders: httpx.AsyncBaseTransport | None = None
    """Carries the requests to extenders that live in this process; None for real connections."""
    of_plugins: HttpTransport | None = None
    """Carries the requests of plugins to other servers; None for real connections."""


@asynccontextmanager
async def open_clients(
    config: SchedulerConfig,
    connection: ConnectionSettings,
    *,
    caller: Caller | None = None,
    transport: httpx.AsyncBaseTransport | None = None,
    reachability: Reachability | None = None,
    read_only: bool = False,
    to_extenders: httpx.AsyncBaseTransport | None = None,
    of_plugins: HttpTransport | None = None,
) -> AsyncGenerator[Clients, None]:
    """Open the connections of a daemon; they are closed when the block is left.

    Args:
        config: says how much may be sent, and whether a leader is elected.
        connection: of the API server.
        caller: see `connect`, as of *transport* and *reachability*.
        transport: likewise.
        reachability: likewise.
        read_only: refuse every request that is no GET.
        to_extenders: see `Clients`, as of *of_plugins*.
        of_plugins: likewise.
    """
    limits, election = config.client_connection, config.leader_election
    new_permit = WritePermit if config.sharding is None else RequestPermit
    logs, permit = RequestLogs(), new_permit(f"{election.resource_namespace}/{election.resource_name}")
    open_client = partial(
        connect,
        connection,
        qps=limits.qps,
        burst=limits.burst,
        caller=caller,
        transport=transport,
        reachability=reachability,
        observer=logs.of(connection.server),
    )
    request_seconds = max(1.0, election.renew_deadline_ns / SECOND_NS / 2)
    refuse = refuse_write if read_only else None
    async with (
        open_client(check_write=permit.check if election.leader_elect and not read_only else refuse) as main,
        open_client(check_write=refuse) as events,
        open_client(component="leader-election", request_seconds=request_seconds, check_write=refuse) as leases,
    ):
        yield Clients(
            main=main,
            events=events,
            leases=leases,
            write_permit=permit,
            request_logs=logs,
            to_extenders=to_extenders,
            of_plugins=of_plugins,
        )
