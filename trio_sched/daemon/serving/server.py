"""Serves the endpoints: from the listener to the handler chain."""

from __future__ import annotations

import logging
import resource
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import cast

import trio
from attrs import define, field
from hypercorn.typing import ASGIFramework

from trio_sched.daemon.assembly import Assembly
from trio_sched.daemon.metrics.requests import RequestLogs
from trio_sched.daemon.serving.application import Application
from trio_sched.daemon.serving.authentication.access import AccessControl
from trio_sched.daemon.serving.authentication.authentication import Authentication, Authenticator
from trio_sched.daemon.serving.authentication.authentication_lookup import AuthenticationLookup
from trio_sched.daemon.serving.authentication.authorization import AlwaysAllowed, Authorization
from trio_sched.daemon.serving.authentication.client_certificates import Authorities, CertificateAuthenticator
from trio_sched.daemon.serving.authentication.front_proxy import FrontProxyAuthenticator
from trio_sched.daemon.serving.authentication.reviews import ReviewClient
from trio_sched.daemon.serving.authentication.tokens import TokenAuthenticator
from trio_sched.daemon.serving.connections.connection import Connection, configuration
from trio_sched.daemon.serving.connections.unauthenticated import Unauthenticated
from trio_sched.daemon.serving.limits import (
    ACCEPT_BURST,
    ACCEPT_PAUSE_SECONDS,
    ACCEPTS_PER_SECOND,
    DRAIN_SECONDS,
    LEAST_SHARE_OF_FILES,
    MAX_CONNECTIONS,
    OTHER_FILES,
    RELOAD_SECONDS,
    REVIEW_BURST,
    REVIEW_QPS,
    REVIEW_SECONDS,
)
from trio_sched.daemon.serving.listener import EXITING, describe, log_stopped, shown_address
from trio_sched.daemon.serving.pages.endpoints import build_routes
from trio_sched.daemon.serving.pages.explain_page import ExplainPage
from trio_sched.daemon.serving.pages.live.live_pages import LivePages
from trio_sched.daemon.serving.pages.liveness import Liveness
from trio_sched.daemon.serving.stalled_health import stalled_health
from trio_sched.daemon.serving.tls.certificates import ServingCertificates
from trio_sched.daemon.serving_settings import ServingSettings
from trio_sched.daemon.wake_up import cancel_on
from trio_sched.engine.hooks.hook_failure import describe_error
from trio_sched.kube_client.connection import KubeClient, connect
from trio_sched.kube_client.http.rate_limit import TokenBucket
from trio_sched.kube_client.settings import ConnectionSettings

log = logging.getLogger(__name__)


async def serve(listener: socket.socket, settings: ServingSettings, assembly: Assembly, stop: trio.Event) -> None:
    """Answer requests until *stop*, then let those under way end.

    Raises:
        ServingError: a certificate cannot be used, or the authentication settings of the cluster are missing.
    """
    certificates = ServingCertificates(settings)
    assembly.blocking_hooks.answer_with(stalled_health(listener, settings, assembly, certificates).answer)
    async with AsyncExitStack() as resources:
        resources.callback(listener.close)
        if stop.is_set():
            return
        await trio.to_thread.run_sync(certificates.load)
        nursery = await resources.enter_async_context(trio.open_nursery())
        clients = await resources.enter_async_context(_review_clients(settings, assembly.metrics.requests))
        liveness = Liveness(assembly)
        proxies = FrontProxyAuthenticator(
            Authorities(), reads_uid=assembly.settings.gates.features.remote_request_header_uid
        )
        lookup = AuthenticationLookup(settings=settings.authentication, proxies=proxies)
        lookup.read_files()
        await _unless(stop, partial(lookup.look_up, clients[0]))
        nursery.start_soon(_keep_running, partial(lookup.follow, clients[0], assembly.random))
        authentication = _authentication(settings, assembly, nursery, lookup, clients[0])
        authorization = _authorization(settings, assembly, clients[1])
        live = LivePages(assembly, ExplainPage(assembly, liveness.attempts_per_second)) if settings.ui else None
        routes = build_routes(settings, assembly, liveness, live)
        access = AccessControl(authentication, authorization, routes, assembly.metrics.serving)
        nursery.start_soon(_keep_running, certificates.follow_files)
        nursery.start_soon(_keep_running, liveness.run)
        if live is not None:
            nursery.start_soon(_keep_running, live.run)
        server = Server(listener, certificates, Application(access), settings.max_streams)
        if settings.is_needed_at_once:  # else it was said when the listener was opened
            log.info("Serving securely on %s", shown_address(listener))
        await server.run(stop)
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def _review_clients(
    settings: ServingSettings, logs: RequestLogs
) -> AsyncGenerator[tuple[KubeClient | None, KubeClient | None], None]:
    """The connections for authentication and authorization, where they are configured."""
    async with AsyncExitStack() as opened:

        async def client(connection: ConnectionSettings | None) -> KubeClient | None:
            if connection is None:
                return None
            return await opened.enter_async_context(
                connect(
                    connection,
                    qps=REVIEW_QPS,
                    burst=REVIEW_BURST,
                    request_seconds=REVIEW_SECONDS,
                    observer=logs.of(connection.server),
                )
            )

        yield await client(settings.authentication.connection), await client(settings.authorization.connection)


