"""What starts first, what stops last: the nursery tree on one page.

::

    services                                  until everything is over
    ├── event recorder, connections to extenders
    ├── HTTPS endpoints                       also while another process leads; first to end
    ├── watches: nodes, watched kinds, pods → event handlers → cache and queue
    ├── queue timers, comparisons of the cache with fresh lists, encoding of what is recorded
    ├── background tasks of plugins, unless these run on the leader only
    ├── reloads of the configuration
    ├── a shadow, in place of the recorder, the timers, the comparisons and everything below
    └── leading                               while this process leads (without an election: at once)
        ├── renewing the lease
        ├── bind tasks, status patches, preemptions, background tasks of plugins that run on the leader only
        └── schedule_one, and extender scheduling beside it
            └── pods that wait on permit or pre_bind

On ``stop`` leading ends: no pod is popped any more; pods that wait on permit or are in pre_bind, and writes that have
not been sent, are given up at once; writes in flight are drained, what is not done by then is cancelled, and only then
the lease is released: no write of this process may follow the release. Then the services end.
"""

from __future__ import annotations

import gc
import importlib
import logging
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import trio

from trio_sched.daemon.assembly import Assembly
from trio_sched.daemon.cache_debugger.cache_check import CacheCheck
from trio_sched.daemon.limits import (
    EVENT_FLUSH_SECONDS,
    SHUTDOWN_GRACE_SECONDS,
)
from trio_sched.daemon.memory import free_memory, freeze_garbage_collector, set_malloc_thresholds
from trio_sched.daemon.metrics.series.loop_lag import watch_event_loop
from trio_sched.daemon.queue_timers import run_queue_timers
from trio_sched.daemon.reload import Reloader, ReloadRequests
from trio_sched.daemon.serving.listener import log_end, open_listener, shown_address
from trio_sched.daemon.wake_up import cancel_on
from trio_sched.verbosity import V3

log = logging.getLogger(__name__)


