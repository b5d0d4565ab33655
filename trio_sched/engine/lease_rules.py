"""Leader election: what to do with a lease, given what was seen of it and when.

Other clocks are never trusted: a lease is valid for as long as its own record says, counted on the local clock from the
moment at which the change was observed.

Source: the leader election of Kubernetes 1.36 over Lease objects.
"""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from trio_sched.objects.lease import LeaseSpec

JITTER_FACTOR = 1.2
"""Retries of waiting candidates are spread over this many retry periods on top of one."""


class Step(Enum):
    """What to do next."""

    ACQUIRE = "write this candidate into the lease"
    RENEW = "update the renew time"
    WAIT = "another candidate holds a valid lease"


@frozen
class ObservedRecord:
    """A lease as it was seen: *record* is its text, *at* the moment on the local clock when it changed to that."""

    spec: LeaseSpec
    record: bytes
    at: float

    def observe(self, spec: LeaseSpec, record: bytes, now: float) -> ObservedRecord:
        """What is known after another look at *now*."""
        return self if record == self.record else ObservedRecord(spec, record, now)

    @property
    def valid_until(self) -> float:
        """Until when, on the local clock, its holder may lead."""
        return self.at + (self.spec.lease_duration_seconds or 0)

    def is_valid(self, now: float) -> bool:
        """Whether its holder may still lead."""
        return self.valid_until > now


@frozen(kw_only=True)
class Candidate:
    """This process in the election: *identity* must be unique, *lease_duration_seconds* is written into the lease."""

    identity: str
    lease_duration_seconds: int

    def next_step(self, observed: ObservedRecord | None, now: float) -> Step:
        """What to do about a lease that was observed, or that does not exist."""
        if observed is None or not observed.spec.holder_identity:
            return Step.ACQUIRE
        if observed.spec.holder_identity == self.identity:
            return Step.RENEW
        return Step.WAIT if observed.is_valid(now) else Step.ACQUIRE

    def holds(self, observed: ObservedRecord | None) -> bool:
        """Whether this candidate is the holder, as far as was observed."""
        return observed is not None and observed.spec.holder_identity == self.identity

    def record_to_write(self, observed: ObservedRecord | None, wall_time: str) -> LeaseSpec:
        """What to write to acquire or renew; *wall_time* is the time of day in RFC 3339 with microseconds."""
        if observed is not None and self.holds(observed):
            acquired, transitions = observed.spec.acquire_time, observed.spec.lease_transitions or 0
        else:
            acquired = wall_time
            transitions = 0 if observed is None else (observed.spec.lease_transitions or 0) + 1
        return LeaseSpec(
            holder_identity=self.identity,
            lease_duration_seconds=self.lease_duration_seconds,
            acquire_time=acquired,
            renew_time=wall_time,
            lease_transitions=transitions,
        )

    def release(self, observed: ObservedRecord, wall_time: str) -> LeaseSpec:
        """What to write so that another candidate can take over at once."""
        return LeaseSpec(
            holder_identity="",
            lease_duration_seconds=1,
            acquire_time=wall_time,
            renew_time=wall_time,
            lease_transitions=observed.spec.lease_transitions or 0,
        )


def jittered_retry_period(retry_period_seconds: float, random_fraction: float) -> float:
    """How long a candidate waits before it looks again; *random_fraction* is uniform in 0..1."""
    return retry_period_seconds * (1 + JITTER_FACTOR * random_fraction)