async def _keep_running(work: Callable[[], Awaitable[None]]) -> None:
    """Run *work*, and begin it again after a failure: what no library can read must not end the process."""
    while True:
        try:
            await work()
        except Exception as error:
            log.error("serving goes on without it for a while: %s", describe_error(error))
        await trio.sleep(RELOAD_SECONDS)


async def _unless(stop: trio.Event, work: Callable[[], Awaitable[None]]) -> None:
    """Do *work*, but not any longer once *stop* is set."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cancel_on, stop, nursery.cancel_scope)
        await work()
        nursery.cancel_scope.cancel()


def _authentication(
    settings: ServingSettings,
    assembly: Assembly,
    nursery: trio.Nursery,
    lookup: AuthenticationLookup,
    client: KubeClient | None,
) -> Authentication:
    gates, metrics = assembly.settings.gates, assembly.metrics.serving
    by_certificate = CertificateAuthenticator(
        lookup.clients, gates.features.allow_parsing_user_uid_from_cert_auth, metrics, assembly.wall_clock
    )
    authenticators: list[Authenticator] = [lookup.proxies, by_certificate]
    if client is not None:
        reviews = ReviewClient(client, assembly.random, metrics.token_reviewed)
        ttl_seconds = settings.authentication.token_ttl_seconds
        authenticators.append(TokenAuthenticator(reviews, ttl_seconds, nursery, metrics))
    return Authentication(authenticators)


def _authorization(settings: ServingSettings, assembly: Assembly, client: KubeClient | None) -> Authorization:
    if client is None:
        log.warning("No authorization-kubeconfig provided, so SubjectAccessReview of authorization tokens won't work.")
    return Authorization(
        always_allowed=AlwaysAllowed.of(settings.authorization.always_allow_paths),
        reviews=None
        if client is None
        else ReviewClient(client, assembly.random, assembly.metrics.serving.access_reviewed),
        allowed_ttl_seconds=settings.authorization.allowed_ttl_seconds,
        denied_ttl_seconds=settings.authorization.denied_ttl_seconds,
    )


def connections_for(allowed_files: int) -> int:
    """How many connections are served where so many files may be open: the rest is for the scheduler itself."""
    if allowed_files < 0:  # without a limit
        return MAX_CONNECTIONS
    return min(MAX_CONNECTIONS, max(allowed_files - OTHER_FILES, allowed_files // LEAST_SHARE_OF_FILES, 1))


@define(eq=False)
class Server:
    """Accepts connections."""

    listener: socket.socket
    certificates: ServingCertificates
    application: Application
    max_streams: int = 0
    max_connections: int = field(factory=lambda: connections_for(resource.getrlimit(resource.RLIMIT_NOFILE)[0]))
    connections: dict[Connection, None] = field(init=False, factory=dict)
    """In the order in which they were opened."""
    _one_ended: trio.Event = field(init=False, factory=trio.Event)
    unauthenticated: Unauthenticated = field(init=False, factory=Unauthenticated)
    _accepts: TokenBucket = field(init=False, factory=lambda: TokenBucket(ACCEPTS_PER_SECOND, ACCEPT_BURST))

    async def run(self, stop: trio.Event) -> None:
        """Serve until *stop*; then close the listener, and give requests under way some time."""
        address = shown_address(self.listener)
        listener = trio.socket.from_stdlib_socket(self.listener)
        accepting = trio.CancelScope()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._accept, listener, nursery, accepting)
            nursery.start_soon(self.unauthenticated.run)
            try:
                await stop.wait()
                accepting.cancel()
                listener.close()
                log_stopped(address)
                with trio.move_on_after(DRAIN_SECONDS):
                    await self._drained()
            finally:  # also when the lease is lost: Hypercorn shields what it sends from being cancelled
                for connection in list(self.connections):
                    connection.drop()
            nursery.cancel_scope.cancel()
        log.info(EXITING)

    async def _drained(self) -> None:
        for connection in list(self.connections):
            await connection.end()
        while self.connections:
            self._one_ended = trio.Event()
            await self._one_ended.wait()

    async def _accept(self, listener: trio.socket.SocketType, nursery: trio.Nursery, scope: trio.CancelScope) -> None:
        start = partial(
            Connection,
            cast("ASGIFramework", self.application),
            configuration(max_streams=self.max_streams),
            self.unauthenticated,
        )
        with scope:
            while True:
                try:
                    accepted, address = await listener.accept()
                except OSError as error:  # out of files, or a client that is gone already
                    log.debug("cannot accept a connection: %s", describe(error))
                    await trio.sleep(ACCEPT_PAUSE_SECONDS)
                    continue
                self._make_room()
                await self._accepts.take()
                nursery.start_soon(
                    self._serve, start(self.certificates.context, trio.SocketStream(accepted), address[0])
                )

    def _make_room(self) -> None:
        """If there are too many connections, end the unauthenticated one that holds most, else the oldest idle one."""
        if len(self.connections) < self.max_connections:
            return
        ended = self.unauthenticated.memory.drop_largest()
        if ended is None:
            ended = next((one for one in self.connections if one.is_idle), None) or next(iter(self.connections))
            ended.drop()
        self.connections.pop(ended, None)

    async def _serve(self, connection: Connection) -> None:
        self.connections[connection] = None
        try:
            await connection.serve()
        finally:
            self.connections.pop(connection, None)
            self._one_ended.set()
