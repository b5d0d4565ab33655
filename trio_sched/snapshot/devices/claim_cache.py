"""ResourceClaims as the watch shows them, those that this scheduler has written since, and allocations in flight.

Source: the claim tracker of kube-scheduler's DRA manager and its assume cache.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import define, field

from trio_sched.objects.resource.resource_claim import AllocationResult, ResourceClaim
from trio_sched.snapshot.devices.allocated_devices import AllocatedDevices

EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"
"""The annotation of claims that a scheduler makes for the extended resources of a pod."""

ClaimKey = tuple[str, str]
"""Namespace and name."""


@define(eq=False)
class InFlight:
    """An allocation that a pod was given and that is not written yet."""

    allocation: AllocationResult
    group: str
    """``namespace/name`` of the pod group whose pods share it, "" if there is none."""
    sharers: int = 1
    """The pods that count on it."""


@define(eq=False)
class ClaimCache:
    """Claims by namespace and name: of what the watch shows and what was assumed after a write, the newer version.

    Whatever is allocated here counts in *allocated*.
    """

    allocated: AllocatedDevices
    _latest: dict[ClaimKey, ResourceClaim] = field(factory=dict)
    _stored: dict[ClaimKey, ResourceClaim] = field(factory=dict)
    """The version that the watch shows, where a newer one is assumed."""
    _in_flight: dict[str, InFlight] = field(factory=dict)
    """By the UID of the claim."""
    _extended: dict[str, dict[ClaimKey, ResourceClaim]] = field(factory=dict)
    """The claims for extended resources, by the UID of their pod."""

    def __iter__(self) -> Iterator[ResourceClaim]:
        return iter(self._latest.values())

    def __len__(self) -> int:
        return len(self._latest)

    def get(self, namespace: str, name: str) -> ResourceClaim | None:
        """The newest version that is known, or None."""
        return self._latest.get((namespace, name))

    def extended_of(self, pod_uid: str, pod_name: str) -> ResourceClaim | None:
        """The claim that was made for the extended resources of a pod, or None."""
        for claim in self._extended.get(pod_uid, {}).values():
            for owner in claim.metadata.owner_references or ():
                if owner.controller and owner.uid == pod_uid and owner.name == pod_name:
                    return claim
        return None

    # --- the watch ------------------------------------------------------------------------------------------------

    def put(self, claim: ResourceClaim) -> None:
        """The watch shows *claim*."""
        key = _key(claim)
        latest = self._latest.get(key)
        if latest is not None and _is_newer(latest, claim):
            if key in self._stored:
                self._stored[key] = claim
            return
        self._stored.pop(key, None)
        self._replace(key, latest, claim)

    def remove(self, namespace: str, name: str) -> None:
        """The watch shows that a claim is gone."""
        key = namespace, name
        self._stored.pop(key, None)
        self._replace(key, self._latest.get(key), None)

    # --- what this scheduler writes ---------------------------------------------------------------------------------

    def assume(self, claim: ResourceClaim) -> bool:
        """*claim* is what the API server returned after a write; False if the claim is not known (any more)."""
        key = _key(claim)
        latest = self._latest.get(key)
        if latest is None or latest.metadata.uid != claim.metadata.uid:
            return False
        if _is_newer(claim, latest):  # the watch may have been faster
            self._stored.setdefault(key, latest)
            self._replace(key, latest, claim)
        return True

    def in_flight(self, uid: str) -> InFlight | None:
        """The allocation of the claim *uid* that is not written yet, or None."""
        return self._in_flight.get(uid)

    def add_in_flight(self, uid: str, allocation: AllocationResult, group: str = "") -> None:
        """A pod, of the pod group *group*, counts on *allocation* for the claim *uid*; the first one's stands."""
        found = self._in_flight.get(uid)
        if found is not None:
            found.sharers += 1
            return
        self._in_flight[uid] = InFlight(allocation, group)
        self.allocated.add(allocation)

    def end_in_flight(self, uid: str, *, is_written: bool = False) -> bool:
        """A pod no longer counts on the allocation of the claim *uid*; returns whether it is not in flight any more.

        With *is_written*, it is part of the claim by now, whoever else counts on it.
        """
        found = self._in_flight.get(uid)
        if found is None:
            return False
        found.sharers -= 1
        if found.sharers > 0 and not is_written:
            return False
        del self._in_flight[uid]
        self.allocated.remove(found.allocation)
        return True

    def restore(self, namespace: str, name: str) -> None:
        """Go back to the version that the watch shows."""
        key = namespace, name
        stored = self._stored.pop(key, None)
        if stored is not None:
            self._replace(key, self._latest.get(key), stored)

    # --- bookkeeping ------------------------------------------------------------------------------------------------

    def _replace(self, key: ClaimKey, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        before = None if old is None else old.status.allocation
        after = None if new is None else new.status.allocation
        if after is not None:
            self.allocated.add(after)  # first, so that devices that stay allocated are not free in between
        if before is not None:
            self.allocated.remove(before)
        if old is not None and _is_extended(old):
            self._forget_extended(key, old)
        if new is None:
            self._latest.pop(key, None)
            return
        self._latest[key] = new
        if _is_extended(new):
            for owner in new.metadata.owner_references or ():
                self._extended.setdefault(owner.uid, {})[key] = new

    def _forget_extended(self, key: ClaimKey, claim: ResourceClaim) -> None:
        for owner in claim.metadata.owner_references or ():
            claims = self._extended.get(owner.uid, {})
            claims.pop(key, None)
            if not claims:
                self._extended.pop(owner.uid, None)


def _key(claim: ResourceClaim) -> ClaimKey:
    return claim.metadata.namespace, claim.metadata.name


def _is_extended(claim: ResourceClaim) -> bool:
    annotations = claim.metadata.annotations
    return annotations is not None and annotations.get(EXTENDED_RESOURCE_CLAIM) == "true"


def _is_newer(one: ResourceClaim, other: ResourceClaim) -> bool:
    """Whether *one* is a later version of the same claim than *other*."""
    if one.metadata.uid != other.metadata.uid:
        return False
    return _version(one) > _version(other)


def _version(claim: ResourceClaim) -> int:
    text = claim.metadata.resource_version
    return int(text) if text.isdecimal() and len(text) < 32 else 0
