"""A scheduler that answers at a port of its own, on the real clock; its API server is reached without one."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from random import Random

import trio
from attrs import evolve
from daemon_clients import one_for_all
from real_time_daemon import daemon_settings, free_port

from trio_sched.config.load import load_configuration
from trio_sched.daemon.assemble import assemble
from trio_sched.daemon.serving_settings import AuthorizationSettings, ServingSettings
from trio_sched.daemon.supervisor import run_daemon
from trio_sched.kube_client.connection import connect
from trio_sched.kube_client.settings import ConnectionSettings
from trio_sched.simulator import ApiServer, InProcessTransport

CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
"""


@asynccontextmanager
async def served_scheduler(
    api: ApiServer, *, profiles: str = "", allowed: tuple[str, ...] = ("*",), pending: bool = True
) -> AsyncGenerator[int, None]:
    """Run a scheduler; yields its port.

    Args:
        api: the API server.
        profiles: the line of the configuration with other profiles.
        allowed: the paths that need no rights.
        pending: wait until a pod was found to fit nowhere.
    """
    port, stop = free_port(), trio.Event()
    serving = ServingSettings(
        bind_address="127.0.0.1", port=port, authorization=AuthorizationSettings(always_allow_paths=allowed)
    )
    settings = evolve(daemon_settings(load_configuration(CONFIGURATION + profiles)), serving=serving)
    connection = ConnectionSettings(server="http://api.test")
    async with connect(connection, qps=-1, transport=InProcessTransport(api)) as client:
        assembly = assemble(settings, one_for_all(client), random=Random(0), wall_clock=partial(datetime.now, UTC))
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(partial(run_daemon, assembly, stop=stop))
                await assembly.synced.wait()
                while pending and not assembly.scheduler.queue.unschedulable:
                    await trio.lowlevel.checkpoint()
                yield port
                stop.set()
