"""Evictions where the work is shared: for reserved places only, in a version of the victim.

The owner of the node that a pod has its place on evicts for it, also on nodes of others if the victims are pods of a
group that leave together. For pods of groups the lane does, once all of them have their places.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

import trio
from attrs import define, field

from trio_sched.daemon.plugins.plugin_jobs import PluginJobs
from trio_sched.daemon.pods.pod_status import DISRUPTION_TARGET, condition_patch
from trio_sched.daemon.pods.preemption_executor import (
    CLUSTER,
    PREEMPTION_BY_SCHEDULER,
    Loss,
    PreemptionExecutor,
    Preemptor,
    disruption_message,
)
from trio_sched.daemon.sharding.versioned_writes import NoLongerOwn, PodHasChanged, ends
from trio_sched.engine.group_forest import AnyGroup
from trio_sched.engine.sharding.owned_shards import OwnedShards
from trio_sched.engine.sharding.ownership import LANE
from trio_sched.engine.sharding.pod_scope import is_in_group
from trio_sched.engine.sharding.reserved_places import (
    PREEMPTING,
    PREEMPTING_FOR_GROUP,
    has_note,
    has_room,
    is_reserved,
)
from trio_sched.engine.sharding.sharded_event_handlers import revision_of
from trio_sched.kube_client.errors import NotFound
from trio_sched.kube_client.pods import delete_pod, exchange_pod_status
from trio_sched.objects.pod import Pod, PodCondition
from trio_sched.objects.timestamps import format_time
from trio_sched.plugin_api.status import Status

if TYPE_CHECKING:
    from trio_sched.daemon.sharding.group_places import GroupPlaces
    from trio_sched.daemon.sharding.proposals import Proposals

log = logging.getLogger(__name__)

JOBS: Final = "ShardNodes"
"""What reserves and takes back places in the background is called so."""
OF_GROUPS: Final = "ShardNodes/group preemption"
"""What asks for the places of groups that others are to be evicted for is called so."""
PAUSE_SECONDS: Final = 1.0
"""After a place could not be reserved."""
ASK_AGAIN_SECONDS: Final = 5.0
"""So long the owner of a node who has room for a pod is not asked again whether others may be evicted for it."""


@define(eq=False, kw_only=True)
class ShardedPreemptionExecutor(PreemptionExecutor):
    """Reserves the places first, and evicts in the attempt after that, by what is seen then."""

    reserves_for_groups: ClassVar[bool] = True
    owned: OwnedShards
    jobs: PluginJobs
    proposals: Proposals = field(init=False)
    groups: GroupPlaces = field(init=False)
    elsewhere: dict[str, str] = field(factory=dict, init=False)
    """By UID: pods whose attempt has found victims on the node of another process, and that node."""
    _reserving: set[str] = field(factory=set, init=False)
    """UIDs of pods whose place is being reserved, and of groups."""
    _asked_at: dict[str, float] = field(factory=dict, init=False)
    """By UID: pods that the owner of a node was asked for lately, and when."""
    _held_back: set[str] = field(factory=set, init=False)
    """UIDs of pods that were told to wait."""

    def is_preempting_for(self, uid: str) -> bool:
        """Whether the preemptor has to wait; see `PreemptionExecutor.is_preempting_for`."""
        if not self.is_busy_for(uid):
            return False
        self._held_back.add(uid)
        return True

    def is_busy_for(self, uid: str) -> bool:
        """Whether something is under way for a pod, or a group: places are reserved, or victims deleted."""
        return uid in self._reserving or super().is_preempting_for(uid)

    async def preempt(
        self, pod: Pod, victims: Sequence[Pod], node_name: str, plugin: str, loss: Loss, *, in_background: bool
    ) -> Status | None:
        """Make room for *pod*, or note that the owner of the node is to do it; see `PreemptionExecutor.preempt`."""
        if pod.uid in self._held_for:  # of a group: nothing is done before it is known what becomes of that
            return await super().preempt(pod, victims, node_name, plugin, loss, in_background=in_background)
        if not self.owned.owns_node(node_name):
            if _has_room_on(pod, node_name) and self._would_say_so_again(pod, victims):
                self.try_later([pod])
            else:
                now, self.elsewhere[pod.uid] = trio.current_time(), node_name
                self._asked_at = {uid: at for uid, at in self._asked_at.items() if now < at + ASK_AGAIN_SECONDS}
                self._asked_at[pod.uid] = now
            return None
        if pod.nominated_node_name != node_name or not self._is_reserved(pod):
            self.reserve(pod, node_name)
            return None
        return await super().preempt(pod, victims, node_name, plugin, loss, in_background=in_background)

    def _would_say_so_again(self, pod: Pod, victims: Sequence[Pod]) -> bool:
        """Whether the owner of a node who has room for *pod* need not know yet why there is none by this view.

        Pods count here that were proposed to it, and which it refuses by and by, and places that gangs hold.
        """
        asked_at = self._asked_at.get(pod.uid, -math.inf)
        is_assumed = self.scheduler.cache.is_assumed
        return trio.current_time() < asked_at + ASK_AGAIN_SECONDS or any(is_assumed(one.uid) for one in victims)

    async def preempt_for_group(
        self,
        group: AnyGroup,
        pods: tuple[Pod, ...],
        victims: Sequence[Pod],
        plugin: str,
        loss: Loss,
        *,
        places: Mapping[str, str],
        in_background: bool,
    ) -> Status | None:
        """Make room for the pods that have *places*, or reserve these first; see `PreemptionExecutor`."""
        placed = [(pod, places[pod.uid]) for pod in pods if pod.uid in places]
        reserved = tuple(self.reserved_for_group(placed))
        if len(reserved) < len(placed) or not reserved:
            self.reserve_for_group(group.metadata.uid, placed)
            return None
        return await super().preempt_for_group(
            group, reserved, victims, plugin, loss, places=places, in_background=in_background
        )

    def reserved_for_group(self, places: Iterable[tuple[Pod, str]]) -> list[Pod]:
        """The pods, as they are known, that their places on these nodes are reserved for, so that others may go."""
        known = [(self.scheduler.cache.unassigned.get(pod.key), pod, node_name) for pod, node_name in places]
        return [one for one, pod, node_name in known if one is not None and self._is_kept(pod, node_name)]

    def reserve_for_group(self, uid: str, places: Sequence[tuple[Pod, str]]) -> None:
        """Reserve *places*, all of them or none, for pods of the group *uid*, and try these again then."""
        uids = {uid, *(pod.uid for pod, _node_name in places)}
        if places and not uids & self._reserving:
            self._reserving |= uids
            name = places[0][0].scheduler_name
            self.jobs.submit(OF_GROUPS, name, partial(self._reserve_for_group, uids, places))

    async def _reserve_for_group(self, uids: set[str], places: Sequence[tuple[Pod, str]]) -> None:
        try:
            is_promised = await self.groups.prepare(places)
            if not is_promised or len(self.reserved_for_group(places)) < len(places):  # one is being taken back
                await trio.sleep(PAUSE_SECONDS)
        finally:
            self._reserving -= uids
            self._activate_known([pod for pod, _node_name in places])

    async def _preempt(
        self,
        preemptor: Preemptor,
        victims: Sequence[Pod],
        node_name: str,
        plugin: str,
        loss: Loss,
        *,
        in_background: bool,
    ) -> Status | None:
        in_place = self.groups.handlers().elsewhere
        if any(victim.uid in in_place for victim in victims):
            self.try_later(preemptor.pods)  # such a victim only has a place, and another process gives it that
            return None
        return await super()._preempt(preemptor, victims, node_name, plugin, loss, in_background=in_background)

    def try_later(self, pods: Sequence[Pod]) -> None:
        """Try *pods* again after a pause."""
        uids = {pod.uid for pod in pods}
        if uids and not uids & self._reserving:
            self._reserving |= uids
            self.jobs.submit(OF_GROUPS, pods[0].scheduler_name, partial(self._try_later, uids, pods))

    async def _try_later(self, uids: set[str], pods: Sequence[Pod]) -> None:
        await trio.sleep(PAUSE_SECONDS)
        self._reserving -= uids
        self._activate_known(pods)

    def _activate_known(self, pods: Sequence[Pod]) -> None:
        known = (self.scheduler.cache.unassigned.get(pod.key) for pod in pods)
        self.activate([pod for pod in known if pod is not None])

    def try_again(self) -> None:
        """Try the pods next whose victims have left.

        One that has come back into the queue meanwhile, as its shard changed hands, was rejected by no plugin that
        would wake it.
        """
        ended = {uid for uid in self._held_back if not self.is_preempting_for(uid)}
        if ended:
            self._held_back -= ended
            self.activate([one.pod for one in self.scheduler.queue.gated().values() if one.uid in ended])

    def reserve(self, pod: Pod, node_name: str, note: str = PREEMPTING) -> None:
        """Keep the place on an own node for *pod*, and try it again then; see `Proposals.reserve`."""
        if pod.uid not in self._reserving:
            self._reserving.add(pod.uid)
            self.jobs.submit(JOBS, pod.scheduler_name, partial(self._reserve, pod, node_name, note))

    async def _reserve(self, pod: Pod, node_name: str, note: str) -> None:
        try:
            await self.proposals.reserve(pod, node_name, note)
            if not self._is_noted(pod, node_name, note):
                await trio.sleep(PAUSE_SECONDS)
        finally:
            self._reserving.discard(pod.uid)
            self._activate_known([pod])

    async def _evict(self, preemptor: Preemptor, victim: Pod) -> bool:
        """Have *victim* deleted in the version that is known; again in a newer one if it has changed meanwhile."""
        cached = self.scheduler.cache.get(victim.uid)
        known = victim if cached is None else cached.pod
        first, *_others = preemptor.pods
        of_group = self.owned.has_groups and is_in_group(first)
        shard = LANE if of_group else self.owned.of_node(first.nominated_node_name)
        tokens = self.proposals.elector.tokens({shard})
        if tokens is None or not self._are_kept(preemptor):
            return False
        self.owned.evicting[victim.uid] = shard
        check = partial(self._check, known, preemptor)
        try:
            with ends(partial(self.owned.evicting.pop, victim.uid, None)):
                # Each by itself: a request may be sent again only for the version that former ones were about.
                write = partial(self._write_reason, preemptor, known)
                told = await self.proposals.writes.send(known, tokens, write, _is_terminating, check)
                await self.proposals.writes.send(told, tokens, partial(self._delete, known), _is_terminating, check)
        except (NotFound, NoLongerOwn, PodHasChanged) as problem:
            log.debug("a pod is not evicted: %s", problem, extra={"pod": victim.key, "preemptor": preemptor.key})
            return False
        return True

    async def _write_reason(self, preemptor: Preemptor, victim: Pod, version: str) -> Pod:
        condition = PodCondition(
            type=DISRUPTION_TARGET,
            status="True",
            reason=PREEMPTION_BY_SCHEDULER,
            message=disruption_message(preemptor),
        )
        patch = condition_patch(victim, condition, now=format_time(self.status_writer.wall_clock()))
        return await exchange_pod_status(
            self.client, namespace=victim.namespace, name=victim.name, status=patch, resource_version=version
        )

    async def _delete(self, victim: Pod, version: str) -> None:
        await delete_pod(
            self.client, namespace=victim.namespace, name=victim.name, uid=victim.uid, resource_version=version
        )

    def _check(self, victim: Pod, preemptor: Preemptor, found: Pod) -> None:
        if found.uid != victim.uid:
            raise PodHasChanged("the pod was deleted and created again", found)
        if not self._are_kept(preemptor):
            raise PodHasChanged("what it would make room for has no place reserved there any more", found)

    def _are_kept(self, preemptor: Preemptor) -> bool:
        """Whether the places that the pods had when this was decided are still reserved."""
        return all(self._is_kept(pod, pod.nominated_node_name) for pod in preemptor.pods)

    def _is_kept(self, pod: Pod, node_name: str) -> bool:
        """Whether the place for *pod* on a node is reserved, as far as this process has seen."""
        return self._is_noted(pod, node_name, PREEMPTING) or self._is_noted(pod, node_name, PREEMPTING_FOR_GROUP)

    def _is_noted(self, pod: Pod, node_name: str, note: str) -> bool:
        known = self.scheduler.cache.unassigned.get(pod.key)
        is_there = known is not None and known.uid == pod.uid and known.nominated_node_name == node_name
        return is_there and known is not None and has_note(known, note) and not self._is_taken_back(known)

    def _is_reserved(self, pod: Pod) -> bool:
        """Whether that is so in this version, and this process has not ended it since."""
        return is_reserved(pod) and not self._is_taken_back(pod)

    def _is_taken_back(self, pod: Pod) -> bool:
        return self.owned.is_taken_back(pod.uid, revision_of(pod))

    def _clear_nominations(self, preemptor: Preemptor, node_name: str) -> None:
        for nominated in self.scheduler.nominated_pods(node_name) if node_name != CLUSTER else ():
            if self.owned.is_nominated_for_group(nominated):
                continue  # only the lane takes that back
            if nominated.priority < preemptor.priority and nominated.nominated_node_name == node_name:
                message = f"node {node_name} is wanted for pod {preemptor.key}, which has a higher priority"
                take_back = partial(self.proposals.refuse, nominated, node_name, message)
                self.jobs.submit(JOBS, nominated.scheduler_name, take_back)


def _has_room_on(pod: Pod, node_name: str) -> bool:
    return has_room(pod) and pod.nominated_node_name == node_name


def _is_terminating(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None
