"""Only one of several schedulers schedules: the one whose name is in the lease.

The rules are in `engine.lease_rules`; here is the waiting and the writing.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import datetime
from random import Random

import trio
from attrs import define, evolve

from trio_sched.config.schema import LeaderElection
from trio_sched.daemon.scheduler_events import LeaseEvent, became_leader, stopped_leading
from trio_sched.daemon.wakeup import Bell
from trio_sched.engine.lease_rules import Candidate, Observed, Step, retry_pause
from trio_sched.errors import TrioSchedError
from trio_sched.kube_client import leases
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.errors import KubeClientError, NotFound
from trio_sched.kube_client.kinds import LEASE_KIND
from trio_sched.kube_client.leases import StoredLease, record_of
from trio_sched.kube_client.watch import Changes, Listed, follow
from trio_sched.objects.lease import Lease, LeaseSpec
from trio_sched.objects.timestamps import SECOND_NS, format_micro_time

log = logging.getLogger(__name__)


class LostLease(TrioSchedError):
    """Somebody else may lead now; the process has to end."""

    def __init__(self, lock: str) -> None:
        super().__init__(lock)
        self.lock = lock

    def __str__(self) -> str:
        return f"leader election lost: the lease {self.lock} could not be renewed in time"


@define(eq=False, kw_only=True)
class Elector:
    """One candidate for one lease."""

    client: KubeClient
    settings: LeaderElection
    identity: str
    component: str
    """The source of the events about the lease."""
    wall_clock: Callable[[], datetime]
    random: Random
    record: Callable[[LeaseEvent], None]
    """Records who has become the leader or is no longer."""
    _stored: StoredLease | None = None
    _observed: Observed | None = None

    @property
    def lock(self) -> str:
        """The lease, as people name it."""
        return f"{self.settings.resource_namespace}/{self.settings.resource_name}"

    @property
    def _candidate(self) -> Candidate:
        return Candidate(identity=self.identity, lease_seconds=self.settings.lease_duration_ns // SECOND_NS)

    @property
    def _retry_seconds(self) -> float:
        return self.settings.retry_period_ns / SECOND_NS

    @property
    def _renew_seconds(self) -> float:
        return self.settings.renew_deadline_ns / SECOND_NS

    @property
    def _request_seconds(self) -> float:
        return max(1.0, self._renew_seconds / 2)

    # --- the long view ----------------------------------------------------------------------------------------------

    async def lead(self, work: Callable[[], Awaitable[None]], stop: trio.Event) -> None:
        """Wait until we lead, then *work*, renewing the lease meanwhile; afterwards give it back.

        Args:
            work: runs while we lead; its end is the end of our term.
            stop: set while we still wait, it ends the waiting; once we lead, *work* has to heed it.

        Raises:
            LostLease: the lease could not be renewed; *work* was cancelled.
        """
        async with trio.open_nursery() as nursery:

            async def give_up() -> None:
                await stop.wait()
                nursery.cancel_scope.cancel()

            nursery.start_soon(give_up)
            await self.acquire()
            nursery.cancel_scope.cancel()
        if not self._candidate.holds(self._observed):
            return
        self.record(became_leader(self.settings, identity=self.identity, component=self.component))
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._keep_renewing)
                await work()
                nursery.cancel_scope.cancel()
        except* LostLease:
            self._observed = None
            raise
        finally:
            self.record(stopped_leading(self.settings, identity=self.identity, component=self.component))
            await self._release()

    async def acquire(self) -> None:
        """Wait until the lease is ours.

        Beside the tries that the protocol asks for the lease is watched: a renewal is seen when it happens, so the
        holder's time runs out for us when it does for itself, and a released lease is taken at once.
        """
        log.info("Attempting to acquire leader lease...", extra={"lock": self.lock})
        changed = Bell()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch, changed)
            while True:
                if await self._try():
                    break
                with trio.move_on_at(self._next_look()):
                    await changed.wait()
            nursery.cancel_scope.cancel()
        log.info("Successfully acquired lease", extra={"lock": self.lock})

    async def _watch(self, changed: Bell) -> None:
        """Note every change of the lease; where watching is not possible the tries have to do."""
        election = self.settings

        def take(batch: Listed[Lease] | Changes[Lease]) -> None:
            leases_seen = batch.objects if isinstance(batch, Listed) else [change.new for change in batch.changes]
            for lease in leases_seen:
                if lease is not None:
                    self._note(lease.spec, record_of(lease.spec))
                if lease is None or not lease.spec.holder_identity:
                    changed.ring()

        def on_trouble(_plural: str, trouble: KubeClientError) -> None:
            log.debug("cannot watch the lease %s: %s", self.lock, trouble)

        kind = evolve(LEASE_KIND, field_selector=f"metadata.name={election.resource_name}")
        await follow(
            self.client,
            kind,
            take,
            random=self.random,
            namespace=election.resource_namespace,
            on_trouble=on_trouble,
        )

    def _next_look(self) -> float:
        """When to look again: after the usual pause, or as soon as the holder's time is over."""
        now = trio.current_time()
        next_look = now + retry_pause(self._retry_seconds, self.random.random())
        if self._observed is not None and self._observed.is_valid(now):
            next_look = min(next_look, self._observed.valid_until)
        return next_look

    async def _keep_renewing(self) -> None:
        """Renew for as long as it works.

        Raises:
            LostLease: it did not work for the whole renew deadline.
        """
        while True:
            with trio.move_on_after(self._renew_seconds) as patience:
                while True:
                    if await self._try():
                        break
                    await trio.sleep(self._retry_seconds)
            if patience.cancelled_caught:
                log.error("Failed to renew lease", extra={"lock": self.lock, "err": "context deadline exceeded"})
                raise LostLease(self.lock)
            await trio.sleep(self._retry_seconds)

    # --- one try ----------------------------------------------------------------------------------------------------

    async def _try(self) -> bool:
        """Acquire or renew once; whether the lease is ours now."""
        candidate = self._candidate
        now = trio.current_time()
        if candidate.holds(self._observed) and self._observed is not None and self._observed.is_valid(now):
            try:
                await self._write()
                return True
            except KubeClientError as problem:
                log.debug("Failed to update lease optimistically, falling back to slow path: %s", problem)
        try:
            await self._look()
        except KubeClientError as problem:
            log.error("Error retrieving lease lock: %s", problem, extra={"lock": self.lock})
            return False
        if candidate.next_step(self._observed, trio.current_time()) == Step.WAIT:
            log.debug("Lease is held by and has not yet expired", extra={"lock": self.lock})
            return False
        try:
            await self._write()
        except KubeClientError as problem:
            log.error("Failed to update lease: %s", problem, extra={"lock": self.lock})
            return False
        return True

    async def _look(self) -> None:
        election = self.settings
        try:
            stored = await leases.get_lease(
                self.client,
                namespace=election.resource_namespace,
                name=election.resource_name,
                timeout_seconds=self._request_seconds,
            )
        except NotFound:
            self._stored = self._observed = None
            return
        self._observe(stored)

    async def _write(self) -> None:
        election = self.settings
        spec = self._candidate.claim(self._observed, self._wall_time())
        if self._stored is None:
            stored = await leases.create_lease(
                self.client,
                namespace=election.resource_namespace,
                name=election.resource_name,
                spec=spec,
                timeout_seconds=self._request_seconds,
            )
        else:
            stored = await leases.update_lease(self.client, self._stored, spec, timeout_seconds=self._request_seconds)
        self._observe(stored)

    def _observe(self, stored: StoredLease) -> None:
        self._stored = stored
        self._note(stored.lease.spec, stored.record)

    def _note(self, spec: LeaseSpec, record: bytes) -> None:
        now = trio.current_time()
        if self._observed is None:
            self._observed = Observed(spec, record, now)
        else:
            self._observed = self._observed.seen_again(spec, record, now)

    async def _release(self) -> None:
        """Let somebody else take over at once; we may be cancelled here, and the API server may be away."""
        if not self._candidate.holds(self._observed):
            return
        with trio.move_on_after(self._renew_seconds, shield=True) as grace:
            try:
                await self._look()
                if self._stored is not None and self._observed is not None and self._candidate.holds(self._observed):
                    spec = self._candidate.release(self._observed, self._wall_time())
                    await leases.update_lease(self.client, self._stored, spec, timeout_seconds=self._request_seconds)
            except KubeClientError as problem:
                log.error("Failed to release lock: %s", problem, extra={"lock": self.lock})
        if grace.cancelled_caught:
            log.warning("lease not released in %.0f s; a follower must wait for it to expire", self._renew_seconds)

    def _wall_time(self) -> str:
        return format_micro_time(self.wall_clock())
