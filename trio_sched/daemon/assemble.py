"""Builds the parts of the daemon and connects them."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import partial
from random import Random

import trio

from trio_sched.daemon.assembly import Assembly, CacheChecks
from trio_sched.daemon.assembly_parts import (
    build_decision_recorder,
    build_delivery,
    build_elector,
    build_pod_groups,
    build_remedies,
    build_scheduler,
    build_shadow,
)
from trio_sched.daemon.clients import Clients
from trio_sched.daemon.extenders.extender_kinds import node_kind, pod_kind
from trio_sched.daemon.hooks.blocking_hooks import BlockingHooks
from trio_sched.daemon.hooks.hook_time_limit import HookScopes
from trio_sched.daemon.limits import MAX_PARALLEL_BINDS, MAX_PARALLEL_STATUS_PATCHES
from trio_sched.daemon.loaded_profiles import ProfileLoader
from trio_sched.daemon.metrics.families.client_families import has_informer_metrics
from trio_sched.daemon.metrics.metrics import Metrics
from trio_sched.daemon.metrics.recorder import MetricRecorder
from trio_sched.daemon.metrics.series.handle_metrics import PluginMetricRegistry
from trio_sched.daemon.plugins.background_tasks import BackgroundTasks
from trio_sched.daemon.plugins.handle_parts import HandleParts
from trio_sched.daemon.plugins.object_writes import ObjectWrites
from trio_sched.daemon.plugins.plugin_http import NetworkTransport, PluginHttp
from trio_sched.daemon.plugins.plugin_jobs import PluginJobs
from trio_sched.daemon.plugins.plugin_trace import PluginTrace
from trio_sched.daemon.pods.attempt_history import AttemptHistory
from trio_sched.daemon.pods.binder import Binder
from trio_sched.daemon.pods.binding_cycle import BindingCycle
from trio_sched.daemon.pods.failure_handler import FailureHandler
from trio_sched.daemon.pods.pod_status import PodStatusWriter
from trio_sched.daemon.pods.pods_in_pre_bind import PodsInPreBind
from trio_sched.daemon.pods.preemption_executor import PreemptionExecutor
from trio_sched.daemon.pods.skipped_pods import SkipPodSchedule
from trio_sched.daemon.pods.waiting_pods import WaitingPods
from trio_sched.daemon.reload_counters import ReloadCounters
from trio_sched.daemon.schedule_one import ScheduleOne
from trio_sched.daemon.settings import DaemonSettings
from trio_sched.daemon.wake_up import WakeUp
from trio_sched.daemon.watching.object_waits import ObjectWaits
from trio_sched.daemon.watching.watch_reconnect import WatchReconnect
from trio_sched.daemon.watching.watches import Watches
from trio_sched.daemon.writes.event_recorder import EventRecorder
from trio_sched.daemon.writes.work_pool import WorkPool
from trio_sched.engine.event_handlers import EventHandlers
from trio_sched.engine.hooks.attempt_trace import AttemptTracer
from trio_sched.engine.hooks.hook_times import HookTimes
from trio_sched.kube_client.versions.served_versions import ServedVersions
from trio_sched.objects.pod import Pod
from trio_sched.snapshot.node_columns import NodeColumns


def assemble(
    settings: DaemonSettings,
    clients: Clients,
    *,
    random: Random,
    wall_clock: Callable[[], datetime],
    tracer: AttemptTracer | None = None,
) -> Assembly:
    """Build and connect everything, load the plugins last; nothing runs yet.

    Args:
        settings: what the flags and the configuration say.
        clients: connections to the API server.
        random: for the choices that are left to chance.
        wall_clock: returns the time of day.
        tracer: is told about the attempts to trace; None: they are not traced.

    Raises:
        PluginError: a plugin is missing or broken.
        ExtenderError: the certificates of an extender are not usable.
    """
    config, features = settings.config, settings.gates.features
    waiting, pods_in_pre_bind, object_waits = WaitingPods(), PodsInPreBind(), ObjectWaits()
    pods_available, backoff_changed = WakeUp(), WakeUp()
    metrics = MetricRecorder()
    decisions = build_decision_recorder(settings, wall_clock)
    # The watches are made below; nothing is read from them before they run.
    pods_and_nodes: Mapping[str, Callable[[], Mapping[tuple[str, str], object]]] = {
        "Pod": lambda: watches.pods.by_name,
        "Node": lambda: watches.nodes.by_name,
    }
    plugin_jobs = PluginJobs()
    owned, new_status_writer = None, PodStatusWriter
    new_preemption_executor: Callable[..., PreemptionExecutor] = PreemptionExecutor
    if config.sharding is not None:
        from trio_sched.daemon.sharding.sharded_pods import ShardedStatusWriter
        from trio_sched.daemon.sharding.sharded_preemption import ShardedPreemptionExecutor
        from trio_sched.daemon.sharding.sharding import build_owned

        owned, new_status_writer = build_owned(settings, config.sharding), ShardedStatusWriter
        new_preemption_executor = partial(ShardedPreemptionExecutor, owned=owned, jobs=plugin_jobs)
    scheduler = build_scheduler(settings, random, pods_and_nodes, decisions, owned)
    queue = scheduler.queue

    def wake() -> None:
        # Nearly all changes of a cluster move no pod, and waking a task takes longer than finding that out.
        if queue.has_next or queue.plugin_failures:
            pods_available.set()
        if queue.needs_backoff_timer:
            backoff_changed.set()

    def activate(pods: Iterable[Pod]) -> None:
        queue.activate(pods, now=trio.current_time())
        pods_available.set()

    recorder = EventRecorder(
        client=clients.events,
        hostname=socket.gethostname(),
        wall_clock=wall_clock,
        random=random,
        is_silent=settings.shadow is not None,
    )
    hook_scopes = HookScopes()
    bind_pool = WorkPool(MAX_PARALLEL_BINDS, scope=hook_scopes.open)
    status_patch_pool = WorkPool(MAX_PARALLEL_STATUS_PATCHES)
    status_writer = new_status_writer(client=clients.main, pool=status_patch_pool, wall_clock=wall_clock, random=random)
    preemption_executor = new_preemption_executor(
        client=clients.main,
        scheduler=scheduler,
        waiting=waiting,
        pods_in_pre_bind=pods_in_pre_bind,
        recorder=recorder,
        status_writer=status_writer,
        activate=activate,
        metrics=metrics,
        parallelism=config.parallelism,
    )
    skip_pod_schedule = SkipPodSchedule(scheduler=scheduler, recorder=recorder)
    extenders = extender_scheduling = None
    if config.extenders:
        from trio_sched.daemon.extenders.extender_scheduling import ExtenderScheduling
        from trio_sched.daemon.extenders.extenders import Extenders

        extenders = Extenders.from_config(
            config.extenders, lambda: NodeColumns(scheduler.cache.table), clients.to_extenders
        )
        extender_scheduling = ExtenderScheduling(
            scheduler=scheduler,
            extenders=extenders,
            skip_pod_schedule=skip_pod_schedule,
            tracer=tracer,
            was_asked=None if owned is None else owned.is_proposed,
        )
    sharding, served = None, ServedVersions(clients.main)
    if owned is not None:
        from trio_sched.daemon.sharding.sharding import build_sharding

        sharding = build_sharding(
            owned,
            settings,
            clients,
            scheduler=scheduler,
            status_writer=status_writer,
            preemption=preemption_executor,
            object_waits=object_waits,
            jobs=plugin_jobs,
            extenders=extenders,
            served=served,
            metrics=metrics,
            wall_clock=wall_clock,
            shown=lambda: watches.pods.by_name,
            wake=wake,
        )
    attempts = AttemptHistory()
    remedies = build_remedies(scheduler, status_writer, metrics) if config.explain_in_condition else None
    failure_handler = (FailureHandler if sharding is None else sharding.failure_handler)(
        scheduler=scheduler,
        recorder=recorder,
        status_writer=status_writer,
        requeued=backoff_changed.set,
        metrics=metrics,
        attempts=attempts,
        remedies=remedies,
    )
    binding = (BindingCycle if sharding is None else sharding.binding)(
        scheduler=scheduler,
        pool=bind_pool,
        waiting=waiting,
        pods_in_pre_bind=pods_in_pre_bind,
        recorder=recorder,
        status_writer=status_writer,
        failure_handler=failure_handler,
        wake=pods_available.set,
        metrics=metrics,
        # Where the work is shared, a nomination is a question to the owner of the node.
        nominate_while_binding=features.nominated_node_name_for_expectation and sharding is None,
        extenders=extenders,
    )
    event_handlers = (EventHandlers if sharding is None else sharding.event_handlers)(
        scheduler=scheduler,
        reject_waiting=waiting.reject_deleted,
        move_on_pod_add=features.gang_scheduling,
        declared_features=features.node_declared_features,
        preemption_policies=settings.gates.behaviour.pod_events_are_split,
    )
    delivery = build_delivery(
        decisions, event_handlers=event_handlers, object_waits=object_waits, wake=wake, metrics=metrics
    )
    shadow = None if settings.shadow is None else build_shadow(settings.shadow, delivery)
    pod_groups = None
    if features.generic_workload:
        pod_groups = build_pod_groups(
            binding,
            preemption_executor,
            skip_pod_schedule,
            extender_scheduling,
            tracer,
            served,
            features,
            decisions,
            None if sharding is None else sharding.pod_groups,
        )
    schedule_one = ScheduleOne(
        scheduler=scheduler,
        binding=binding,
        failure_handler=failure_handler,
        skip_pod_schedule=skip_pod_schedule,
        pods_available=pods_available,
        metrics=metrics,
        extender_scheduling=extender_scheduling,
        pod_groups=pod_groups,
        tracer=tracer,
    )
    watches = Watches(
        client=clients.main,
        served=served,
        delivery=delivery if shadow is None else shadow.delivery,
        processing=metrics.informer_processing if has_informer_metrics(settings.gates.version) else None,
        random=random,
        node_kind=node_kind(config.extenders),
        pod_kind=pod_kind(config.extenders),
    )
    http = PluginHttp(NetworkTransport() if clients.of_plugins is None else clients.of_plugins)
    plugin_metrics = PluginMetricRegistry()
    binder = Binder(client=clients.main, random=random, retry_seconds=settings.gates.behaviour.bind_retry_seconds)
    parts = HandleParts(
        scheduler=scheduler,
        object_waits=object_waits,
        waiting=waiting,
        preemption_executor=preemption_executor,
        extenders=extenders,
        writes=(ObjectWrites if sharding is None else sharding.object_writes)(clients.main, served),
        activate=activate,
        retries_changed=backoff_changed.set,
        bind=(binder if sharding is None else sharding.binder).bind,
        recorder=recorder,
        background=plugin_jobs,
        metrics=metrics,
        http=http,
        plugin_metrics=plugin_metrics,
    )
    loader = (ProfileLoader if sharding is None else sharding.loader)(scheduler=scheduler, parts=parts)
    loaded = loader.load(settings)
    hook_times = HookTimes(time.perf_counter)
    reloads, cache_checks = ReloadCounters(), CacheChecks()
    assembly = Assembly(
        clients=clients,
        random=random,
        wall_clock=wall_clock,
        scheduler=scheduler,
        event_handlers=event_handlers,
        delivery=delivery,
        recorder=recorder,
        bind_pool=bind_pool,
        hook_scopes=hook_scopes,
        status_patch_pool=status_patch_pool,
        plugin_jobs=plugin_jobs,
        preemption_executor=preemption_executor,
        binding=binding,
        schedule_one=schedule_one,
        pods_available=pods_available,
        backoff_changed=backoff_changed,
        watches=watches,
        watch_reconnect=WatchReconnect([watches.nodes, watches.pods]),
        extenders=extenders,
        blocking_hooks=BlockingHooks(hook_times, settings.plugin_budget_seconds),
        hook_times=hook_times,
        plugin_trace=PluginTrace(selector=settings.trace_plugins),
        waiting=waiting,
        attempts=attempts,
        remedies=remedies,
        loader=loader,
        loaded=loaded,
        started_at=wall_clock().timestamp(),
        http=http,
        tasks=BackgroundTasks(loaded.background_tasks, loaded.leader_tasks),
        reloads=reloads,
        cache_checks=cache_checks,
        elector=build_elector(
            settings, clients, recorder=recorder, metrics=metrics, random=random, wall_clock=wall_clock
        )
        if sharding is None
        else sharding.elector,
        sharding=sharding,
        decisions=decisions,
        metrics=Metrics(
            options=settings.metrics,
            gates=settings.gates,
            scheduler=scheduler,
            clients={"main": clients.main, "events": clients.events, "leases": clients.leases},
            requests=clients.request_logs,
            pools={
                "binding": bind_pool,
                "pod_status_patch": status_patch_pool,
                "preemption": preemption_executor.pool,
                "plugin_jobs": plugin_jobs,
            },
            binding=lambda: binding.under_way,
            unsent_events=lambda: recorder.unfinished,
            dropped_events=lambda: recorder.dropped,
            cache_checks=lambda: (cache_checks.count, cache_checks.drift),
            reloads=lambda: (
                {"success": reloads.succeeded, "error": reloads.failed},
                not reloads.last_problem,
            ),
            recording=lambda: (False, 0) if decisions is None else (decisions.is_on, decisions.left_out),
            recorder=metrics,
            of_plugins=plugin_metrics,
            reflectors=watches.reflectors,
            pods=watches.pods,
            shadow=None if shadow is None else shadow.judgements,
            shards=None if sharding is None else sharding.counts,
        ),
        shadow=shadow,
    )
    assembly.put_in_force(loaded)
    return assembly
