"""Schedules pod groups: pops all pods of a group, finds out whether it fits, and has its pods bound or requeued.

Gangs that are incomplete come first, and a gang that has waited for long may hold places; see
`trio_sched.engine.pod_groups.gang_recovery` and `trio_sched.engine.pod_groups.gang_places`.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import trio
from attrs import define, evolve, field

from trio_sched.daemon.limits import GANG_CHECK_SECONDS
from trio_sched.daemon.logs.log_lines import log_line
from trio_sched.daemon.metrics.recorder import MetricRecorder
from trio_sched.daemon.pod_groups.gang_eviction import GangEviction
from trio_sched.daemon.pod_groups.group_binder import GroupBinder
from trio_sched.daemon.pod_groups.group_preemption import GroupPreemption
from trio_sched.daemon.pod_groups.pod_group_report import PodGroupReporter
from trio_sched.daemon.pod_groups.pod_group_steps import CallExtenders, run_group_steps
from trio_sched.daemon.pods.binding_cycle import BindingCycle
from trio_sched.daemon.pods.failure_handler import FailureHandler
from trio_sched.daemon.pods.pod_status import PodStatusWriter
from trio_sched.daemon.pods.preemption_executor import HeldPreemption, PreemptionExecutor
from trio_sched.daemon.pods.waiting_pods import WaitingPods
from trio_sched.engine.evaluation.decision import SchedulingFailure
from trio_sched.engine.group_forest import is_composite
from trio_sched.engine.hooks.attempt_trace import AttemptTracer
from trio_sched.engine.hooks.plugin_times import ObserveCall
from trio_sched.engine.pod_group_state import GroupMembers
from trio_sched.engine.pod_groups.binding_units import BindingUnit, BindingUnits, tree_bound_together
from trio_sched.engine.pod_groups.gang_places import GangPlaces
from trio_sched.engine.pod_groups.gang_recovery import GangRecovery
from trio_sched.engine.pod_groups.group_checks import GroupCheck
from trio_sched.engine.pod_groups.group_steps import in_order
from trio_sched.engine.pod_groups.group_tree_cycle import cycle_of
from trio_sched.engine.pod_groups.pod_group_cycle import PodGroupCycle
from trio_sched.engine.pod_groups.pod_group_explanation import explain
from trio_sched.engine.pod_groups.pod_group_results import (
    GroupPart,
    GroupResult,
    PodToBind,
    PodToRequeue,
    group_unschedulable,
    outcomes,
)
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.scheduler import Scheduler
from trio_sched.go.text import quote
from trio_sched.plugin_api.pod_groups import PodGroupInfo, PodGroupTree
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
    binder: GroupBinder = field(init=False)
    places: GangPlaces = field(init=False)
    recovery: GangRecovery = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.binder = GroupBinder(self.scheduler, self.binding, self.failure_handler, self.waiting, self.status_writer)
        self.places = GangPlaces(self.scheduler.cache.groups)
        self.recovery = GangRecovery(
            states=self.scheduler.cache.groups, min_count=self.min_count, tree_of=self._tree_bound_together
        )

    def min_count(self, key: str) -> int | None:
        """How many pods the gang called *key* needs; None if it is no gang, or its profile does not schedule gangs."""
        group = self.scheduler.cache.groups.get(key)
        if group is None:
            return None
        # Without the plugin kube-scheduler binds the pods of a gang one by one, which then is nothing to be mended.
        return self.reporter.min_count(key) if self._has_gangs(group) else None

    def _has_gangs(self, group: GroupMembers) -> bool:
        """Whether the profile of the pods of *group* schedules gangs and trees as a whole."""
        profile = self.scheduler.profiles.get(next(iter(group.pods.values())).scheduler_name)
        return profile is not None and GANG_PLUGIN in profile.plugins

    def _tree_bound_together(self, key: str) -> PodGroupTree | None:
        """The tree that is bound as a whole with the pod group called *key*; None if that is bound by itself."""
        forest, group = self.scheduler.forest, self.scheduler.cache.groups.get(key)
        tree = None if forest is None or group is None or not self._has_gangs(group) else forest.tree_of(key)
        return tree_bound_together(tree, key) if isinstance(tree, PodGroupTree) else None

    # --- between two pods -------------------------------------------------------------------------------------------

    def next_pod(self, now: float) -> QueuedPodInfo | None:
        """The pod to schedule next: of an incomplete gang or tree if there is one, else the first of the queue."""
        self.recovery.update(now)
        while pods := self.recovery.next_to_try(now):
            for pod in pods:
                info = self.scheduler.queue.pop_specific(pod, now=now)
                if info is not None:
                    return info
        return self.scheduler.queue.pop()

    def give_up(self, now: float) -> None:
        """Release the places of gangs that have held them long enough; evict what is left of incomplete gangs."""
        for key in self.places.holds.take_expired(now):
            self.release_places(key, now)
        if self.scheduler.forest is not None:
            for key, problem in self.scheduler.forest.take_broken(now):
                self._tree_is_broken(key, problem)
        self.recovery.update(now)
        for key, pods in self.recovery.take_overdue(now):
            self.eviction.evict(key, pods)

    def next_check(self, now: float) -> float:
        """When there may be something to do although no pod was added to the queue."""
        forest = self.scheduler.forest
        broken = math.inf if forest is None else forest.next_check()
        checks = min(self.recovery.next_check(), self.places.holds.next_check(), broken)
        return max(checks, now + GANG_CHECK_SECONDS)

    def _tree_is_broken(self, key: str, problem: str) -> None:
        """Say why the group called *key* waits, unless its pods are those of another scheduler."""
        group, profiles = self.scheduler.cache.groups.get(key), self.scheduler.profiles
        names = list(profiles) if group is None else [pod.scheduler_name for pod in group.pods.values()]
        name = next((name for name in names if name in profiles), None)
        if name is not None:
            log.warning("Pod group is not scheduled: %s", problem, extra={"podGroup": key})
            self._report_problem(key, problem, name)

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
        key, is_scheduled = self.scheduler.queue.entity_of(info.pod), False
        assert key is not None
        try:
            is_scheduled = await self._schedule(key, info, nursery)
        finally:
            self.scheduler.queue.finish_group(key, is_scheduled=is_scheduled, now=trio.current_time())
            self.failure_handler.requeued()

    async def _schedule(self, key: str, info: QueuedPodInfo, nursery: trio.Nursery) -> bool:
        """Make the attempt; whether pods of the group that are left may be tried again at once."""
        leaves = self._leaves(key)
        if not leaves:
            text = f"error while retrieving pod group state: pod group state not found for pod group {key}"
            self.failure_handler.handle(info, SchedulingFailure(failure(text), nominated_node_name=None))
            return False
        infos = self._collect(info, leaves)
        if not self._can_be_tried(key, leaves, infos):
            return False
        kept = []
        for one in infos:
            if self.skip_pod_schedule(one):
                self.scheduler.skip(one)
            else:
                kept.append(one)
        return not kept or await self._attempt(key, kept, nursery)

    def _leaves(self, key: str) -> list[GroupMembers]:
        """The pod groups that are scheduled together as the entity called *key*, as far as they have pods."""
        groups, tree = self.scheduler.cache.groups, self._tree(key)
        keys = [key] if tree is None else [f"{leaf.namespace}/{leaf.name}" for leaf in tree.leaves]
        return [group for group in map(groups.get, keys) if group is not None]

    def _tree(self, key: str) -> PodGroupTree | None:
        """The tree of groups that is the entity called *key*; None if it is a pod group."""
        forest = self.scheduler.forest
        return forest.tree(key) if forest is not None and is_composite(key) else None

    def _collect(self, info: QueuedPodInfo, leaves: list[GroupMembers]) -> list[QueuedPodInfo]:
        """The pods of the attempt: *info*, and all others of its groups that can be had, wherever they wait."""
        now, queue, infos = trio.current_time(), self.scheduler.queue, [info]
        for group in leaves:
            for pod in group.unscheduled_pods:
                if pod.name != info.pod.name:
                    found = queue.pop_specific(pod, now=now)
                    if found is not None:
                        found.attempt_began = now
                        infos.append(found)
        position = {uid: number for group in leaves for number, uid in enumerate(group.pods)}
        return in_order(sorted(infos, key=lambda one: position.get(one.uid, 0)))

    def _can_be_tried(self, key: str, leaves: list[GroupMembers], infos: list[QueuedPodInfo]) -> bool:
        """Whether the pods pass the check, and have a profile; if not, they are dealt with."""
        forest = self.scheduler.forest
        known = forest.root(key) if forest is not None and is_composite(key) else self.reporter.group(key)
        placed = [group.pods[uid] for group in leaves for uid in (*group.assumed, *group.assigned)]
        problem = self.check.problem(known, [info.pod for info in infos], placed)
        for info in infos if problem else ():
            self.failure_handler.handle(info, SchedulingFailure(failure(problem)))
        if not problem and infos[0].pod.scheduler_name not in self.scheduler.profiles:
            problem = f"profile not found for scheduler name {quote(infos[0].pod.scheduler_name)}"
            log.error("%s", problem, extra={"pod": infos[0].key})
            for info in infos:
                self.scheduler.skip(info)
        if problem and known is not None and self.check.is_told_in_condition:
            for group in leaves:
                self._report_problem(group.key, problem, infos[0].pod.scheduler_name)
        return not problem

    def _report_problem(self, key: str, problem: str, scheduler_name: str) -> None:
        self.reporter.report(key, GroupResult(failure(problem)))
        self.reporter.explain(key, problem, controller=scheduler_name)

    async def _attempt(self, key: str, infos: list[QueuedPodInfo], nursery: trio.Nursery) -> bool:
        began = trio.current_time()
        if log.isEnabledFor(V3):
            log_line(log, V3, "Attempting to schedule pod group", {"podGroup": key})
        for info in infos:
            if self.tracer is not None:
                info.trace = self.tracer.begin(info.pod, info.attempts, info.trace)
        cycle = self.cycle(key, infos)
        found, result = await self.evaluate(cycle)
        parts = cycle.parts(found, result)
        is_scheduled = self._submit(cycle, parts, result, nursery)
        self._report(cycle, parts, result, began)
        return is_scheduled

    def cycle(self, key: str, infos: list[QueuedPodInfo]) -> PodGroupCycle:
        """An attempt to schedule *infos*, pods of the group or tree called *key* that have the same profile."""
        extenders = self.extender_scheduling
        options: dict[str, Any] = {
            "scheduler": self.scheduler,
            "profile": self.scheduler.profiles[infos[0].pod.scheduler_name],
            "by_placement": self.by_placement,
            "is_extended": (lambda _pod: False) if extenders is None else extenders.extenders.is_interested,
        }
        tree = self._tree(key)
        if tree is not None:
            return cycle_of(tree, infos, **options)
        namespace, _slash, name = key.partition("/")
        group = PodGroupInfo(namespace, name, tuple(info.pod for info in infos))
        return PodGroupCycle(infos=infos, group=group, **options)

    async def evaluate(self, cycle: PodGroupCycle) -> tuple[GroupResult, GroupResult]:
        """Find out whether the group of *cycle* fits, and make room for it if that helps.

        Returns:
            What the attempt has come to before anything was preempted, and after.
        """
        extenders = self.extender_scheduling
        found, preemptions = await self.find_places(cycle, None if extenders is None else extenders.ask_for_group)
        return found, await self.preemption.preempt(cycle, found, preemptions)

    async def find_places(
        self, cycle: PodGroupCycle, call_extenders: CallExtenders | None
    ) -> tuple[GroupResult, list[HeldPreemption]]:
        """Find out whether the group of *cycle* fits; nothing comes of it yet, nor of the preemptions that it needs."""
        extenders, began = self.extender_scheduling, trio.current_time()
        async with AsyncExitStack() as trying:
            if extenders is not None:
                await trying.enter_async_context(extenders.not_in_trial)
            preemptions = trying.enter_context(self.preemption_executor.holding([info.uid for info in cycle.infos]))
            observe = self._observer(cycle.profile.name)
            result = await run_group_steps(cycle.run(), call_extenders=call_extenders, observe=observe)
        self.metrics.group_algorithm.observe(trio.current_time() - began)
        return result, preemptions

    def _observer(self, profile: str) -> ObserveCall:
        measured = self.scheduler.measurements.profiles[profile]

        def observe(_hook: object, label: str, seconds: float) -> None:
            measured.observe("PostFilter", label, seconds)

        return observe

    # --- what follows -----------------------------------------------------------------------------------------------

    def _submit(self, cycle: PodGroupCycle, parts: list[GroupPart], result: GroupResult, nursery: trio.Nursery) -> bool:
        """Let follow for each pod what has to; whether some are being bound, and all that were to be."""
        now = trio.current_time()
        to_bind: dict[str, list[PodToBind]] = {}
        to_requeue: list[PodToRequeue] = []
        for part in parts:
            of_group: list[PodToBind] = []
            for outcome in outcomes(part.infos, part.result):
                if isinstance(outcome, PodToRequeue):
                    to_requeue.append(outcome)
                elif self._is_gone(outcome.info):
                    self.scheduler.skip(outcome.info)
                else:
                    of_group.append(outcome)
            if part.result.status is None:
                self.places.holds.release(part.key, now)
                to_bind[part.key] = of_group
        begun: list[bool] = []
        for unit in self._units(cycle, to_bind):
            allowed, others = unit.split()
            if allowed:
                begun.append(self.binder.bind(allowed, nursery, may_bind=unit.may_bind))
            if others:  # too many are gone
                begun.append(False)
                refused = SchedulingFailure(group_unschedulable())
                to_requeue += [PodToRequeue(one.info, refused) for one in others]
        if result.status is not None and result.status.is_rejected and not result.waiting_on_preemption:
            to_requeue = self._holding_places(cycle, result, to_requeue, now)
        failures = max((info.failure_count for info in cycle.infos), default=0)
        for one in to_requeue:
            self._back_off_together(one, failures)
            self.failure_handler.handle(one.info, one.outcome)
        return bool(begun) and all(begun)

    def _is_gone(self, info: QueuedPodInfo) -> bool:
        """Whether the pod was deleted, or got a node, while a step of the attempt was taken."""
        known = self.scheduler.cache.unassigned.get(info.key)
        return known is None or known.uid != info.uid or known.metadata.deletion_timestamp is not None

    def _units(self, cycle: PodGroupCycle, to_bind: dict[str, list[PodToBind]]) -> Iterator[BindingUnit]:
        """The pods that are bound together."""
        units = BindingUnits(
            to_bind=to_bind,
            min_count=self.min_count,
            bound_count=self._bound_count,
            schedules_gangs=GANG_PLUGIN in cycle.profile.plugins,
        )
        return units.of(cycle)

    def _bound_count(self, key: str) -> int:
        group = self.scheduler.cache.groups.get(key)
        return 0 if group is None else len(group.assigned)

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
        self, cycle: PodGroupCycle, result: GroupResult, to_requeue: list[PodToRequeue], now: float
    ) -> list[PodToRequeue]:
        """The outcomes, with nominations to the places that the gang holds; trees of groups hold none."""
        if cycle.is_part or self.min_count(cycle.group.key) is None:
            return to_requeue
        held = self.places.to_hold(cycle, result, now)
        return [
            PodToRequeue(one.info, evolve(one.outcome, nominated_node_name=held[one.info.uid]))
            if one.info.uid in held
            else one
            for one in to_requeue
        ]

    # --- reports ----------------------------------------------------------------------------------------------------

    def _report(self, cycle: PodGroupCycle, parts: list[GroupPart], result: GroupResult, began: float) -> None:
        status, profile, key = result.status, cycle.profile.name, cycle.group.key
        if status is None:
            label = "scheduled"
            log_line(log, V2, "Successfully scheduled a pod group", {"podGroup": key})
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
        for part in parts:
            self._report_part(part, profile)

    def _report_part(self, part: GroupPart, profile: str) -> None:
        self.reporter.report(part.key, part.result)
        if part.result.status is None:
            self.reporter.scheduled(part.key)
        elif not part.result.waiting_on_preemption and part.infos:
            group = self.reporter.group(part.key)
            note = explain(part.result, len(part.infos), topology_key="" if group is None else group.topology_key)
            self.reporter.explain(part.key, note, controller=profile)
