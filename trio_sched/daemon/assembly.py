"""Puts the parts together: plugins into profiles, profiles into the engine, the engine between watches and binders."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime
from random import Random
from typing import Any

import trio
from attrs import define, field

from trio_sched.config.schema import RawArguments
from trio_sched.daemon.binder import Binder
from trio_sched.daemon.binding_cycle import BindingCycle
from trio_sched.daemon.cluster_mirror import ClusterMirror, PendingPods
from trio_sched.daemon.event_recorder import EventRecorder
from trio_sched.daemon.evictions import Evictions
from trio_sched.daemon.extended_scheduling import ExtendedScheduling
from trio_sched.daemon.extenders import Extenders, node_kind, pod_kind
from trio_sched.daemon.failure_handler import FailureHandler
from trio_sched.daemon.object_changes import ObjectChanges
from trio_sched.daemon.plugin_handle import LaterParts, PluginHandle
from trio_sched.daemon.pod_status import PodStatusWriter
from trio_sched.daemon.pre_binding import PreBindingPods
from trio_sched.daemon.schedule_one import ScheduleOne
from trio_sched.daemon.settings import Clients, DaemonSettings
from trio_sched.daemon.waiting_pods import WaitingPods
from trio_sched.daemon.wakeup import Bell
from trio_sched.daemon.watch_sync import WatchSync
from trio_sched.daemon.work_pool import WorkPool
from trio_sched.engine.asked_kinds import AskedKinds
from trio_sched.engine.backoff import Backoff
from trio_sched.engine.cache import Cache
from trio_sched.engine.gates import ProfileQueueing
from trio_sched.engine.profile import Profile, build_profile
from trio_sched.engine.queue import SchedulingQueue
from trio_sched.engine.queueing_hints import build_hint_table
from trio_sched.engine.scheduler import Scheduler
from trio_sched.kube_client.kinds import Kind
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_requests import ResourceOptions
from trio_sched.snapshot.node_columns import NodeColumns

BINDS_AT_ONCE = 32
STATUS_PATCHES_AT_ONCE = 8


@define(eq=False)
class Assembly:
    """The parts that the supervisor starts and stops."""

    scheduler: Scheduler
    mirror: ClusterMirror
    recorder: EventRecorder
    binders: WorkPool
    status_writers: WorkPool
    evictions: Evictions
    binding: BindingCycle
    schedule_one: ScheduleOne
    ready: Bell
    """Rung when a pod may have become ready."""
    queue_changed: Bell
    """Rung when a pod may have begun to back off."""
    random: Random
    node_kind: Kind[Node]
    pod_kind: Kind[Pod]
    extenders: Extenders | None
    watch_sync: WatchSync = field(factory=WatchSync)


def assemble(
    settings: DaemonSettings, clients: Clients, *, random: Random, wall_clock: Callable[[], datetime]
) -> Assembly:
    """Load the plugins and connect everything; nothing runs yet.

    Raises:
        PluginError: a plugin is missing or broken.
        ExtenderError: the certificates of an extender are not usable.
    """
    config, gates = settings.config, settings.gates
    options = ResourceOptions(
        pod_level=gates.enabled("PodLevelResources"),
        pod_level_resize=gates.enabled("InPlacePodLevelResourcesVerticalScaling"),
    )
    cache = Cache(options)
    pending, waiting = PendingPods(), WaitingPods()
    ready, queue_changed = Bell(), Bell()
    binder = Binder(clients.main, random)
    others: dict[str, dict[tuple[str, str], Any]] = {}
    versions, asked, later = Counter[str](), AskedKinds(), LaterParts(pending)
    object_changes = ObjectChanges()

    def activate(pods: Iterable[Pod]) -> None:
        scheduler.queue.activate(pods, now=trio.current_time())
        ready.ring()

    profiles: dict[str, Profile] = {}
    for profile, points in zip(config.profiles, settings.profiles, strict=True):
        name = profile.scheduler_name
        handle = PluginHandle(
            name,
            gates.enabled,
            lambda: NodeColumns(cache.table),
            others,
            versions,
            asked,
            waiting,
            activate,
            binder.bind,
            clients.main,
            object_changes,
            later,
        )
        arguments = {
            entry.name: entry.args.value() if isinstance(entry.args, RawArguments) else entry.args
            for entry in profile.plugin_config
        }
        percentage = profile.percentage_of_nodes_to_score
        profiles[name] = build_profile(
            name,
            {point: [(ref.name, ref.weight) for ref in refs] for point, refs in points.items()},
            arguments,
            settings.registry,
            handle,
            percentage_of_nodes_to_score=config.percentage_of_nodes_to_score if percentage is None else percentage,
        )
    queue = _queue(settings, profiles, pending, options)
    scheduler = Scheduler(profiles, cache, queue, random, asked)
    queue.sign = scheduler.sign_queued
    extenders = extended = None
    if config.extenders:
        extenders = Extenders.from_config(config.extenders, lambda: NodeColumns(cache.table), clients.to_extenders)
        extended = ExtendedScheduling(scheduler, pending, extenders)
        later.extenders = extenders
    binders, status_writers = WorkPool(BINDS_AT_ONCE), WorkPool(STATUS_PATCHES_AT_ONCE)
    recorder = EventRecorder(clients.events, socket.gethostname(), wall_clock, random)
    status_writer = PodStatusWriter(clients.main, status_writers, wall_clock, random)
    failures = FailureHandler(queue, pending, recorder, status_writer, queue_changed.ring)
    pre_binding = PreBindingPods()
    evictions = Evictions(
        client=clients.main,
        scheduler=scheduler,
        waiting=waiting,
        pre_binding=pre_binding,
        recorder=recorder,
        status_writer=status_writer,
        activate=activate,
        parallelism=config.parallelism,
    )
    later.scheduler, later.evictions = scheduler, evictions
    binding = BindingCycle(
        scheduler,
        binders,
        waiting,
        pre_binding,
        recorder,
        status_writer,
        failures,
        ready.ring,
        gates.enabled("NominatedNodeNameForExpectation"),
        extenders,
    )

    def wake() -> None:
        ready.ring()
        if not queue.pop_from_backoff:  # then it takes the timer to get a pod out of its backoff
            queue_changed.ring()

    mirror = ClusterMirror(
        scheduler,
        pending,
        wake,
        waiting.remove_deleted,
        gates.enabled("NodeDeclaredFeatures"),
        others,
        versions,
        object_changes,
    )
    schedule_one = ScheduleOne(scheduler, pending, binding, failures, recorder, ready, extended)
    return Assembly(
        scheduler,
        mirror,
        recorder,
        binders,
        status_writers,
        evictions,
        binding,
        schedule_one,
        ready,
        queue_changed,
        random,
        node_kind(config.extenders),
        pod_kind(config.extenders, profiles),
        extenders,
    )


def _queue(
    settings: DaemonSettings, profiles: dict[str, Profile], pending: PendingPods, options: ResourceOptions
) -> SchedulingQueue:
    config, gates = settings.config, settings.gates
    pop_from_backoff = gates.enabled("SchedulerPopFromBackoffQ")
    groups = gates.enabled("GenericWorkload")
    first = next(iter(profiles.values()))
    return SchedulingQueue(
        profiles={
            name: ProfileQueueing(profile.pre_enqueue, build_hint_table(profile, extenders=bool(config.extenders)))
            for name, profile in profiles.items()
        },
        queue_sort=first.queue_sort[0].call,
        known_pod=pending.get,
        backoff=Backoff(config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds, windowed=pop_from_backoff),
        max_in_unschedulable_seconds=settings.max_in_unschedulable_seconds,
        pop_from_backoff=pop_from_backoff,
        groups_skip_hints=groups,
        resource_options=options,
    )
