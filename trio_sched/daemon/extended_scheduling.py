"""Schedules the pods in which extenders are interested: one after the other, and in nobody's way.

An extender is asked about one pod at a time, because it was promised so. While it thinks, all other pods are scheduled,
so its answer is about a cluster that may have changed: what it has left is evaluated again before a pod is assumed.

Pods wait for their turn in the order of the queue, and like in the queue: they are not in flight, so nothing has to be
remembered for them, however slow the extender is.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import trio
from attrs import define, evolve, field

from trio_sched.daemon.cluster_mirror import PendingPods
from trio_sched.daemon.extender import ExtenderError
from trio_sched.daemon.extenders import Extenders
from trio_sched.daemon.wakeup import Bell
from trio_sched.engine.decision import Decision, Unplaced
from trio_sched.engine.pod_heap import PodHeap
from trio_sched.engine.queued_pod import QueuedPodInfo
from trio_sched.engine.scheduler import Scheduler
from trio_sched.engine.shortlist import Opinion, Shortlist
from trio_sched.plugin_api.status import Status, failure

log = logging.getLogger(__name__)

Conclude = Callable[[QueuedPodInfo, Decision, trio.Nursery], Awaitable[None]]
"""Acts on a decision, from its first moment without a pause if a node was found."""
Skips = Callable[[QueuedPodInfo], bool]
"""Tells whether there is no point in scheduling a pod."""


@define(eq=False)
class ExtendedScheduling:
    """Takes pods out of the fast lane and schedules them with the help of extenders."""

    scheduler: Scheduler
    pending: PendingPods
    extenders: Extenders
    _waiting: PodHeap = field(factory=lambda: PodHeap(lambda info: info.sort_key))
    _bell: Bell = field(factory=Bell)

    def takes(self, info: QueuedPodInfo) -> bool:
        """Take over a popped pod if an extender is interested in it; returns whether that is so."""
        if not self.extenders.is_interested(info.pod):
            return False
        self.scheduler.queue.done(info.uid)
        known = self._waiting.get(info.key)
        if known is not None and known.uid == info.uid:  # it has changed while it waits, and keeps its place
            known.replace_pod(info.pod)
        else:
            self._waiting.push(info)
            self._bell.ring()
        return True

    @property
    def waiting(self) -> int:
        """How many pods wait for their turn."""
        return len(self._waiting)

    async def run(self, conclude: Conclude, skips: Skips, nursery: trio.Nursery) -> None:
        """Schedule for ever.

        Args:
            conclude: acts on a decision.
            skips: tells of which pods nothing is to be decided.
            nursery: for pods that need tasks of their own.
        """
        while True:
            info = self._waiting.pop()
            if info is None:
                await self._bell.wait()
                continue
            if self._begins(info) and not self._is_over(info, skips):
                decision = await self._decide(info, skips)
                if decision is not None:
                    await conclude(info, decision, nursery)
            await trio.lowlevel.checkpoint()

    def _begins(self, info: QueuedPodInfo) -> bool:
        """Whether it is still this pod's turn; if so, what happens from now on is noted for it."""
        known = self.pending.get(info.key)
        return known is not None and known.uid == info.uid and self.scheduler.queue.resume(info)

    def _is_over(self, info: QueuedPodInfo, skips: Skips) -> bool:
        """Look at the newest version of the pod; whether nothing is to be decided any more."""
        known = self.pending.get(info.key)
        if known is None or known.uid != info.uid or skips(info):
            self.scheduler.queue.done(info.uid)
            return True
        if known is not info.pod:
            info.replace_pod(known)
        return False

    async def _decide(self, info: QueuedPodInfo, skips: Skips) -> Decision | None:
        """What becomes of the pod; None if it has gone another way meanwhile."""
        listed = self.scheduler.find_feasible(info)
        if isinstance(listed, Unplaced):
            return listed
        try:
            listed, opinion = await self._ask(info, listed)
        except _Ended as ended:
            return None if self._is_over(info, skips) else ended.outcome
        return None if self._is_over(info, skips) else self.scheduler.decide_among(info, listed, opinion)

    async def _ask(self, info: QueuedPodInfo, listed: Shortlist) -> tuple[Shortlist, Opinion]:
        """Ask about the nodes that fit; about the pod's nominated node first, and about no other if it is left.

        Raises:
            _Ended: there is nothing to choose from.
        """
        earlier: dict[str, Status] = {}
        if listed.only_nominated:
            try:
                opinion = await self.extenders.ask(info.pod, listed.nodes)
            except ExtenderError as problem:
                log.error("evaluating the nominated node failed: %s", problem, extra={"pod": info.key})
            else:
                if opinion.names:
                    return listed, opinion
                earlier.update(opinion.statuses)
            found = self.scheduler.find_feasible(info, nominated_first=False)
            if isinstance(found, Unplaced):
                raise _Ended(found)
            listed = found
        try:
            opinion = await self.extenders.ask(info.pod, listed.nodes)
        except ExtenderError as problem:
            raise _Ended(Unplaced(failure(problem))) from problem
        return listed, evolve(opinion, statuses={**earlier, **opinion.statuses})


class _Ended(Exception):
    """It was decided before there was anything to choose from."""

    def __init__(self, outcome: Unplaced) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome
