"""Finds out when a server can be reached again, and which connections died in silence: requests on them fail at once.

A small request does both. While the server is away it is tried a few times a second, over one connection for all
streams and clients of the process. While all is quiet it is sent over a connection that is as old as the others: where
a router has forgotten them, or a proxy hangs, that one is silent, too, and a new one is not.
"""

from __future__ import annotations

import logging
import ssl
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Final

import trio
from attrs import define, field

from trio_sched.kube_client.errors import ConnectionFailed, CredentialsError
from trio_sched.kube_client.http.http1 import Http1Connection, ProtocolViolation
from trio_sched.kube_client.retry import refusal_pause_seconds

if TYPE_CHECKING:
    from trio_sched.kube_client.http.pool import Pool
    from trio_sched.kube_client.reachability import Reachability

log = logging.getLogger(__name__)

HEARTBEAT_SECONDS: Final = 15.0
"""After so long without a word from the server it is asked whether it is there: four small requests a minute."""
CONNECTION_AGE_SECONDS: Final = 45.0
"""The connection for it is used so often in any case; servers and load balancers close what is idle for a minute."""
ANSWER_SECONDS: Final = 0.5
"""A connection that is silent for so long is compared with a new one. The request needs no storage."""
TRY_SECONDS: Final = 0.7
"""So long a new connection and its answer are waited for, before another one is tried beside it."""
MAX_TRIES_AT_ONCE: Final = 5
SUSPICIOUS_SECONDS: Final = 1.0
"""A request of any kind that has waited so long for its response is a reason to ask at once, but not"""
SUSPICION_INTERVAL_SECONDS: Final = 5.0
"""so soon after the last time: there are requests that take long."""
FIRST_CHECK_SECONDS: Final = 1.0
"""After the start, which is not to be slowed down."""
LOG_INTERVAL_SECONDS: Final = 30.0
"""While the server is away this is logged so often."""
_TICK_SECONDS: Final = 1.0
_FIRST_TRY_SECONDS: Final = (0.05, 0.5)
"""The jitter before the first try: a thousand clients lose their connections in the same moment."""
_NEXT_TRY_SECONDS: Final = (0.15, 0.4)
_MAX_BODY_BYTES: Final = 64 * 1024
_TOO_MANY_REQUESTS: Final = 429
_BROKEN = (OSError, ssl.SSLError, trio.ClosedResourceError, ProtocolViolation, ConnectionFailed)


