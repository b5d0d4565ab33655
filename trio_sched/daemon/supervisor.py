"""What starts first, what stops last: the nursery tree on one page.

::

    services                                  until everything is over
    ├── event recorder, connections to extenders
    ├── watches: nodes, watched kinds, pods → event handlers → cache and queue
    ├── queue timers
    ├── background tasks of plugins
    └── leading                               while this process leads (without an election: at once)
        ├── renewing the lease
        ├── bind tasks, status patches, preemptions
        └── schedule_one, and extender scheduling beside it
            └── pods that wait on permit or pre_bind

On ``stop`` leading ends: no pod is popped any more; pods that wait on permit or are in pre_bind, and writes that have
not been sent, are given up at once; writes in flight are drained, what is not done by then is cancelled, and only then
the lease is released: no write of this process may follow the release. Then the services end.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Awaitable, Callable
from functools import partial

import trio

from trio_sched.daemon.assembly import Assembly
from trio_sched.daemon.hook_calls import run_in_background
from trio_sched.daemon.leader_election import LeaderElector
from trio_sched.daemon.limits import EVENT_FLUSH_SECONDS, SHUTDOWN_GRACE_SECONDS
from trio_sched.daemon.memory import freeze_garbage_collector, set_malloc_thresholds
from trio_sched.daemon.queue_timers import run_queue_timers
from trio_sched.daemon.watches import run_watches
from trio_sched.engine.bound_hooks import BoundHook
from trio_sched.engine.hook_failure import describe_error
from trio_sched.errors import TrioSchedError
from trio_sched.kube_client.connection import KubeClient
from trio_sched.verbosity import V3

log = logging.getLogger(__name__)


class PluginTaskFailed(TrioSchedError):
    """The background task of a plugin has failed; its error is the cause."""

    def __init__(self, plugin: str, cause: BaseException) -> None:
        super().__init__(plugin)
        self.plugin, self.cause = plugin, cause

    def __str__(self) -> str:
        return f"background task of plugin {self.plugin!r} failed: {describe_error(self.cause)}"


async def run_daemon(
    assembly: Assembly,
    *,
    stop: trio.Event,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Schedule until *stop* is set.

    Reports started once the caches are filled or *stop* is set; with delayCacheUntilActive, before they are filled.

    Raises:
        LeaderElectionLost: another instance may lead now.
        PluginTaskFailed: the background task of a plugin failed.
    """
    set_malloc_thresholds()
    with assembly.blocking_hooks.watching():
        await _run(assembly, stop, task_status)


async def _run(assembly: Assembly, stop: trio.Event, task_status: trio.TaskStatus[None]) -> None:
    settings, clients = assembly.settings, assembly.clients
    election = settings.config.leader_election
    elector = LeaderElector(
        client=clients.leases,
        settings=election,
        identity=settings.identity,
        component=settings.config.profiles[0].scheduler_name,
        wall_clock=assembly.wall_clock,
        random=assembly.random,
        record_event=assembly.recorder.record_on_lease,
    )
    async with trio.open_nursery() as services:
        services.start_soon(_tell_end, stop, assembly.ending)
        services.start_soon(assembly.recorder.run)
        if assembly.extenders is not None:
            services.start_soon(assembly.extenders.close_on_exit)
        work = partial(_schedule_while_leading, assembly, stop)
        if election.leader_elect and settings.config.delay_cache_until_active:
            task_status.started()
            await elector.lead(partial(_fill_then, assembly, clients.main, services, stop, work), stop)
        else:
            is_filled = await _fill(assembly, clients.main, services, stop)
            task_status.started()
            if is_filled and election.leader_elect:
                await elector.lead(work, stop)
            elif is_filled:
                await work()
        with trio.move_on_after(EVENT_FLUSH_SECONDS):
            await assembly.recorder.drained()
        services.cancel_scope.cancel()


async def _fill_then(
    assembly: Assembly,
    client: KubeClient,
    services: trio.Nursery,
    stop: trio.Event,
    work: Callable[[], Awaitable[None]],
) -> None:
    log.info("Starting informers and waiting for sync...")
    if await _fill(assembly, client, services, stop):
        log.info("Sync completed")
        await work()


async def _fill(assembly: Assembly, client: KubeClient, services: trio.Nursery, stop: trio.Event) -> bool:
    """Start the watches and wait until each has its first list; meanwhile there is no garbage worth collecting.

    Returns:
        Whether that was done before *stop*: an API server that is away can take any time to respond.
    """
    is_filled = False
    gc.disable()
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_on, stop, nursery.cancel_scope)
            await services.start(run_watches, assembly, client)
            is_filled = True
            nursery.cancel_scope.cancel()
    finally:
        gc.enable()
    if not is_filled:
        return False
    freeze_garbage_collector()
    log.log(V3, "Handlers synced")
    queue = assembly.scheduler.queue
    services.start_soon(run_queue_timers, queue, assembly.backoff_changed, assembly.pods_available.set)
    for profile in assembly.scheduler.profiles.values():
        for hook in profile.run:
            services.start_soon(_run_plugin, hook, name=f"background task of plugin {hook.plugin}")
    return True


async def _run_plugin(hook: BoundHook) -> None:
    try:
        await run_in_background(hook)
    except Exception as exc:  # a plugin may raise anything
        raise PluginTaskFailed(hook.plugin, exc) from exc


async def _schedule_while_leading(assembly: Assembly, stop: trio.Event) -> None:
    """Schedule until *stop*, then wait for what is under way."""
    async with trio.open_nursery() as writers:
        writers.start_soon(_tell_end, stop, assembly.ending)
        writers.start_soon(assembly.bind_pool.run)
        writers.start_soon(assembly.hook_scopes.run)
        writers.start_soon(assembly.status_patch_pool.run)
        writers.start_soon(assembly.preemption_executor.pool.run)
        async with trio.open_nursery() as nursery:  # holds the pods that wait on permit or pre_bind
            with trio.CancelScope() as scheduling:
                nursery.start_soon(_cancel_on, stop, scheduling)
                await assembly.watch_reconnect.wait_connected()
                await assembly.schedule_one.run(nursery)
            nursery.cancel_scope.deadline = trio.current_time() + SHUTDOWN_GRACE_SECONDS
            assembly.binding.give_up_waiting()
            pools = (assembly.bind_pool, assembly.preemption_executor.pool, assembly.status_patch_pool)
            for pool in pools:
                pool.discard_waiting()
            for pool in pools:
                await pool.drained()
        writers.cancel_scope.cancel()
    if nursery.cancel_scope.cancelled_caught:
        log.warning("binds still under way after %.0f s are given up", SHUTDOWN_GRACE_SECONDS)


async def _tell_end(stop: trio.Event, ending: trio.Event) -> None:
    """Set *ending* on *stop*, or when the nursery of this task is cancelled: a failure, or the lease is lost."""
    try:
        await stop.wait()
    finally:
        ending.set()


async def _cancel_on(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel()
