"""A shard that this process holds, and what is done before anything is decided for one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

from attrs import define, frozen

from trio_sched.daemon.sharding.group_lease import number
from trio_sched.kube_client.leases import StoredLease

ACKNOWLEDGED: Final = "trio-sched.dev/acknowledged"
"""The revision of the pods that whoever holds the shard has seen before every decision that is not over."""
ACKNOWLEDGED_NODES: Final = "trio-sched.dev/acknowledged-nodes"
"""The same of the nodes, where a label says which shard a node belongs to."""


@frozen
class Acknowledged:
    """The two revisions in the lease of a shard."""

    pods: int = 0
    nodes: int = 0

    @classmethod
    def read(cls, stored: StoredLease | None) -> Acknowledged | None:
        """What the holder of a shard has seen, as its lease says; None: nobody holds it."""
        if stored is None or not stored.lease.spec.holder_identity:
            return None
        return cls(number(stored, ACKNOWLEDGED, 0), number(stored, ACKNOWLEDGED_NODES, 0))

    @property
    def annotations(self) -> dict[str, str]:
        """Both as they are written."""
        return {ACKNOWLEDGED: str(self.pods), ACKNOWLEDGED_NODES: str(self.nodes)}

    def is_behind(self, newest: Acknowledged) -> bool:
        """Whether others may wait until more is acknowledged."""
        return self.pods < newest.pods or self.nodes < newest.nodes

    def has_news(self, newest: Acknowledged, now: Acknowledged) -> bool:
        """Whether more of that can be acknowledged *now*."""
        return self.pods < min(newest.pods, now.pods) or self.nodes < min(newest.nodes, now.nodes)


@define(eq=False)
class HeldShard:
    """A shard that this process holds."""

    shard: int
    stored: StoredLease
    renewed_at: float
    """When the request was sent that has renewed the lease last."""
    published: Acknowledged = Acknowledged()
    """What was acknowledged with it."""
    is_ready: bool = False
    """Whether this process may decide for it: no bind of its last holder can happen any more."""
    is_leaving: bool = False
    """Nothing new is decided; it is released when everything has an end."""


@frozen
class Taken:
    """Shards that were taken, and are to be made ready."""

    held: tuple[HeldShard, ...]
    needs_fence: bool
    """Whether one of them was not released, or others than replicas with as many shards may have scheduled since."""


class TakesOver(Protocol):
    """What the elector asks for before anything is decided for a shard."""

    async def make_ready(self, taken: Taken) -> None:
        """See all that was bound, and make sure that nothing more of the last holders can be; as long as that takes."""

    async def see_everything(self, held: Iterable[HeldShard]) -> bool:
        """See all pods as they are now; False if one of *held* was lost before."""