async def run_daemon(
    assembly: Assembly,
    *,
    stop: trio.Event,
    reload: ReloadRequests | None = None,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Schedule until *stop* is set.

    Reports started once the caches are filled or *stop* is set; with delayCacheUntilActive, before they are filled.

    Args:
        assembly: what to run.
        stop: ends it.
        reload: what to reload when that is requested; None: the configuration stays as it is.
        task_status: see above.

    Raises:
        LeaderElectionLost: another instance may lead now.
        PluginTaskFailed: the background task of a plugin failed.
        CannotRecord: decisions are to be recorded, and that is not possible.
    """
    set_malloc_thresholds()
    with assembly.blocking_hooks.watching(), assembly.recording():
        await _run(assembly, stop, reload, task_status)


async def _run(
    assembly: Assembly, stop: trio.Event, reload: ReloadRequests | None, task_status: trio.TaskStatus[None]
) -> None:
    settings, elector = assembly.settings, assembly.elector
    async with trio.open_nursery() as services:
        services.start_soon(_tell_end, stop, assembly.ending)
        served = _serve(assembly, services, stop)
        if assembly.shadow is None:
            services.start_soon(assembly.recorder.run)
        if assembly.decisions is not None:
            services.start_soon(assembly.decisions.run)
        if settings.metrics.watch_event_loop:
            services.start_soon(watch_event_loop, assembly.metrics.recorder)
        if assembly.extenders is not None:
            services.start_soon(assembly.extenders.close_on_exit)
        services.start_soon(assembly.http.close_on_exit)
        fill = partial(_fill, assembly, services, stop, reload)
        work = partial(_schedule_while_leading, assembly, stop)
        if assembly.shadow is not None:
            is_filled = await fill()
            task_status.started()
            if is_filled:
                await assembly.shadow.run(stop)
        elif elector is not None and settings.config.delay_cache_until_active:
            task_status.started()
            await elector.lead(partial(_fill_then, fill, work), stop)
        else:
            is_filled = await fill()
            task_status.started()
            if is_filled and elector is not None:
                await elector.lead(work, stop)
            elif is_filled:
                await work()
        with trio.move_on_after(EVENT_FLUSH_SECONDS):
            await assembly.recorder.drained()
        await served.wait()
        services.cancel_scope.cancel()


def _serve(assembly: Assembly, services: trio.Nursery, stop: trio.Event) -> trio.Event:
    """Listen at once, and serve the endpoints when somebody asks; returns what is set at their end.

    Raises:
        ServingError: the address cannot be used.
    """
    over = trio.Event()
    settings = assembly.settings.serving
    if settings is None:
        over.set()
        return over
    listener = open_listener(settings)
    address = shown_address(listener)
    if not settings.is_needed_at_once:
        log.info("Serving securely on %s", address)

    @cache
    def stalled() -> Any:  # what it imports is not needed otherwise before somebody asks
        module = importlib.import_module("trio_sched.daemon.serving.stalled_health")
        return module.stalled_health(listener, settings, assembly)

    def answer(stuck_seconds: float, seconds: float) -> None:
        stalled().answer(stuck_seconds, seconds)

    async def serve_until_stop() -> None:
        if settings.is_needed_at_once or await _is_asked(listener, stop):
            server = await trio.to_thread.run_sync(importlib.import_module, "trio_sched.daemon.serving.server")
            await server.serve(listener, settings, assembly, stop)
        else:
            listener.close()
            log_end(address)
        over.set()

    assembly.blocking_hooks.answer_with(answer)  # until the server has another with its certificates
    services.start_soon(serve_until_stop)
    return over


async def _is_asked(listener: socket.socket, stop: trio.Event) -> bool:
    """Wait until somebody connects, or *stop*; returns whether it was the former.

    What serving needs takes a third of a second to import and to make. Where nobody asks that is saved, and where a
    probe does, pods may have been scheduled by then; the connection waits in the listener meanwhile.
    """
    is_asked = False
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cancel_on, stop, nursery.cancel_scope)
        await trio.lowlevel.wait_readable(listener)
        is_asked = True
        nursery.cancel_scope.cancel()
    return is_asked


async def _fill_then(fill: Callable[[], Awaitable[bool]], work: Callable[[], Awaitable[None]]) -> None:
    log.info("Starting informers and waiting for sync...")
    if await fill():
        log.info("Sync completed")
        await work()


async def _fill(assembly: Assembly, services: trio.Nursery, stop: trio.Event, reload: ReloadRequests | None) -> bool:
    """Start the watches and wait until each has its first list; meanwhile there is no garbage worth collecting.

    Returns:
        Whether that was done before *stop*: an API server that is away can take any time to respond.
    """
    is_filled = False
    gc.disable()
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cancel_on, stop, nursery.cancel_scope)
            await services.start(assembly.watches.run, assembly.loaded.wanted_kinds)
            is_filled = True
            nursery.cancel_scope.cancel()
    finally:
        gc.enable()
    if not is_filled:
        return False
    freeze_garbage_collector()
    assembly.synced.set()
    log.log(V3, "Handlers synced")
    queue = assembly.scheduler.queue
    forget = (assembly.scheduler.forget_unused, assembly.preemption_executor.forget_ended, assembly.forget_attempts)
    services.start_soon(free_memory, *forget)
    if assembly.shadow is None:  # else the cache is behind the API server on purpose, and nothing leaves the queue
        services.start_soon(CacheCheck(assembly=assembly).run)
        services.start_soon(run_queue_timers, queue, assembly.backoff_changed, assembly.pods_available.set)
    services.start_soon(assembly.tasks.run)
    if reload is not None:
        reloader = Reloader(assembly=assembly, requests=reload)
        services.start_soon(reloader.run, services)
    return True


async def _schedule_while_leading(assembly: Assembly, stop: trio.Event) -> None:
    """Schedule until *stop*, then wait for what is under way."""
    async with trio.open_nursery() as writers:
        writers.start_soon(_tell_end, stop, assembly.ending)
        writers.start_soon(assembly.bind_pool.run)
        writers.start_soon(assembly.hook_scopes.run)
        writers.start_soon(assembly.status_patch_pool.run)
        writers.start_soon(assembly.preemption_executor.pool.run)
        writers.start_soon(assembly.plugin_jobs.run)
        if assembly.remedies is not None:
            writers.start_soon(assembly.remedies.run)
        writers.start_soon(assembly.tasks.run_as_leader)
        async with trio.open_nursery() as nursery:  # holds the pods that wait on permit or pre_bind
            with trio.CancelScope() as scheduling, _leading(assembly, writers):
                nursery.start_soon(cancel_on, stop, scheduling)
                await assembly.watch_reconnect.wait_connected()
                await assembly.schedule_one.run(nursery)
            nursery.cancel_scope.deadline = trio.current_time() + SHUTDOWN_GRACE_SECONDS
            assembly.binding.cancel_waiting()
            executor = assembly.preemption_executor
            pools = (assembly.bind_pool, executor.pool, assembly.status_patch_pool, assembly.plugin_jobs)
            for pool in pools:
                pool.discard_waiting()
            for pool in pools:
                await pool.drained()
        writers.cancel_scope.cancel()
    if nursery.cancel_scope.cancelled_caught:
        log.warning("binds still under way after %.0f s are given up", SHUTDOWN_GRACE_SECONDS)


@contextmanager
def _leading(assembly: Assembly, writers: trio.Nursery) -> Iterator[None]:
    """Let reloads start tasks in *writers* inside the block."""
    assembly.leading = writers
    try:
        yield
    finally:
        assembly.leading = None


async def _tell_end(stop: trio.Event, ending: trio.Event) -> None:
    """Set *ending* on *stop*, or when the nursery of this task is cancelled: a failure, or the lease is lost."""
    try:
        await stop.wait()
    finally:
        ending.set()
