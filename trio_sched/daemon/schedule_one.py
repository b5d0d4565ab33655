"""The loop at the heart: pop a pod, decide, assume, hand to binding; or say why not.

From taking the pod to assuming it nothing awaits, so nothing can change in between.
"""

from __future__ import annotations

import logging

import trio
from attrs import define, evolve

from trio_sched.daemon.binding_cycle import BindingCycle, activate_collected
from trio_sched.daemon.cluster_mirror import PendingPods
from trio_sched.daemon.event_recorder import EventRecorder
from trio_sched.daemon.extended_scheduling import ExtendedScheduling
from trio_sched.daemon.failure_handler import FailureHandler
from trio_sched.daemon.post_filter import run_post_filters
from trio_sched.daemon.scheduler_events import skipped_deleting
from trio_sched.daemon.wakeup import Bell
from trio_sched.engine.cache import CacheError
from trio_sched.engine.decision import Decision, Placed, Unplaced, unfit
from trio_sched.engine.profile import Profile
from trio_sched.engine.queued_pod import QueuedPodInfo
from trio_sched.engine.scheduler import Scheduler
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.status import failure
from trio_sched.plugin_api.verdicts import Diagnosis

log = logging.getLogger(__name__)

SLICE_SECONDS = 0.005
"""The loop goes on for so long before it lets the others work: a checkpoint for every pod would cost too much."""
SLICE_PODS = 16


@define(eq=False)
class ScheduleOne:
    """Schedules one pod after the other."""

    scheduler: Scheduler
    pending: PendingPods
    binding: BindingCycle
    failures: FailureHandler
    recorder: EventRecorder
    bell: Bell
    extended: ExtendedScheduling | None = None
    """Schedules the pods in which extenders are interested; None without extenders."""

    async def run(self, nursery: trio.Nursery) -> None:
        """Schedule for ever; pods that need tasks of their own get them in *nursery*."""
        if self.extended is None:
            await self._run(nursery)
            return
        async with trio.open_nursery() as side_by_side:
            side_by_side.start_soon(self.extended.run, self._conclude, self._skips, nursery)
            await self._run(nursery)

    async def _run(self, nursery: trio.Nursery) -> None:
        queue = self.scheduler.queue
        while True:
            if not queue.has_next:
                self._log_plugin_failures()  # they may be the reason why there is nothing to do
                await self.bell.wait()
                continue
            slice_ends = trio.current_time() + SLICE_SECONDS
            for _ in range(SLICE_PODS):
                info = queue.pop()
                if info is None:
                    break
                await self._schedule(info, nursery)
                if trio.current_time() > slice_ends:
                    break
            self._log_plugin_failures()
            await trio.lowlevel.checkpoint()

    async def _schedule(self, info: QueuedPodInfo, nursery: trio.Nursery) -> None:
        profile = self.scheduler.profiles.get(info.pod.scheduler_name)
        if profile is None:
            log.error("profile not found for scheduler name %r", info.pod.scheduler_name, extra={"pod": info.key})
            self.scheduler.queue.done(info.uid)
            return
        if self._skips(info):
            self.scheduler.queue.done(info.uid)
            return
        if self.extended is not None and self.extended.takes(info):
            return
        await self._conclude(info, self.scheduler.decide(info), nursery)

    async def _conclude(self, info: QueuedPodInfo, decision: Decision, nursery: trio.Nursery) -> None:
        if isinstance(decision, Placed):
            self._settle(info, decision, nursery)
            return
        profile = self.scheduler.profiles[info.pod.scheduler_name]
        if decision.diagnosis is not None and profile.post_filter:
            decision = await self._make_room(profile, info, decision, decision.diagnosis)
        self.failures.handle(info, decision)

    def _skips(self, info: QueuedPodInfo) -> bool:
        """Whether there is no point in scheduling the pod."""
        pod = self.pending.get(info.key) or info.pod
        if pod.metadata.deletion_timestamp:
            self.recorder.record(skipped_deleting(pod))
            return True
        return self.scheduler.cache.is_assumed(info.uid)

    def _settle(self, info: QueuedPodInfo, placed: Placed, nursery: trio.Nursery) -> None:
        try:
            outcome = self.scheduler.settle(info.pod, placed)
        except CacheError as problem:
            self.failures.handle(info, Unplaced(failure(problem)))
            return
        if isinstance(outcome, Unplaced):
            self.failures.handle(info, outcome)
            return
        self.binding.start(nursery, info, placed, outcome)
        activate_collected(self.scheduler, placed)

    async def _make_room(
        self, profile: Profile, info: QueuedPodInfo, decision: Unplaced, diagnosis: Diagnosis
    ) -> Unplaced:
        """Let plugins make room; what they say goes into the message, and a nomination into the pod."""
        state = decision.state if decision.state is not None else CycleState()
        outcome = await run_post_filters(profile, info.pod, diagnosis, state)
        told = evolve(diagnosis, post_filter_message=outcome.message)
        return unfit(told, nominated_node_name=outcome.nominated_node_name)

    def _log_plugin_failures(self) -> None:
        """Hints and gates that failed in the engine, which does not log."""
        queue = self.scheduler.queue
        for plugin, pod, problem in queue.gate_errors:
            log.error("Unexpected error running PreEnqueue plugin %s: %s", plugin, problem, extra={"pod": pod})
        queue.gate_errors.clear()
        for profile_name, pod, problem in self.scheduler.sign_errors:
            log.error("signing a pod of profile %s failed: %s", profile_name, problem, extra={"pod": pod})
        self.scheduler.sign_errors.clear()
        for plugin, pod, problem in self.scheduler.unreserve_errors:
            log.error("unreserve of plugin %s failed: %s", plugin, problem, extra={"pod": pod})
        self.scheduler.unreserve_errors.clear()
        for profile in queue.profiles.values():
            for plugin, pod, problem in profile.hints.hint_errors:
                log.error("QueueingHintFn of %s returned an error: %s", plugin, problem, extra={"pod": pod})
            profile.hints.hint_errors.clear()
