"""The sockets that the endpoints listen on."""

from __future__ import annotations

import errno
import ipaddress
import logging
import os
import socket
from typing import TYPE_CHECKING, Final

from trio_sched.daemon.serving.errors import ServingError

if TYPE_CHECKING:
    from trio_sched.daemon.serving_settings import ServingSettings

log = logging.getLogger(__name__)

EXITING: Final = "[graceful-termination] secure server is exiting"
"""The last line of the log about serving."""
_BACKLOG: Final = 1024


def open_listener(settings: ServingSettings) -> socket.socket:
    """A socket that listens at the address of *settings*; an unspecified address means all, of both families.

    Raises:
        ServingError: the address cannot be used; with kube-scheduler's text.
    """
    host, port = settings.bind_address or "0.0.0.0", settings.port
    shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        return _listen(host, port, share_port=settings.share_port)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ServingError(
            f"failed to create listener: failed to listen on {shown}: listen tcp {shown}: bind: {reason}"
        ) from error


def _listen(host: str, port: int, *, share_port: bool) -> socket.socket:
    address = ipaddress.ip_address(host)
    both = address.is_unspecified
    families = (
        (socket.AF_INET6, socket.AF_INET) if both else (socket.AF_INET6 if address.version == 6 else socket.AF_INET,)
    )
    for family in families:
        try:
            return _bind(family, ("::" if family == socket.AF_INET6 else "0.0.0.0") if both else host, port, share_port)
        except OSError as error:
            if family == families[-1] or error.errno not in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
                raise
    raise AssertionError("unreachable: the last family returns or raises")


def _bind(family: socket.AddressFamily, host: str, port: int, share_port: bool) -> socket.socket:
    opened = socket.socket(family, socket.SOCK_STREAM | getattr(socket, "SOCK_CLOEXEC", 0))
    try:
        # With or without --permit-address-sharing, as in Go: connections in TIME_WAIT must not keep a new scheduler
        # from its port.
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if share_port:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(host != "::"))
        opened.bind((host, port))
        opened.listen(_BACKLOG)
        opened.setblocking(False)
    except BaseException:
        opened.close()
        raise
    return opened


def shown_address(listener: socket.socket) -> str:
    """``[::]:10259``."""
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def describe(error: OSError) -> str:
    """The system's words for *error*."""
    return os.strerror(error.errno) if error.errno else str(error)


def log_stopped(address: str) -> None:
    """Say that no connections are accepted any more."""
    log.info("Stopped listening on %s", address)
    log.info("[graceful-termination] secure server has stopped listening")


def log_end(address: str) -> None:
    """Say the same, and that nothing is being answered any more either."""
    log_stopped(address)
    log.info(EXITING)
