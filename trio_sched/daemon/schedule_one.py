"""The scheduling loop: pop a pod, decide, assume, hand over to binding; or requeue it with the reason.

From taking the pod to assuming it nothing awaits, so nothing can change in between.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import trio
from attrs import define, field

from trio_sched.daemon.hooks.hook_calls import run_steps
from trio_sched.daemon.hooks.yielding import give_way
from trio_sched.daemon.limits import SLICE_PODS, SLICE_SECONDS
from trio_sched.daemon.logs import score_log
from trio_sched.daemon.logs.failure_log import log_plugin_failures
from trio_sched.daemon.logs.log_lines import log_line
from trio_sched.daemon.metrics.recorder import MetricRecorder
from trio_sched.daemon.pods.binding_cycle import BindingCycle
from trio_sched.daemon.pods.failure_handler import FailureHandler
from trio_sched.daemon.pods.skipped_pods import SkipPodSchedule
from trio_sched.daemon.wake_up import WakeUp
from trio_sched.engine.cache import CacheError
from trio_sched.engine.evaluation.decision import Decision, ScheduleResult, SchedulingFailure
from trio_sched.engine.evaluation.hook_steps import HookSteps
from trio_sched.engine.hooks.attempt_trace import AttemptTracer
from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.engine.hooks.status_labels import SUCCESS
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.scheduler import Scheduler
from trio_sched.plugin_api.status import failure
from trio_sched.verbosity import V3

if TYPE_CHECKING:
    from trio_sched.daemon.extenders.extender_scheduling import ExtenderScheduling
    from trio_sched.daemon.pod_groups.schedule_pod_groups import SchedulePodGroups  # imported only where it is needed

log = logging.getLogger(__name__)


@define(eq=False, kw_only=True)
class ScheduleOne:
    """Schedules one pod after the other."""

    scheduler: Scheduler
    binding: BindingCycle
    failure_handler: FailureHandler
    skip_pod_schedule: SkipPodSchedule
    pods_available: WakeUp
    """Set when the active queue may have got a pod."""
    metrics: MetricRecorder
    extender_scheduling: ExtenderScheduling | None = None
    """Schedules the pods in which extenders are interested; None without extenders."""
    pod_groups: SchedulePodGroups | None = None
    """Schedules pod groups; None without the gate GenericWorkload."""
    tracer: AttemptTracer | None = None
    """None if attempts are not traced."""
    is_running: bool = False
    slices: int = 0
    """How often some pods were scheduled: it goes on while the loop makes progress."""
    _blocked_seconds: float = field(default=0.0, init=False)
    """How long the last decision took."""
    _calls: list[Callable[[], None]] = field(factory=list, init=False)
    """To be made between two pods."""

    async def call_between_pods(self, function: Callable[[], None]) -> None:
        """Call *function* when no pod is being scheduled, except by extenders."""
        if not self.is_running:
            function()
            return
        called = trio.Event()
        self._calls += [function, called.set]
        self.pods_available.set()
        await called.wait()

    async def run(self, nursery: trio.Nursery) -> None:
        """Schedule for ever; pods that need tasks of their own get them in *nursery*."""
        self.is_running = True
        try:
            await self._run_loops(nursery)
        finally:
            self.is_running = False

    async def _run_loops(self, nursery: trio.Nursery) -> None:
        if self.extender_scheduling is None:
            await self._run(nursery)
            return
        async with trio.open_nursery() as loops:
            loops.start_soon(self.extender_scheduling.run, self._handle_decision, nursery)
            await self._run(nursery)

    async def _run(self, nursery: trio.Nursery) -> None:
        while True:
            calls, self._calls = self._calls, []
            for call in calls:
                call()
            may_have_more = await self._schedule_slice(nursery)
            self.slices += 1
            log_plugin_failures(self.scheduler.plugin_failures)  # they may be the reason why there is nothing to do
            if may_have_more:
                await give_way(self._blocked_seconds)
            elif self.pod_groups is None:
                await self.pods_available.wait()
            else:
                with trio.move_on_at(self.pod_groups.next_check(trio.current_time())):
                    await self.pods_available.wait()

    async def _schedule_slice(self, nursery: trio.Nursery) -> bool:
        """Schedule some pods; returns whether there may be more."""
        queue, now = self.scheduler.queue, trio.current_time()
        slice_ends = now + SLICE_SECONDS
        self._blocked_seconds = 0.0
        self.scheduler.on_scores = score_log.log_scores if score_log.is_on() else None
        groups = self.pod_groups
        if groups is not None:
            groups.give_up(now)
        for _ in range(SLICE_PODS):
            info = queue.pop() if groups is None else groups.next_pod(now)
            if info is None:
                return False
            info.attempt_began = now
            if groups is not None and info.pod.group_key is not None:
                await groups.schedule(info, nursery)
            else:
                await self._schedule(info, nursery)
            now = trio.current_time()
            if now > slice_ends:
                break
        return True

    async def _schedule(self, info: QueuedPodInfo, nursery: trio.Nursery) -> None:
        if log.isEnabledFor(V3):
            log_line(log, V3, "Attempting to schedule pod", {"pod": info.key, "attempts": info.attempts})
        if info.pod.scheduler_name not in self.scheduler.profiles:
            log.error("profile not found for scheduler name %r", info.pod.scheduler_name, extra={"pod": info.key})
            self.scheduler.skip(info)
        elif self.skip_pod_schedule(info):
            self.scheduler.skip(info)
        elif self.extender_scheduling is None or not self.extender_scheduling.take_over(info):
            if self.tracer is not None:
                info.trace = self.tracer.begin(info.pod, info.attempts, info.trace)
            decision = self.scheduler.decide(info)
            self._blocked_seconds = trio.current_time() - info.attempt_began
            await self._handle_decision(info, decision, nursery)

    async def _handle_decision(self, info: QueuedPodInfo, decision: Decision, nursery: trio.Nursery) -> None:
        algorithm = self.metrics.algorithm
        if isinstance(decision, ScheduleResult):
            now = trio.current_time()
            algorithm.observe(now - info.attempt_began)
            self._assume_and_bind(info, decision, nursery, now=now)
            return
        steps = self.scheduler.post_filter(info, decision)
        if steps is not None:
            decision = await self._run_post_filters(info, decision, steps)
        algorithm.observe(trio.current_time() - info.attempt_began)
        self.failure_handler.handle(info, decision)

    async def _run_post_filters(
        self, info: QueuedPodInfo, unplaced: SchedulingFailure, steps: HookSteps[SchedulingFailure]
    ) -> SchedulingFailure:
        measurements, status = self.scheduler.measurements, SUCCESS
        profile = measurements.profiles[info.pod.scheduler_name]  # a reload may take it away meanwhile
        state = unplaced.state
        observe_call = None if state is None else measurements.plugin_times.observer(state, info.trace)

        def observe(hook: BoundHook, label: str, seconds: float) -> None:
            nonlocal status
            status = label  # the last one ended the phase
            if observe_call is not None:
                observe_call(hook, label, seconds)

        began = trio.current_time()
        outcome = await run_steps(steps, observe)
        profile.observe("PostFilter", status, trio.current_time() - began)
        return outcome

    def _assume_and_bind(
        self, info: QueuedPodInfo, placed: ScheduleResult, nursery: trio.Nursery, *, now: float
    ) -> None:
        try:
            outcome = self.scheduler.assume_and_reserve(info.pod, placed, now=now, trace=info.trace)
        except CacheError as problem:
            self.failure_handler.handle(info, SchedulingFailure(failure(problem)))
            return
        if isinstance(outcome, SchedulingFailure):
            self.failure_handler.handle(info, outcome)
            return
        self.binding.start(nursery, info, placed, outcome)
        self.scheduler.activate_collected(placed, now=now)
