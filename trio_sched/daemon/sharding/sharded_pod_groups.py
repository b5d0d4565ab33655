"""Pod groups where the work is shared: the holder of the lane schedules all of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import trio
from attrs import define, field

from trio_sched.daemon.pod_groups.group_binder import GroupBinder
from trio_sched.daemon.pod_groups.schedule_pod_groups import SchedulePodGroups
from trio_sched.daemon.pods.preemption_executor import HeldPreemption
from trio_sched.daemon.sharding.group_places import GroupPlaces
from trio_sched.daemon.sharding.held_shard import HeldShard
from trio_sched.daemon.sharding.shard_elector import ShardElector
from trio_sched.engine.pod_groups.pod_group_cycle import PodGroupCycle
from trio_sched.engine.pod_groups.pod_group_results import GroupResult
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.sharding.owned_shards import OwnedShards
from trio_sched.engine.sharding.ownership import LANE
from trio_sched.objects.pod import Pod

_LOOK_SECONDS: Final = 5.0
"""After so long it is looked again whether this process holds the lane."""


@define(eq=False, kw_only=True)
class ShardedPodGroups(SchedulePodGroups):
    """Schedules groups while this process holds the lane; others see some of their pods only."""

    owned: OwnedShards
    elector: ShardElector
    groups: GroupPlaces
    _lane: HeldShard | None = field(default=None, init=False)
    """Where it was last seen to be held."""

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self.binder = _ShardedGroupBinder(
            self.scheduler, self.binding, self.failure_handler, self.waiting, self.status_writer, self.groups
        )
        self.preemption = _EvictsNobody()

    def next_pod(self, now: float) -> QueuedPodInfo | None:
        """The pod to schedule next; see `SchedulePodGroups.next_pod`."""
        return super().next_pod(now) if self._is_lane() else self.scheduler.queue.pop()

    def give_up(self, now: float) -> None:
        """Give up what has waited for long enough; see `SchedulePodGroups.give_up`."""
        if self._is_lane():
            super().give_up(now)

    def next_check(self, now: float) -> float:
        """When there may be something to do; see `SchedulePodGroups.next_check`."""
        return super().next_check(now) if self._is_lane() else now + _LOOK_SECONDS

    def _is_lane(self) -> bool:
        lane = self.elector.held.get(LANE)
        if lane is not self._lane:
            self._lane = lane
            self.recovery.start_over()
        return LANE in self.owned.ready


@define(eq=False)
class _ShardedGroupBinder(GroupBinder):
    groups: GroupPlaces

    async def _nominate(self, pod: Pod, node_name: str) -> None:
        await self.groups.keep_own(pod, node_name)


@define(eq=False)
class _EvictsNobody:
    """Leaves groups that do not fit as they are; see `GroupPreemption`."""

    in_background: bool = False

    async def preempt(self, cycle: PodGroupCycle, result: GroupResult, held: Iterable[HeldPreemption]) -> GroupResult:
        """The attempt has come to *result*."""
        await trio.lowlevel.checkpoint()
        return result
