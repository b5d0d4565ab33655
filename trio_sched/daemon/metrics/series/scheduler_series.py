"""The series of the families ``scheduler_*`` and of our own, from what engine and daemon have counted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import trio

from trio_sched.daemon.metrics.families.exposed import Series, Value
from trio_sched.daemon.metrics.options import add_values
from trio_sched.daemon.metrics.recorder import MetricRecorder
from trio_sched.daemon.writes.work_pool import Jobs
from trio_sched.engine.hooks.measurements import Measurements
from trio_sched.engine.queue.scheduling_queue import SchedulingQueue
from trio_sched.engine.scheduler import Scheduler
from trio_sched.kube_client.watch import Reflector

Collected = Iterator[tuple[str, list[Series]]]
"""Family → series, the values of labels in the order of their names."""

POINTS: Final = {
    "pre_enqueue": "PreEnqueue",
    "pre_filter": "PreFilter",
    "filter": "Filter",
    "filter_node": "Filter",
    "post_filter": "PostFilter",
    "pre_score": "PreScore",
    "score": "Score",
    "score_node": "Score",
    "normalize_score": "ScoreExtensionNormalize",
    "reserve": "Reserve",
    "unreserve": "Unreserve",
    "permit": "Permit",
    "placement_generate": "PlacementGenerate",
    "placement_score": "PlacementScore",
    "normalize_placement_score": "PlacementScoreExtensionNormalize",
    "pod_group_post_filter": "PostFilter",
    "pre_bind_pre_flight": "PreBindPreFlight",
    "pre_bind": "PreBind",
    "bind": "Bind",
    "post_bind": "PostBind",
}
"""Hook → extension point, as metrics name it."""

_VOLUME_STAGES: Final = {
    "pre_filter": "predicate",
    "filter": "predicate",
    "reserve": "assume",
    "pre_bind": "bind",
}
_VOLUME_PLUGIN: Final = "VolumeBinding"


def attempts(recorder: MetricRecorder, measurements: Measurements) -> Collected:
    """Attempts to schedule pods."""
    durations = recorder.attempts.by_key.items()
    totals: list[Series] = [((profile, result), float(one.count)) for (result, profile), one in durations]
    yield "scheduler_schedule_attempts_total", totals
    yield (
        "scheduler_scheduling_attempt_duration_seconds",
        [((profile, result), one) for (result, profile), one in durations],
    )
    yield "scheduler_scheduling_algorithm_duration_seconds", [((), recorder.algorithm)]
    groups = recorder.group_attempts.by_key.items()
    yield (
        "scheduler_podgroup_schedule_attempts_total",
        [((profile, result), float(one.count)) for (result, profile), one in groups],
    )
    yield (
        "scheduler_podgroup_scheduling_attempt_duration_seconds",
        [((profile, result), one) for (result, profile), one in groups],
    )
    yield "scheduler_podgroup_scheduling_algorithm_duration_seconds", [((), recorder.group_algorithm)]
    yield "scheduler_pod_scheduling_attempts", [((), recorder.attempts_until_bound)]
    yield "scheduler_pod_scheduling_sli_duration_seconds", list(recorder.sli.by_key.items())
    yield "scheduler_permit_wait_duration_seconds", list(recorder.permit_waits.by_key.items())
    yield "scheduler_event_handling_duration_seconds", list(recorder.event_handling.by_key.items())
    yield "scheduler_preemption_victims", [((), recorder.victims)]
    yield "scheduler_preemption_attempts_total", [((), float(measurements.post_filters))]
    yield "scheduler_resourceclaim_creates_total", _counts(recorder.claim_creates)
    yield "scheduler_dra_bindingconditions_allocations_total", _counts(recorder.binding_conditions)
    waits = recorder.binding_condition_waits.by_key
    yield "scheduler_dra_bindingconditions_wait_duration_seconds", list(waits.items())
    preemptions = recorder.preemptions.by_key
    yield "scheduler_preemption_goroutines_duration_seconds", list(preemptions.items())
    yield (
        "scheduler_preemption_goroutines_execution_total",
        [(key, float(one.count)) for key, one in preemptions.items()],
    )


def _counts(counts: Mapping[tuple[str, ...], int]) -> list[Series]:
    return [(key, float(count)) for key, count in counts.items()]


def cycles(measurements: Measurements, failures: Mapping[tuple[str, str], int]) -> Collected:
    """Extension points, plugins and hints."""
    profiles = measurements.profiles
    for measured in profiles.values():
        measured.fold()
    yield (
        "scheduler_framework_extension_point_duration_seconds",
        [
            ((point, name, status), one)
            for name, measured in profiles.items()
            for (point, status), one in measured.points.items()
        ],
    )
    yield (
        "scheduler_plugin_evaluation_total",
        [
            ((point, plugin, name), float(measured.evaluations[point, plugin]))
            for name, measured in profiles.items()
            for point, plugins in measured.plugins.items()
            for plugin in dict.fromkeys(plugins)
        ],
    )
    yield from _sampled(measurements)
    yield (
        "scheduler_queueing_hint_execution_duration_seconds",
        [((event, hint, plugin), one) for (plugin, event, hint), one in measurements.hints.items()],
    )
    batch: list[Series] = []
    ours: list[Series] = []
    for name, measured in profiles.items():
        for result, our_result, count in (
            ("hint_used", "hit", measured.cached_decisions),
            ("hint_not_used", "miss", measured.plain_decisions),
            ("no_hint", "unsigned", measured.unsigned_decisions),
        ):
            if count:
                batch.append(((name, result), float(count)))
                ours.append(((name, our_result), float(count)))
    yield "scheduler_batch_attempts_total", batch
    yield "trio_sched_signature_cache_decisions_total", ours
    hinted: list[Series] = [(("hint", name), measured.cache_seconds) for name, measured in profiles.items()]
    yield "scheduler_get_node_hint_duration_seconds", hinted
    yield "trio_sched_plugin_failures_total", [((hook, plugin), float(n)) for (plugin, hook), n in failures.items()]
    stages: dict[str, int] = defaultdict(int)
    for (plugin, hook), count in failures.items():
        if plugin == _VOLUME_PLUGIN and hook in _VOLUME_STAGES:
            stages[_VOLUME_STAGES[hook]] += count
    yield "scheduler_volume_scheduling_stage_error_total", [((stage,), float(n)) for stage, n in stages.items()]


def _sampled(measurements: Measurements) -> Collected:
    by_point: dict[tuple[str, ...], Value] = {}
    calls: dict[tuple[str, ...], float] = defaultdict(float)
    seconds: dict[tuple[str, ...], float] = defaultdict(float)
    for (plugin, hook, status), one in measurements.plugin_times.by_hook.items():
        calls[hook, plugin] += one.count
        seconds[hook, plugin] += one.sum
        key = POINTS.get(hook, hook), plugin, status
        by_point[key] = add_values(by_point.get(key), one)  # a plugin may have filter and filter_node
    yield "scheduler_plugin_execution_duration_seconds", list(by_point.items())
    yield "trio_sched_plugin_sampled_calls_total", list(calls.items())
    yield "trio_sched_plugin_sampled_seconds_total", list(seconds.items())


def queue(queue: SchedulingQueue) -> Collected:
    """The scheduling queue."""
    counters = queue.counters
    yield "scheduler_pending_pods", [((name,), float(size)) for name, size in queue.sizes().items()]
    yield (
        "scheduler_queue_incoming_pods_total",
        [((event, name), float(count)) for (name, event), count in counters.incoming.items()],
    )
    yield "scheduler_unschedulable_pods", [(key, float(count)) for key, count in counters.unschedulable.items()]
    in_flight: list[Series] = [(("PodPopped",), float(len(queue.in_flight)))]
    in_flight += [((event,), float(count)) for event, count in queue.in_flight.events.items()]
    yield "scheduler_inflight_events", in_flight
    yield "scheduler_pod_scheduled_after_flush_total", [((), float(counters.scheduled_after_flush))]
    yield "trio_sched_pods_flushed_total", [((), float(counters.flushed))]


def cache(scheduler: Scheduler, recorder: MetricRecorder) -> Collected:
    """What is cached."""
    cache = scheduler.cache
    sizes = {"assumed_pods": cache.assumed_count, "nodes": cache.table.count, "pods": len(cache)}
    yield "scheduler_cache_size", [((name,), float(size)) for name, size in sizes.items()]
    signatures = scheduler.cached_signatures()
    yield "trio_sched_signature_cache_entries", [((profile,), float(n)) for profile, n in signatures.items()]


def tasks(binding: Callable[[], int], pools: Mapping[str, Jobs]) -> Collected:
    """Tasks at work, and jobs that wait for one."""
    running: list[Series] = [(("binding",), float(binding()))]
    if "preemption" in pools:
        running.append((("DefaultPreemption",), float(pools["preemption"].unfinished)))
    yield "scheduler_goroutines", running
    yield "workqueue_depth", [((name,), float(pool.waiting)) for name, pool in pools.items()]
    yield "workqueue_adds_total", [((name,), float(pool.submitted)) for name, pool in pools.items()]


def watches(reflectors: Iterable[Reflector[Any]]) -> Collected:
    """The watches, by resource."""
    now = trio.current_time()
    by_resource = {(reflector.kind.plural,): reflector for reflector in reflectors}
    items = by_resource.items()
    yield "trio_sched_watch_restarts_total", [(key, float(max(0, one.watches - 1))) for key, one in items]
    yield "trio_sched_watch_lists_total", [(key, float(one.lists)) for key, one in items]
    yield "trio_sched_watch_connected", [(key, float(one.connected.is_set())) for key, one in items]
    heard = [(key, one) for key, one in items if one.lists]
    yield "trio_sched_watch_silence_seconds", [(key, max(0.0, now - one.last_received_at)) for key, one in heard]
