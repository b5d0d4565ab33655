"""The plugins of a configuration, instantiated although nothing runs: what they watch, and what they need to do."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import trio
from attrs import evolve

from trio_sched.daemon.assemble import assemble
from trio_sched.daemon.loaded_profiles import LoadedProfiles
from trio_sched.daemon.settings import DaemonSettings
from trio_sched.daemon.watching.watched_kinds import kind_of
from trio_sched.kube_client.kinds import Kind
from trio_sched.simulation.simulated_run import in_process_clients
from trio_sched.simulator import ApiServer, trio_clock


def load_profiles(settings: DaemonSettings) -> LoadedProfiles:
    """The profiles of *settings*; extenders are left out.

    Raises:
        PluginError: a plugin cannot be loaded.
    """
    return trio.run(_load, settings)


def kinds_that_plugins_watch(settings: Iterable[DaemonSettings]) -> list[Kind[Any]]:
    """The kinds that the plugins of all *settings* read or have registered for, besides pods and nodes.

    Raises:
        PluginError: a plugin cannot be loaded.
    """
    wanted = [kind_of(resource) for one in settings for resource in load_profiles(one).wanted_kinds]
    return [found[1] for found in wanted if found is not None]


async def _load(settings: DaemonSettings) -> LoadedProfiles:
    clock = trio_clock()
    settings = evolve(settings, config=evolve(settings.config, extenders=()))
    async with in_process_clients(ApiServer(clock, 0), settings) as clients:
        return assemble(settings, clients, random=Random(0), wall_clock=clock).loaded
