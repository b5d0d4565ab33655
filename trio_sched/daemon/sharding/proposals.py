"""Pods that are nominated to nodes of other processes: proposed by whoever decides on them, answered by the owner."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final

import trio
from attrs import define, field

from trio_sched.daemon.pods.pod_status import POD_SCHEDULED, PodStatusWriter, status_patch
from trio_sched.daemon.sharding.held_shard import HeldShard
from trio_sched.daemon.sharding.nominations import both, nomination
from trio_sched.daemon.sharding.shard_elector import ShardElector
from trio_sched.daemon.sharding.takeover import Takeover
from trio_sched.daemon.sharding.versioned_writes import (
    NoLongerOwn,
    PodHasChanged,
    VersionedWrites,
    ends,
    nominated_as_before,
    place_as_before,
)
from trio_sched.daemon.watching.object_waits import ObjectWaits
from trio_sched.engine.evaluation.decision import UNSCHEDULABLE
from trio_sched.engine.sharding.owned_shards import OwnedShards, UnderWay
from trio_sched.engine.sharding.reserved_places import (
    ASKED_FOR_GROUP,
    KEPT_FOR_GROUP,
    MAY_PREEMPT,
    MAY_PREEMPT_FOR_GROUP,
    PREEMPTING,
    PREEMPTING_FOR_GROUP,
    ROOM_MADE,
    has_note,
    has_room,
    place_note,
)
from trio_sched.engine.sharding.sharded_event_handlers import revision_of
from trio_sched.kube_client.errors import KubeClientError
from trio_sched.kube_client.pods import exchange_pod_status
from trio_sched.objects.pod import Pod
from trio_sched.objects.timestamps import format_time
from trio_sched.plugin_api.status import Status, failure, unschedulable

log = logging.getLogger(__name__)

ANSWER_SECONDS: Final = 5.0
"""How long the owner of a node may take; after that nothing is proposed to it for as long again."""
AVOID_SECONDS: Final = 15.0
"""How long a node is avoided for a pod that its owner has refused."""
SILENT_SECONDS: Final = 30.0
"""So long others may be silent before pods are evicted although there may be room on their nodes; shards of dead ones
are taken within this time."""
PLACE_IS_KEPT: Final = unschedulable("the owner of the node keeps the place for the pod")
"""The answer of the owner of a node who evicts others for a pod, or waits until its group can be bound."""
_ANSWERS: Final = {
    MAY_PREEMPT: PREEMPTING,
    ASKED_FOR_GROUP: KEPT_FOR_GROUP,
    MAY_PREEMPT_FOR_GROUP: PREEMPTING_FOR_GROUP,
}
"""What is noted about a place that is asked for → what the owner notes if it keeps that."""

ROOM_IS_MADE: Final = unschedulable("the node has room for the pod")
"""The answer of the owner of a node who would have evicted others for a pod that claims something."""


@define(eq=False, kw_only=True)
class Proposals:
    """What this process proposes to others, and answers them."""

    elector: ShardElector
    owned: OwnedShards
    writes: VersionedWrites
    takeover: Takeover
    status_writer: PodStatusWriter
    object_waits: ObjectWaits
    shown: Callable[[], Mapping[tuple[str, str], Pod]]
    """The pods as the watch has shown them last, by namespace and name."""
    wall_clock: Callable[[], datetime]
    changed: Callable[[], None]
    """Called when other nodes are worth a try."""
    try_again: Callable[[Iterable[str]], None]
    """Called with the pods, by namespace and name, that another node is worth a try for."""
    bound: set[str] = field(factory=set, init=False)
    """UIDs of pods that owners have bound, as long as their attempts last here."""
    announced: dict[str, Pod] = field(factory=dict, init=False)
    """By UID: pods whose volumes are being bound and for whom the owner of a node keeps the room meanwhile."""
    results: Counter[str] = field(factory=Counter, init=False)
    """How proposals of this process ended."""
    answers: Counter[str] = field(factory=Counter, init=False)
    """How this process answered those of others, where it refused."""
    slow: dict[int, float] = field(factory=dict, init=False)
    """Shards that did not answer → until when nothing is proposed to them."""
    _silent_since: dict[int, float] = field(factory=dict, init=False)
    """Shards that have not answered since → when that began."""
    _avoided: dict[str, tuple[str, dict[str, float]]] = field(factory=dict, init=False)
    """Pods by UID → namespace and name, and the nodes that have refused them → until when."""

    def awaited(self, now: float) -> list[int]:
        """The shards that do not answer now, and may soon."""
        return sorted(shard for shard in self.slow if now < self._silent_since.get(shard, 0.0) + SILENT_SECONDS)

    def avoided(self, uid: str) -> frozenset[str]:
        """The nodes that are not to be tried for a pod."""
        found = self._avoided.get(uid)
        return frozenset() if found is None else frozenset(found[1])

    def look(self, now: float) -> None:
        """Some time has passed."""
        over = [shard for shard, until in self.slow.items() if until <= now]
        for shard in over:
            del self.slow[shard]
        if over:
            self.changed()
        self._forget_avoided(now)
        self.owned.forget_seen()

    def _forget_avoided(self, now: float) -> None:
        """Try the pods again that may be proposed to some nodes once more."""
        again: list[str] = []
        for uid, (key, nodes) in list(self._avoided.items()):
            kept = {node: until for node, until in nodes.items() if until > now}
            if len(kept) < len(nodes):
                again.append(key)
                self._avoided[uid] = key, kept
            if not kept:
                del self._avoided[uid]
        if again:
            self.try_again(again)

    # --- proposing --------------------------------------------------------------------------------------------------

    async def propose(self, pod: Pod, node_name: str) -> Status | None:
        """Nominate *pod* to a node of another process and wait for its answer; see `_propose`."""
        return await self._propose(pod, node_name, "")

    async def propose_to_preempt(self, pod: Pod, node_name: str) -> Status | None:
        """The same; the owner may evict others for it: `PLACE_IS_KEPT` until these are gone, or `ROOM_IS_MADE`."""
        return await self._propose(pod, node_name, MAY_PREEMPT)

    async def propose_for_group(self, pod: Pod, node_name: str) -> Status | None:
        """The same; `PLACE_IS_KEPT` if the owner keeps the place until the group of *pod* is bound."""
        return await self._propose(pod, node_name, ASKED_FOR_GROUP)

    async def ask_to_preempt_for_group(self, pod: Pod, node_name: str, tokens: tuple[HeldShard, ...]) -> Status | None:
        """The same if there will be a place once others are evicted, as was decided for the shards of *tokens*."""
        return await self._ask(pod, node_name, MAY_PREEMPT_FOR_GROUP, tokens)

    async def announce(self, pod: Pod, node_name: str) -> Status | None:
        """Nominate *pod* to a node of another process, which keeps the room for it until its volumes are bound."""
        under_way = self.owned.under_way.get(pod.uid)
        tokens = None if under_way is None else under_way.tokens
        if tokens is None:
            return failure(NoLongerOwn())
        try:
            await self.status_writer.withdraw(pod.uid)
            self.announced[pod.uid] = await self._nominate(pod, node_name, ROOM_MADE, tokens)
        except (KubeClientError, NoLongerOwn, PodHasChanged) as problem:
            return failure(problem)
        return None

    async def _propose(self, pod: Pod, node_name: str, note: str) -> Status | None:
        """None if the pod was bound there; otherwise why not."""
        under_way = self.owned.under_way.get(pod.uid)
        tokens = None if under_way is None else under_way.tokens
        return failure(NoLongerOwn()) if tokens is None else await self._ask(pod, node_name, note, tokens)

    async def _ask(self, pod: Pod, node_name: str, note: str, tokens: tuple[HeldShard, ...]) -> Status | None:
        try:
            await self.status_writer.withdraw(pod.uid)
            nominated = await self._nominate(self.announced.get(pod.uid, pod), node_name, note, tokens)
            problem = await self._wait_for_answer(nominated, node_name, note, tokens)
        except (KubeClientError, NoLongerOwn, PodHasChanged) as error:
            found = error.found if isinstance(error, PodHasChanged) else None
            problem = failure(error)
            if found is not None and found.uid == pod.uid and found.node_name == node_name:
                problem = None
        if problem is None:
            self.results["bound"] += 1
            self.bound.add(pod.uid)
        return problem

    async def _nominate(self, pod: Pod, node_name: str, note: str, tokens: tuple[HeldShard, ...]) -> Pod:
        write = partial(self.write_status, pod, nomination(pod, node_name, note, now=self.wall_clock()))

        def is_done(found: Pod) -> bool:
            is_noted = has_note(found, note) or _is_kept(found, note) if note else place_note(found) is None
            return found.uid == pod.uid and found.nominated_node_name == node_name and is_noted

        return await self.writes.send(pod, tokens, write, is_done)

    async def write_status(self, pod: Pod, status: dict[str, object], version: str) -> Pod:
        """Patch the status of *pod* if it has this *version*."""
        return await exchange_pod_status(
            self.writes.client, namespace=pod.namespace, name=pod.name, status=status, resource_version=version
        )

    async def _wait_for_answer(
        self, pod: Pod, node_name: str, note: str, tokens: tuple[HeldShard, ...]
    ) -> Status | None:
        deadline = trio.current_time() + ANSWER_SECONDS
        while True:
            shown = self.shown().get((pod.namespace, pod.name))
            if shown is not None and revision_of(shown) >= revision_of(pod):
                if shown.uid != pod.uid:
                    raise PodHasChanged("the pod was deleted and created again")
                is_there = shown.nominated_node_name == node_name
                is_kept = is_there and _is_kept(shown, note)
                if shown.node_name or is_kept or not is_there or has_room(shown):
                    self._silent_since.pop(self.owned.of_node(node_name), None)
                if shown.node_name:
                    return self._is_bound(shown, node_name)
                if not is_there:
                    return self._refused(shown, node_name)
                if is_kept:
                    self.results["reserved"] += 1
                    return PLACE_IS_KEPT
                if has_room(shown):
                    return ROOM_IS_MADE
            elif shown is None and self.owned.seen >= revision_of(pod):
                raise PodHasChanged("the pod is gone")
            remaining = deadline - trio.current_time()
            if remaining <= 0:
                return await self._take_back(pod, node_name, note, tokens)
            await self.object_waits.wait("Pod", pod.name, pod.namespace, remaining)

    def _is_bound(self, found: Pod, node_name: str) -> Status | None:
        if found.node_name == node_name:
            return None
        return failure(PodHasChanged(f"the pod is on node {found.node_name}"))

    def _refused(self, found: Pod, node_name: str) -> Status:
        self.results["refused"] += 1
        self._avoid(found, node_name)
        why = next((one.message for one in found.status.conditions or () if one.type == POD_SCHEDULED), "")
        shard = self.owned.of_node(node_name)
        return unschedulable(f"node {node_name} belongs to shard {shard}, whose holder did not bind the pod: {why}")

    async def _take_back(self, pod: Pod, node_name: str, note: str, tokens: tuple[HeldShard, ...]) -> Status | None:
        shard = self.owned.of_node(node_name)
        why = f"shard {shard}, which node {node_name} belongs to, has not answered within {ANSWER_SECONDS:g} s"
        stored = await self.takeover.fence(pod, why, tokens, takes_back=lambda found: not _is_answered(found, note))
        if stored is None:
            raise NoLongerOwn
        if stored.node_name:
            return self._is_bound(stored, node_name)
        if stored.nominated_node_name == node_name and _is_answered(stored, note):  # it was a moment faster
            return await self._wait_for_answer(stored, node_name, note, tokens)
        self.results["timeout"] += 1
        now = trio.current_time()
        self.slow[shard] = now + ANSWER_SECONDS
        self._silent_since.setdefault(shard, now)
        self.changed()
        return unschedulable(why)

    def lost_place(self, pod: Pod, node_name: str) -> None:
        """The owner of a node has kept a place for *pod* until now, and does not any more."""
        self.results["refused"] += 1
        self._avoid(pod, node_name)

    def _avoid(self, pod: Pod, node_name: str) -> None:
        _key, nodes = self._avoided.setdefault(pod.uid, (pod.key, {}))
        nodes[node_name] = trio.current_time() + AVOID_SECONDS

    # --- answering --------------------------------------------------------------------------------------------------

    async def refuse(self, pod: Pod, node_name: str, message: str) -> None:
        """Take back the nomination of *pod* to a node of this process, and say why."""
        patch = status_patch(
            pod, reason=UNSCHEDULABLE, message=message, nominated_node_name=None, now=format_time(self.wall_clock())
        )
        if await self._end_nomination(pod, {self.owned.of_node(node_name)}, patch, nominated_as_before):
            self.answers["refused"] += 1

    async def end_nomination(self, pod: Pod) -> None:
        """*pod*, which this process decides on, is to have no place on the node that it is nominated to any more."""
        await self._end_nomination(pod, {self.owned.decider(pod)}, {}, place_as_before)

    async def _end_nomination(
        self, pod: Pod, shards: set[int], patch: dict[str, Any], check: Callable[[Pod, Pod], None]
    ) -> bool:
        tokens = self.elector.tokens(shards)
        if tokens is None:
            return False
        write = partial(self.write_status, pod, both(patch, nomination(pod, "", now=self.wall_clock())))
        self.owned.takes_back(pod.uid)
        revision = 0
        try:
            stored = await self.writes.send(
                pod, tokens, write, lambda found: not found.nominated_node_name, partial(check, pod)
            )
            revision = revision_of(stored)
        except (NoLongerOwn, PodHasChanged):
            return False
        except KubeClientError as problem:  # whoever proposed it takes it back
            log.warning(
                "cannot take back a nomination: %s", problem, extra={"pod": pod.key, "node": pod.nominated_node_name}
            )
            return False
        finally:
            self.owned.has_taken_back(pod.uid, revision)
        return True

    async def reserve(self, pod: Pod, node_name: str, note: str = PREEMPTING) -> None:
        """Keep the place on a node of this process for *pod*; returns once that is seen, or did not come about.

        Args:
            pod: as it was decided on.
            node_name: the node.
            note: `PREEMPTING`, or `ROOM_MADE` if nobody has to go any more.
        """
        shards = {self.owned.of_node(node_name)}
        if self.owned.decides_on(pod):
            shards.add(self.owned.decider(pod))
        tokens = self.elector.tokens(shards)
        if tokens is None:
            return
        write = partial(self.write_status, pod, nomination(pod, node_name, note, now=self.wall_clock()))
        key = f"{pod.uid}/place"
        self.owned.under_way[key] = UnderWay(frozenset(shards), self.owned.seen, node_name)
        try:
            with ends(partial(self.owned.ended, key)):
                await self.status_writer.withdraw(pod.uid)
                stored = await self.writes.send(
                    pod,
                    tokens,
                    write,
                    lambda found: found.nominated_node_name == node_name and has_note(found, note),
                    partial(place_as_before, pod),
                )
                await self.wait_until_seen(stored)
        except (NoLongerOwn, PodHasChanged):
            return
        except KubeClientError as problem:
            log.warning("cannot reserve a place: %s", problem, extra={"pod": pod.key, "node": node_name})

    async def wait_until_seen(self, pod: Pod) -> None:
        """Wait until this version of *pod* was seen, or a newer one."""
        while self.owned.seen < revision_of(pod):
            shown = self.shown().get((pod.namespace, pod.name))
            if shown is None or shown.uid != pod.uid or revision_of(shown) >= revision_of(pod):
                return
            await self.object_waits.wait("Pod", pod.name, pod.namespace, ANSWER_SECONDS)


def _is_kept(pod: Pod, note: str) -> bool:
    """Whether the owner of the node keeps the place of *pod*, as it was asked to by *note*."""
    return has_note(pod, _ANSWERS.get(note, PREEMPTING))


def _is_answered(pod: Pod, note: str) -> bool:
    return _is_kept(pod, note) or has_room(pod)
