"""The watches of nodes, of what plugins need, and of pods: listed side by side, pods delivered last."""

from __future__ import annotations

import logging
from typing import Any

import trio

from trio_sched.daemon.assembly import Assembly
from trio_sched.daemon.watched_kinds import kind_of
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.errors import Forbidden, KubeClientError, NotFound
from trio_sched.kube_client.watch import Changes, Listed, Reflector, log_watch_error
from trio_sched.objects.pod import Pod

log = logging.getLogger(__name__)


async def run_watches(
    assembly: Assembly, client: KubeClient, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Follow everything that is needed; reports started when all of it has been listed once."""
    event_handlers, random = assembly.event_handlers, assembly.random
    nodes = Reflector(client, assembly.node_kind, event_handlers.nodes_changed, random)
    held: list[Listed[Pod] | Changes[Pod]] = []
    pods = Reflector(client, assembly.pod_kind, held.append, random)
    assembly.watch_reconnect.reflectors[:] = [nodes, pods]
    assembly.metrics.reflectors[:] = [nodes, pods]
    assembly.metrics.pods = pods
    async with trio.open_nursery() as nursery:
        async with trio.open_nursery() as first_lists:
            first_lists.start_soon(nursery.start, nodes.run)
            first_lists.start_soon(nursery.start, pods.run)
            for resource, actions in assembly.wanted_kinds.items():
                found = kind_of(resource)
                if found is not None:
                    name, kind = found
                    first_lists.start_soon(
                        _start_if_served,
                        nursery,
                        client,
                        kind,
                        event_handlers.handler(name, resource, actions),
                        assembly,
                    )
        # Only now: so every pod finds its node, and plugins what they read of it.
        for batch in held:
            event_handlers.pods_changed(batch)
        held.clear()
        pods.deliver = event_handlers.pods_changed
        task_status.started()


async def _start_if_served(
    nursery: trio.Nursery, client: KubeClient, kind: Any, deliver: Any, assembly: Assembly
) -> None:
    """Follow a kind that the server may not serve, or not allow to be read; then there is nothing to wait for.

    The watch retries all the same, in case the kind is served later.
    """
    responded = trio.Event()

    def handle(batch: Listed[Any] | Changes[Any]) -> None:
        deliver(batch)
        responded.set()

    def on_error(plural: str, error: KubeClientError) -> None:
        if not isinstance(error, NotFound | Forbidden):
            log_watch_error(plural, error)
        elif not responded.is_set():
            log.warning("%s cannot be watched, so nothing is known of them: %s", plural, error)
            responded.set()

    reflector = Reflector(client, kind, handle, assembly.random, on_error=on_error)
    assembly.metrics.reflectors.append(reflector)
    nursery.start_soon(reflector.run)
    await responded.wait()
