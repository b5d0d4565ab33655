"""How many files and sockets this process may have open: as many as it is allowed to, as in Go."""

from __future__ import annotations

import resource
from contextlib import suppress
from typing import Final

_AT_START: Final = resource.getrlimit(resource.RLIMIT_NOFILE)


def raise_open_files_limit() -> None:
    """Raise the soft limit to the hard one: it is low only for programs that use ``select``."""
    _soft, hard = _AT_START
    with suppress(ValueError, OSError):  # the system may have a lower limit besides
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def restore_open_files_limit(process_id: int) -> None:
    """Give a process that this one has started the limits with which this one was started."""
    if hasattr(resource, "prlimit"):
        with suppress(OSError):  # it has ended already
            resource.prlimit(process_id, resource.RLIMIT_NOFILE, _AT_START)
