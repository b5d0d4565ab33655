"""Answers health checks while a hook does not return, in the thread that looks where the event loop stands.

Nothing that belongs to the event loop is touched but the listening socket, from which it takes no connections
meanwhile. Whoever asks gets an answer over HTTP/1.1, and the connection is closed.
"""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from attrs import define, field
from OpenSSL import SSL

from trio_sched.daemon.assembly import Assembly
from trio_sched.daemon.serving.authentication.authorization import AlwaysAllowed
from trio_sched.daemon.serving.errors import ServingError
from trio_sched.daemon.serving.limits import EVENT_LOOP_LAG_SECONDS
from trio_sched.daemon.serving.tls.certificates import ServingCertificates
from trio_sched.daemon.serving_settings import ServingSettings

T = TypeVar("T")

_CLIENT_SECONDS: Final = 1.0
"""How long one client may take."""
_MAX_REQUEST_BYTES: Final = 16 * 1024
_ENDPOINTS: Final = ("healthz", "livez", "readyz")


class _Slow(Exception):
    """The client has taken too long, or asked for too much."""


@define(eq=False, kw_only=True)
class StalledHealth:
    """Health checks of a scheduler that a hook has stopped."""

    listener: socket.socket
    """Not blocking."""
    make_context: Callable[[], SSL.Context]
    """Makes what connections shake hands with; without HTTP/2."""
    allowed: AlwaysAllowed
    """The paths that need no credentials; nobody's can be looked at meanwhile."""
    culprit: Callable[[], tuple[str, str] | None]
    """The plugin and the hook that block, if they are known."""
    _context: SSL.Context | None = field(default=None, init=False)

    def answer(self, stuck_seconds: float, seconds: float) -> None:
        """Answer whoever asks.

        Args:
            stuck_seconds: how long nothing has run.
            seconds: how long to answer; the last client may add `_CLIENT_SECONDS`.
        """
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0:
            try:
                if not _is_ready(self.listener, select.POLLIN, left):
                    return
                accepted, _address = self.listener.accept()
            except (OSError, ValueError):  # nobody is there any more, or the listener was closed
                time.sleep(left)
                return
            with accepted, contextlib.suppress(OSError, SSL.Error, ServingError, _Slow):
                self._serve(accepted, stuck_seconds)

    def _serve(self, accepted: socket.socket, stuck_seconds: float) -> None:
        if self._context is None:
            self._context = self.make_context()
        client = _Client(accepted, SSL.Connection(self._context, accepted), time.monotonic() + _CLIENT_SECONDS)
        accepted.setblocking(False)
        client.connection.set_accept_state()
        client.run(client.connection.do_handshake)
        path = client.read_path()
        status, text = self._answer_to(path, stuck_seconds)
        body = text.encode()
        head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
        client.write(f"{head}Cache-Control: no-cache, private\r\nConnection: close\r\n\r\n".encode() + body)
        client.run(client.connection.shutdown)

    def _answer_to(self, path: str, stuck_seconds: float) -> tuple[str, str]:
        name = path.strip("/").partition("/")[0]
        if name not in _ENDPOINTS or path not in self.allowed:
            return "503 Service Unavailable", "a hook of a plugin has not returned, and nothing else runs meanwhile\n"
        if name == "livez" and stuck_seconds < EVENT_LOOP_LAG_SECONDS:
            return "200 OK", "ok"
        found = self.culprit()
        who = "nothing has run" if found is None else f"{found[1]} of plugin {found[0]} has not returned"
        return (
            "500 Internal Server Error",
            f"[-]event-loop failed: {who} for {stuck_seconds:.0f} s; the log has its place\n{name} check failed\n",
        )


def stalled_health(
    listener: socket.socket,
    settings: ServingSettings,
    assembly: Assembly,
    certificates: ServingCertificates | None = None,
) -> StalledHealth:
    """The health checks of the scheduler that *assembly* is; *certificates* of its own if it has none yet."""
    known = ServingCertificates(settings) if certificates is None else certificates
    return StalledHealth(
        listener=listener,
        make_context=known.context_for_http1,
        allowed=AlwaysAllowed.of(settings.authorization.always_allow_paths),
        culprit=lambda: assembly.blocking_hooks.stuck_in,
    )


@define(eq=False)
class _Client:
    """One connection, which has to be done by a time."""

    socket: socket.socket
    connection: SSL.Connection
    deadline: float

    def run(self, operation: Callable[[], T]) -> T:
        """Do *operation*, as often as it takes until it does not wait for the client any more."""
        while True:
            try:
                return operation()
            except SSL.WantReadError:
                self._wait(select.POLLIN)
            except SSL.WantWriteError:
                self._wait(select.POLLOUT)

    def _wait(self, event: int) -> None:
        left = self.deadline - time.monotonic()
        if left <= 0 or not _is_ready(self.socket, event, left):
            raise _Slow

    def read_path(self) -> str:
        """The path of the request, whose head is read to its end."""
        received = b""
        while b"\r\n\r\n" not in received:
            if len(received) > _MAX_REQUEST_BYTES:
                raise _Slow
            received += self.run(lambda: self.connection.recv(4096))
        words = received.split(b"\r\n", 1)[0].split()
        target = words[1].decode("ascii", "replace") if len(words) > 1 else ""
        return target.partition("?")[0]

    def write(self, data: bytes) -> None:
        """Send all of *data*."""
        while data:
            data = data[self.run(partial(self.connection.send, data)) :]


def _is_ready(one: socket.socket, event: int, seconds: float) -> bool:
    """Wait for *event*; by poll, which takes descriptors of any number."""
    poll = select.poll()
    poll.register(one, event)
    return bool(poll.poll(1000 * seconds))
