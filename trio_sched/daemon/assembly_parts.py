"""Builds single parts of the daemon, some of them only where they are needed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from msgspec import structs

from trio_sched.daemon.clients import Clients
from trio_sched.daemon.leader_election import LeaderElector
from trio_sched.daemon.logs.queue_log import log_queue_move
from trio_sched.daemon.metrics.recorder import MetricRecorder
from trio_sched.daemon.pods.binding_cycle import BindingCycle
from trio_sched.daemon.pods.condition_remedies import ConditionRemedies
from trio_sched.daemon.pods.pod_status import PodStatusWriter
from trio_sched.daemon.pods.preemption_executor import PreemptionExecutor
from trio_sched.daemon.pods.skipped_pods import SkipPodSchedule
from trio_sched.daemon.settings import DaemonSettings
from trio_sched.daemon.watching.delivery import Delivery
from trio_sched.daemon.writes.event_recorder import EventRecorder
from trio_sched.engine.cache import Cache
from trio_sched.engine.evaluation.decision import UNSCHEDULABLE
from trio_sched.engine.group_forest import AnyGroup, GroupForest
from trio_sched.engine.hooks.attempt_trace import AttemptTracer
from trio_sched.engine.hooks.measurements import SAMPLE_GAP, Measurements
from trio_sched.engine.object_cache import ObjectCache
from trio_sched.engine.pod_group_state import PodGroupStates
from trio_sched.engine.queue.backoff import Backoff
from trio_sched.engine.queue.cluster_changes import POD_EVENTS, SPLIT_POD_EVENTS
from trio_sched.engine.queue.group_queue import GroupQueue
from trio_sched.engine.queue.scheduling_queue import SchedulingQueue
from trio_sched.engine.scheduler import Scheduler
from trio_sched.kube_client.versions.served_versions import ServedVersions
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_groups.pod_group import PodGroup
from trio_sched.objects.pod_requests import ResourceOptions
from trio_sched.plugin_api.features import Features
from trio_sched.plugin_api.pod_groups import PodGroupInfo

if TYPE_CHECKING:
    from trio_sched.daemon.extenders.extender_scheduling import ExtenderScheduling
    from trio_sched.daemon.pod_groups.schedule_pod_groups import SchedulePodGroups
    from trio_sched.daemon.recording.decision_recorder import DecisionRecorder  # only where decisions are recorded
    from trio_sched.daemon.shadow.shadow import Shadow
    from trio_sched.daemon.shadow.shadow_settings import ShadowSettings
    from trio_sched.engine.sharding.owned_shards import OwnedShards

log = logging.getLogger(__name__)


def build_pod_groups(
    binding: BindingCycle,
    preemption_executor: PreemptionExecutor,
    skip_pod_schedule: SkipPodSchedule,
    extender_scheduling: ExtenderScheduling | None,
    tracer: AttemptTracer | None,
    served: ServedVersions,
    features: Features,
    decisions: DecisionRecorder | None,
    of_replicas: Callable[..., SchedulePodGroups] | None,
) -> SchedulePodGroups:
    """What schedules pod groups, with the parts that schedule pods; *of_replicas* makes it if these share the work."""
    from trio_sched.daemon.pod_groups.gang_eviction import GangEviction  # only where pod groups are scheduled
    from trio_sched.daemon.pod_groups.group_preemption import GroupPreemption, PreemptForGroup, PreemptForPods
    from trio_sched.daemon.pod_groups.pod_group_report import PodGroupReporter
    from trio_sched.daemon.pod_groups.schedule_pod_groups import SchedulePodGroups
    from trio_sched.engine.pod_groups.group_checks import SAME_SCHEDULER, UNIFORM, UNIFORM_WITH_POLICY

    scheduler, recorder, status_writer = binding.scheduler, binding.recorder, binding.status_writer
    reporter = PodGroupReporter(
        served=served,
        pool=status_writer.pool,
        recorder=recorder,
        object_cache=scheduler.object_cache,
        wall_clock=status_writer.wall_clock,
    )
    behaviour = scheduler.behaviour
    of_preemption: dict[str, Any] = {
        "executor": preemption_executor,
        "find_group": partial(_group_object, scheduler.object_cache),
        "in_background": features.scheduler_async_preemption,
    }
    preemption: GroupPreemption
    if behaviour.groups_preempt_as_one:
        preemption = PreemptForGroup(**of_preemption)
    else:
        preemption = PreemptForPods(**of_preemption)
    uniform = UNIFORM_WITH_POLICY if features.pod_group_preemption_policy else UNIFORM
    parts: dict[str, Any] = {
        "scheduler": scheduler,
        "binding": binding,
        "failure_handler": binding.failure_handler,
        "waiting": binding.waiting,
        "status_writer": status_writer,
        "reporter": reporter,
        "preemption_executor": preemption_executor,
        "eviction": GangEviction(
            client=served.client,
            pool=status_writer.pool,
            recorder=recorder,
            status_writer=status_writer,
            reporter=reporter,
        ),
        "skip_pod_schedule": skip_pod_schedule,
        "check": uniform if behaviour.groups_are_uniform else SAME_SCHEDULER,
        "by_placement": features.topology_aware_workload_scheduling,
        "preemption": preemption,
        "metrics": binding.metrics,
        "tracer": tracer,
        "extender_scheduling": extender_scheduling,
    }
    if decisions is None:
        return (of_replicas or SchedulePodGroups)(**parts)
    from trio_sched.daemon.pod_groups.recorded_pod_groups import RecordedPodGroups

    return RecordedPodGroups(**parts, decisions=decisions)


def build_shadow(settings: ShadowSettings, delivery: Delivery) -> Shadow:
    """Compares decisions, and takes what the watches deliver in place of *delivery*."""
    from trio_sched.daemon.shadow.delayed_delivery import DelayedDelivery  # only where there is a shadow
    from trio_sched.daemon.shadow.shadow import Shadow
    from trio_sched.engine.shadow.window import Window

    delayed = DelayedDelivery(
        event_handlers=delivery.event_handlers,
        object_waits=delivery.object_waits,
        wake=delivery.wake,
        metrics=delivery.metrics,
        window=Window(),
    )
    return Shadow(settings=settings, scheduler=delivery.event_handlers.scheduler, delivery=delayed)


def build_remedies(scheduler: Scheduler, status_writer: PodStatusWriter, metrics: MetricRecorder) -> ConditionRemedies:
    """Finds what would help pods, and writes it into their conditions."""
    from trio_sched.daemon.first_remedy import FirstRemedy

    def write(pod: Pod, message: str) -> None:
        known = scheduler.cache.unassigned.get(pod.key)
        if known is not None and known.uid == pod.uid and not scheduler.cache.is_assumed(pod.uid):
            status_writer.write(known, reason=UNSCHEDULABLE, message=message, nominated_node_name=None)

    return ConditionRemedies(FirstRemedy(scheduler, metrics), write)


def build_elector(
    settings: DaemonSettings,
    clients: Clients,
    *,
    recorder: EventRecorder,
    metrics: MetricRecorder,
    random: Random,
    wall_clock: Callable[[], datetime],
) -> LeaderElector | None:
    """What acquires the lease and renews it; None without leader election."""
    config = settings.config
    if not config.leader_election.leader_elect:
        return None
    return LeaderElector(
        client=clients.leases,
        settings=config.leader_election,
        identity=settings.identity,
        component=config.profiles[0].scheduler_name,
        wall_clock=wall_clock,
        random=random,
        record_event=recorder.record_on_lease,
        metrics=metrics,
        permit=clients.write_permit,
    )


def build_decision_recorder(settings: DaemonSettings, wall_clock: Callable[[], datetime]) -> DecisionRecorder | None:
    """What records decisions, if that is wanted."""
    if settings.recording is None:
        return None
    from trio_sched.daemon.recording.decision_recorder import DecisionRecorder

    return DecisionRecorder(settings=settings.recording, wall_clock=wall_clock)


def build_delivery(decisions: DecisionRecorder | None, **parts: Any) -> Delivery:
    """What takes the batches of the watches, made of *parts*."""
    if decisions is None:
        return Delivery(**parts)
    from trio_sched.daemon.recording.recorded_delivery import RecordedDelivery

    return RecordedDelivery(**parts, decisions=decisions)


def build_scheduler(
    settings: DaemonSettings,
    random: Random,
    pods_and_nodes: Mapping[str, Callable[[], Mapping[tuple[str, str], object]]],
    decisions: DecisionRecorder | None,
    owned: OwnedShards | None,
) -> Scheduler:
    """The engine, without profiles yet: plugins are given a handle that reaches it."""
    features, behaviour = settings.gates.features, settings.gates.behaviour
    options = ResourceOptions(
        pod_level=features.pod_level_resources,
        pod_level_resize=features.in_place_pod_level_resources_vertical_scaling,
        resize_of_whole_pod=behaviour.resize_of_whole_pod,
    )
    pop_from_backoff = features.scheduler_pop_from_backoff_q
    with_groups = features.generic_workload
    in_cache = structs.replace(options, device_claims=features.dra_node_allocatable_resources)
    cache = Cache(in_cache, groups=PodGroupStates(is_followed=with_groups))
    of_queue: dict[str, Any] = {
        "get_unassigned_pod": cache.unassigned.get,
        "backoff": Backoff(align_to_window=pop_from_backoff),
        "max_in_unschedulable_seconds": settings.max_in_unschedulable_seconds,
        "pop_from_backoff": pop_from_backoff,
        "groups_skip_hints": with_groups,
        "groups_back_off": with_groups,
        "resource_options": options,
        "nominates_gated": behaviour.gated_pods_keep_nominations,
        "flushes_gated": behaviour.gated_pods_are_flushed,
        "uncounts_deleted": behaviour.deleted_pods_are_uncounted,
        "pod_events": SPLIT_POD_EVENTS if behaviour.pod_events_are_split else POD_EVENTS,
        "on_move": log_queue_move,
    }
    # A random gap, so that a workload which repeats itself is sampled evenly; by a generator of its own, so that the
    # decisions do not depend on it.
    sample_gap = partial(Random(0).randrange, 1, 2 * SAMPLE_GAP)
    parts: dict[str, Any] = {
        "cache": cache,
        "object_cache": ObjectCache(cache.table.devices, pods_and_nodes=pods_and_nodes),
        "measurements": Measurements(time.perf_counter, sample_gap, has_rescoring=behaviour.batches_are_rescored),
        "behaviour": behaviour,
        "preempts_for_groups": behaviour.groups_preempt_as_one or features.workload_aware_preemption,
    }
    as_entities = with_groups and behaviour.groups_are_entities
    if as_entities and features.composite_pod_group:
        forest = parts["forest"] = GroupForest()
        of_queue |= {"find_group": forest.root, "root_of": forest.root_of}
    elif as_entities:
        of_queue["find_group"] = partial(_pod_group, parts["object_cache"])
    if decisions is None:
        queue = GroupQueue(**of_queue) if as_entities else SchedulingQueue(**of_queue)
        if owned is not None:
            from trio_sched.engine.sharding.sharded_scheduler import ShardedScheduler

            return ShardedScheduler(**parts, queue=queue, rng=random, owned=owned)
        return Scheduler(**parts, queue=queue, rng=random)
    from trio_sched.daemon.recording.recorded_group_queue import RecordedGroupQueue
    from trio_sched.daemon.recording.recorded_queue import RecordedQueue
    from trio_sched.daemon.recording.recorded_random import RecordedRandom
    from trio_sched.daemon.recording.recorded_scheduler import RecordedScheduler

    kind = RecordedGroupQueue if as_entities else RecordedQueue
    recorded = kind(**of_queue, decisions=decisions)
    scheduler = RecordedScheduler(**parts, queue=recorded, rng=RecordedRandom(random), decisions=decisions)
    decisions.scheduler = scheduler
    return scheduler


def _group_object(object_cache: ObjectCache, group: PodGroupInfo) -> AnyGroup | None:
    found: AnyGroup | None = object_cache.get(group.kind, group.name, group.namespace)
    return found


def _pod_group(object_cache: ObjectCache, key: str) -> PodGroup | None:
    """The group called *key*, ``namespace/name``; None if no event has shown it."""
    namespace, _slash, name = key.partition("/")
    found: PodGroup | None = object_cache.get("PodGroup", name, namespace)
    return found
