"""Schedules the pods in which extenders are interested, one after the other, without delaying other pods.

Extenders are called for one pod at a time, as by kube-scheduler. Until one responds, all other pods are scheduled, so
its response is about a cluster that may have changed: the nodes it left are evaluated again before a pod is assumed.

Pods wait for their turn in the order of the queue. They are not in flight meanwhile, so no cluster events have to be
kept for them, however slow the extender is.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import trio
from attrs import define, evolve, field

from trio_sched.daemon.extenders.extender_error import ExtenderError
from trio_sched.daemon.extenders.extenders import Extenders
from trio_sched.daemon.wake_up import WakeUp
from trio_sched.engine.evaluation.decision import Decision, SchedulingFailure
from trio_sched.engine.evaluation.extender_cycle import ExtendersAnswer, NodesForExtenders
from trio_sched.engine.hooks.attempt_trace import AttemptTracer
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.scheduler import Scheduler
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.status import Status, failure

if TYPE_CHECKING:
    from trio_sched.engine.pod_groups.group_steps import AskExtenders  # only where pod groups are scheduled

log = logging.getLogger(__name__)

HandleDecision = Callable[[QueuedPodInfo, Decision, trio.Nursery], Awaitable[None]]
"""Acts on a decision; if a node was found, without a checkpoint before the pod is assumed."""


@define(eq=False, kw_only=True)
class ExtenderScheduling:
    """Takes over the pods in which extenders are interested, and schedules them."""

    scheduler: Scheduler
    extenders: Extenders
    skip_pod_schedule: Callable[[QueuedPodInfo], bool]
    """Whether a pod must not be scheduled: it is being deleted, or is assumed already."""
    tracer: AttemptTracer | None = None
    """None if attempts are not traced."""
    was_asked: Callable[[Pod], bool] | None = None
    """Whether another process has asked the extenders about a pod, and chosen its node; None: there is no other."""
    not_in_trial: trio.Lock = field(factory=trio.Lock, init=False)
    """Held while places for a pod group are tried: until that is over, its pods seem to be on them."""
    _wake_up: WakeUp = field(factory=WakeUp)

    def take_over(self, info: QueuedPodInfo) -> bool:
        """Take over a popped pod if an extender is interested in it; returns whether that is so."""
        if not self.extenders.is_interested(info.pod):
            return False
        if self.was_asked is not None and self.was_asked(info.pod):
            return False
        self.scheduler.set_aside(info)
        self._wake_up.set()
        return True

    async def run(self, handle_decision: HandleDecision, nursery: trio.Nursery) -> None:
        """Schedule for ever.

        Args:
            handle_decision: acts on a decision.
            nursery: for pods that need tasks of their own.
        """
        while True:
            info = self.scheduler.queue.pop_set_aside()
            if info is None:
                await self._wake_up.wait()
                continue
            info.attempt_began = trio.current_time()
            await self._schedule(info, handle_decision, nursery)
            await trio.lowlevel.checkpoint()

    async def _schedule(self, info: QueuedPodInfo, handle_decision: HandleDecision, nursery: trio.Nursery) -> None:
        async with self.not_in_trial:
            if self._must_skip(info):
                return
            if self.tracer is not None:
                info.trace = self.tracer.begin(info.pod, info.attempts, info.trace)
            found = self.scheduler.find_feasible_nodes(info)
        answer = found if isinstance(found, SchedulingFailure) else await self._ask(info, found)
        async with self.not_in_trial:
            if not self._must_skip(info):
                decision: Decision = (
                    answer if isinstance(answer, SchedulingFailure) else self.scheduler.select_host_among(info, *answer)
                )
                await handle_decision(info, decision, nursery)

    def _must_skip(self, info: QueuedPodInfo) -> bool:
        """Take the newest version of the pod; returns whether it is not to be scheduled any more."""
        known = self.scheduler.cache.unassigned.get(info.key)
        has_profile = info.pod.scheduler_name in self.scheduler.profiles  # a reload can have taken it away
        if known is None or known.uid != info.uid or not has_profile or self.skip_pod_schedule(info):
            self.scheduler.skip(info)
            if info.trace is not None:
                info.trace.given_up()
            return True
        if known is not info.pod:
            info.replace_pod(known)
        return False

    async def _ask(self, info: QueuedPodInfo, feasible: NodesForExtenders) -> ExtendersAnswer:
        """Call the extenders for a pod."""

        async def find_again() -> NodesForExtenders | SchedulingFailure:
            async with self.not_in_trial:
                return self.scheduler.find_feasible_nodes(info, nominated_first=False)

        return await self._call_extenders(info, feasible, find_again)

    async def ask_for_group(self, step: AskExtenders) -> ExtendersAnswer:
        """Call the extenders for a pod of a group that is being scheduled."""

        async def find_again() -> NodesForExtenders | SchedulingFailure:
            return step.find_again()

        return await self._call_extenders(step.info, step.feasible, find_again)

    async def _call_extenders(
        self,
        info: QueuedPodInfo,
        feasible: NodesForExtenders,
        find_again: Callable[[], Awaitable[NodesForExtenders | SchedulingFailure]],
    ) -> ExtendersAnswer:
        """Call the extenders for the feasible nodes: first for the pod's nominated node; if that is left, for no other.

        A failure: there are no feasible nodes, or an extender failed.
        """
        earlier: dict[str, Status] = {}
        if feasible.only_nominated:
            try:
                result = await self.extenders.filter_and_prioritize(info.pod, feasible.nodes)
            except ExtenderError as problem:
                log.error("evaluating the nominated node failed: %s", problem, extra={"pod": info.key})
            else:
                if result.names:
                    return feasible, result
                earlier.update(result.statuses)
            found = await find_again()
            if isinstance(found, SchedulingFailure):
                return found
            feasible = found
        try:
            result = await self.extenders.filter_and_prioritize(info.pod, feasible.nodes)
        except ExtenderError as problem:
            return SchedulingFailure(failure(problem))
        return feasible, evolve(result, statuses={**earlier, **result.statuses})
