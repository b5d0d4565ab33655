"""The leases of shards: whether others' are valid; own ones taken, renewed, given back by the rules of `shard_plan`."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Final

import trio
from attrs import define, field

from trio_sched.daemon.clients import request_permit
from trio_sched.daemon.metrics.recorder import MetricRecorder
from trio_sched.daemon.sharding.agreement import Agreement
from trio_sched.daemon.sharding.group_lease import GroupLease, number
from trio_sched.daemon.sharding.held_shard import Acknowledged, HeldShard, Taken, TakesOver
from trio_sched.daemon.sharding.moved_nodes import MovedNodes
from trio_sched.daemon.wake_up import WakeUp, cancel_on
from trio_sched.engine.lease_rules import Candidate, ObservedRecord
from trio_sched.engine.sharding.owned_shards import OwnedShards
from trio_sched.engine.sharding.ownership import LANE, shard_lease
from trio_sched.engine.sharding.shard_plan import SeenLease, plan_shards
from trio_sched.kube_client import leases
from trio_sched.kube_client.errors import AlreadyExists, Conflict, KubeClientError, WriteNotPermitted
from trio_sched.kube_client.leases import StoredLease
from trio_sched.objects.lease import LeaseSpec
from trio_sched.objects.timestamps import SECOND_NS
from trio_sched.verbosity import V2

log = logging.getLogger(__name__)

GROUP_TERM: Final = "trio-sched.dev/group-term"
"""The term of the group lease in which the shard was held last."""
AGREEMENT_SECONDS: Final = 0.2
"""How often is looked whether all have seen what a pod repels, or where a node belongs, or have said so."""
_JITTER: Final = 0.2


@define(eq=False, kw_only=True)
class ShardElector:
    """Holds a share of the shards."""

    group: GroupLease
    owned: OwnedShards
    random: Random
    metrics: MetricRecorder
    changed: Callable[[], None]
    """Called when `OwnedShards.ready` has changed."""
    agreement: Agreement
    moved_nodes: MovedNodes
    look: Callable[[float], None] = field(default=lambda _now: None)
    """Called every time the leases were looked at."""
    takes_over: TakesOver = field(init=False)
    wake: WakeUp = field(factory=WakeUp)
    """Set when leases are to be looked at, and written, at once."""
    held: dict[int, HeldShard] = field(factory=dict, init=False)
    holders: dict[int, str] = field(factory=dict, init=False)
    """Who held each shard when the leases were listed last; those that nobody holds are missing."""
    _observed: dict[str, ObservedRecord] = field(factory=dict, init=False)

    @property
    def identity(self) -> str:
        """The holder of the group lease, for the pages that show it."""
        return self.group.holder

    @property
    def observed_lease(self) -> LeaseSpec | None:
        """The group lease as it was seen last."""
        return None if self.group.observed is None else self.group.observed.spec

    def lease_name(self, shard: int) -> str:
        """The lease of a shard."""
        return shard_lease(self.group.settings.resource_name, shard, self.owned.shards)

    # --- what may be done -------------------------------------------------------------------------------------------

    def tokens(self, shards: Iterable[int]) -> tuple[HeldShard, ...] | None:
        """Stand for holding *shards* from now on without a gap; None if this process does not."""
        found = [self.held.get(shard) for shard in shards]
        return tuple(one for one in found if one is not None) if None not in found else None

    def are_held(self, tokens: Iterable[HeldShard]) -> bool:
        """Whether the shards of *tokens* were not lost since."""
        return all(self.held.get(one.shard) is one for one in tokens)

    def may_write(self, tokens: Iterable[HeldShard]) -> bool:
        """Whether a request may be sent for them now: nobody can have taken them."""
        now = trio.current_time()
        return all(self.held.get(one.shard) is one and now < self._writable_until(one) for one in tokens)

    def _writable_until(self, held: HeldShard) -> float:
        return held.renewed_at + self.group.renew_deadline_seconds

    @contextmanager
    def permitting(self, tokens: tuple[HeldShard, ...]) -> Iterator[None]:
        """Whatever this task writes inside the block is refused once it may not be sent for *tokens*."""

        def check() -> None:
            if not self.may_write(tokens):
                names = ", ".join(self.lease_name(one.shard) for one in tokens)
                raise WriteNotPermitted(f"of the leases {names} one is not held, or was not renewed in time")

        before = request_permit.set(check)
        try:
            yield
        finally:
            request_permit.reset(before)

    # --- running ----------------------------------------------------------------------------------------------------

    async def lead(self, work: Callable[[], Awaitable[None]], stop: trio.Event) -> None:
        """Join the replicas, then run *work* and hold a share of the shards meanwhile; afterwards release it.

        Args:
            work: runs meanwhile; when it returns, the shards are released.
            stop: ends the attempts to join; after that, *work* has to react to this event.

        Raises:
            LeaderElectionLost: others may schedule now; *work* was cancelled.
        """
        self.metrics.leads = False
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cancel_on, stop, nursery.cancel_scope)
            await self._join()
            nursery.cancel_scope.cancel()
        if not self.group.is_joined:
            return
        self.metrics.leads = True
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._run, nursery, stop)
                nursery.start_soon(self._stop_deciding_in_time)
                await work()
                nursery.cancel_scope.cancel()
        finally:
            self.metrics.leads = False
            await self._leave()

    async def _join(self) -> None:
        log.info("Attempting to join the replicas that share the work...", extra={"lock": self.group.lock})
        while True:
            try:
                listed = await self._list()
                if await self.group.renew(listed.get(self.group.settings.resource_name)):
                    log.info("Sharing the work", extra={"lock": self.group.lock, "shards": self.owned.shards})
                    return
            except (Conflict, AlreadyExists):
                await trio.sleep(AGREEMENT_SECONDS * self.random.random())
                continue
            except KubeClientError as problem:
                log.error("Error retrieving or writing leases: %s", problem, extra={"lock": self.group.lock})
            await trio.sleep(self._retry_seconds * (1 + _JITTER * self.random.random()))

    async def _run(self, nursery: trio.Nursery, stop: trio.Event) -> None:
        while True:
            pause = self._retry_seconds * (1 + _JITTER * self.random.random())
            try:
                await self._look_at_leases(nursery, stop)
            except (Conflict, AlreadyExists):  # another replica was faster
                pause = AGREEMENT_SECONDS * (1 + self.random.random())
            except KubeClientError as problem:
                log.error("Error retrieving or writing leases: %s", problem, extra={"lock": self.group.lock})
            if self._is_urgent():
                pause = min(pause, AGREEMENT_SECONDS)
            with trio.move_on_after(pause):
                await self.wake.wait()

    async def _stop_deciding_in_time(self) -> None:
        """Decide on nothing while nothing may be sent: an eviction that fails at once would be tried again at once."""
        while True:
            until = min((self.group.permit.until, *map(self._writable_until, self.held.values())))
            if until <= trio.current_time():
                self._publish_ready()
                until = trio.current_time() + self._retry_seconds
            await trio.sleep_until(until)

    def _is_urgent(self) -> bool:
        """Whether what pods repel, or where nodes belong, is not agreed on yet."""
        if self.agreement.is_open or self.moved_nodes.is_open:
            return True
        newest = self._newest
        return any(one.is_leaving or (one.is_ready and one.published.is_behind(newest)) for one in self.held.values())

    async def _look_at_leases(self, nursery: trio.Nursery, stop: trio.Event) -> None:
        """Renew, take and give back, as the leases are now.

        Raises:
            LeaderElectionLost: the group has lost its lease.
            KubeClientError: leases could not be read or written.
        """
        listed = await self._list()
        now = trio.current_time()
        known = self._observed
        self._observed = {}
        self.holders = {}
        seen: dict[int, SeenLease] = {}
        for shard in range(self.owned.shards):
            name = self.lease_name(shard)
            stored = listed.get(name)
            if stored is None:
                continue
            spec, before = stored.lease.spec, known.get(name)
            record = ObservedRecord(spec, stored.record, now)
            self._observed[name] = record if before is None else before.observe(spec, stored.record, now)
            holder = spec.holder_identity or ""
            seen[shard] = SeenLease(holder, self._observed[name].is_valid(now))
            if holder:
                self.holders[shard] = holder
        self._drop_lost(listed)
        await self._renew_held(listed)
        await self.group.renew(listed.get(self.group.settings.resource_name))
        for shard in () if self.owned.labelled is None else self.owned.labelled.left:
            self.held[shard].is_leaving = True  # it is taken again without the nodes that leave it
        staying = [shard for shard, one in self.held.items() if not one.is_leaving]
        plan = plan_shards(seen, staying, self.group.replica, self.group.alive, self.owned.shards)
        for shard in plan.give_back:
            self.held[shard].is_leaving = True
        self._publish_ready()
        await self._release_drained()
        if not stop.is_set():
            free = [shard for shard in plan.take if shard not in self.held]
            await self._take(free, listed, seen, nursery)
        acknowledged = [Acknowledged.read(listed.get(self.lease_name(n))) for n in range(self.owned.shards)]
        of_pods = [None if one is None else one.pods for one in acknowledged]
        self.agreement.look(self.held.get(LANE), of_pods, nursery)
        of_nodes = [None if one is None else one.nodes for one in acknowledged]
        self.moved_nodes.look(self.held, of_nodes, nursery)
        self.look(trio.current_time())

    async def _list(self) -> dict[str, StoredLease]:
        group = self.group
        return await leases.list_leases(
            group.client, namespace=group.settings.resource_namespace, timeout_seconds=group.request_seconds
        )

    # --- shards that are held ---------------------------------------------------------------------------------------

    def _drop_lost(self, listed: dict[str, StoredLease]) -> None:
        for shard, held in list(self.held.items()):
            stored = listed.get(self.lease_name(shard))
            if stored is None or stored.lease.spec.holder_identity != self.group.replica:
                log.warning("lost the lease of a shard", extra={"lease": self.lease_name(shard)})
                del self.held[shard]
            else:
                held.stored = stored
        self._finish_moves()
        self._publish_ready()

    async def _renew_held(self, listed: dict[str, StoredLease]) -> None:
        due = trio.current_time() - 0.75 * self._retry_seconds
        newest, now = self._newest, self._seen
        async with trio.open_nursery() as nursery:
            for held in list(self.held.values()):
                has_news = held.is_ready and held.published.has_news(newest, now)
                if held.renewed_at <= due or has_news:
                    nursery.start_soon(self._renew, held)

    async def _renew(self, held: HeldShard) -> None:
        acknowledged = self._seen if held.is_ready else Acknowledged()
        sent = trio.current_time()
        try:
            stored = await self._write(held.shard, held.stored, acknowledged)
        except KubeClientError as problem:
            log.warning("Failed to renew the lease of a shard: %s", problem, extra={"lease": self._lock(held.shard)})
            return
        held.stored, held.renewed_at, held.published = stored, sent, acknowledged

    @property
    def _candidate(self) -> Candidate:
        """This replica, as the holder of shards."""
        duration = self.group.settings.lease_duration_ns // SECOND_NS
        return Candidate(identity=self.group.replica, lease_duration_seconds=duration)

    async def _write(self, shard: int, stored: StoredLease | None, acknowledged: Acknowledged) -> StoredLease:
        group = self.group
        spec = None if stored is None else stored.lease.spec
        observed = None if spec is None or stored is None else ObservedRecord(spec, stored.record, 0.0)
        written = self._candidate.record_to_write(observed, group.wall_time())
        annotations = acknowledged.annotations | {GROUP_TERM: str(group.term)}
        return await group.write(stored, self.lease_name(shard), written, annotations)

    @property
    def _seen(self) -> Acknowledged:
        """What this process has seen."""
        labelled = self.owned.labelled
        return Acknowledged(self.owned.acknowledged, 0 if labelled is None else labelled.acknowledged)

    @property
    def _newest(self) -> Acknowledged:
        """What others may wait for."""
        labelled = self.owned.labelled
        return Acknowledged(self.owned.newest_term(), 0 if labelled is None else labelled.newest)

    # --- shards that are given back ---------------------------------------------------------------------------------

    async def _release_drained(self) -> None:
        for held in list(self.held.values()):
            # Before it is ready, binds of its last holder may still come, which whoever takes it next would not know.
            if held.is_leaving and held.is_ready and self.owned.is_drained(held.shard):
                del self.held[held.shard]
                self._finish_moves()
                await self._release(held)

    def _finish_moves(self) -> None:
        if self.owned.labelled is not None and self.owned.labelled.finish_moves():
            self.wake.set()  # the shard can be taken again

    async def _release(self, held: HeldShard) -> None:
        group = self.group
        observed = ObservedRecord(held.stored.lease.spec, held.stored.record, 0.0)
        spec = self._candidate.release(observed, group.wall_time())
        annotations = Acknowledged().annotations | {GROUP_TERM: str(group.term)}
        try:
            await group.write(held.stored, self.lease_name(held.shard), spec, annotations)
        except KubeClientError as problem:  # it expires; who takes it then fences it
            log.warning("Failed to release the lease of a shard: %s", problem, extra={"lease": self._lock(held.shard)})
        else:
            log.log(V2, "Gave back a shard", extra={"lease": self._lock(held.shard)})

    async def _leave(self) -> None:
        """Release what is held, so that others can take it at once; shielded and bounded like any last request."""
        with trio.move_on_after(self.group.renew_deadline_seconds, shield=True) as grace:
            try:
                self._drop_lost(await self._list())
                for held in list(self.held.values()):
                    if held.is_ready and self.owned.is_drained(held.shard) and self.may_write((held,)):
                        del self.held[held.shard]
                        await self._release(held)
                await self._leave_group()
            except KubeClientError as problem:
                log.error("Failed to release leases: %s", problem, extra={"lock": self.group.lock})
        if grace.cancelled_caught:
            log.warning("leases not released in %.0f s; they expire", self.group.renew_deadline_seconds)
        self.held.clear()
        self._publish_ready()

    async def _leave_group(self) -> None:
        """Say that this replica is gone; again if another one wrote at the same time."""
        while True:
            listed = await self._list()
            names = map(self.lease_name, range(self.owned.shards))
            unreleased = [one for name in names if (one := listed.get(name)) and one.lease.spec.holder_identity]
            try:
                await self.group.leave(listed.get(self.group.settings.resource_name), release=not unreleased)
                return
            except Conflict:
                await trio.sleep(AGREEMENT_SECONDS * self.random.random())

    # --- shards that are taken --------------------------------------------------------------------------------------

    async def _take(
        self, free: list[int], listed: dict[str, StoredLease], seen: dict[int, SeenLease], nursery: trio.Nursery
    ) -> None:
        taken: list[HeldShard] = []
        needs_fence = False
        for shard in free:
            stored, sent = listed.get(self.lease_name(shard)), trio.current_time()
            try:
                written = await self._write(shard, stored, Acknowledged())
            except (Conflict, AlreadyExists):
                continue  # another replica was faster
            except KubeClientError as problem:
                log.warning("Failed to take the lease of a shard: %s", problem, extra={"lease": self._lock(shard)})
                break
            held = self.held[shard] = HeldShard(shard, written, sent)
            taken.append(held)
            needs_fence |= shard in seen and bool(seen[shard].holder)
            needs_fence |= number(stored, GROUP_TERM, -1) < self.group.fence_before
            log.log(V2, "Took a shard", extra={"lease": self._lock(shard)})
        if taken:
            nursery.start_soon(self._make_ready, Taken(tuple(taken), needs_fence))

    async def _make_ready(self, taken: Taken) -> None:
        await self.takes_over.make_ready(taken)
        for held in taken.held:
            held.is_ready = self.held.get(held.shard) is held
        self._publish_ready()
        if self.owned.labelled is not None:
            self.wake.set()  # others wait until this process says what it has seen

    def _publish_ready(self) -> None:
        is_permitted = trio.current_time() < self.group.permit.until
        usable = (one for one in self.held.values() if is_permitted and one.is_ready and not one.is_leaving)
        ready = frozenset(one.shard for one in usable if self.may_write((one,)))
        if ready != self.owned.ready:
            self.owned.ready = ready
            if LANE not in ready:
                self.owned.terms.agreed.clear()
            self.changed()

    @property
    def _retry_seconds(self) -> float:
        return self.group.settings.retry_period_ns / SECOND_NS

    def _lock(self, shard: int) -> str:
        return f"{self.group.settings.resource_namespace}/{self.lease_name(shard)}"
