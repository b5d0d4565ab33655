"""What becomes of pods of others: they are bound to own nodes or refused, and whoever decides on them tells of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Final

import trio
from attrs import define, evolve, field

from trio_sched.daemon.plugins.plugin_jobs import PluginJobs
from trio_sched.daemon.pods.binding_cycle import BindingCycle
from trio_sched.daemon.pods.failure_handler import FailureHandler
from trio_sched.daemon.pods.pod_status import PodStatusWriter
from trio_sched.daemon.sharding.group_places import GroupPlaces
from trio_sched.daemon.sharding.proposals import ANSWER_SECONDS, ROOM_IS_MADE, Proposals
from trio_sched.daemon.sharding.shard_plugin import NAME
from trio_sched.daemon.sharding.sharded_preemption import ShardedPreemptionExecutor
from trio_sched.daemon.sharding.versioned_writes import ends
from trio_sched.engine.evaluation.decision import ScheduleResult, SchedulingFailure
from trio_sched.engine.evaluation.hook_steps import PreBindPlan
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.sharding.owned_shards import OwnedShards
from trio_sched.engine.sharding.pod_scope import is_in_group
from trio_sched.engine.sharding.reserved_places import ROOM_MADE, has_room, is_reserved, may_preempt
from trio_sched.engine.sharding.seen_claims import DEVICES, Place, first_unseen
from trio_sched.engine.sharding.sharded_event_handlers import ShardedEventHandlers
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.status import Status

if TYPE_CHECKING:
    from trio_sched.daemon.pods.gang_binding import GangBinding  # only where pod groups are scheduled

PROPOSALS: Final = f"{NAME}/proposals"
"""Questions to others that wait for an answer are called so among the jobs, so that they hold up no answers."""
CLAIMS: Final = f"{NAME}/claims"
"""Jobs about pods of others whose claims are not seen yet are called so."""


@define(eq=False, kw_only=True)
class ShardedStatusWriter(PodStatusWriter):
    """Writes no nominations: what is written in the background names no version, and could arrive when it is wrong."""

    def write(self, pod: Pod, *, reason: str, message: str, nominated_node_name: str | None) -> None:
        """Write why *pod* was not scheduled; see `PodStatusWriter.write`."""
        super().write(pod, reason=reason, message=message, nominated_node_name=None)

    def write_nomination(self, pod: Pod, node_name: str) -> None:
        """Write nothing; see `PodStatusWriter.write_nomination`."""


@define(eq=False, kw_only=True)
class ShardedFailureHandler(FailureHandler):
    """Deals with own pods like any other scheduler, and answers whoever has proposed one of his."""

    owned: OwnedShards
    proposals: Proposals
    jobs: PluginJobs
    preemption: ShardedPreemptionExecutor
    groups: GroupPlaces
    places: Callable[[], ShardedEventHandlers]
    _unseen_of: set[str] = field(factory=set, init=False)
    """UIDs of pods of others whose claims are not seen yet."""

    def handle(self, info: QueuedPodInfo, outcome: SchedulingFailure, *, assumed_pod: Pod | None = None) -> None:
        """Requeue an own pod, or ask the owner of a node to make room for it; answer about one of another process."""
        info.signature = None  # it depends on which nodes have refused the pod
        elsewhere = self.preemption.elsewhere.pop(info.uid, None)
        known = self.scheduler.cache.unassigned.get(info.key)
        if known is not None and known.uid != info.uid:
            known = None
        if info.uid in self.places().elsewhere:
            self._drop(info, outcome, assumed_pod)
        elif self.owned.decides_on(info.pod):
            is_on_node = self.scheduler.cache.get(info.uid) is not None
            if known is not None and not is_on_node and elsewhere and elsewhere == outcome.nominated_node_name:
                self._propose(info, known, elsewhere)
                return
            super().handle(info, outcome, assumed_pod=assumed_pod)
            if known is not None and known.nominated_node_name:
                self._end_nomination(info, known, outcome.nominated_node_name)
        elif known is not None and self.owned.is_proposed(known) and _has_room(outcome):
            waits = evolve(outcome, nominated_node_name=None)
            self.scheduler.requeue(info, waits, known, now=trio.current_time(), assumed_pod=assumed_pod)
            self.preemption.reserve(known, known.nominated_node_name, ROOM_MADE)
        elif known is not None and self._is_kept(known, outcome):
            super().handle(info, outcome, assumed_pod=assumed_pod)
        elif known is not None and self.owned.is_proposed(known) and self._has_to_wait(known):
            waits = evolve(outcome, nominated_node_name=None)  # it goes on to count on its node
            self.scheduler.requeue(info, waits, known, now=trio.current_time(), assumed_pod=assumed_pod)
            if info.uid not in self._unseen_of and not has_room(known):
                self._unseen_of.add(info.uid)
                self.jobs.submit(CLAIMS, info.pod.scheduler_name, partial(self._try_once_seen, known))
        else:
            self._drop(info, outcome, assumed_pod)
            # From now on, and not only when that is written: others that want the place would be refused because of it.
            self.scheduler.queue.nominator.delete(info.uid)
            if known is not None and known.nominated_node_name:
                self._submit(info, partial(self.proposals.refuse, known, known.nominated_node_name, outcome.message))

    def _end_nomination(self, info: QueuedPodInfo, pod: Pod, nominated: str | None) -> None:
        """An attempt of *pod*, which is nominated, has failed; the outcome says what it is to be *nominated* to."""
        if self.owned.has_groups and is_in_group(pod):
            if not nominated:
                self.groups.take_back(pod, pod.nominated_node_name)
        elif nominated == "":
            self._submit(info, partial(self.proposals.end_nomination, pod))

    def _submit(self, info: QueuedPodInfo, job: Callable[[], Awaitable[None]]) -> None:
        self.jobs.submit(NAME, info.pod.scheduler_name, job)

    def _drop(self, info: QueuedPodInfo, outcome: SchedulingFailure, assumed_pod: Pod | None) -> None:
        self.scheduler.requeue(info, outcome, None, now=trio.current_time(), assumed_pod=assumed_pod)

    def _is_kept(self, pod: Pod, outcome: SchedulingFailure) -> bool:
        """Whether *pod*, which others decide on, waits on an own node for others to leave."""
        if not may_preempt(pod) or not outcome.status.is_rejected or outcome.nominated_node_name == "":
            return False
        if not is_reserved(pod):
            self.preemption.reserve(pod, pod.nominated_node_name)
        return True

    def _has_to_wait(self, pod: Pod) -> bool:
        """Whether *pod*, which others decide on, has not got yet what it claims."""
        return has_room(pod) or (not may_preempt(pod) and self._unseen(pod) is not None)

    def _unseen(self, pod: Pod) -> Place | None:
        return first_unseen(pod, self.scheduler.object_cache)

    async def _try_once_seen(self, pod: Pod) -> None:
        """Try a pod of others again once its claims are seen as they were when it was nominated."""
        try:
            while (known := self._still_proposed(pod)) is not None and (unseen := self._unseen(known)) is not None:
                kind, namespace, name = unseen
                await self.proposals.object_waits.wait(kind, name, namespace, ANSWER_SECONDS)
        finally:
            self._unseen_of.discard(pod.uid)
        if known is not None:
            self.preemption.activate([known])

    def _still_proposed(self, pod: Pod) -> Pod | None:
        known = self.scheduler.cache.unassigned.get(pod.key)
        return known if known is not None and known.uid == pod.uid and self.owned.is_proposed(known) else None

    # --- asking others to make room ---------------------------------------------------------------------------------

    def _propose(self, info: QueuedPodInfo, pod: Pod, node_name: str) -> None:
        """Have *pod* count on the node of another process, and ask that one to evict others there."""
        scheduler = self.scheduler
        scheduler.queue.nominator.delete(info.uid)
        scheduler.cache.assume(pod, node_name)
        under_way = self.owned.began(pod, node_name)
        under_way.tokens = self.proposals.elector.tokens(under_way.shards)
        scheduler.binding_starts(info)
        self.jobs.submit(PROPOSALS, pod.scheduler_name, partial(self._wait_for_answer, info, pod, node_name))

    async def _wait_for_answer(self, info: QueuedPodInfo, pod: Pod, node_name: str) -> None:
        with ends(partial(self.owned.ended, info.uid)):
            problem = await self.proposals.propose_to_preempt(pod, node_name)
        self.proposals.bound.discard(info.uid)
        if problem is not None:
            self._not_bound(info, problem)

    def _not_bound(self, info: QueuedPodInfo, problem: Status) -> None:
        cached = self.scheduler.cache.get(info.uid)
        if cached is not None and not cached.assumed:
            return  # it is on a node after all
        if self.places().keep_place(info.uid, info.key):
            return
        self.scheduler.cache.forget(info.uid)
        assumed = None if cached is None else cached.pod_on_node
        if problem is ROOM_IS_MADE:
            known, stays = self.scheduler.cache.unassigned.get(info.key), SchedulingFailure(problem, None, None)
            self.scheduler.requeue(info, stays, known, now=trio.current_time(), assumed_pod=assumed)
            self.preemption.activate([] if known is None else [known])
            return
        super().handle(info, SchedulingFailure(problem), assumed_pod=assumed)


def _has_room(outcome: SchedulingFailure) -> bool:
    """Whether an own node has room for a pod that waits for what it claims."""
    return outcome.diagnosis is not None and NAME in outcome.diagnosis.pending_plugins


@define(eq=False, kw_only=True)
class ShardedBindingCycle(BindingCycle):
    """Tells of the pods that this process has bound itself."""

    owned: OwnedShards
    proposals: Proposals
    groups: GroupPlaces

    async def _pre_bind(
        self, info: QueuedPodInfo, placed: ScheduleResult, plan: PreBindPlan, gang: GangBinding | None
    ) -> Status | None:
        with self._permitting(info):  # volumes and devices are given away by the lane, as long as it is held
            problem = await self._keep_room(info.pod, placed.node_name, gang)
            return problem or await super()._pre_bind(info, placed, plan, gang)

    async def _keep_room(self, pod: Pod, node_name: str, gang: GangBinding | None) -> Status | None:
        """Have the owner of a node keep room while *pod* gets something; None if it does, or need not."""
        is_elsewhere = not self.owned.owns_node(node_name)
        if gang is not None or (is_elsewhere and self.owned.is_bound_by_lane(pod)):
            return await self._unless_preempted(pod.uid, partial(self._get_place, pod, node_name, gang))
        is_there = has_room(pod) and pod.nominated_node_name == node_name
        if is_elsewhere and self._awaits_volumes(pod) and not is_there:
            return await self.proposals.announce(pod, node_name)
        return None

    async def _get_place(self, pod: Pod, node_name: str, gang: GangBinding | None) -> Status | None:
        """Have the owners of nodes keep places for *pod* and all of its gang: nothing is given to them before."""
        problem = None if self.owned.owns_node(node_name) else await self.groups.ask(pod, node_name)
        return problem if problem is not None or gang is None else await gang.placed(pod.uid)

    def _awaits_volumes(self, pod: Pod) -> bool:
        """Whether volumes have to be bound for *pod*, which can take minutes."""
        unseen = first_unseen(pod, self.scheduler.object_cache)
        return unseen is not None and unseen[0] != DEVICES

    def _fail(self, info: QueuedPodInfo, placed: ScheduleResult, outcome: SchedulingFailure) -> None:
        self.groups.give_back(info.pod, placed.node_name)
        with self._permitting(info):
            super()._fail(info, placed, outcome)

    def _permitting(self, info: QueuedPodInfo) -> AbstractContextManager[None]:
        under_way = self.owned.under_way.get(info.uid)
        tokens = None if under_way is None else under_way.tokens
        return nullcontext() if tokens is None else self.proposals.elector.permitting(tokens)

    def _record_bound(self, info: QueuedPodInfo, placed: ScheduleResult) -> None:
        self.owned.ended(info.uid)
        self.groups.bound(info.uid)
        self.proposals.announced.pop(info.uid, None)
        if info.uid in self.proposals.bound:
            self.proposals.bound.discard(info.uid)  # the owner of the node has told
        else:
            super()._record_bound(info, placed)
