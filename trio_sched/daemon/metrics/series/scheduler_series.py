"""The series ``scheduler_*``, ``workqueue_*`` and ``trio_sched_*``, from what engine and daemon have counted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import trio

from trio_sched.daemon.metrics.families.exposed import Series, Value
from trio_sched.daemon.metrics.families.families import by_name
from trio_sched.daemon.metrics.families.own_families import OWN_FAMILIES
from trio_sched.daemon.metrics.families.scheduler_families import SCHEDULER_FAMILIES
from trio_sched.daemon.metrics.options import add_values
from trio_sched.daemon.metrics.recorder import HistogramsBy, MetricRecorder
from trio_sched.daemon.writes.work_pool import Jobs
from trio_sched.engine.hooks.measurements import Measurements
from trio_sched.engine.queue.scheduling_queue import SchedulingQueue
from trio_sched.engine.scheduler import Scheduler
from trio_sched.kube_client.watch import Reflector

if TYPE_CHECKING:
    from trio_sched.engine.shadow.judgement import Judgements
    from trio_sched.engine.sharding.shard_counts import ShardCounts

_Key = TypeVar("_Key", bound=tuple[str, ...])
FAMILIES: Final = by_name(SCHEDULER_FAMILIES, OWN_FAMILIES)
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
    "placement_feasible": "PlacementFeasible",
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


def _ordered(name: str, labels: Sequence[str], values: Mapping[_Key, Value]) -> tuple[str, list[Series]]:
    """A family and its series; *labels* are the names of what keys of *values* are made of, in their order."""
    order = [labels.index(label) for label in FAMILIES[name].labels]
    return name, [(tuple(key[i] for i in order), value) for key, value in values.items()]


def _histograms(name: str, by: HistogramsBy) -> tuple[str, list[Series]]:
    return _ordered(name, by.labels, by.by_key)


def _totals(name: str, by: HistogramsBy) -> tuple[str, list[Series]]:
    return _ordered(name, by.labels, {key: float(one.count) for key, one in by.by_key.items()})


def _counts(name: str, labels: Sequence[str], counts: Mapping[_Key, int]) -> tuple[str, list[Series]]:
    return _ordered(name, labels, {key: float(count) for key, count in counts.items()})


def attempts(recorder: MetricRecorder, measurements: Measurements) -> Collected:
    """Attempts to schedule pods."""
    yield _totals("scheduler_schedule_attempts_total", recorder.attempts)
    yield _histograms("scheduler_scheduling_attempt_duration_seconds", recorder.attempts)
    yield "scheduler_scheduling_algorithm_duration_seconds", [((), recorder.algorithm)]
    yield _totals("scheduler_podgroup_schedule_attempts_total", recorder.group_attempts)
    yield _histograms("scheduler_podgroup_scheduling_attempt_duration_seconds", recorder.group_attempts)
    yield "scheduler_podgroup_scheduling_algorithm_duration_seconds", [((), recorder.group_algorithm)]
    yield "scheduler_pod_scheduling_attempts", [((), recorder.attempts_until_bound)]
    yield _histograms("scheduler_pod_scheduling_sli_duration_seconds", recorder.sli)
    yield _histograms("scheduler_permit_wait_duration_seconds", recorder.permit_waits)
    yield _histograms("scheduler_event_handling_duration_seconds", recorder.event_handling)
    yield "scheduler_preemption_victims", [((), recorder.victims)]
    yield "scheduler_preemption_attempts_total", [((), float(measurements.post_filters))]
    yield _counts("scheduler_resourceclaim_creates_total", ("status",), recorder.claim_creates)
    creates = {(*status, "false", "", "Pod"): count for status, count in recorder.claim_creates.items()}
    labels = ("status", "admin_access", "owner_api_group", "owner_api_kind")
    yield _counts("dynamic_resource_allocation_resourceclaim_creates_total", labels, creates)
    waits = recorder.binding_condition_waits
    yield _counts("scheduler_dra_bindingconditions_allocations_total", waits.labels, recorder.binding_conditions)
    yield _histograms("scheduler_dra_bindingconditions_wait_duration_seconds", waits)
    yield _histograms("scheduler_preemption_goroutines_duration_seconds", recorder.preemptions)
    yield _totals("scheduler_preemption_goroutines_execution_total", recorder.preemptions)
    yield _histograms("scheduler_preemption_execution_duration_seconds", recorder.executions)
    yield _histograms("scheduler_preemption_evaluation_duration_seconds", recorder.evaluations)
    yield _counts("scheduler_preemption_pdb_violations_total", ("preemptor",), recorder.pdb_violations)
    yield _histograms("scheduler_preemption_workload_disruptions", recorder.group_disruptions)
    yield _counts("scheduler_workload_preemption_attempts_total", ("result",), recorder.workload_preemptions)
    yield "scheduler_workload_preemption_victims", [((), recorder.workload_victims)]


def cycles(measurements: Measurements, failures: Mapping[tuple[str, str], int]) -> Collected:
    """Extension points, plugins and hints."""
    profiles = measurements.profiles
    for measured in profiles.values():
        measured.fold()
    yield _ordered(
        "scheduler_framework_extension_point_duration_seconds",
        ("profile", "extension_point", "status"),
        {(name, *key): one for name, measured in profiles.items() for key, one in measured.points.items()},
    )
    yield _counts(
        "scheduler_plugin_evaluation_total",
        ("profile", "extension_point", "plugin"),
        {
            (name, point, plugin): measured.evaluations[point, plugin]
            for name, measured in profiles.items()
            for point, plugins in measured.plugins.items()
            for plugin in plugins
        },
    )
    yield from _sampled(measurements)
    hints = measurements.hints
    yield _ordered("scheduler_queueing_hint_execution_duration_seconds", ("plugin", "event", "hint"), hints)
    batch: dict[tuple[str, ...], int] = {}
    ours: dict[tuple[str, ...], int] = {}
    for name, measured in profiles.items():
        for result, our_result, count in (
            ("hint_used", "hit", measured.cached_decisions),
            ("hint_not_used", "miss", measured.plain_decisions),
            ("no_hint", "unsigned", measured.unsigned_decisions),
        ):
            if count:
                batch[name, result] = ours[name, our_result] = count
    yield _counts("scheduler_batch_attempts_total", ("profile", "result"), batch)
    yield _counts("trio_sched_signature_cache_decisions_total", ("profile", "result"), ours)
    flushed = {(name, reason): n for name, measured in profiles.items() for reason, n in measured.flushed.items()}
    yield _counts("scheduler_batch_cache_flushed_total", ("profile", "reason"), flushed)
    rescored = {(name,): m.rescored for name, m in profiles.items() if m.rescored is not None}
    rescores = {key: histogram.count for key, histogram in rescored.items()}
    yield _counts("scheduler_batch_rescore_attempts_total", ("profile",), rescores)
    yield _ordered("scheduler_batch_rescore_duration_seconds", ("profile",), rescored)
    generated = {(name,): m.generated_placements for name, m in profiles.items() if m.generated_placements}
    yield _counts("scheduler_generated_placements_total", ("profile",), generated)
    placements = {(result, name): one for name, m in profiles.items() for result, one in m.placements.items()}
    evaluations = {key: histogram.count for key, histogram in placements.items()}
    yield _counts("scheduler_placement_evaluations_total", ("result", "profile"), evaluations)
    yield _ordered("scheduler_placement_evaluation_duration_seconds", ("result", "profile"), placements)
    stored: list[Series] = [((name,), measured.store_seconds) for name, measured in profiles.items()]
    yield "scheduler_store_schedule_results_duration_seconds", stored
    hinted = {(name, "hint"): measured.cache_seconds for name, measured in profiles.items()}
    yield _ordered("scheduler_get_node_hint_duration_seconds", ("profile", "hinted"), hinted)
    yield _counts("trio_sched_plugin_failures_total", ("plugin", "hook"), failures)
    stages: dict[str, int] = defaultdict(int)
    for (plugin, hook), count in failures.items():
        if plugin == _VOLUME_PLUGIN and hook in _VOLUME_STAGES:
            stages[_VOLUME_STAGES[hook]] += count
    yield "scheduler_volume_scheduling_stage_error_total", [((stage,), float(n)) for stage, n in stages.items()]


def _sampled(measurements: Measurements) -> Collected:
    by_point: dict[tuple[str, ...], Value] = {}
    calls: dict[tuple[str, ...], int] = defaultdict(int)
    seconds: dict[tuple[str, ...], float] = defaultdict(float)
    for (plugin, hook, status), one in measurements.plugin_times.by_hook.items():
        calls[plugin, hook] += one.count
        seconds[plugin, hook] += one.sum
        key = plugin, POINTS.get(hook, hook), status
        by_point[key] = add_values(by_point.get(key), one)  # a plugin may have filter and filter_node
    yield _ordered("scheduler_plugin_execution_duration_seconds", ("plugin", "extension_point", "status"), by_point)
    yield _counts("trio_sched_plugin_sampled_calls_total", ("plugin", "hook"), calls)
    yield _ordered("trio_sched_plugin_sampled_seconds_total", ("plugin", "hook"), seconds)


def queue(queue: SchedulingQueue) -> Collected:
    """The scheduling queue."""
    counters = queue.counters
    yield "scheduler_pending_pods", [((name,), float(size)) for name, size in queue.sizes().items()]
    yield _counts("scheduler_queue_incoming_pods_total", ("queue", "event"), counters.incoming)
    yield "scheduler_queued_entities", [(key, float(size)) for key, size in queue.entity_sizes().items()]
    incoming = queue.incoming_entities()
    yield _counts("scheduler_queue_incoming_entities_total", ("queue", "event", "type"), incoming)
    yield _counts("scheduler_unschedulable_pods", ("plugin", "profile"), counters.unschedulable)
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
    signatures = scheduler.signatures.cached()
    yield "trio_sched_signature_cache_entries", [((profile,), float(n)) for profile, n in signatures.items()]


def shadow(judgements: Judgements) -> Collected:
    """The decisions of another scheduler that were compared."""
    counts = {(name, str(kind), str(judged)): count for (name, kind, judged), count in judgements.counts.items()}
    yield _counts("trio_sched_shadow_decisions_total", ("profile", "decision", "class"), counts)


def shards(counts: ShardCounts) -> Collected:
    """Where replicas share the work."""
    ready: list[Series] = [((str(shard),), float(is_ready)) for shard, is_ready in counts.ready.items()]
    yield "trio_sched_shard_ready", ready
    pending: list[Series] = [((str(shard),), float(count)) for shard, count in counts.pending.items()]
    yield "trio_sched_shard_pending_pods", pending
    results: list[Series] = [((result,), float(count)) for result, count in counts.proposals.items()]
    yield "trio_sched_shard_proposals_total", results
    yield "trio_sched_shard_refusals_total", [((), float(counts.refused))]
    yield "trio_sched_shard_fenced_pods_total", [((), float(counts.fenced))]


def tasks(binding: Callable[[], int], pools: Mapping[str, Jobs]) -> Collected:
    """Tasks at work, and jobs that wait for one."""
    tasks: list[Series] = [(("binding",), float(binding()))]
    if "preemption" in pools:
        tasks.append((("DefaultPreemption",), float(pools["preemption"].unfinished)))
    yield "scheduler_goroutines", tasks
    yield "workqueue_depth", [((name,), float(pool.waiting)) for name, pool in pools.items()]
    yield "workqueue_adds_total", [((name,), float(pool.submitted)) for name, pool in pools.items()]
    yield "workqueue_retries_total", [((name,), 0.0) for name in pools]
    yield "workqueue_queue_duration_seconds", [((name,), pool.times.waited) for name, pool in pools.items()]
    yield "workqueue_work_duration_seconds", [((name,), pool.times.worked) for name, pool in pools.items()]
    running = {(name,): pool.times.running_seconds() for name, pool in pools.items()}
    yield "workqueue_unfinished_work_seconds", [(key, total) for key, (total, _longest) in running.items()]
    yield "workqueue_longest_running_processor_seconds", [(key, longest) for key, (_total, longest) in running.items()]


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
