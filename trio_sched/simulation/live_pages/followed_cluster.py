"""A running cluster, followed by its watches with the rights of whoever asks, for its live page; nothing is written."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from random import Random

import trio

from trio_sched.daemon.assemble import assemble
from trio_sched.daemon.clients import open_clients
from trio_sched.daemon.serving.pages.explain_page import ExplainPage
from trio_sched.daemon.serving.pages.live.live_pages import LivePages
from trio_sched.daemon.settings import DaemonSettings
from trio_sched.kube_client.http.caller import Caller
from trio_sched.kube_client.settings import ConnectionSettings
from trio_sched.live_page.live_state import CLUSTER


@asynccontextmanager
async def followed_cluster(
    settings: DaemonSettings, connection: ConnectionSettings, *, caller: Caller | None = None
) -> AsyncGenerator[LivePages, None]:
    """The live page of the cluster that *connection* leads to, as long as the block runs.

    Its caches are those of a daemon in which no scheduling loop runs.

    Args:
        settings: whose profiles' pods are shown as pending, and what they are explained with.
        connection: of the API server.
        caller: see `connect`.

    Raises:
        ApiError: pods or nodes may not be listed.
        KubeClientError: the cluster cannot be reached.
        PluginError: a plugin is missing or broken.
    """
    async with (
        open_clients(settings.config, connection, caller=caller, read_only=True) as clients,
        trio.open_nursery() as nursery,
    ):
        for resource in ("nodes", "pods"):  # watches would ask for ever what they may not see
            await clients.main.call(b"GET", f"/api/v1/{resource}?limit=1".encode())
        assembly = assemble(settings, clients, random=Random(0), wall_clock=partial(datetime.now, UTC))
        await nursery.start(assembly.watches.run, assembly.loaded.wanted_kinds)
        assembly.synced.set()
        pages = LivePages(assembly, ExplainPage(assembly), kind=CLUSTER)
        nursery.start_soon(pages.run)
        yield pages
        nursery.cancel_scope.cancel()
