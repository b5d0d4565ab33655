"""Which kube-scheduler to act as where no flag says it: that of the API server's version, as far as there is one."""

from __future__ import annotations

import logging
from typing import Final

import trio

from trio_sched.cli.flags.flags import Flags
from trio_sched.config.feature_gates import DEFAULT_VERSION, NEWEST_VERSION
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.versions.discovery import server_version

log = logging.getLogger(__name__)

_SECONDS: Final = 2.0
"""An API server that does not say its version by then is not waited for: health checks are not answered yet."""


async def flags_for_server(flags: Flags, client: KubeClient) -> Flags:
    """*flags*, with the version of the API server if that is newer than the default and none was given."""
    if flags["emulated-version"]:
        return flags
    found = None
    with trio.move_on_after(_SECONDS):
        found = await server_version(client)
    default = ".".join(map(str, DEFAULT_VERSION))
    if found is None:
        log.warning(
            "The API server does not say its version, so pods are scheduled as by kube-scheduler %s; "
            "--emulated-version chooses another",
            default,
        )
        return flags
    chosen = min(found, NEWEST_VERSION)
    if chosen <= DEFAULT_VERSION:
        return flags
    version = ".".join(map(str, chosen))
    log.info(
        "Scheduling as kube-scheduler %s, because the API server is of %s; --emulated-version=%s keeps to the other",
        version,
        ".".join(map(str, found)),
        default,
    )
    return flags.emulating(version)