@define(eq=False)
class Heartbeat:
    """Finds out whether the server can be reached, and whether the connections to it are still alive.

    Args:
        reachability: of the server; the settings and credentials of its first client are used.
        random: where the jitter comes from.
    """

    reachability: Reachability
    random: Random
    _connection: Http1Connection | None = field(init=False, default=None)
    _checked_at: float = field(init=False, factory=trio.current_time)

    async def run(self) -> None:
        """Ask when there is a reason to; never returns."""
        reachability = self.reachability
        reachability.is_checked = True
        try:
            while True:
                # Looked at every second: requests that wait for their response set no event.
                with trio.move_on_at(min(self._due(), trio.current_time() + _TICK_SECONDS)):
                    await reachability.wait_lost()
                    await trio.sleep(self.random.uniform(*_FIRST_TRY_SECONDS))
                if reachability.is_lost or trio.current_time() >= self._due():
                    await self._check()
        finally:
            reachability.is_checked = False
            self._replace_connection(None)

    @property
    def _pools(self) -> list[Pool]:
        return [client.pool for client in self.reachability.clients if client.pool is not None]

    def _due(self) -> float:
        """When to ask, if no connection fails before."""
        if self._connection is None:  # one that ages with the others, to compare them with
            return self._checked_at + FIRST_CHECK_SECONDS
        oldest = min(client.oldest_request_sent_at for client in self.reachability.clients)
        suspicious = max(oldest + SUSPICIOUS_SECONDS, self._checked_at + SUSPICION_INTERVAL_SECONDS)
        heard_at = max([self._checked_at, *(pool.heard_at for pool in self._pools)])
        return min(heard_at + HEARTBEAT_SECONDS, self._checked_at + CONNECTION_AGE_SECONDS, suspicious)

    async def _check(self) -> None:
        """Ask over the old connection, and over new ones if that is silent or broken; returns when there is an answer.

        Connections that have been silent all the while, although a new one works, are closed: their requests fail at
        once, and their watches go on over new connections.
        """
        reachability = self.reachability
        if self._connection is not None and self._connection.is_stale():  # closed in order by the server
            self._replace_connection(None)
        old = self._connection = self._connection or next(
            filter(None, (pool.take_idle() for pool in self._pools)), None
        )
        asked_at = tried_at = trio.current_time()
        is_alive = False
        async with trio.open_nursery() as nursery:

            async def ask_old(connection: Http1Connection, ended: trio.Event) -> None:
                nonlocal is_alive
                try:
                    await self._ask(connection)
                    is_alive = True
                    nursery.cancel_scope.cancel()
                except _Refused:
                    is_alive = True
                    if not reachability.is_lost:
                        nursery.cancel_scope.cancel()
                except _BROKEN:
                    pass
                ended.set()

            if old is not None:
                ended = trio.Event()
                nursery.start_soon(ask_old, old, ended)
                with trio.move_on_after(ANSWER_SECONDS):
                    await ended.wait()
            connection, tried_at = await self._reconnect()
            self._replace_connection(connection)
            nursery.cancel_scope.cancel()
        now = self._checked_at = trio.current_time()
        if not is_alive and (old is not None or now - asked_at > ANSWER_SECONDS):
            for pool in self._pools:
                pool.drop_silent(tried_at)
        if reachability.is_lost:
            reachability.answered()

    def _replace_connection(self, connection: Http1Connection | None) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = connection

    async def _reconnect(self) -> tuple[Http1Connection, float]:
        """A new connection on which the server has answered, and when that try began; tried until there is one."""
        reachability = self.reachability
        began = trio.current_time()
        working: list[tuple[Http1Connection, float]] = []
        attempts: list[trio.CancelScope] = []
        is_refusing, problem, logged_at = False, "no response", began
        async with trio.open_nursery() as nursery:

            async def attempt(scope: trio.CancelScope, failed: trio.Event) -> None:
                nonlocal is_refusing, problem
                with scope:
                    try:
                        tried_at = trio.current_time()
                        working.append((await self._dial_and_ask(), tried_at))
                        nursery.cancel_scope.cancel()
                    except _BROKEN as broken:
                        is_refusing, problem = False, str(broken)
                    except _Refused as refused:
                        is_refusing, problem = True, str(refused)
                attempts.remove(scope)
                failed.set()

            while True:
                failed = trio.Event()
                attempts.append(trio.CancelScope())
                nursery.start_soon(attempt, attempts[-1], failed)
                with trio.move_on_after(TRY_SECONDS):
                    await failed.wait()
                if not is_refusing:
                    reachability.outages += 1
                now = trio.current_time()
                if now - logged_at >= LOG_INTERVAL_SECONDS:
                    logged_at = now
                    log.error("The API server has not answered for %.0f s: %s", now - began, problem)
                if failed.is_set():
                    shortest = refusal_pause_seconds(trio.current_time() - began) if is_refusing else 0.0
                    await trio.sleep(max(self.random.uniform(*_NEXT_TRY_SECONDS), shortest))
                elif len(attempts) >= MAX_TRIES_AT_ONCE:
                    attempts[0].cancel()
        for spare, _ in working[1:]:
            spare.close()
        if logged_at > began:
            log.info("The API server answers again, after %.0f s", trio.current_time() - began)
        return working[0]

    async def _dial_and_ask(self) -> Http1Connection:
        """A new connection on which the server has answered.

        Raises:
            ConnectionFailed: there is none; so do the errors in `_BROKEN`.
            _Refused: the server is there, and does not work.
        """
        connection = await self._pools[0].dialer.dial()
        try:
            await self._ask(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    async def _ask(self, connection: Http1Connection) -> None:
        client = self.reachability.clients[0]
        headers = b""
        with suppress(CredentialsError):  # a 401 is an answer, too, and no program for credentials is waited for
            headers = client.prepared_headers() or b""
        message = self._pools[0].message(b"GET", client.path(b"/version"), headers, b"")
        reply = await connection.exchange(message, _MAX_BODY_BYTES)
        if not connection.reusable:
            connection.close()
        if reply.status >= 500 or reply.status == _TOO_MANY_REQUESTS:
            raise _Refused(f"it refuses with status {reply.status}")


class _Refused(Exception):
    """The server does not work yet, or is overloaded."""
