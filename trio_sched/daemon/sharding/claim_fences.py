"""Device claims when the lane is taken: nothing that its last holder has sent may change them, and all are seen."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Final

import trio
from attrs import define, field

from trio_sched.daemon.watching.object_waits import ObjectWaits
from trio_sched.daemon.watching.watched_kinds import kind_of
from trio_sched.documents.json_values import encode
from trio_sched.engine.object_cache import ObjectCache
from trio_sched.engine.sharding.sharded_event_handlers import revision_of
from trio_sched.kube_client import verbs
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.decoding.decoding import Page
from trio_sched.kube_client.errors import Forbidden, KubeClientError, NotFound
from trio_sched.kube_client.kinds import Kind
from trio_sched.kube_client.versions.served_versions import ServedVersions
from trio_sched.objects.resource.resource_claim import ResourceClaim

log = logging.getLogger(__name__)

FENCED: Final = "trio-sched.dev/fenced"
"""The annotation of a claim that was given another version, so that no earlier decision about it can take effect."""
_KIND: Final = "ResourceClaim"
_MAX_PARALLEL: Final = 16
_LOOK_SECONDS: Final = 0.5
_PAUSE_SECONDS: Final = 2.0


@define(eq=False, kw_only=True)
class ClaimFences:
    """Fences and lists the claims of one cluster."""

    client: KubeClient
    served: ServedVersions
    objects: ObjectCache
    object_waits: ObjectWaits
    _count: int = field(default=0, init=False)

    async def take_over(self, why: str, users: Collection[str], may_go_on: Callable[[], bool]) -> bool:
        """Fence the claims that none of the pods *users*, by UID, has; then see all as they are now.

        Args:
            why: told in their annotation; empty: fence nothing.
            users: pods that have a node.
            may_go_on: whether the lane is still held.

        Returns:
            Whether it is.
        """
        if _KIND not in self.objects.kinds:
            return may_go_on()
        is_fenced = not why
        while may_go_on():
            try:
                claims = await self._list()
                if not is_fenced:
                    await self._fence([one for one in claims if not _is_used(one, users)], why)
                    is_fenced = True
                elif all(map(self._is_seen, claims)):
                    return may_go_on()
                else:
                    await self.object_waits.wait(_KIND, "", "", _LOOK_SECONDS)
            except KubeClientError as problem:
                log.warning("cannot list or fence the device claims, retrying: %s", problem)
                await trio.sleep(_PAUSE_SECONDS)
        return False

    async def _list(self) -> list[ResourceClaim]:
        claims: list[ResourceClaim] = []

        def take(page: Page[ResourceClaim]) -> None:
            if page.starts_over:
                claims.clear()
            claims.extend(page.objects)

        async def list_in(kind: Kind[ResourceClaim]) -> None:
            await verbs.list_pages(self.client, kind, take)

        try:
            await self.served.use(_claim_kind(), list_in)
        except (NotFound, Forbidden):  # the watch shows none, and none can be allocated
            return []
        return claims

    async def _fence(self, claims: Collection[ResourceClaim], why: str) -> None:
        limiter = trio.CapacityLimiter(_MAX_PARALLEL)
        problems: list[KubeClientError] = []

        async def fence(claim: ResourceClaim) -> None:
            async with limiter:
                try:
                    await self._touch(claim, why)
                except (NotFound, Forbidden):  # who must not patch claims allocates none
                    return
                except KubeClientError as problem:
                    problems.append(problem)

        async with trio.open_nursery() as nursery:
            for claim in claims:
                nursery.start_soon(fence, claim)
        if problems:
            raise problems[0]

    async def _touch(self, claim: ResourceClaim, why: str) -> None:
        self._count += 1
        body = encode({"metadata": {"annotations": {FENCED: f"{why} ({self._count})"}}})

        async def patch(kind: Kind[ResourceClaim]) -> None:
            await verbs.patch(self.client, kind, claim.name, body, namespace=claim.namespace)

        await self.served.use(_claim_kind(), patch)

    def _is_seen(self, claim: ResourceClaim) -> bool:
        shown: ResourceClaim | None = self.objects.get(_KIND, claim.name, claim.namespace)
        if shown is None or shown.metadata.uid != claim.metadata.uid:
            return False
        return revision_of(shown) >= revision_of(claim)


def _claim_kind() -> Kind[ResourceClaim]:
    found = kind_of(_KIND)
    assert found is not None
    return found[1]


def _is_used(claim: ResourceClaim, users: Collection[str]) -> bool:
    return any(one.uid in users for one in claim.status.reserved_for or ())
