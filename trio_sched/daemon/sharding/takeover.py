"""Before anything is decided for a shard: see all that was bound, and fence what its last holder may have sent."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from random import Random
from typing import Final

import trio
from attrs import define, field

from trio_sched.daemon.pods.pod_status import merge_condition
from trio_sched.daemon.pods.preemption_executor import is_preempted
from trio_sched.daemon.sharding.claim_fences import ClaimFences
from trio_sched.daemon.sharding.held_shard import HeldShard, Taken
from trio_sched.daemon.sharding.nominations import both, nomination
from trio_sched.daemon.sharding.shard_elector import ShardElector
from trio_sched.daemon.watching.object_waits import ObjectWaits
from trio_sched.engine.sharding.owned_shards import OwnedShards
from trio_sched.engine.sharding.ownership import LANE
from trio_sched.engine.sharding.pod_scope import Scope
from trio_sched.engine.sharding.reserved_places import (
    has_room,
    is_kept_for_group,
    is_preempting_for_group,
    is_reserved,
)
from trio_sched.engine.sharding.sharded_event_handlers import revision_of
from trio_sched.kube_client import verbs
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.decoding.decoding import Page
from trio_sched.kube_client.errors import Conflict, KubeClientError, NotFound
from trio_sched.kube_client.kinds import NODE_KIND, POD_KIND
from trio_sched.kube_client.pods import exchange_pod_status
from trio_sched.kube_client.retry import BackoffManager
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod, PodCondition
from trio_sched.objects.pod_groups.workload_groups import join_group, stay_in_group
from trio_sched.objects.timestamps import format_micro_time, format_time

log = logging.getLogger(__name__)

FENCED: Final = "trio-sched.dev/Fenced"
"""The condition of a pod that was given another version, so that no earlier decision about it can take effect."""
MAX_PARALLEL_FENCES: Final = 16
MAX_PAUSE_SECONDS: Final = 2.0
_LOOK_SECONDS: Final = 0.5
_SHOWN_NODES: Final = 5


@define(eq=False, kw_only=True)
class Takeover:
    """Gets shards ready for this process."""

    client: KubeClient
    elector: ShardElector
    owned: OwnedShards
    shown: Callable[[], Mapping[tuple[str, str], Pod]]
    """The pods as the watch has shown them last, by namespace and name."""
    object_waits: ObjectWaits
    wall_clock: Callable[[], datetime]
    random: Random
    has_profile: Callable[[Pod], bool]
    claims: ClaimFences
    fenced: int = field(default=0, init=False)
    """How many pods were given another version."""
    _fences: int = field(default=0, init=False)

    async def make_ready(self, taken: Taken) -> None:
        """See all that was bound, and make sure that nothing more of the last holders can be."""
        is_fenced = False
        while held := tuple(one for one in taken.held if self.elector.are_held((one,))):
            is_fenced = is_fenced or await self._fence(taken)
            is_seen = is_fenced and await self.see_everything(held) and await self._see_nodes(held)
            # When a shard was not released, binds of other pods in these places are fenced.
            is_seen = is_seen and (taken.needs_fence or await self._take_back_places(self._why(taken), held))
            if is_seen and await self._take_over_claims(taken, held):
                return
            await trio.sleep(MAX_PAUSE_SECONDS * self.random.random())

    async def take_over_nodes(self, names: Collection[str], held: tuple[HeldShard, ...]) -> bool:
        """See all that was bound to nodes, as they are released by their last owner; False if *held* was lost."""
        some = ", ".join(sorted(names)[:_SHOWN_NODES]) + (", ..." if len(names) > _SHOWN_NODES else "")
        why = f"{self.elector.group.replica} took over nodes: {some}"
        return await self.see_everything(held) and await self._take_back_places(why, held, names)

    async def see_everything(self, held: Iterable[HeldShard]) -> bool:
        """See all pods as they are now; False if one of *held* was lost before, or that is not possible."""
        try:
            pods = await self._list()
        except KubeClientError as problem:
            log.warning("cannot list the pods: %s", problem)
            return False
        held = tuple(held)
        while not all(map(self._is_seen, pods)):
            if not self.elector.are_held(held):
                return False
            await self.object_waits.wait("Pod", "", "", _LOOK_SECONDS)
        return self.elector.are_held(held)

    async def _see_nodes(self, held: tuple[HeldShard, ...]) -> bool:
        """See which shard each node belongs to now, if its label says it: the last holder may have acknowledged that.

        False if one of *held* was lost before, or that is not possible.
        """
        labelled = self.owned.labelled
        if labelled is None:
            return True
        newest = 0

        def take(page: Page[Node]) -> None:
            nonlocal newest
            newest = max(newest, *map(revision_of, page.objects), 0)

        try:
            await verbs.list_pages(self.client, NODE_KIND, take)
        except KubeClientError as problem:
            log.warning("cannot list the nodes: %s", problem)
            return False
        while labelled.seen < newest:
            if not self.elector.are_held(held):
                return False
            await self.object_waits.wait("Node", "", "", _LOOK_SECONDS)
        return self.elector.are_held(held)

    def _is_seen(self, pod: Pod) -> bool:
        """Whether the watch has shown *pod* in this version, or a newer one."""
        version = revision_of(pod)
        if self.owned.seen >= version:
            return True
        shown = self.shown().get((pod.namespace, pod.name))
        return shown is not None and shown.uid == pod.uid and revision_of(shown) >= version

    async def _list(self) -> list[Pod]:
        pods: list[Pod] = []

        def take(page: Page[Pod]) -> None:
            if page.starts_over:
                pods.clear()
            pods.extend(page.objects)

        await verbs.list_pages(self.client, POD_KIND, take)
        for pod in pods if self.owned.has_groups else ():
            known = self.shown().get((pod.namespace, pod.name))
            join_group(pod)
            if known is not None:
                stay_in_group(pod, known)
        return pods

    # --- fencing ----------------------------------------------------------------------------------------------------

    async def _fence(self, taken: Taken) -> bool:
        """Fence the pods that the last holders may have decided on; False if that is not possible now.

        These are all pending pods: whoever held several shards has bound pods of one of them to nodes of another. And
        those that may have been about to be evicted, for pods with a reserved place on the nodes of these shards, or
        with one promised to the lane.
        """
        has_lane = any(one.shard == LANE for one in taken.held)
        if not (taken.needs_fence or has_lane):
            return True
        try:
            pods = await self._list()
        except KubeClientError as problem:
            log.warning("cannot list the pods: %s", problem)
            return False
        shards = {one.shard for one in taken.held}
        pending = [pod for pod in pods if not pod.node_name and self.has_profile(pod)]

        begun = {pod.group_key for pod in pods if pod.node_name and pod.group_key and not _is_terminating(pod)}

        def takes_back(pod: Pod) -> bool:
            # The lane begins without nominations; others are those of replicas that are alive.
            nominated = pod.nominated_node_name
            if not nominated or is_reserved(pod) or has_room(pod):
                return False
            if is_kept_for_group(pod):  # only the lane takes that back, and it completes what is bound in part
                return has_lane and pod.group_key not in begun
            if is_preempting_for_group(pod):  # the same, but there is no room yet
                return has_lane
            return has_lane or self.owned.of_node(nominated) in shards

        fenced = {pod.uid: pod for pod in pending if taken.needs_fence or takes_back(pod)}
        if taken.needs_fence:

            def is_evicted_for(pod: Pod) -> bool:
                if is_preempting_for_group(pod):
                    return has_lane
                if not is_reserved(pod):
                    return False
                # A node may have left them since.
                return self.owned.labelled is not None or self.owned.of_node(pod.nominated_node_name) in shards

            victims = _evictable(pods, list(filter(is_evicted_for, pending)))
            fenced |= {pod.uid: pod for pod in victims}
        if fenced:
            log.info("Fenced pods that the last holders of shards may have decided on", extra={"pods": len(fenced)})
        return await self._fence_all(fenced.values(), self._why(taken), taken.held, takes_back)

    async def _take_back_places(
        self, why: str, held: tuple[HeldShard, ...], names: Collection[str] | None = None
    ) -> bool:
        """Take back the places of the lane's pods on nodes of released shards; False if these were lost before.

        Where the last holder had the lane, too, it may be binding other pods, elsewhere, as if they had none.

        Args:
            why: told in the condition of the pods.
            held: the shards.
            names: the nodes; None: all of these shards.
        """
        shards = {one.shard for one in held}

        def takes_back(pod: Pod) -> bool:
            nominated = pod.nominated_node_name
            if not nominated or not is_reserved(pod):
                return False
            is_own = self.owned.of_node(nominated) in shards if names is None else nominated in names
            return is_own and self.owned.scope(pod) is not Scope.LOCAL

        pods = [pod for pod in self.shown().values() if not pod.node_name and self.has_profile(pod)]
        return await self._fence_all([pod for pod in pods if takes_back(pod)], why, held, takes_back)

    async def _take_over_claims(self, taken: Taken, held: tuple[HeldShard, ...]) -> bool:
        """See what is allocated to device claims, and fence those that the last lane may still write about."""
        lane = tuple(one for one in held if one.shard == LANE)
        if not lane:
            return True
        users = {pod.uid for pod in self.shown().values() if pod.node_name}
        return await self.claims.take_over(
            self._why(taken) if taken.needs_fence else "", users, lambda: self.elector.are_held(lane)
        )

    def _why(self, taken: Taken) -> str:
        names = ", ".join(self.elector.lease_name(one.shard) for one in taken.held)
        return f"{self.elector.group.replica} took over {names}"

    async def _fence_all(
        self, pods: Iterable[Pod], why: str, tokens: tuple[HeldShard, ...], takes_back: Callable[[Pod], bool]
    ) -> bool:
        limiter, is_done = trio.CapacityLimiter(MAX_PARALLEL_FENCES), True

        async def fence(pod: Pod) -> None:
            nonlocal is_done
            async with limiter:
                stored = await self.fence(pod, why, tokens, any_of_them=True, takes_back=takes_back)
                is_done &= stored is not None

        async with trio.open_nursery() as nursery:
            for pod in pods:
                nursery.start_soon(fence, pod)
        return is_done

    async def fence(
        self,
        pod: Pod,
        why: str,
        tokens: tuple[HeldShard, ...],
        *,
        any_of_them: bool = False,
        takes_back: Callable[[Pod], bool] = lambda _pod: False,
    ) -> Pod | None:
        """Give *pod* another version: nothing that was sent about it before can take effect after that.

        Args:
            pod: the pod.
            why: told in its condition.
            tokens: the shards for which that is done.
            any_of_them: whether it is enough to hold one of them.
            takes_back: whether its nomination in a version of it is to be taken back, too.

        Returns:
            The pod as it is then; as it was if it is gone. None if the shards of *tokens* were lost before.
        """
        self.owned.takes_back(pod.uid)
        revision = 0
        try:
            stored = await self._fenced(pod, why, tokens, takes_back, any_of_them=any_of_them)
            revision = 0 if stored is None else revision_of(stored)
            return stored
        finally:
            self.owned.has_taken_back(pod.uid, revision)

    async def _fenced(
        self,
        pod: Pod,
        why: str,
        tokens: tuple[HeldShard, ...],
        takes_back: Callable[[Pod], bool],
        *,
        any_of_them: bool,
    ) -> Pod | None:
        backoff = BackoffManager(self.random, cap_seconds=MAX_PAUSE_SECONDS)
        found = pod
        while True:
            held = [self.elector.are_held((one,)) for one in tokens]
            if not (any(held) if any_of_them else all(held)):
                return None
            self._fences += 1
            try:
                stored = await self._exchange(found, why, takes_back(found))
            except NotFound:
                return found
            except Conflict:
                found = await self._look_up(found)
                if found.uid != pod.uid or found.node_name != pod.node_name:
                    return found
            except KubeClientError as problem:
                log.warning("cannot fence a pod, retrying: %s", problem, extra={"pod": pod.key})
                await trio.sleep(backoff.pause_seconds(trio.current_time()))
            else:
                self.fenced += 1
                return stored

    async def _exchange(self, pod: Pod, why: str, takes_back: bool) -> Pod:
        """Write into the condition of *pod* why it gets another version; if that takes something back, as it is now."""
        now = self.wall_clock()
        message = f"{why} ({self._fences} at {format_micro_time(now)})"
        condition = PodCondition(type=FENCED, status="True", reason="DecisionsAreVoid", message=message)
        patch = merge_condition(pod.status.conditions or (), condition, now=format_time(now))
        version = ""
        if takes_back:
            patch, version = both(patch, nomination(pod, "", now=now)), pod.metadata.resource_version
        return await exchange_pod_status(
            self.client, namespace=pod.namespace, name=pod.name, status=patch, resource_version=version
        )

    async def _look_up(self, pod: Pod) -> Pod:
        """*pod* as it is stored now; as it was known if that is not to be had now."""
        try:
            return await verbs.get(self.client, POD_KIND, pod.name, namespace=pod.namespace)
        except NotFound:
            return pod
        except KubeClientError as problem:
            log.warning("cannot look up a pod, retrying: %s", problem, extra={"pod": pod.key})
            await trio.sleep(MAX_PAUSE_SECONDS * self.random.random())
            return pod


def _is_terminating(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None


def _evictable(pods: list[Pod], preemptors: list[Pod]) -> Iterator[Pod]:
    """Those of *pods* that may be about to be evicted for *preemptors*, which have reserved places, or for others.

    These are less important ones on the same nodes, and all that were told so: it is told before a pod is deleted.
    """
    highest: dict[str, int] = {}
    for pod in preemptors:
        name = pod.nominated_node_name
        highest[name] = max(highest.get(name, pod.priority), pod.priority)
    for pod in pods:
        is_evictable = pod.priority < highest.get(pod.node_name, pod.priority) or is_preempted(pod)
        if pod.node_name and is_evictable and not _is_terminating(pod):
            yield pod
