"""Pod groups where the work is shared: the holder of the lane schedules all of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import trio
from attrs import define, evolve, field

from trio_sched.daemon.hooks.hook_calls import run_steps
from trio_sched.daemon.pod_groups.group_binder import GroupBinder
from trio_sched.daemon.pod_groups.group_preemption import GroupPreemption, nominated_nodes
from trio_sched.daemon.pod_groups.schedule_pod_groups import SchedulePodGroups
from trio_sched.daemon.pods.preemption_executor import HeldPreemption, is_preempted
from trio_sched.daemon.sharding.group_places import GroupPlaces
from trio_sched.daemon.sharding.held_shard import HeldShard
from trio_sched.daemon.sharding.shard_elector import ShardElector
from trio_sched.daemon.sharding.shard_plugin import NAME
from trio_sched.daemon.sharding.sharded_preemption import ShardedPreemptionExecutor
from trio_sched.engine.evaluation.hook_steps import post_filter_steps
from trio_sched.engine.pod_group_state import GroupMembers
from trio_sched.engine.pod_groups.pod_group_cycle import PodGroupCycle
from trio_sched.engine.pod_groups.pod_group_results import GroupResult
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.sharding.owned_shards import OwnedShards
from trio_sched.engine.sharding.ownership import LANE
from trio_sched.engine.sharding.reserved_places import is_preempting_for_group
from trio_sched.engine.sharding.sharded_scheduler import GIVES_DEVICES
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
        assert isinstance(self.preemption_executor, ShardedPreemptionExecutor)
        self.preemption = _ShardedGroupPreemption(
            self.preemption, self.preemption_executor, self.owned, self.preemption.in_background
        )

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
class _ShardedGroupPreemption:
    """Has all places of a group reserved before anybody is evicted for it; see `GroupPreemption`."""

    inner: GroupPreemption
    executor: ShardedPreemptionExecutor
    owned: OwnedShards
    in_background: bool

    async def preempt(self, cycle: PodGroupCycle, result: GroupResult, held: Iterable[HeldPreemption]) -> GroupResult:
        """The attempt has come to *result*."""
        result = await self._preempt(cycle, result, held)
        if not result.waiting_on_preemption and cycle.scheduler.behaviour.groups_preempt_as_one:
            await self._free_claims(cycle, result)
        return result

    async def _free_claims(self, cycle: PodGroupCycle, result: GroupResult) -> None:
        """Have claims taken back that keep pods of the group from other nodes, or that a former lane has left.

        1.37 calls no post_filter for pods of groups, so they would wait where an attempt has got claims in vain.
        """
        hooks = tuple(hook for hook in cycle.profile.post_filter if hook.plugin in (NAME, GIVES_DEVICES))
        for one in result.pods:
            unplaced = one.failed
            if unplaced is not None and unplaced.diagnosis is not None and self.owned.gets_devices(one.info.pod):
                await run_steps(post_filter_steps(hooks, one.info.pod, unplaced, cycle.scheduler.plugin_failures))

    async def _preempt(self, cycle: PodGroupCycle, result: GroupResult, held: Iterable[HeldPreemption]) -> GroupResult:
        if result.status is None or not result.status.is_rejected:
            return result
        if self._is_under_way(cycle):
            return evolve(result, waiting_on_preemption=True, nominations=dict(nominated_nodes(cycle)))
        refusal = self._refusal(cycle)
        if refusal:
            status = evolve(result.status, reasons=(*result.status.reasons, refusal))
            return evolve(result, status=status, waiting_on_preemption=False)
        if result.waiting_on_preemption:  # its pods have found victims, each for itself
            places = [(one.info.pod, one.placed.node_name) for one in result.pods if one.placed is not None]
            if len(self.executor.reserved_for_group(places)) < len(places):
                self.executor.reserve_for_group(cycle.entity_key, places)
                return evolve(result, nominations={pod.uid: node_name for pod, node_name in places})
        return await self.inner.preempt(cycle, result, held)

    def _refusal(self, cycle: PodGroupCycle) -> str:
        """Why nothing is evicted for the group now; empty if that is no reason."""
        if any(group.assumed for group in _groups(cycle)):
            self.executor.try_later(cycle.group.pods)
            return "nothing is evicted while others of its pods are being bound, or fail to be"
        awaited = self.executor.proposals.awaited(trio.current_time())
        shards = ", ".join(map(str, awaited))
        return f"nothing is evicted while nobody answers for these shards: {shards}" if awaited else ""

    def _is_under_way(self, cycle: PodGroupCycle) -> bool:
        """Whether places are being reserved for the group, or its victims have not left yet."""
        cache = cycle.scheduler.cache
        if any(self.executor.is_busy_for(uid) for group in _groups(cycle) for uid in group.pods):
            return True
        known = [cache.unassigned.get(info.key) for info in cycle.infos]
        names = {pod.nominated_node_name for pod in known if pod is not None and is_preempting_for_group(pod)}
        rows = [cache.table.row_of[name] for name in names if name in cache.table.row_of]
        pods = (one.pod for row in rows for one in cache.table.pods[row].values())
        return any(is_preempted(pod) and pod.metadata.deletion_timestamp is not None for pod in pods)


def _groups(cycle: PodGroupCycle) -> list[GroupMembers]:
    return [one for one in map(cycle.scheduler.cache.groups.get, cycle.keys) if one is not None]
