"""The scheduling loop: pop a pod, decide, assume, hand over to binding; or requeue it with the reason.

From taking the pod to assuming it nothing awaits, so nothing can change in between.
"""

from __future__ import annotations

import logging

import trio
from attrs import define

from trio_sched.daemon import score_log
from trio_sched.daemon.binding_cycle import BindingCycle
from trio_sched.daemon.event_recorder import EventRecorder
from trio_sched.daemon.extender_scheduling import ExtenderScheduling
from trio_sched.daemon.failure_handler import FailureHandler
from trio_sched.daemon.failure_log import log_plugin_failures
from trio_sched.daemon.hook_calls import run_steps
from trio_sched.daemon.limits import SLICE_PODS, SLICE_SECONDS
from trio_sched.daemon.log_lines import log_line
from trio_sched.daemon.scheduler_events import skipped_deleting
from trio_sched.daemon.unassigned_pods import UnassignedPods
from trio_sched.daemon.wake_up import WakeUp
from trio_sched.engine.cache import CacheError
from trio_sched.engine.decision import Decision, ScheduleResult, SchedulingFailure
from trio_sched.engine.queued_pod import QueuedPodInfo
from trio_sched.engine.scheduler import Scheduler
from trio_sched.plugin_api.status import failure
from trio_sched.verbosity import V3

log = logging.getLogger(__name__)


@define(eq=False, kw_only=True)
class ScheduleOne:
    """Schedules one pod after the other."""

    scheduler: Scheduler
    unassigned: UnassignedPods
    binding: BindingCycle
    failure_handler: FailureHandler
    recorder: EventRecorder
    pods_available: WakeUp
    """Set when the active queue may have got a pod."""
    extender_scheduling: ExtenderScheduling | None = None
    """Schedules the pods in which extenders are interested; None without extenders."""

    async def run(self, nursery: trio.Nursery) -> None:
        """Schedule for ever; pods that need tasks of their own get them in *nursery*."""
        if self.extender_scheduling is None:
            await self._run(nursery)
            return
        async with trio.open_nursery() as loops:
            loops.start_soon(self.extender_scheduling.run, self._handle_decision, self._skip_pod_schedule, nursery)
            await self._run(nursery)

    async def _run(self, nursery: trio.Nursery) -> None:
        while True:
            may_have_more = await self._schedule_slice(nursery)
            log_plugin_failures(self.scheduler.plugin_failures)  # they may be the reason why there is nothing to do
            if may_have_more:
                await trio.lowlevel.checkpoint()
            else:
                await self.pods_available.wait()

    async def _schedule_slice(self, nursery: trio.Nursery) -> bool:
        """Schedule some pods; returns whether there may be more."""
        queue, slice_ends = self.scheduler.queue, trio.current_time() + SLICE_SECONDS
        self.scheduler.on_scores = score_log.log_scores if score_log.is_on() else None
        for _ in range(SLICE_PODS):
            info = queue.pop()
            if info is None:
                return False
            await self._schedule(info, nursery)
            if trio.current_time() > slice_ends:
                break
        return True

    async def _schedule(self, info: QueuedPodInfo, nursery: trio.Nursery) -> None:
        if log.isEnabledFor(V3):
            log_line(log, V3, "Attempting to schedule pod", {"pod": info.key, "attempts": info.attempts})
        if info.pod.scheduler_name not in self.scheduler.profiles:
            log.error("profile not found for scheduler name %r", info.pod.scheduler_name, extra={"pod": info.key})
            self.scheduler.skip(info)
        elif self._skip_pod_schedule(info):
            self.scheduler.skip(info)
        elif self.extender_scheduling is None or not self.extender_scheduling.take_over(info):
            await self._handle_decision(info, self.scheduler.decide(info), nursery)

    async def _handle_decision(self, info: QueuedPodInfo, decision: Decision, nursery: trio.Nursery) -> None:
        if isinstance(decision, ScheduleResult):
            self._assume_and_bind(info, decision, nursery)
            return
        steps = self.scheduler.post_filter(info, decision)
        self.failure_handler.handle(info, decision if steps is None else await run_steps(steps))

    def _skip_pod_schedule(self, info: QueuedPodInfo) -> bool:
        """Whether there is no point in scheduling the pod."""
        pod = self.unassigned.get(info.key) or info.pod
        if pod.metadata.deletion_timestamp:
            log_line(log, V3, "Skip schedule deleting pod", {"pod": info.key})
            self.recorder.record(skipped_deleting(pod))
            return True
        return self.scheduler.cache.is_assumed(info.uid)

    def _assume_and_bind(self, info: QueuedPodInfo, placed: ScheduleResult, nursery: trio.Nursery) -> None:
        try:
            outcome = self.scheduler.assume_and_reserve(info.pod, placed, now=trio.current_time())
        except CacheError as problem:
            self.failure_handler.handle(info, SchedulingFailure(failure(problem)))
            return
        if isinstance(outcome, SchedulingFailure):
            self.failure_handler.handle(info, outcome)
            return
        self.binding.start(nursery, info, placed, outcome)
        self.scheduler.activate_collected(placed, now=trio.current_time())
