"""The shards that this process decides for: which nodes and pods are its own, and what it has under way for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from attrs import define, field

from trio_sched.engine.object_cache import ObjectCache
from trio_sched.engine.sharding.labelled_nodes import LabelledNodes
from trio_sched.engine.sharding.ownership import LANE, shard_of
from trio_sched.engine.sharding.pod_scope import Scope, is_in_group, owner_of, pinned_node, requests_device, scope_of
from trio_sched.engine.sharding.repelling_terms import RepellingTerms
from trio_sched.engine.sharding.reserved_places import (
    is_asked_for_group,
    is_kept_for_group,
    is_preempting_for_group,
    is_reserved,
    may_preempt_for_group,
)
from trio_sched.engine.sharding.seen_claims import first_unseen
from trio_sched.objects.pod import Pod


@define(eq=False)
class UnderWay:
    """A pod that was decided on, and whose attempt has no end yet."""

    shards: frozenset[int]
    """Those of this process for which it was decided: of the decision, and of the node."""
    seen: int
    """The revision of the pods that had been seen then."""
    node: str
    """The node that it was decided for; empty: it is about no node."""
    tokens: Any = None
    """What the daemon knows these shards by, so that it notices if they were lost since."""


def _no_device(_name: str) -> bool:
    return False


def _by_plugins_alone(_pod: Pod) -> bool:
    return False


def _nothing_under_way() -> bool:
    return False


@define(eq=False, kw_only=True)
class OwnedShards:
    """What this process may decide; the daemon says which shards it has."""

    shards: int
    ready: frozenset[int] = frozenset()
    """Those that it decides for now: held, seen in full, and not about to be given back."""
    labelled: LabelledNodes | None = None
    """The shards of nodes by a label; None: they are those of their names."""
    seen: int = 0
    """The revision up to which the changes of pods were seen."""
    terms: RepellingTerms = field(factory=RepellingTerms)
    under_way: dict[str, UnderWay] = field(factory=dict)
    """By UID."""
    evicting: dict[str, int] = field(factory=dict)
    """Pods that are being evicted, by UID → the shard of their node."""
    is_device: Callable[[str], bool] = _no_device
    """Whether an extended resource is devices that claims are made for."""
    has_groups: bool = True
    """Gate GenericWorkload; without it pods of groups are like any others."""
    is_extended: Callable[[Pod], bool] = _by_plugins_alone
    """Whether extenders take part in the decision on a pod."""
    is_giving_back: Callable[[], bool] = _nothing_under_way
    """Whether claims are being written in the background, for pods whose attempts have ended."""
    is_fencing: Callable[[], bool] = _nothing_under_way
    """Whether a write about a claim of a pod that was given up can still arrive; no device is given away until then."""
    confined_profiles: frozenset[str] = frozenset()
    """Profiles with plugins that may judge a node by others, or give away what others could, too."""
    lane_profiles: frozenset[str] = frozenset()
    """Profiles that spread all pods over domains."""
    devices_take_of_nodes: bool = False
    """Gate DRANodeAllocatableResources: how much of a node a pod takes depends on the devices that it gets."""
    _taking_back: Counter[str] = field(factory=Counter, init=False)
    """Pods by UID → how many writes that may take back their nominations have no end yet."""
    _taken_back: dict[str, int] = field(factory=dict, init=False)
    """Pods by UID → the revision at which that was done last, if it has not been seen."""

    # --- nodes ------------------------------------------------------------------------------------------------------

    def of_node(self, name: str) -> int:
        """The shard of a node."""
        return shard_of(name, self.shards) if self.labelled is None else self.labelled.of(name)

    def owns_node(self, name: str) -> bool:
        """Whether pods are bound to this node by this process."""
        if not self.ready or self.of_node(name) not in self.ready:
            return False
        return self.labelled is None or self.labelled.is_settled(name)

    # --- pods -------------------------------------------------------------------------------------------------------

    def scope(self, pod: Pod) -> Scope:
        """Who decides on *pod*, and where it may go."""
        name = pod.spec.scheduler_name
        if name in self.confined_profiles:
            return Scope.CONFINED
        found = scope_of(pod, self.terms, self.is_device, has_groups=self.has_groups)
        if found is Scope.LOCAL and (name in self.lane_profiles or self.is_extended(pod)):
            return Scope.LANE
        if found is Scope.GROUP and self.devices_take_of_nodes and self.gets_devices(pod):
            return Scope.CONFINED  # the owner of a node keeps a place before there are devices
        return found

    def gets_devices(self, pod: Pod) -> bool:
        """Whether *pod* has resource claims, or gets devices for an extended resource."""
        return bool(pod.spec.resource_claims) or self.gets_extended_devices(pod)

    def gets_extended_devices(self, pod: Pod) -> bool:
        """Whether *pod* gets devices for an extended resource."""
        return requests_device(pod, self.is_device)

    def is_bound_by_lane(self, pod: Pod) -> bool:
        """Whether the holder of the lane binds *pod* itself, on nodes of others to places that these keep."""
        return self.scope(pod) in (Scope.GROUP, Scope.DEVICES)

    def awaits_lane(self, pod: Pod, objects: ObjectCache) -> bool:
        """Whether the lane has to give *pod* something, or ask an extender, before it is bound to a node with room.

        Of devices that are seen nothing follows: an allocation can be taken back.
        """
        return bool(pod.spec.resource_claims) or first_unseen(pod, objects) is not None or self.is_extended(pod)

    def decider(self, pod: Pod) -> int:
        """The shard whose holder decides on *pod*."""
        return self._local_decider(pod) if self.scope(pod) is Scope.LOCAL else LANE

    def _local_decider(self, pod: Pod) -> int:
        wanted = None if self.labelled is None else self.labelled.wanted_by(pod)
        if wanted is not None:
            return wanted
        pinned = pinned_node(pod)
        return self.of_node(pinned) if pinned else shard_of(owner_of(pod), self.shards)

    def decides_on(self, pod: Pod) -> bool:
        """Whether this process decides on *pod*."""
        ready = self.ready
        # Nearly all pods are others', and what their rules are does not matter then.
        if LANE not in ready and self._local_decider(pod) not in ready:
            return False
        return self.decider(pod) in ready

    def is_proposed(self, pod: Pod) -> bool:
        """Whether another process has nominated *pod* to a node of this one."""
        node = pod.status.nominated_node_name
        return bool(node) and self.owns_node(node) and not self.decides_on(pod)

    def takes_back(self, uid: str) -> None:
        """The nomination of a pod is being taken back, or may be."""
        self._taking_back[uid] += 1

    def has_taken_back(self, uid: str, revision: int) -> None:
        """That has an end: it was done at a *revision*; 0: not at all."""
        self._taking_back[uid] -= 1
        if not self._taking_back[uid]:
            del self._taking_back[uid]
        if revision > max(self.seen, self._taken_back.get(uid, 0)):
            self._taken_back[uid] = revision

    def forget_seen(self) -> None:
        """Forget what was taken back and is seen; for now and then, as a takeover takes back many at a time."""
        self._taken_back = {uid: shown for uid, shown in self._taken_back.items() if shown > self.seen}

    def is_taken_back(self, uid: str, revision: int) -> bool:
        """Whether the nomination that a pod has at a *revision* was taken back by this process, or is about to be."""
        return uid in self._taking_back or revision < self._taken_back.get(uid, 0)

    def has_place_elsewhere(self, pod: Pod) -> bool:
        """Whether the owner of another node keeps a place for *pod*, which this process decides on."""
        node = pod.status.nominated_node_name
        return bool(node) and is_reserved(pod) and not self.owns_node(node) and self.decides_on(pod)

    def wants(self, pod: Pod) -> bool:
        """Whether this process is to know *pod*, which has no node: it decides on it, or answers who does."""
        if self.decides_on(pod):
            # Of a pod that has a place already the last lane knew that all have seen what it repels.
            return self.terms.are_agreed(pod) or self.has_place_elsewhere(pod) or is_kept_for_group(pod)
        if not (pod.status.nominated_node_name and self.owns_node(pod.status.nominated_node_name)):
            return False
        return is_kept_for_group(pod) if self.has_groups and is_in_group(pod) else not is_asked_for_group(pod)

    # --- places that the lane binds pods to -------------------------------------------------------------------------

    def is_asked_for_group(self, pod: Pod) -> bool:
        """Whether another process asks to keep a place for *pod* on a node of this one until it binds the pod there."""
        return self._may_be_kept(pod) and is_asked_for_group(pod)

    def is_asked_to_preempt_for_group(self, pod: Pod) -> bool:
        """Whether another process asks for a place on a node of this one that is there once others are evicted."""
        return self._may_be_kept(pod) and may_preempt_for_group(pod)

    def is_nominated_for_group(self, pod: Pod) -> bool:
        """Whether another process wants a place for *pod* on a node of this one, where it is not kept yet."""
        if not pod.status.nominated_node_name:
            return False
        is_wanted = is_asked_for_group(pod) or may_preempt_for_group(pod) or is_preempting_for_group(pod)
        return is_wanted and self._may_be_kept(pod)

    def keeps_for_group(self, pod: Pod) -> bool:
        """Whether this process keeps a place for *pod*, which another one decides on, and binds there."""
        return self._may_be_kept(pod) and is_kept_for_group(pod)

    def _may_be_kept(self, pod: Pod) -> bool:
        if not pod.status.nominated_node_name or (is_in_group(pod) and not self.has_groups):
            return False
        return self.is_proposed(pod)

    # --- what is under way ------------------------------------------------------------------------------------------

    def began(self, pod: Pod, node_name: str) -> UnderWay:
        """*pod* was decided to run on a node."""
        decider = self.decider(pod)
        node = pod.status.nominated_node_name
        is_proposed = node and decider not in self.ready and self.owns_node(node)
        shards = set() if is_proposed else {decider}
        if self.owns_node(node_name):
            shards.add(self.of_node(node_name))
        under_way = self.under_way[pod.uid] = UnderWay(frozenset(shards), self.seen, node_name)
        return under_way

    def ended(self, uid: str) -> None:
        """The attempt of the pod has an end."""
        self.under_way.pop(uid, None)

    def is_in_use(self, node_name: str) -> bool:
        """Whether something was decided for a node that has no end yet."""
        return any(one.node == node_name for one in self.under_way.values())

    def is_drained(self, shard: int) -> bool:
        """Whether everything that was decided for *shard* has an end."""
        if shard in self.evicting.values() or (shard == LANE and self.is_giving_back()):
            return False
        return not any(shard in one.shards for one in self.under_way.values())

    @property
    def acknowledged(self) -> int:
        """The revision that every decision from now on, and every one without an end, has seen."""
        return min((one.seen for one in self.under_way.values()), default=self.seen)

    def newest_term(self) -> int:
        """The revision at which the last of the repelling terms came."""
        return max(self.terms.since.values(), default=0)


def all_have_seen(revision: int, acknowledged: Iterable[int | None]) -> bool:
    """Whether whoever holds each shard has acknowledged *revision*; None: nobody holds it, or has said anything."""
    return all(one is not None and one >= revision for one in acknowledged)
