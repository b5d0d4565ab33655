"""What replicas go by; single rules can be left out, to see that the checks find out."""

from __future__ import annotations

from attrs import frozen


@frozen(kw_only=True)
class Protocol:
    """Times in seconds, and the rules."""

    shards: int = 4
    lease_seconds: float = 15.0
    renew_deadline_seconds: float = 10.0
    retry_seconds: float = 2.0
    request_seconds: float = 5.0
    proposal_seconds: float = 5.0
    """How long the owner of a node may take to answer a nomination."""
    agreement_seconds: float = 0.1
    """How often is looked whether all have seen what a pod repels."""
    decision_seconds: float = 0.001
    guards_writes: bool = True
    """Nothing is sent for a shard later than *renew_deadline_seconds* after its lease was renewed."""
    binds_with_version: bool = True
    """A bind is for the version of the pod that was decided on, and no other."""
    fences: bool = True
    """Who takes a shard that was not released gives all pending pods another version first."""
    awaits_terms: bool = True
    """A pod that repels others is placed once all shards have seen what it repels."""
    reserves_before_evicting: bool = True
    """Who evicts pods for another notes on that one first that the place is kept; nobody else can take it back then."""
    fences_evictions: bool = True
    """Who takes a shard that was not released gives pods that its last owner could evict another version first."""
    lane_allocates: bool = True
    """Devices are allocated by the holder of shard 0 only."""
    fences_allocations: bool = True
    """Who takes shard 0 when it was not released gives all claims that no bound pod uses another version first."""
    gathers_groups: bool = True
    """Pods of a group are bound once so many of them as must run together have places that are kept."""
    awaits_old_leases: bool = True
    """Another number of shards comes into force when no shard of the former one is held, or can be taken any more."""
