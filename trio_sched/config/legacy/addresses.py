"""The addresses of the removed insecure port in legacy documents: those that switch it off are accepted."""

import ipaddress
from typing import Final

from trio_sched.config.legacy.changes import Changes

INSECURE_PORT_GONE: Final = "the port without TLS is gone; health checks and metrics are on the one of --secure-port"
"""What became of the insecure port."""


def drop_address(path: str, address: str, changes: Changes, *, strict: bool) -> None:
    """Leave out *address*, one of ``healthzBindAddress`` and ``metricsBindAddress``.

    Args:
        path: of the address in the document.
        address: what it is.
        changes: where the change is noted.
        strict: whether its version accepts only what switches the port off: an empty address or port 0.
    """
    if not address or _port(address) == "0":
        return
    if strict:
        changes.refuse(path, f"{address!r} must be empty or have port 0: {INSECURE_PORT_GONE}")
    else:
        changes.note(path, INSECURE_PORT_GONE)


def _port(address: str) -> str | None:
    """The port of *address*; None if it has none."""
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return address.rpartition(":")[2] if ":" in address else None
    return None
