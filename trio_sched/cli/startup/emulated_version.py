"""Which kube-scheduler to act as where no flag says it: that of the API server's version, as far as there is one."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

import trio

from trio_sched.cli.flags.flags import Flags
from trio_sched.cli.startup.prepare import LoggingOptionsError, Prepared
from trio_sched.config.errors import ConfigError
from trio_sched.config.feature_gates import DEFAULT_VERSION, NEWEST_VERSION, Version
from trio_sched.errors import TrioSchedError
from trio_sched.kube_client.connection import KubeClient, connect
from trio_sched.kube_client.settings import ConnectionSettings
from trio_sched.kube_client.versions.discovery import DISCOVERY_SECONDS, server_version

log = logging.getLogger(__name__)

_SECONDS: Final = 2.0
"""An API server that does not say its version by then is not waited for: health checks are not answered yet."""


def prepared_for_server(flags: Flags, prepared_with: Callable[[Flags], Prepared]) -> Prepared:
    """What *flags* name, read and checked by *prepared_with*: as of a newer version if it is valid in that one only.

    The server is asked for its version, for `_SECONDS` at most, only if that makes the difference.

    Raises:
        TrioSchedError: it is not valid in the version that will be emulated.
    """
    try:
        return prepared_with(flags)
    except LoggingOptionsError:
        raise
    except ConfigError as problem:
        if flags["emulated-version"] or flags.write_config_to:
            raise
        newest = ".".join(map(str, NEWEST_VERSION))
        try:
            prepared = prepared_with(flags.emulating(newest))
        except TrioSchedError:
            raise problem from None
        found = trio.run(_asked_version, prepared.connection, _SECONDS)
        if found is None or found < NEWEST_VERSION:
            raise
        log.info(
            "Scheduling as kube-scheduler %s, because the API server is of %s; the configuration is valid in no older "
            "version",
            newest,
            ".".join(map(str, found)),
        )
        return prepared


async def _asked_version(connection: ConnectionSettings, seconds: float) -> Version | None:
    with trio.move_on_after(seconds):
        async with connect(connection, qps=-1) as client:
            return await server_version(client)
    return None


def version_of_server(connection: ConnectionSettings) -> Version | None:
    """The version of the API server that *connection* leads to; None if it does not say.

    A person waits for it, so that it may take as long as credentials of a program take.

    Raises:
        TrioSchedError: the connection cannot be used.
    """
    return trio.run(_asked_version, connection, DISCOVERY_SECONDS)


def version_for(server: Version | None) -> str:
    """The version to act as on an API server of the version *server*, ``1.37``; empty: the default."""
    chosen = DEFAULT_VERSION if server is None else min(server, NEWEST_VERSION)
    return ".".join(map(str, chosen)) if chosen > DEFAULT_VERSION else ""


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
    version = version_for(found)
    if not version:
        return flags
    log.info(
        "Scheduling as kube-scheduler %s, because the API server is of %s; --emulated-version=%s keeps to the other",
        version,
        ".".join(map(str, found)),
        default,
    )
    return flags.emulating(version)
