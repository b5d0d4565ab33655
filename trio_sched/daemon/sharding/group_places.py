"""Places that the lane binds pods to, on nodes of other processes: of groups, and with devices for extended resources.

The lane binds a pod to a place that is kept, or takes the place back. Nobody else does so once it is kept. Where others
have to be evicted first, it asks for all places before that, and once more for each when they are gone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import trio
from attrs import define, field, frozen

from trio_sched.daemon.plugins.plugin_jobs import PluginJobs
from trio_sched.daemon.sharding.held_shard import HeldShard
from trio_sched.daemon.sharding.nominations import nomination
from trio_sched.daemon.sharding.proposals import PLACE_IS_KEPT, Proposals
from trio_sched.daemon.sharding.versioned_writes import (
    NoLongerOwn,
    PodHasChanged,
    ends,
    pending_as_before,
    place_as_before,
)
from trio_sched.engine.cache import CacheError
from trio_sched.engine.evaluation.decision import SchedulingFailure
from trio_sched.engine.sharding.owned_shards import OwnedShards, UnderWay
from trio_sched.engine.sharding.ownership import LANE
from trio_sched.engine.sharding.reserved_places import (
    KEPT_FOR_GROUP,
    PREEMPTING_FOR_GROUP,
    has_note,
    is_kept_for_group,
    is_preempting_for_group,
    is_reserved,
)
from trio_sched.engine.sharding.sharded_event_handlers import ShardedEventHandlers, revision_of
from trio_sched.engine.sharding.sharded_scheduler import ShardedScheduler
from trio_sched.kube_client.errors import KubeClientError, WriteNotPermitted
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.status import Status, failure

log = logging.getLogger(__name__)

JOBS: Final = "ShardNodes/groups"
"""What keeps places, and takes them back, is called so among the jobs."""


@frozen(eq=False)
class _Asked:
    """A place that this process has asked for."""

    node_name: str
    pod: Pod
    """As it was decided on; once the place is kept, as it is since."""
    is_kept: bool = False


@define(eq=False, kw_only=True)
class GroupPlaces:
    """What this process asks others for, and keeps for them."""

    owned: OwnedShards
    proposals: Proposals
    scheduler: ShardedScheduler
    jobs: PluginJobs
    handlers: Callable[[], ShardedEventHandlers]
    wake: Callable[[], None]
    """Called when the active queue may have got pods."""
    _asked: dict[str, _Asked] = field(factory=dict, init=False)
    """By UID: pods of groups that this process decides on, whose attempt has no end yet."""
    _taken_back: dict[str, trio.Event] = field(factory=dict, init=False)
    """By UID: pods whose places are being taken back → set once they are."""
    _answering: set[str] = field(factory=set, init=False)
    """UIDs of pods of others."""
    _preparing: int = field(default=0, init=False)
    """How many groups places are asked for, before others are evicted."""

    @property
    def unfinished(self) -> int:
        """How many pods there is something under way for."""
        return len(self._asked) + len(self._taken_back) + len(self._answering) + self._preparing

    # --- asking -----------------------------------------------------------------------------------------------------

    async def ask(self, pod: Pod, node_name: str) -> Status | None:
        """Have the owner of a node keep a place there for *pod*; None if it does, else why not."""
        while (taken_back := self._taken_back.get(pod.uid)) is not None:
            await taken_back.wait()
        self._asked[pod.uid] = _Asked(node_name, pod)
        problem = await self.proposals.propose_for_group(pod, node_name)
        if problem is not PLACE_IS_KEPT:
            del self._asked[pod.uid]
            return problem
        known = self._known(pod)
        if known is None or known.nominated_node_name != node_name or not is_kept_for_group(known):
            return failure(PodHasChanged("the place is not kept any more"))
        self._asked[pod.uid] = _Asked(node_name, known, is_kept=True)
        return None

    async def keep_own(self, pod: Pod, node_name: str) -> None:
        """Note on *pod*, whose gang has all its places, that its own node keeps one, so that the next lane knows of it.

        Raises:
            KubeClientError: that is not possible.
        """
        if self.kept(pod, node_name) is not None:
            return
        under_way = self.owned.under_way.get(pod.uid)
        if under_way is None or under_way.tokens is None:
            raise WriteNotPermitted(str(NoLongerOwn()))
        while (taken_back := self._taken_back.get(pod.uid)) is not None:
            await taken_back.wait()
        await self.proposals.status_writer.withdraw(pod.uid)

        def check(found: Pod) -> None:
            pending_as_before(pod, found)
            if self.owned.under_way.get(pod.uid) is not under_way:  # it was preempted, for instance
                raise PodHasChanged("the pod is not about to be bound any more", found)

        try:
            check(pod)
            self._asked[pod.uid] = _Asked(node_name, pod)  # from now on it is taken back if the attempt ends
            stored = await self._note(pod, node_name, KEPT_FOR_GROUP, under_way.tokens, check)
            check(stored)
        except (NoLongerOwn, PodHasChanged) as problem:
            raise WriteNotPermitted(str(problem)) from problem
        self._asked[pod.uid] = _Asked(node_name, stored, is_kept=True)

    async def _note(
        self, pod: Pod, node_name: str, note: str, tokens: tuple[HeldShard, ...], check: Callable[[Pod], None]
    ) -> Pod:
        patch = nomination(pod, node_name, note, now=self.proposals.wall_clock())
        return await self.proposals.writes.send(
            pod,
            tokens,
            partial(self.proposals.write_status, pod, patch),
            lambda found: found.nominated_node_name == node_name and has_note(found, note),
            check,
        )

    def kept(self, pod: Pod, node_name: str) -> Pod | None:
        """*pod* as it is since the owner of a node keeps a place there for it; None if it does not."""
        asked = self._asked.get(pod.uid)
        return asked.pod if asked is not None and asked.is_kept and asked.node_name == node_name else None

    def bound(self, uid: str) -> None:
        """The pod is on its node."""
        self._asked.pop(uid, None)

    def give_back(self, pod: Pod, node_name: str) -> None:
        """*pod* is not going to be bound: whatever was asked for, or kept, is taken back."""
        asked = self._asked.pop(pod.uid, None)
        if asked is not None:
            self.take_back(asked.pod, node_name)

    def take_back(self, pod: Pod, node_name: str) -> None:
        """*pod* has no place on a node any more; if the lane was lost, whoever has it now sees to that."""
        tokens = self.proposals.elector.tokens({LANE})
        if tokens is None or pod.uid in self._taken_back:
            return
        self._taken_back[pod.uid] = trio.Event()
        self.owned.takes_back(pod.uid)
        self.owned.under_way[f"{pod.uid}/place"] = UnderWay(frozenset({LANE}), self.owned.seen, node_name)
        self.jobs.submit(JOBS, pod.scheduler_name, partial(self._take_back, pod, node_name, tokens))

    async def _take_back(self, pod: Pod, node_name: str, tokens: tuple[HeldShard, ...]) -> None:
        with ends(partial(self._is_taken_back, pod.uid)):
            why = f"the pod, or its group, is not bound, and node {node_name} need not keep its place"
            # In whichever version it is: the place may have been kept a moment ago.
            takes_back = partial(_is_asked_or_kept, node_name)
            stored = await self.proposals.takeover.fence(pod, why, tokens, takes_back=takes_back)
            if stored is not None:  # what is seen until then is not to be taken for a place
                await self.proposals.wait_until_seen(stored)

    def _is_taken_back(self, uid: str) -> None:
        self.owned.has_taken_back(uid, 0)
        self.owned.ended(f"{uid}/place")
        self._taken_back.pop(uid).set()

    # --- before others are evicted ----------------------------------------------------------------------------------

    async def prepare(self, places: Sequence[tuple[Pod, str]]) -> bool:
        """Have all of *places* promised, each to its pod, of one group; whether they are.

        If not, the next attempt of the group takes those back that it does not need.
        """
        tokens = self.proposals.elector.tokens({LANE})
        problems: list[Status] = []

        async def prepare(pod: Pod, node_name: str, tokens: tuple[HeldShard, ...]) -> None:
            problem = await self._prepare(pod, node_name, tokens)
            if problem is not None:
                log.debug("no place for a group: %s", problem.message, extra={"pod": pod.key, "node": node_name})
                problems.append(problem)

        if tokens is None:
            return False
        self._preparing += 1
        try:
            async with trio.open_nursery() as nursery:
                for pod, node_name in places:
                    nursery.start_soon(prepare, pod, node_name, tokens)
        finally:
            self._preparing -= 1
        return not problems

    async def _prepare(self, pod: Pod, node_name: str, tokens: tuple[HeldShard, ...]) -> Status | None:
        while (taken_back := self._taken_back.get(pod.uid)) is not None:
            await taken_back.wait()
        pod = self._known(pod) or pod
        if pod.nominated_node_name == node_name and is_preempting_for_group(pod):
            return None
        is_own = self.owned.owns_node(node_name)
        held = self.proposals.elector.tokens({LANE, self.owned.of_node(node_name)}) if is_own else tokens
        if held is None:
            return failure(NoLongerOwn())
        key = f"{pod.uid}/asked"
        self.owned.under_way[key] = UnderWay(frozenset(one.shard for one in held), self.owned.seen, node_name)
        with ends(partial(self.owned.ended, key)):
            if is_own:
                return await self._note_own(pod, node_name, held)
            problem = await self.proposals.ask_to_preempt_for_group(pod, node_name, held)
        if problem is not PLACE_IS_KEPT:
            return problem or failure(PodHasChanged("the pod is on the node already"))
        known = self._known(pod)
        if known is None or known.nominated_node_name != node_name or not is_preempting_for_group(known):
            return failure(PodHasChanged("the place is not kept any more"))
        await self.proposals.wait_until_seen(known)
        return None

    async def _note_own(self, pod: Pod, node_name: str, tokens: tuple[HeldShard, ...]) -> Status | None:
        try:
            await self.proposals.status_writer.withdraw(pod.uid)
            check = partial(pending_as_before, pod)
            stored = await self._note(pod, node_name, PREEMPTING_FOR_GROUP, tokens, check)
        except (KubeClientError, NoLongerOwn, PodHasChanged) as problem:
            return failure(problem)
        await self.proposals.wait_until_seen(stored)
        return None

    def _known(self, pod: Pod) -> Pod | None:
        """*pod* as the watch has shown it last; None if it is gone."""
        known = self.proposals.shown().get((pod.namespace, pod.name))
        return known if known is not None and known.uid == pod.uid else None

    # --- answering --------------------------------------------------------------------------------------------------

    def answer(self, pod: Pod) -> None:
        """Keep a place on a node of this process for *pod*, of a group of another, if there is room; else refuse it."""
        if pod.uid not in self._answering:
            self._answering.add(pod.uid)
            self.jobs.submit(JOBS, pod.scheduler_name, partial(self._answer, pod))

    async def _answer(self, pod: Pod) -> None:
        with ends(partial(self._is_answered, pod)):
            known = self.proposals.shown().get((pod.namespace, pod.name), pod)
            tokens = self.proposals.elector.tokens({self.owned.of_node(known.nominated_node_name)})
            if tokens is None or known.uid != pod.uid:
                return
            if self.owned.is_asked_for_group(known):
                await self._tell(known, KEPT_FOR_GROUP, tokens)
            elif self.owned.is_asked_to_preempt_for_group(known):
                await self._tell(known, PREEMPTING_FOR_GROUP, tokens)

    async def _tell(self, pod: Pod, note: str, tokens: tuple[HeldShard, ...]) -> None:
        """Note that there is a place for *pod*, or will be one, where it is nominated to, or refuse it."""
        node_name = pod.nominated_node_name
        self.owned.under_way[f"{pod.uid}/kept"] = UnderWay(
            frozenset(one.shard for one in tokens), self.owned.seen, node_name
        )
        with ends(partial(self._has_told, pod)):
            try:
                refused = self._refusal(pod, node_name, note)
            except CacheError as problem:
                log.debug("a pod of a group is on a node already: %s", problem, extra={"pod": pod.key})
                return
            if refused is not None:
                await self.proposals.refuse(pod, node_name, refused.message)
                return
            try:
                stored = await self._note(pod, node_name, note, tokens, partial(place_as_before, pod))
                await self.proposals.wait_until_seen(stored)
            except (NoLongerOwn, PodHasChanged):
                return
            except KubeClientError as problem:
                log.warning("cannot keep a place: %s", problem, extra={"pod": pod.key, "node": node_name})

    def _refusal(self, pod: Pod, node_name: str, note: str) -> SchedulingFailure | None:
        """Why there is no place for *pod*; None if it is kept, or promised, as *note* says.

        Raises:
            CacheError: the pod is on a node already.
        """
        if note != KEPT_FOR_GROUP:
            return self.scheduler.could_keep_place(pod, node_name)
        if self.handlers().is_in_place(pod.uid, node_name):  # the last lane has asked for it, too
            return None
        return self.scheduler.keep_place(pod, node_name)

    def _has_told(self, pod: Pod) -> None:
        self.owned.ended(f"{pod.uid}/kept")
        self.handlers().end_place(pod.uid, pod.key, now=trio.current_time())
        self.wake()

    def _is_answered(self, pod: Pod) -> None:
        self._answering.discard(pod.uid)
        known = self._known(pod)
        if known is None or revision_of(known) <= revision_of(pod):
            return
        if self.owned.is_asked_for_group(known) or self.owned.is_asked_to_preempt_for_group(known):
            self.answer(known)  # it has been asked for again meanwhile


def _is_asked_or_kept(node_name: str, pod: Pod) -> bool:
    return pod.nominated_node_name == node_name and not is_reserved(pod)
