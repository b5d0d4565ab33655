"""Schedules pod groups: pops all pods of a group, finds out whether it fits, and has its pods bound or requeued.

Gangs that are incomplete come first, and a gang that has waited for long may hold places; see
`trio_sched.engine.pod_groups.gang_recovery` and `trio_sched.engine.pod_groups.gang_places`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import trio
from attrs import define, evolve, field

from trio_sched.daemon.limits import GANG_CHECK_SECONDS
from trio_sched.daemon.logs.log_lines import log_line
from trio_sched.daemon.metrics.recorder import MetricRecorder
from trio_sched.daemon.pod_groups.gang_eviction import GangEviction
from trio_sched.daemon.pod_groups.group_preemption import GroupPreemption
from trio_sched.daemon.pod_groups.pod_group_report import PodGroupReporter
from trio_sched.daemon.pod_groups.pod_group_steps import CallExtenders, run_group_steps
from trio_sched.daemon.pods.binding_cycle import BindingCycle
from trio_sched.daemon.pods.failure_handler import FailureHandler
from trio_sched.daemon.pods.gang_binding import GangBinding
from trio_sched.daemon.pods.pod_status import PodStatusWriter
from trio_sched.daemon.pods.preemption_executor import HeldPreemption, PreemptionExecutor
from trio_sched.daemon.pods.waiting_pods import WaitingPods
from trio_sched.engine.cache import CacheError
from trio_sched.engine.evaluation.decision import SchedulingFailure
from trio_sched.engine.hooks.attempt_trace import AttemptTracer
from trio_sched.engine.hooks.measurements import ObserveCall
from trio_sched.engine.pod_group_state import GroupMembers
from trio_sched.engine.pod_groups.gang_places import GangPlaces
from trio_sched.engine.pod_groups.gang_recovery import GangRecovery
from trio_sched.engine.pod_groups.group_checks import GroupCheck
from trio_sched.engine.pod_groups.pod_group_cycle import PodGroupCycle, in_order
from trio_sched.engine.pod_groups.pod_group_explanation import explain
from trio_sched.engine.pod_groups.pod_group_results import (
    GroupResult,
    PodToBind,
    PodToRequeue,
    group_unschedulable,
    outcomes,
)
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.scheduler import Scheduler
from trio_sched.go.text import quote
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.pod_groups import PodGroupInfo
from trio_sched.plugin_api.status import failure
from trio_sched.verbosity import V2, V3

if TYPE_CHECKING:
    from trio_sched.daemon.extenders.extender_scheduling import ExtenderScheduling

log = logging.getLogger(__name__)

GANG_PLUGIN = "GangScheduling"


@define(eq=False, kw_only=True)
class SchedulePodGroups:
    """Schedules one group after the other, called by the scheduling loop."""

    scheduler: Scheduler
    binding: BindingCycle
    failure_handler: FailureHandler
    waiting: WaitingPods
    status_writer: PodStatusWriter
    reporter: PodGroupReporter
    preemption_executor: PreemptionExecutor
    eviction: GangEviction
    skip_pod_schedule: Callable[[QueuedPodInfo], bool]
    """Whether there is no point in scheduling a pod."""
    check: GroupCheck
    by_placement: bool
    """Gate TopologyAwareWorkloadScheduling."""
    preemption: GroupPreemption
    metrics: MetricRecorder
    tracer: AttemptTracer | None = None
    extender_scheduling: ExtenderScheduling | None = None
    places: GangPlaces = field(init=False)
    recovery: GangRecovery = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.places = GangPlaces(self.scheduler.cache.groups)
        self.recovery = GangRecovery(states=self.scheduler.cache.groups, min_count=self.min_count)

    def min_count(self, key: str) -> int | None:
        """How many pods the gang called *key* needs; None if it is no gang, or its profile does not schedule gangs."""
        group = self.scheduler.cache.groups.get(key)
        if group is None:
            return None
        profile = self.scheduler.profiles.get(next(iter(group.pods.values())).scheduler_name)
        # Without the plugin kube-scheduler binds the pods of a gang one by one, which then is nothing to be mended.
        return self.reporter.min_count(key) if profile is not None and GANG_PLUGIN in profile.plugins else None

    # --- between two pods -------------------------------------------------------------------------------------------

    def next_pod(self, now: float) -> QueuedPodInfo | None:
        """The pod to schedule next: of an incomplete gang if there is one, else the first of the queue."""
        self.recovery.update(now)
        while (gang := self.recovery.next_to_try(now)) is not None:
            for pod in gang.unscheduled_pods:
                info = self.scheduler.queue.pop_specific(pod, now=now)
                if info is not None:
                    return info
        return self.scheduler.queue.pop()

    def give_up(self, now: float) -> None:
        """Release the places of gangs that have held them long enough; evict what is left of incomplete gangs."""
        for key in self.places.holds.take_expired(now):
            self.release_places(key, now)
        self.recovery.update(now)
        for key, pods in self.recovery.take_overdue(now):
            self.eviction.evict(key, pods)

    def next_check(self, now: float) -> float:
        """When there may be something to do although no pod was added to the queue."""
        return max(min(self.recovery.next_check(), self.places.holds.next_check()), now + GANG_CHECK_SECONDS)

    def release_places(self, key: str, now: float) -> None:
        """The gang called *key* has held places for long enough."""
        group, queue = self.scheduler.cache.groups.get(key), self.scheduler.queue
        for pod in () if group is None else group.unscheduled_pods:
            node_name = queue.nominator.node_of(pod.uid)
            if node_name:
                queue.nominator.delete(pod.uid)
                queue.nomination_ended(pod, node_name, now=now)
                self.status_writer.write_nomination(self.scheduler.cache.unassigned.get(pod.key) or pod, "")

    # --- one attempt ------------------------------------------------------------------------------------------------

    async def schedule(self, info: QueuedPodInfo, nursery: trio.Nursery) -> None:
        """Schedule the group of a popped pod."""
        key, is_scheduled = info.pod.group_key, False
        assert key is not None
        try:
            is_scheduled = await self._schedule(key, info, nursery)
        finally:
            self.scheduler.queue.finish_group(key, is_scheduled=is_scheduled, now=trio.current_time())
            self.failure_handler.requeued()

    async def _schedule(self, key: str, info: QueuedPodInfo, nursery: trio.Nursery) -> bool:
        """Make the attempt; whether pods of the group that are left may be tried again at once."""
        group = self.scheduler.cache.groups.get(key)
        if group is None:
            text = f"error while retrieving pod group state: pod group state not found for pod group {key}"
            self.failure_handler.handle(info, SchedulingFailure(failure(text), nominated_node_name=None))
            return False
        infos = self._collect(info, group)
        if not self._can_be_tried(group, infos):
            return False
        kept = []
        for one in infos:
            if self.skip_pod_schedule(one):
                self.scheduler.skip(one)
            else:
                kept.append(one)
        return not kept or await self._attempt(group, kept, nursery)

    def _collect(self, info: QueuedPodInfo, group: GroupMembers) -> list[QueuedPodInfo]:
        """The pods of the attempt: *info*, and all others of its group that can be had, wherever they wait."""
        now, queue = trio.current_time(), self.scheduler.queue
        infos = [info]
        for pod in group.unscheduled_pods:
            if pod.name != info.pod.name:
                found = queue.pop_specific(pod, now=now)
                if found is not None:
                    found.attempt_began = now
                    infos.append(found)
        position = {uid: number for number, uid in enumerate(group.pods)}
        return in_order(sorted(infos, key=lambda one: position.get(one.uid, 0)))

    def _can_be_tried(self, group: GroupMembers, infos: list[QueuedPodInfo]) -> bool:
        """Whether the pods pass the check, and have a profile; if not, they are dealt with."""
        known = self.reporter.group(group.key)
        placed = [group.pods[uid] for uid in (*group.assumed, *group.assigned)]
        problem = self.check.problem(known, [info.pod for info in infos], placed)
        for info in infos if problem else ():
            self.failure_handler.handle(info, SchedulingFailure(failure(problem)))
        if not problem and infos[0].pod.scheduler_name not in self.scheduler.profiles:
            problem = f"profile not found for scheduler name {quote(infos[0].pod.scheduler_name)}"
            log.error("%s", problem, extra={"pod": infos[0].key})
            for info in infos:
                self.scheduler.skip(info)
        if problem and known is not None and self.check.is_told_in_condition:
            self.reporter.report(group.key, GroupResult(failure(problem)))
            self.reporter.explain(group.key, problem, controller=infos[0].pod.scheduler_name)
        return not problem

    async def _attempt(self, group: GroupMembers, infos: list[QueuedPodInfo], nursery: trio.Nursery) -> bool:
        began, key = trio.current_time(), group.key
        if log.isEnabledFor(V3):
            log_line(log, V3, "Attempting to schedule pod group", {"podGroup": key})
        for info in infos:
            if self.tracer is not None:
                info.trace = self.tracer.begin(info.pod, info.attempts, info.trace)
        cycle = self.cycle(key, infos)
        result, preemptions = await self.find_places(cycle)
        self.metrics.group_algorithm.observe(trio.current_time() - began)
        result = await self.preemption.preempt(cycle, result, preemptions)
        is_scheduled = self._submit(key, cycle, result, nursery)
        self._report(key, cycle, result, began)
        return is_scheduled

    def cycle(self, key: str, infos: list[QueuedPodInfo]) -> PodGroupCycle:
        """An attempt to schedule *infos*, pods of the group called *key* that have the same profile."""
        namespace, _slash, name = key.partition("/")
        extenders = self.extender_scheduling
        return PodGroupCycle(
            scheduler=self.scheduler,
            profile=self.scheduler.profiles[infos[0].pod.scheduler_name],
            infos=infos,
            group=PodGroupInfo(namespace, name, tuple(info.pod for info in infos)),
            by_placement=self.by_placement,
            is_extended=(lambda _pod: False) if extenders is None else extenders.extenders.is_interested,
        )

    async def find_places(self, cycle: PodGroupCycle) -> tuple[GroupResult, list[HeldPreemption]]:
        """Find out whether the group of *cycle* fits; nothing comes of it yet, nor of the preemptions that it needs."""
        extenders = self.extender_scheduling
        call_extenders: CallExtenders | None = None if extenders is None else extenders.ask_for_group
        with self.preemption_executor.holding([info.uid for info in cycle.infos]) as preemptions:
            observe = self._observer(cycle.profile.name)
            result = await run_group_steps(cycle.run(), call_extenders=call_extenders, observe=observe)
        return result, preemptions

    def _observer(self, profile: str) -> ObserveCall:
        measured = self.scheduler.measurements.profiles[profile]

        def observe(_hook: object, label: str, seconds: float) -> None:
            measured.observe("PostFilter", label, seconds)

        return observe

    # --- what follows -----------------------------------------------------------------------------------------------

    def _submit(self, key: str, cycle: PodGroupCycle, result: GroupResult, nursery: trio.Nursery) -> bool:
        """Let follow for each pod what has to; whether some are being bound, and all that were to be."""
        infos, now, is_bound = cycle.infos, trio.current_time(), False
        to_bind: list[PodToBind] = []
        to_requeue: list[PodToRequeue] = []
        for outcome in outcomes(infos, result):
            if isinstance(outcome, PodToRequeue):
                to_requeue.append(outcome)
            elif self._is_gone(outcome.info):
                self.scheduler.skip(outcome.info)
            else:
                to_bind.append(outcome)
        if result.status is None:
            self.places.holds.release(key, now)
            to_bind, refused = self._enough(key, to_bind)
            to_requeue += refused
            is_bound = self._bind(key, to_bind, nursery) and bool(to_bind)
        elif result.status.is_rejected and not result.waiting_on_preemption:
            to_requeue = self._holding_places(key, cycle, result, to_requeue, now)
        failures = max((info.failure_count for info in infos), default=0)
        for one in to_requeue:
            self._back_off_together(one, failures)
            self.failure_handler.handle(one.info, one.outcome)
        return is_bound

    def _is_gone(self, info: QueuedPodInfo) -> bool:
        """Whether the pod was deleted, or got a node, while a step of the attempt was taken."""
        known = self.scheduler.cache.unassigned.get(info.key)
        return known is None or known.uid != info.uid or known.metadata.deletion_timestamp is not None

    def _enough(self, key: str, to_bind: list[PodToBind]) -> tuple[list[PodToBind], list[PodToRequeue]]:
        """Those to bind, and those to requeue because too many others are gone."""
        if len(to_bind) >= self._missing(key):
            return to_bind, []
        refused = SchedulingFailure(group_unschedulable())
        return [], [PodToRequeue(one.info, refused) for one in to_bind]

    def _missing(self, key: str) -> int:
        """How many pods the gang called *key* needs besides those that are bound."""
        needed, group = self.min_count(key), self.scheduler.cache.groups.get(key)
        return 0 if needed is None else needed - (0 if group is None else len(group.assigned))

    def _bind(self, key: str, to_bind: list[PodToBind], nursery: trio.Nursery) -> bool:
        gang, all_begin = None, True
        if self.min_count(key) is not None:
            gang = GangBinding(
                missing=lambda: self._missing(key),
                is_assumed=self.scheduler.cache.is_assumed,
                nominate=self._nominate,
                reject=self._reject_waiting,
            )
            for one in to_bind:
                gang.expect(one.info.uid)
        for one in to_bind:
            failed = self._assume_and_bind(one, nursery, gang)
            if failed is not None:
                if gang is not None:
                    gang.failed(one.info.uid)
                self.failure_handler.handle(one.info, failed)
                all_begin = False
        return all_begin

    def _assume_and_bind(
        self, one: PodToBind, nursery: trio.Nursery, gang: GangBinding | None
    ) -> SchedulingFailure | None:
        info, placed, now = one.info, one.placed, trio.current_time()
        try:
            outcome = self.scheduler.assume_and_reserve(info.pod, placed, now=now, trace=info.trace)
        except CacheError as problem:
            return SchedulingFailure(failure(problem))
        if isinstance(outcome, SchedulingFailure):
            return outcome
        self.binding.start(nursery, info, placed, outcome, gang)
        self.scheduler.activate_collected(placed, now=now)
        return None

    async def _nominate(self, pod: Pod, node_name: str) -> None:
        await self.status_writer.nominate(self.scheduler.cache.unassigned.get(pod.key) or pod, node_name)

    def _reject_waiting(self, uid: str, message: str) -> None:
        waiting = self.waiting.by_uid.get(uid)
        if waiting is not None:
            waiting.reject("", message)

    # --- gangs that wait --------------------------------------------------------------------------------------------

    @staticmethod
    def _back_off_together(one: PodToRequeue, failures: int) -> None:
        """Let the pod back off as long as the others of its group."""
        info, diagnosis = one.info, one.outcome.diagnosis
        if diagnosis is not None and (diagnosis.unschedulable_plugins or diagnosis.pending_plugins):
            info.unschedulable_count = failures
        else:
            info.consecutive_errors = failures

    def _holding_places(
        self, key: str, cycle: PodGroupCycle, result: GroupResult, to_requeue: list[PodToRequeue], now: float
    ) -> list[PodToRequeue]:
        """The outcomes, with nominations to the places that the gang holds."""
        if self.min_count(key) is None:
            return to_requeue
        held = self.places.to_hold(cycle, result, now)
        return [
            PodToRequeue(one.info, evolve(one.outcome, nominated_node_name=held[one.info.uid]))
            if one.info.uid in held
            else one
            for one in to_requeue
        ]

    # --- reports ----------------------------------------------------------------------------------------------------

    def _report(self, key: str, cycle: PodGroupCycle, result: GroupResult, began: float) -> None:
        status, profile = result.status, cycle.profile.name
        if status is None:
            label = "scheduled"
            log_line(log, V2, "Successfully scheduled a pod group", {"podGroup": key})
            self.reporter.scheduled(key)
        elif result.waiting_on_preemption:
            label = "waiting_on_preemption"
            log_line(log, V2, "Pod group is waiting for preemption", {"podGroup": key})
        elif status.is_rejected:
            label = "unschedulable"
            log_line(log, V2, "Unable to schedule a pod group", {"podGroup": key, "err": status.message})
        else:
            label = "error"
            log.error("Error scheduling pod group: %s", status.message, extra={"podGroup": key})
        self.metrics.group_attempts.observe(trio.current_time() - began, label, profile)
        self.reporter.report(key, result)
        if status is not None and not result.waiting_on_preemption:
            group = self.reporter.group(key)
            note = explain(result, len(cycle.infos), topology_key="" if group is None else group.topology_key)
            self.reporter.explain(key, note, controller=profile)
