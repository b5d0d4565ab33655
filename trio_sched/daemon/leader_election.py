"""Leader election: of several schedulers only the holder of the lease schedules.

The rules are in `engine.lease_rules`; this module waits, and reads and writes the lease.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable
from datetime import datetime
from random import Random

import trio
from attrs import define, evolve

from trio_sched.config.schema import LeaderElection
from trio_sched.daemon.clients import WritePermit
from trio_sched.daemon.metrics.recorder import MetricRecorder
from trio_sched.daemon.wake_up import WakeUp
from trio_sched.daemon.writes.scheduler_events import LeaseEvent, became_leader, stopped_leading
from trio_sched.engine.lease_rules import Candidate, ObservedRecord, Step, jittered_retry_period
from trio_sched.errors import TrioSchedError
from trio_sched.go.text import quote
from trio_sched.kube_client import leases
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.errors import KubeClientError, NotFound
from trio_sched.kube_client.kinds import LEASE_KIND
from trio_sched.kube_client.leases import StoredLease, record_of
from trio_sched.kube_client.watch import list_and_watch
from trio_sched.objects.changes import Changes, Listed
from trio_sched.objects.lease import Lease, LeaseSpec
from trio_sched.objects.timestamps import SECOND_NS, format_micro_time
from trio_sched.verbosity import V2, V4, V5

log = logging.getLogger(__name__)


class LeaderElectionLost(TrioSchedError):
    """Another candidate may be the leader now, so the process has to end."""

    def __init__(self, lock: str, holder: str = "") -> None:
        super().__init__(lock, holder)
        self.lock, self.holder = lock, holder

    def __str__(self) -> str:
        why = f"is held by {self.holder}" if self.holder else "could not be renewed in time"
        return f"leader election lost: the lease {self.lock} {why}"


@define(eq=False, kw_only=True)
class LeaderElector:
    """One candidate for one lease."""

    client: KubeClient
    settings: LeaderElection
    identity: str
    component: str
    """The source of the events about the lease."""
    wall_clock: Callable[[], datetime]
    random: Random
    record_event: Callable[[LeaseEvent], None]
    """Records that this candidate has become the leader, or is no longer."""
    metrics: MetricRecorder
    permit: WritePermit
    """Is kept in step with what is known of the lease."""
    _stored: StoredLease | None = None
    _observed: ObservedRecord | None = None

    @property
    def lock(self) -> str:
        """The lease as ``namespace/name``."""
        return f"{self.settings.resource_namespace}/{self.settings.resource_name}"

    @property
    def observed_lease(self) -> LeaseSpec | None:
        """The lease as it was seen last; None if it was not seen, or does not exist."""
        return None if self._observed is None else self._observed.spec

    @property
    def _candidate(self) -> Candidate:
        return Candidate(identity=self.identity, lease_duration_seconds=self.settings.lease_duration_ns // SECOND_NS)

    @property
    def _retry_period_seconds(self) -> float:
        return self.settings.retry_period_ns / SECOND_NS

    @property
    def _renew_deadline_seconds(self) -> float:
        return self.settings.renew_deadline_ns / SECOND_NS

    @property
    def _request_seconds(self) -> float:
        return max(1.0, self._renew_deadline_seconds / 2)

    # --- leading ---------------------------------------------------------------------------------------------------

    async def lead(self, work: Callable[[], Awaitable[None]], stop: trio.Event) -> None:
        """Acquire the lease, then run *work* and renew the lease meanwhile; afterwards release it.

        Args:
            work: runs while the lease is held; when it returns, the lease is released.
            stop: ends the attempts to acquire the lease; once it is acquired, *work* has to react to this event.

        Raises:
            LeaderElectionLost: the lease could not be renewed; *work* was cancelled.
        """
        self.metrics.leads = is_acquired = False
        async with trio.open_nursery() as nursery:

            async def cancel_on_stop() -> None:
                await stop.wait()
                nursery.cancel_scope.cancel()

            nursery.start_soon(cancel_on_stop)
            await self.acquire()
            is_acquired = True
            nursery.cancel_scope.cancel()
        if not is_acquired:
            await self._release()  # the lease may have been written just before the stop
            return
        self.metrics.leads = True
        self._record(became_leader)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._keep_renewing)
                await work()
                nursery.cancel_scope.cancel()
        except* LeaderElectionLost:
            self._know(None)
            raise
        finally:
            self.metrics.leads = False
            self._record(stopped_leading)
            await self._release()

    def _record(self, event: Callable[..., LeaseEvent]) -> None:
        assert self._stored is not None  # it is held, or was
        self.record_event(event(self._stored.lease, identity=self.identity, component=self.component))

    async def acquire(self) -> None:
        """Wait until the lease is acquired.

        Besides the periodic attempts of the protocol, the lease is watched: every renewal is observed when it happens,
        so the lease expires here when it does for its holder, and a released lease is acquired at once.
        """
        log.info("Attempting to acquire leader lease...", extra={"lock": self.lock})
        changed = WakeUp()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch, changed)
            while True:
                if await self._try_acquire_or_renew():
                    break
                log.log(V4, "Failed to acquire lease, will be retried", extra={"lock": self.lock})
                with trio.move_on_at(self._next_attempt()):
                    await changed.wait()
            nursery.cancel_scope.cancel()
        log.info("Successfully acquired lease", extra={"lock": self.lock})

    async def _watch(self, changed: WakeUp) -> None:
        """Observe every change of the lease; without the permission to watch, the periodic attempts have to do."""
        election = self.settings

        def take(batch: Listed[Lease] | Changes[Lease]) -> None:
            leases_seen = batch.objects if isinstance(batch, Listed) else [change.new for change in batch.changes]
            for lease in leases_seen:
                if lease is not None:
                    self._observe(lease.spec, record_of(lease.spec))
                if lease is None or not lease.spec.holder_identity:
                    changed.set()

        def on_error(_plural: str, error: KubeClientError) -> None:
            log.log(V4, "cannot watch the lease %s: %s", self.lock, error)

        kind = evolve(LEASE_KIND, field_selector=f"metadata.name={election.resource_name}")
        await list_and_watch(
            self.client,
            kind,
            take,
            random=self.random,
            namespace=election.resource_namespace,
            on_error=on_error,
        )

    def _next_attempt(self) -> float:
        """When to try again: after the retry period, or as soon as the lease expires."""
        now = trio.current_time()
        next_attempt = now + jittered_retry_period(self._retry_period_seconds, self.random.random())
        if self._observed is not None and self._observed.is_valid(now):
            next_attempt = min(next_attempt, self._observed.valid_until)
        return next_attempt

    async def _keep_renewing(self) -> None:
        """Renew the lease until that fails.

        Raises:
            LeaderElectionLost: no attempt succeeded within the renew deadline, or another candidate has the lease.
        """
        while True:
            with trio.move_on_after(self._renew_deadline_seconds) as deadline:
                while True:
                    if await self._try_acquire_or_renew():
                        log.log(V5, "Successfully renewed lease", extra={"lock": self.lock})
                        break
                    self._check_not_taken()
                    await trio.sleep(self._retry_period_seconds)
            if deadline.cancelled_caught:
                log.error("Failed to renew lease", extra={"lock": self.lock, "err": "context deadline exceeded"})
                raise LeaderElectionLost(self.lock)
            await trio.sleep(self._retry_period_seconds)

    def _check_not_taken(self) -> None:
        """After a pause of this process another may lead: then every further decision here would be one too many.

        Raises:
            LeaderElectionLost: another candidate holds a valid lease.
        """
        if self._candidate.next_step(self._observed, trio.current_time()) == Step.WAIT:
            holder = "" if self._observed is None else self._observed.spec.holder_identity or ""
            log.error("Failed to renew lease", extra={"lock": self.lock, "err": f"it is held by {holder}"})
            raise LeaderElectionLost(self.lock, holder)

    # --- one attempt ------------------------------------------------------------------------------------------------

    async def _try_acquire_or_renew(self) -> bool:
        """Try once to acquire or renew the lease; returns whether it is held now."""
        candidate = self._candidate
        now = trio.current_time()
        if candidate.holds(self._observed) and self._observed is not None and self._observed.is_valid(now):
            try:
                await self._write()
                return self._is_held()
            except KubeClientError as problem:
                self.metrics.slow_renewals += 1
                fields = {"lock": self.lock, "err": str(problem)}
                log.log(V2, "Failed to update lease optimistically, falling back to slow path", extra=fields)
        try:
            await self._read()
        except KubeClientError as problem:
            log.error("Error retrieving lease lock: %s", problem, extra={"lock": self.lock})
            return False
        if candidate.next_step(self._observed, trio.current_time()) == Step.WAIT:
            holder = "" if self._observed is None else self._observed.spec.holder_identity
            fields = {"lock": self.lock, "holder": holder or ""}
            log.log(V4, "Lease is held by and has not yet expired", extra=fields)
            return False
        try:
            await self._write()
        except KubeClientError as problem:
            log.error("Failed to update lease: %s", problem, extra={"lock": self.lock})
            return False
        return self._is_held()

    def _is_held(self) -> bool:
        """Whether the lease that the API server has returned for a write is the one that was written."""
        if self._candidate.holds(self._observed):
            return True
        holder = "" if self._observed is None else self._observed.spec.holder_identity or ""
        log.error("Failed to update lease: the response names the holder %s", quote(holder), extra={"lock": self.lock})
        return False

    async def _read(self) -> None:
        election = self.settings
        try:
            stored = await leases.get_lease(
                self.client,
                namespace=election.resource_namespace,
                name=election.resource_name,
                timeout_seconds=self._request_seconds,
            )
        except NotFound:
            self._stored = None
            self._know(None)
            return
        self._remember(stored)

    async def _write(self) -> None:
        election = self.settings
        spec = self._candidate.record_to_write(self._observed, self._wall_time())
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
        self._remember(stored)

    def _remember(self, stored: StoredLease) -> None:
        self._stored = stored
        self._observe(stored.lease.spec, stored.record)

    def _observe(self, spec: LeaseSpec, record: bytes) -> None:
        now = trio.current_time()
        known = self._observed
        self._know(ObservedRecord(spec, record, now) if known is None else known.observe(spec, record, now))

    def _know(self, observed: ObservedRecord | None) -> None:
        """*observed* is the newest that is known of the lease."""
        self._observed = observed
        if observed is not None and self._candidate.holds(observed):
            self.permit.until = observed.at + self._renew_deadline_seconds
        else:
            self.permit.until = -math.inf

    async def _release(self) -> None:
        """Release the lease, so that another candidate can acquire it at once.

        Shielded, because this task may be cancelled already, and bounded, because the API server may be unreachable.
        """
        if not self._candidate.holds(self._observed):
            return
        with trio.move_on_after(self._renew_deadline_seconds, shield=True) as grace:
            try:
                await self._read()
                if self._stored is not None and self._observed is not None and self._candidate.holds(self._observed):
                    spec = self._candidate.release(self._observed, self._wall_time())
                    await leases.update_lease(self.client, self._stored, spec, timeout_seconds=self._request_seconds)
            except KubeClientError as problem:
                log.error("Failed to release lock: %s", problem, extra={"lock": self.lock})
        if grace.cancelled_caught:
            log.warning(
                "lease not released in %.0f s; a follower must wait for it to expire", self._renew_deadline_seconds
            )

    def _wall_time(self) -> str:
        return format_micro_time(self.wall_clock())
