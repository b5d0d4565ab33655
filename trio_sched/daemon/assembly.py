"""Builds the parts of the daemon and connects them; the supervisor runs what is built here."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import partial
from random import Random

import trio
from attrs import define, field

from trio_sched.daemon.binder import Binder
from trio_sched.daemon.binding_cycle import BindingCycle
from trio_sched.daemon.blocking_hooks import BlockingHooks
from trio_sched.daemon.event_handlers import EventHandlers
from trio_sched.daemon.event_recorder import EventRecorder
from trio_sched.daemon.extender_scheduling import ExtenderScheduling
from trio_sched.daemon.extenders import Extenders, node_kind, pod_kind
from trio_sched.daemon.failure_handler import FailureHandler
from trio_sched.daemon.hook_time_limit import HookScopes
from trio_sched.daemon.limits import MAX_PARALLEL_BINDS, MAX_PARALLEL_STATUS_PATCHES
from trio_sched.daemon.object_cache import ObjectCache
from trio_sched.daemon.plugin_handle import PluginHandle
from trio_sched.daemon.pod_status import PodStatusWriter
from trio_sched.daemon.pods_in_pre_bind import PodsInPreBind
from trio_sched.daemon.preemption_executor import PreemptionExecutor
from trio_sched.daemon.queue_log import log_queue_move
from trio_sched.daemon.schedule_one import ScheduleOne
from trio_sched.daemon.settings import Clients, DaemonSettings
from trio_sched.daemon.unassigned_pods import UnassignedPods
from trio_sched.daemon.waiting_pods import WaitingPods
from trio_sched.daemon.wake_up import WakeUp
from trio_sched.daemon.watch_reconnect import WatchReconnect
from trio_sched.daemon.watched_kinds import check_kind, wanted_kinds
from trio_sched.daemon.work_pool import WorkPool
from trio_sched.engine.backoff import Backoff
from trio_sched.engine.cache import Cache
from trio_sched.engine.hook_times import HookTimes
from trio_sched.engine.likely_mistakes import likely_mistakes
from trio_sched.engine.plugin_registry import PluginRegistry
from trio_sched.engine.profile import build_profile
from trio_sched.engine.queue import SchedulingQueue
from trio_sched.engine.scheduler import Scheduler
from trio_sched.kube_client.kinds import Kind
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_requests import ResourceOptions
from trio_sched.plugin_api.cluster_events import Action
from trio_sched.snapshot.node_columns import NodeColumns

log = logging.getLogger(__name__)


@define(eq=False, kw_only=True)
class Assembly:
    """The parts that the supervisor starts and stops."""

    settings: DaemonSettings
    clients: Clients
    random: Random
    wall_clock: Callable[[], datetime]
    scheduler: Scheduler
    event_handlers: EventHandlers
    object_cache: ObjectCache
    recorder: EventRecorder
    bind_pool: WorkPool
    hook_scopes: HookScopes
    """The scopes of the tasks in *bind_pool*."""
    status_patch_pool: WorkPool
    preemption_executor: PreemptionExecutor
    binding: BindingCycle
    schedule_one: ScheduleOne
    pods_available: WakeUp
    """Set when the active queue may have got a pod."""
    backoff_changed: WakeUp
    """Set when a pod may have begun to back off."""
    node_kind: Kind[Node]
    pod_kind: Kind[Pod]
    extenders: Extenders | None
    blocking_hooks: BlockingHooks
    wanted_kinds: Mapping[str, Action]
    """What to watch besides pods and nodes, and after which changes pods move."""
    watch_reconnect: WatchReconnect = field(factory=WatchReconnect)
    ending: trio.Event = field(factory=trio.Event)
    """Set when the end has begun."""


def assemble(
    settings: DaemonSettings, clients: Clients, *, random: Random, wall_clock: Callable[[], datetime]
) -> Assembly:
    """Build and connect everything, load the plugins last; nothing runs yet.

    Raises:
        PluginError: a plugin is missing or broken.
        ExtenderError: the certificates of an extender are not usable.
    """
    config, gates = settings.config, settings.gates
    unassigned, waiting, pods_in_pre_bind = UnassignedPods(), WaitingPods(), PodsInPreBind()
    pods_available, backoff_changed = WakeUp(), WakeUp()
    object_cache = ObjectCache()
    scheduler = _scheduler(settings, unassigned, object_cache, random)
    queue = scheduler.queue
    queue.on_move = log_queue_move

    def wake() -> None:
        # Nearly all changes of a cluster move no pod, and waking a task takes longer than finding that out.
        if queue.has_next or queue.plugin_failures:
            pods_available.set()
        if not queue.pop_from_backoff and len(queue.backing_off):  # then only the timer takes pods out of their backoff
            backoff_changed.set()

    def activate(pods: Iterable[Pod]) -> None:
        queue.activate(pods, now=trio.current_time())
        pods_available.set()

    recorder = EventRecorder(client=clients.events, hostname=socket.gethostname(), wall_clock=wall_clock, random=random)
    hook_scopes = HookScopes()
    bind_pool = WorkPool(MAX_PARALLEL_BINDS, scope=hook_scopes.open)
    status_patch_pool = WorkPool(MAX_PARALLEL_STATUS_PATCHES)
    status_writer = PodStatusWriter(client=clients.main, pool=status_patch_pool, wall_clock=wall_clock, random=random)
    preemption_executor = PreemptionExecutor(
        client=clients.main,
        scheduler=scheduler,
        waiting=waiting,
        pods_in_pre_bind=pods_in_pre_bind,
        recorder=recorder,
        status_writer=status_writer,
        activate=activate,
        parallelism=config.parallelism,
    )
    extenders = extender_scheduling = None
    if config.extenders:
        extenders = Extenders.from_config(
            config.extenders, lambda: NodeColumns(scheduler.cache.table), clients.to_extenders
        )
        extender_scheduling = ExtenderScheduling(scheduler=scheduler, unassigned=unassigned, extenders=extenders)
    failure_handler = FailureHandler(
        scheduler=scheduler,
        unassigned=unassigned,
        recorder=recorder,
        status_writer=status_writer,
        requeued=backoff_changed.set,
    )
    binding = BindingCycle(
        scheduler=scheduler,
        pool=bind_pool,
        waiting=waiting,
        pods_in_pre_bind=pods_in_pre_bind,
        recorder=recorder,
        status_writer=status_writer,
        failure_handler=failure_handler,
        wake=pods_available.set,
        nominate_while_binding=gates.enabled("NominatedNodeNameForExpectation"),
        extenders=extenders,
    )
    event_handlers = EventHandlers(
        scheduler=scheduler,
        unassigned=unassigned,
        object_cache=object_cache,
        wake=wake,
        reject_waiting=waiting.reject_deleted,
        declared_features=gates.enabled("NodeDeclaredFeatures"),
    )
    schedule_one = ScheduleOne(
        scheduler=scheduler,
        unassigned=unassigned,
        binding=binding,
        failure_handler=failure_handler,
        recorder=recorder,
        pods_available=pods_available,
        extender_scheduling=extender_scheduling,
    )
    binder = Binder(client=clients.main, random=random)
    profiles = {}
    for resolved in settings.profiles:
        handle = PluginHandle(
            profile_name=resolved.name,
            scheduler=scheduler,
            object_cache=object_cache,
            unassigned=unassigned,
            waiting=waiting,
            preemption_executor=preemption_executor,
            extenders=extenders,
            client=clients.main,
            gate=gates.enabled,
            activate=activate,
            bind=binder.bind,
        )
        profiles[resolved.name] = build_profile(resolved, settings.registry, handle)
    _log_likely_mistakes(settings.registry, {name for profile in profiles.values() for name in profile.plugins})
    scheduler.install_profiles(profiles, extenders=bool(config.extenders))
    wanted = wanted_kinds(
        {name: profile.hints for name, profile in queue.profiles.items()},
        [kind for profile in profiles.values() for kind in profile.watches],
    )
    object_cache.check_kind = partial(check_kind, wanted)
    hook_times = HookTimes(time.perf_counter)
    # Watching the event loop costs every turn of it, so it is done only where there are plugins of other packages.
    hook_times.install(hook for hook in scheduler.hooks if not hook.built_in)
    return Assembly(
        settings=settings,
        clients=clients,
        random=random,
        wall_clock=wall_clock,
        scheduler=scheduler,
        event_handlers=event_handlers,
        object_cache=object_cache,
        recorder=recorder,
        bind_pool=bind_pool,
        hook_scopes=hook_scopes,
        status_patch_pool=status_patch_pool,
        preemption_executor=preemption_executor,
        binding=binding,
        schedule_one=schedule_one,
        pods_available=pods_available,
        backoff_changed=backoff_changed,
        node_kind=node_kind(config.extenders),
        pod_kind=pod_kind(config.extenders, profiles),
        extenders=extenders,
        blocking_hooks=BlockingHooks(hook_times),
        wanted_kinds=wanted,
    )


def _log_likely_mistakes(registry: PluginRegistry, plugins: Iterable[str]) -> None:
    for name in sorted(plugins):
        for mistake in likely_mistakes(registry.load(name)):
            source = registry.source(name)
            log.warning("plugin %s from %s: %s", name, source, mistake, extra={"plugin": name, "distribution": source})


def _scheduler(
    settings: DaemonSettings, unassigned: UnassignedPods, object_cache: ObjectCache, random: Random
) -> Scheduler:
    """The engine, without profiles yet: plugins are given a handle that reaches it."""
    config, gates = settings.config, settings.gates
    options = ResourceOptions(
        pod_level=gates.enabled("PodLevelResources"),
        pod_level_resize=gates.enabled("InPlacePodLevelResourcesVerticalScaling"),
    )
    pop_from_backoff = gates.enabled("SchedulerPopFromBackoffQ")
    queue = SchedulingQueue(
        get_unassigned_pod=unassigned.get,
        backoff=Backoff(
            config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds, align_to_window=pop_from_backoff
        ),
        max_in_unschedulable_seconds=settings.max_in_unschedulable_seconds,
        pop_from_backoff=pop_from_backoff,
        groups_skip_hints=gates.enabled("GenericWorkload"),
        resource_options=options,
    )
    return Scheduler(cache=Cache(options), queue=queue, rng=random, dependencies=object_cache.dependencies)
