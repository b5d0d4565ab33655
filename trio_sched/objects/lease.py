"""Leases, which leader election uses: the holder, and for how long."""

from msgspec import Struct, field

from trio_sched.objects.metadata import ObjectMeta


class LeaseSpec(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``spec`` of a Lease; times are RFC 3339 with microseconds."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class Lease(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A ``coordination.k8s.io/v1`` Lease."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: LeaseSpec = field(default_factory=LeaseSpec)
