"""Begins to bind the pods of a group that is schedulable."""

from __future__ import annotations

import trio
from attrs import define

from trio_sched.daemon.pods.binding_cycle import BindingCycle
from trio_sched.daemon.pods.failure_handler import FailureHandler
from trio_sched.daemon.pods.gang_binding import GangBinding
from trio_sched.daemon.pods.pod_status import PodStatusWriter
from trio_sched.daemon.pods.waiting_pods import WaitingPods
from trio_sched.engine.cache import CacheError
from trio_sched.engine.evaluation.decision import SchedulingFailure
from trio_sched.engine.pod_groups.binding_units import MayBind
from trio_sched.engine.pod_groups.pod_group_results import PodToBind
from trio_sched.engine.scheduler import Scheduler
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.status import failure


@define(eq=False)
class GroupBinder:
    """Assumes pods for real, and starts their binding cycles; those of a gang are bound together."""

    scheduler: Scheduler
    binding: BindingCycle
    failure_handler: FailureHandler
    waiting: WaitingPods
    status_writer: PodStatusWriter

    def bind(self, to_bind: list[PodToBind], nursery: trio.Nursery, *, may_bind: MayBind | None) -> bool:
        """Begin to bind the pods of a unit.

        Args:
            to_bind: the pods.
            nursery: runs the binding cycles.
            may_bind: see `BindingUnit.may_bind`.

        Returns:
            Whether all have begun; the others are requeued.
        """
        gang, all_begin = None, True
        if may_bind is not None:
            gang = GangBinding(
                may_bind=may_bind,
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
