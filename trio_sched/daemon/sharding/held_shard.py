"""A shard that this process holds, and what is done before anything is decided for one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from attrs import define, frozen

from trio_sched.kube_client.leases import StoredLease


@define(eq=False)
class HeldShard:
    """A shard that this process holds."""

    shard: int
    stored: StoredLease
    renewed_at: float
    """When the request was sent that has renewed the lease last."""
    published: int = 0
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
