"""What a process has seen of the cluster."""

from __future__ import annotations

from typing import TypeVar

from attrs import define, field

from contrib.sharding.objects import Change, Claim, Listing, PodGroup, ShardedPod, Stored

_Kind = TypeVar("_Kind", ShardedPod, Claim, PodGroup)


@define(eq=False)
class View:
    """What was seen last of each object."""

    pods: dict[str, ShardedPod] = field(factory=dict, init=False)
    claims: dict[str, Claim] = field(factory=dict, init=False)
    groups: dict[str, PodGroup] = field(factory=dict, init=False)
    seen: int = field(default=0, init=False)
    """The revision up to which everything was seen."""
    since: dict[str, int] = field(factory=dict, init=False)
    """Owners that pods repel → the revision at which such a pod was seen first, without a gap since."""

    def replace(self, listing: Listing) -> bool:
        """Take in all that was listed; False: more was seen before."""
        if listing.revision < self.seen:
            return False
        self.pods = _newer(self.pods, listing.pods, listing.revision)
        self.claims = _newer(self.claims, listing.claims, listing.revision)
        self.groups = _newer(self.groups, listing.groups, listing.revision)
        self.seen = listing.revision
        return True

    def apply(self, changes: list[Change]) -> None:
        """Take in what was watched."""
        for change in changes:
            if change.revision > self.seen:
                self.seen = change.revision
                if change.stored is None:
                    for known in (self.pods, self.claims, self.groups):
                        known.pop(change.name, None)
                else:
                    self._put(change.stored, is_known=False)

    def learn(self, value: object) -> None:
        """The server has answered with what is stored, before the watch has brought it."""
        if isinstance(value, ShardedPod | Claim | PodGroup):
            self._put(value, is_known=True)

    def new_terms(self) -> bool:
        """Look what pods repel; True: something that none did before."""
        terms = {pod.repels for pod in self.pods.values() if pod.repels}
        new = terms - self.since.keys()
        self.since = {term: self.since.get(term, self.seen) for term in terms}
        return bool(new)

    def find(self, name: str) -> Stored | None:
        """The pod, claim or pod group of this name."""
        return self.pods.get(name) or self.claims.get(name) or self.groups.get(name)

    def _put(self, stored: Stored, *, is_known: bool) -> None:
        """Take in a newer version; of what is known only, as something else may have been deleted."""
        known = self.find(stored.name)
        if (known is None and is_known) or (known is not None and known.version >= stored.version):
            return
        if isinstance(stored, ShardedPod):
            self.pods[stored.name] = stored
        elif isinstance(stored, Claim):
            self.claims[stored.name] = stored
        else:
            self.groups[stored.name] = stored


def _newer(known: dict[str, _Kind], listed: dict[str, _Kind], revision: int) -> dict[str, _Kind]:
    return listed | {name: one for name, one in known.items() if one.version > revision}
