"""The binding cycle: wait on permit, pre_bind, bind, post_bind; after a failure unreserve, forget and requeue.

Nearly every pod needs nothing but its bind: those go through a pool of tasks. A pod for which some plugin waits, or has
something to do first, gets a task of its own, so that it does not hold up others.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

import trio
from attrs import define, field

from trio_sched.daemon.extenders.extender_error import ExtenderError
from trio_sched.daemon.hooks.hook_calls import make_call, run_steps
from trio_sched.daemon.logs.failure_log import log_plugin_failures
from trio_sched.daemon.logs.log_lines import attempt_fields, log_line
from trio_sched.daemon.metrics.recorder import MetricRecorder
from trio_sched.daemon.pods.failure_handler import FailureHandler
from trio_sched.daemon.pods.pod_status import PodStatusWriter
from trio_sched.daemon.pods.pods_in_pre_bind import PodsInPreBind
from trio_sched.daemon.pods.waiting_pods import WaitingPods
from trio_sched.daemon.writes.event_recorder import EventRecorder
from trio_sched.daemon.writes.scheduler_events import scheduled
from trio_sched.daemon.writes.work_pool import WorkPool
from trio_sched.engine.cache import CacheError
from trio_sched.engine.evaluation.decision import ScheduleResult, SchedulingFailure
from trio_sched.engine.evaluation.hook_steps import PreBindPlan, pre_bind_cancelled, read_pre_bind
from trio_sched.engine.evaluation.reservation import PermitWait, permit_failed
from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.engine.hooks.plugin_calls import HookCall
from trio_sched.engine.hooks.plugin_times import ObserveCall
from trio_sched.engine.hooks.status_labels import ERROR, SUCCESS, status_label
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.scheduler import Scheduler
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.status import Status, failure
from trio_sched.verbosity import V2, V4

if TYPE_CHECKING:
    from trio_sched.daemon.extenders.extenders import Extenders
    from trio_sched.daemon.pods.gang_binding import GangBinding  # only where pod groups are scheduled

log = logging.getLogger(__name__)


@define(eq=False, kw_only=True)
class BindingCycle:
    """Binds what was decided; handles every failure on the way."""

    scheduler: Scheduler
    pool: WorkPool
    waiting: WaitingPods
    pods_in_pre_bind: PodsInPreBind
    recorder: EventRecorder
    status_writer: PodStatusWriter
    failure_handler: FailureHandler
    wake: Callable[[], None]
    """Called when the active queue may have got pods."""
    metrics: MetricRecorder
    nominate_while_binding: bool = True
    """Gate NominatedNodeNameForExpectation."""
    extenders: Extenders | None = None
    _not_binding: set[trio.CancelScope] = field(factory=set, init=False)
    """The scopes of pods that wait on permit or are in pre_bind."""
    _is_stopping: bool = field(default=False, init=False)

    def start(
        self,
        nursery: trio.Nursery,
        info: QueuedPodInfo,
        placed: ScheduleResult,
        waits: PermitWait | None,
        gang: GangBinding | None = None,
    ) -> None:
        """Have the pod bound, together with its *gang* if it is in one; returns at once."""
        plan = self.scheduler.plan_pre_bind(info.pod, placed, info.trace)
        if isinstance(plan, SchedulingFailure):
            if gang is not None:
                gang.failed(info.uid)
            self._fail(info, placed, plan)
            return
        if info.trace is not None:
            info.trace.placed(
                placed.node_name, evaluated_nodes=placed.evaluated_nodes, feasible_nodes=placed.feasible_nodes
            )
        if waits is None and not plan.groups and gang is None:
            self.scheduler.binding_starts(info)
            placed.profile.measured.nothing_to_pre_bind += 1
            if self.extenders is not None and self.extenders.binds(info.pod):
                nursery.start_soon(self._bind, info, placed)  # a slow extender must not take up the pool
            else:
                self.pool.submit(partial(self._bind, info, placed))
            return
        if waits is not None:
            self.waiting.add(info.pod, waits.timeout_seconds, waits.messages)
            for plugin, seconds in waits.timeout_seconds.items():
                more = {"plugin": plugin, "why": waits.messages.get(plugin, ""), "timeoutSeconds": seconds}
                log_line(log, V2, "Pod has to wait on permit", {"pod": info.key, "node": placed.node_name, **more})
        if self.nominate_while_binding and gang is None and (waits is not None or plan.has_pre_flight):
            self.status_writer.write_nomination(info.pod, placed.node_name)
        nursery.start_soon(self._whole_cycle, info, placed, plan, gang)

    @property
    def under_way(self) -> int:
        """How many pods are in their binding cycle, those that wait for a task to bind them included."""
        return self.pool.unfinished + len(self._not_binding)

    def cancel_waiting(self) -> None:
        """End what is not a bind yet, for a stop: pods that wait on permit or are in pre_bind."""
        self._is_stopping = True
        for scope in self._not_binding:
            scope.cancel()

    async def _whole_cycle(
        self, info: QueuedPodInfo, placed: ScheduleResult, plan: PreBindPlan, gang: GangBinding | None
    ) -> None:
        with trio.CancelScope() as scope:
            if self._is_stopping:
                return
            self._not_binding.add(scope)
            try:
                failed = await self._permit_and_pre_bind(info, placed, plan, gang)
                if gang is not None:
                    failed = await self._wait_for_gang(info, placed, failed, gang)
            finally:
                self._not_binding.discard(scope)
        if scope.cancelled_caught:
            if info.trace is not None:
                info.trace.given_up()
            return
        if failed is not None:
            self._fail(info, placed, failed)
            return
        await self._bind(info, placed)

    async def _wait_for_gang(
        self, info: QueuedPodInfo, placed: ScheduleResult, failed: SchedulingFailure | None, gang: GangBinding
    ) -> SchedulingFailure | None:
        """Wait until all pods of the gang can be bound; why this one is not to be bound, if so."""
        if failed is not None:
            gang.failed(info.uid)
            return failed
        refused = await self._unless_preempted(info.uid, partial(gang.ready, info.pod, placed.node_name))
        if refused is None:
            return None
        gang.failed(info.uid)
        return SchedulingFailure(refused)

    async def _unless_preempted(self, uid: str, wait: Callable[[], Awaitable[Status | None]]) -> Status | None:
        """What *wait* comes to; a failure if the pod with this UID is preempted before."""
        under_way, status = self.pods_in_pre_bind.add(uid), None
        try:
            with under_way.scope:
                status = await wait()
            under_way.is_done = True
        finally:
            self.pods_in_pre_bind.remove(uid)
        return status if under_way.cause is None else failure(under_way.cause)

    async def _permit_and_pre_bind(
        self, info: QueuedPodInfo, placed: ScheduleResult, plan: PreBindPlan, gang: GangBinding | None
    ) -> SchedulingFailure | None:
        began = trio.current_time()
        waits = info.uid in self.waiting.by_uid
        if waits and log.isEnabledFor(V4):
            log_line(log, V4, "Pod waiting on permit", {"pod": info.key})
        refused = await self.waiting.wait_on_permit(info.uid)
        if waits:
            seconds, label = trio.current_time() - began, status_label(refused)
            self.metrics.permit_waits.observe(seconds, label)
            if info.trace is not None:
                info.trace.waited_on_permit(label, seconds)
        if refused is not None:
            log_line(log, V4, "Pod rejected while waiting on permit", {"pod": info.key, "err": refused.message})
            return permit_failed(refused, placed.node_name)
        self.scheduler.binding_starts(info)
        began = trio.current_time()
        problem = await self._pre_bind(info, placed, plan, gang)
        placed.profile.measured.observe("PreBind", status_label(problem), trio.current_time() - began)
        return None if problem is None else SchedulingFailure(problem)

    # --- pre_bind ---------------------------------------------------------------------------------------------------

    async def _pre_bind(
        self, info: QueuedPodInfo, placed: ScheduleResult, plan: PreBindPlan, _gang: GangBinding | None
    ) -> Status | None:
        pod = info.pod
        under_way = self.pods_in_pre_bind.add(pod.uid)
        observe = self.scheduler.measurements.plugin_times.observer(placed.state, info.trace)
        current: tuple[BoundHook, ...] = ()
        try:
            with under_way.scope:
                for current in plan.groups:
                    problem = await _run_group(current, pod, placed, observe)
                    if problem is not None:
                        return problem
            if under_way.cause is not None:
                # Cancelled in the middle of a group, or once the last one was done but not yet noted as such.
                cancelled = under_way.scope.cancelled_caught
                return pre_bind_cancelled(current, under_way.cause) if cancelled else failure(under_way.cause)
            under_way.is_done = True
            return None
        finally:
            self.pods_in_pre_bind.remove(pod.uid)

    # --- bind -------------------------------------------------------------------------------------------------------

    async def _bind(self, info: QueuedPodInfo, placed: ScheduleResult) -> None:
        await self.status_writer.withdraw(info.uid)
        measured, began = placed.profile.measured, trio.current_time()
        observe = self.scheduler.measurements.plugin_times.observer(placed.state, info.trace)
        try:
            is_bound = self.extenders is not None and await self.extenders.bind(info.pod, placed.node_name)
        except ExtenderError as problem:
            measured.observe("Bind", ERROR, trio.current_time() - began)
            self._fail(info, placed, SchedulingFailure(failure(problem)))
            return
        if not is_bound:
            refused = await run_steps(self.scheduler.bind_steps(info.pod, placed), observe)
            if refused is not None:
                measured.observe("Bind", status_label(refused.status), trio.current_time() - began)
                self._fail(info, placed, refused)
                return
        now = trio.current_time()
        measured.bound.observe(now - began)
        self.metrics.bound(info, now)
        self._record_bound(info, placed)
        steps = self.scheduler.post_bind_steps(info.pod, placed)
        if steps is None:
            measured.nothing_after_bind += 1
        else:
            began = now
            await run_steps(steps, observe)
            now = trio.current_time()
            measured.observe("PostBind", SUCCESS, now - began)
            log_plugin_failures(self.scheduler.plugin_failures)
        if info.trace is not None:
            info.trace.bound()
        if self.scheduler.activate_collected(placed, now=now):
            self.wake()

    def _record_bound(self, info: QueuedPodInfo, placed: ScheduleResult) -> None:
        pod = info.pod
        if info.was_flushed:
            self.scheduler.queue.counters.scheduled_after_flush += 1
            log.warning(
                "Pod scheduled only after a flush from unschedulablePods: no cluster event had requeued it",
                extra={"pod": pod.key},
            )
        self.recorder.record(scheduled(pod, placed.node_name))
        if log.isEnabledFor(V2):
            fields = {
                "pod": pod.key,
                "node": placed.node_name,
                "evaluatedNodes": placed.evaluated_nodes,
                "feasibleNodes": placed.feasible_nodes,
            }
            log_line(log, V2, "Successfully bound pod to node", fields | attempt_fields(info))

    # --- failure ----------------------------------------------------------------------------------------------------

    def _fail(self, info: QueuedPodInfo, placed: ScheduleResult, outcome: SchedulingFailure) -> None:
        """Unreserve, forget and requeue the pod."""
        cached = self.scheduler.cache.get(info.uid)
        try:
            self.scheduler.unreserve_and_forget(info.pod, placed, info.trace)
        except CacheError as problem:
            # The watch was faster: the pod is on a node, so there is nothing to requeue.
            log.warning("pod failed to bind but is on a node: %s", problem, extra={"pod": info.key})
            self.scheduler.already_assigned(info)
            if info.trace is not None:
                info.trace.failed(outcome.status)
        else:
            self.failure_handler.handle(info, outcome, assumed_pod=info.pod if cached is None else cached.pod_on_node)
        log_plugin_failures(self.scheduler.plugin_failures)


async def _run_group(
    group: tuple[BoundHook, ...], pod: Pod, placed: ScheduleResult, observe: ObserveCall | None
) -> Status | None:
    """Run the pre_binds of *group* concurrently; the first failure cancels the others."""
    first: list[Status] = []
    unfinished = list(group)

    async def run(hook: BoundHook, nursery: trio.Nursery) -> None:
        began = trio.current_time()
        problem = read_pre_bind(hook, await make_call(HookCall(hook, (pod, placed.node_name, placed.state))))
        if observe is not None:
            observe(hook, status_label(problem), trio.current_time() - began)
        unfinished.remove(hook)
        if problem is not None:
            first.append(problem)
            nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        for hook in group:
            nursery.start_soon(run, hook, nursery)
    if not first and unfinished:  # a plugin can reach, and cancel, the nursery that its task is in
        return pre_bind_cancelled(unfinished, "cancelled by a plugin")
    return first[0] if first else None
