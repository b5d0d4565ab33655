"""The plugin that filters and scores nodes by shard: pods stay on own nodes, or are proposed to owners of others."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from typing import Any, ClassVar, Final

import numpy as np

from trio_sched.daemon.sharding.group_places import GroupPlaces
from trio_sched.daemon.sharding.needed_pods import NeededPods
from trio_sched.daemon.sharding.proposals import Proposals
from trio_sched.daemon.sharding.shard_elector import ShardElector
from trio_sched.engine.object_cache import ObjectCache
from trio_sched.engine.sharding.owned_shards import OwnedShards
from trio_sched.engine.sharding.ownership import LANE
from trio_sched.engine.sharding.pod_scope import Scope
from trio_sched.engine.sharding.reserved_places import has_room, may_preempt
from trio_sched.engine.sharding.seen_claims import first_unseen
from trio_sched.plugin_api import (
    MAX_SCORE,
    SKIP,
    Action,
    BoolArray,
    Code,
    CycleState,
    Diagnosis,
    EventRegistration,
    Handle,
    Input,
    Int64Array,
    NodeColumns,
    NodeView,
    Pod,
    PostFilterResult,
    Resource,
    Status,
    Verdicts,
    hookimpl,
    on,
    unresolvable,
)

NAME: Final = "ShardNodes"
WEIGHT: Final = 1 << 20
"""An own node that fits is better than any other, whatever other plugins say of them."""
POINTS: Final = ("filter", "score", "reserve", "pre_bind", "post_filter")
_OTHERS: Final = (
    "node(s) belonged to shards of other replicas, where pods with such plugins or requests are not placed",
    "node(s) were not the one that another replica has nominated the pod to",
    "node(s) belonged to a shard whose holder did not answer or had refused the pod",
    "node(s) have to wait until it is seen that volumes or devices were given to the pod",
    "node(s) have to wait until devices of a pod that was evicted are free for certain",
    "node(s) have come into a shard of this replica, which not all replicas have seen yet",
)
_CONFINED, _PROPOSED, _AVOIDED, _UNSEEN, _IN_DOUBT, _UNSETTLED = 1, 2, 3, 4, 5, 6
_WRITES_NO_CLAIMS: Final = (Scope.LOCAL, Scope.LANE)
"""For pods of these no claims are written."""
_NOT_LIKE_OTHERS: Final = (Scope.CONFINED, Scope.GROUP)
"""Nodes are judged in another way for pods of these."""
_RETRY_SECONDS: Final = 2.0
HAS_ROOM: Final = Status(Code.PENDING, ("the node has room for the pod; the holder of shard 0 decides on it again",))
"""An own node has room for a pod of another process that it would have evicted others for."""


class ShardNodes:
    """One instance per profile; what they share is the daemon's."""

    name: ClassVar[str] = NAME
    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.NODE})

    def __init__(
        self,
        owned: OwnedShards,
        elector: ShardElector,
        proposals: Proposals,
        groups: GroupPlaces,
        needed: NeededPods,
        objects: ObjectCache,
        handle: Handle,
    ) -> None:
        self.owned = owned
        self.handle = handle
        self.objects = objects
        self.elector = elector
        self.proposals = proposals
        self.groups = groups
        self.needed = needed

    @hookimpl
    def events_to_register(self) -> list[EventRegistration]:
        """A new node can be an own one; when shards move, all pods are tried again."""
        return [on(Resource.NODE, Action.ADD)]

    @hookimpl
    def sign(self, pod: Pod) -> Hashable | None:
        """Nearly all pods may go anywhere; those that may not are looked at one by one."""
        if self.owned.is_proposed(pod) or self.proposals.avoided(pod.uid) or self._is_in_doubt(pod):
            return None
        scope = self.owned.scope(pod)
        return scope.value if scope in _NOT_LIKE_OTHERS else ""

    @hookimpl
    def filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Verdicts:
        """Pass the nodes that the pod may be bound or proposed to."""
        if self.owned.is_proposed(pod):
            if self._has_to_wait(pod):
                codes = np.full(len(nodes), _UNSEEN)
            else:
                codes = np.where(_are_among(nodes, {pod.nominated_node_name}), 0, _PROPOSED)
        elif self._is_in_doubt(pod):
            self.handle.retry_after(pod, _RETRY_SECONDS)
            codes = np.full(len(nodes), _IN_DOUBT)
        elif self.owned.scope(pod) is Scope.CONFINED:
            codes = np.where(self._are_own(nodes), 0, _CONFINED)
        else:
            codes = np.zeros(len(nodes), dtype=np.int8)
            avoided, slow = self.proposals.avoided(pod.uid), self.proposals.slow
            if avoided or slow:
                avoids = self._are_in((*slow, *self._unsettled(slow)), nodes) | _are_among(nodes, avoided)
                codes = np.where(avoids & ~self._are_own(nodes), _AVOIDED, 0)
            if self.owned.labelled is not None:
                codes = np.where(self._are_in(self._unsettled(self.owned.ready), nodes), _UNSETTLED, codes)
        return Verdicts(codes.astype(np.int8), lambda code: unresolvable(_OTHERS[code - 1]))

    def _has_to_wait(self, pod: Pod) -> bool:
        """Whether *pod*, of another process, is to be bound to its node and has to get something before that."""
        if may_preempt(pod) or self.owned.is_nominated_for_group(pod):
            return False
        return has_room(pod) or first_unseen(pod, self.objects) is not None

    @hookimpl
    def post_filter(self, pod: Pod, diagnosis: Diagnosis, state: CycleState) -> PostFilterResult | None:
        """Nothing is evicted for pods of others who do not ask for it, nor for own ones while others may answer."""
        if self.owned.is_proposed(pod):
            if may_preempt(pod):
                return None
            return PostFilterResult(unresolvable("nothing is evicted for a pod that another replica has nominated"))
        if self._is_in_doubt(pod):
            return PostFilterResult(unresolvable("nothing is evicted while devices are in doubt"))
        if self.owned.scope(pod) not in _WRITES_NO_CLAIMS:
            tokens = self.elector.tokens({LANE})
            if tokens is None or not self.elector.may_write(tokens):
                self.handle.retry_after(pod, _RETRY_SECONDS)
                return PostFilterResult(unresolvable("claims are not taken back while the lease is not renewed"))
        if self._has_claim_left(pod):
            self.handle.retry_after(pod, _RETRY_SECONDS)  # DynamicResources deletes it, of which nothing tells the pod
        awaited = self.proposals.awaited(self.handle.now())
        if awaited and self.owned.scope(pod) is not Scope.CONFINED:
            shards = ", ".join(map(str, awaited))
            return PostFilterResult(unresolvable(f"nothing is evicted while nobody answers for these shards: {shards}"))
        return None

    @hookimpl
    def score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Int64Array:
        """Prefer own nodes; a group may fit only where the best nodes of all are chosen for the first of its pods."""
        if self.owned.scope(pod) is Scope.GROUP:
            return np.zeros(len(nodes), dtype=np.int64)
        return np.where(self._are_own(nodes), MAX_SCORE, 0)

    def _is_left_to_lane(self, pod: Pod) -> bool:
        """Whether *pod*, which another process has nominated, must not be bound by this one."""
        if self.owned.scope(pod) is Scope.DEVICES:
            return True
        return may_preempt(pod) and self.owned.awaits_lane(pod, self.objects)

    def _has_claim_left(self, pod: Pod) -> bool:
        """Whether an earlier attempt, of whoever had the lane, has left a claim for extended resources of *pod*."""
        known = self.handle.nodes.devices.claims
        return self.owned.gets_extended_devices(pod) and known.extended_of(pod.uid, pod.name) is not None

    def _is_in_doubt(self, pod: Pod) -> bool:
        return self.owned.is_fencing() and self.owned.gets_devices(pod)

    def _are_own(self, nodes: NodeColumns) -> BoolArray:
        return self._are_in(self.owned.ready, nodes)

    def _unsettled(self, shards: Iterable[int]) -> list[int]:
        """The numbers of nodes of *shards* for which their holders may not decide yet; see `LabelledNodes.code`."""
        return [shard + self.owned.shards for shard in shards]

    def _are_in(self, shards: Iterable[int], nodes: NodeColumns) -> BoolArray:
        """Shape (nodes,): whether each belongs to one of *shards*."""
        wanted = np.zeros(2 * self.owned.shards, dtype=np.bool_)
        wanted[list(shards)] = True
        labelled = self.owned.labelled
        return wanted[nodes.per_node(self._shard_of if labelled is None else labelled.column)]

    def _shard_of(self, node: NodeView) -> int:
        return self.owned.of_node(node.name)

    @hookimpl
    def reserve(self, pod: Pod, node_name: str, state: CycleState) -> Status | None:
        """Note that the pod was decided on; one that there is room for now waits for what it claims."""
        if self.owned.is_proposed(pod) and self._is_left_to_lane(pod):
            return HAS_ROOM
        under_way = self.owned.began(pod, node_name)
        under_way.tokens = self.elector.tokens(under_way.shards)
        if not state.is_trial and self.owned.decides_on(pod):
            self.needed.note(pod)
        return None

    @hookimpl
    def unreserve(self, pod: Pod, node_name: str, state: CycleState) -> None:
        """It has an end; another one is that it is bound, see `ShardedBindingCycle`."""
        self.owned.ended(pod.uid)
        self.needed.forget(pod.uid)
        self.proposals.bound.discard(pod.uid)
        self.proposals.announced.pop(pod.uid, None)

    @hookimpl
    def pre_bind_pre_flight(self, pod: Pod, node_name: str, state: CycleState) -> Status | None:
        """Own nodes need nothing."""
        return SKIP if self.owned.owns_node(node_name) and not self.needed.has_some(pod.uid) else None

    @hookimpl
    async def pre_bind(self, pod: Pod, node_name: str, state: CycleState) -> Status | None:
        """Propose the pod to the owner of the node, which binds it, unless it keeps the place for this process."""
        problem = await self.needed.wait(pod.uid)
        if problem is not None or self.owned.owns_node(node_name):
            return problem
        if self.groups.kept(pod, node_name) is not None or self.owned.is_bound_by_lane(pod):
            return None  # see `ShardedBindingCycle`: the place is kept before the pod gets anything
        return await self.proposals.propose(pod, node_name)


def _are_among(nodes: NodeColumns, names: Collection[str]) -> BoolArray:
    """Shape (nodes,): whether each is called by one of *names*."""
    if not names:
        return np.zeros(len(nodes), dtype=np.bool_)
    return np.array([name in names for name in nodes.names], dtype=np.bool_)


def plugin_class(
    owned: OwnedShards,
    elector: ShardElector,
    proposals: Proposals,
    groups: GroupPlaces,
    needed: NeededPods,
    objects: ObjectCache,
) -> type[Any]:
    """The class that profiles make their instance of."""

    class OfThisProcess(ShardNodes):
        def __init__(self, args: None, handle: Handle) -> None:
            super().__init__(owned, elector, proposals, groups, needed, objects, handle)

    return OfThisProcess
