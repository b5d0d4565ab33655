"""Which replicas that share the work are alive: the lease of leader election, which they hold together, says it.

Its holder is called after the number of shards, and the label that says which of them a node belongs to. So replicas
with others wait like any other scheduler, and so does everybody else who schedules. Its annotations say who is alive,
and since when a shard must be fenced.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import datetime
from typing import Final

import msgspec
import trio
from attrs import define, field, frozen

from trio_sched.config.schema import LeaderElection
from trio_sched.daemon.clients import WritePermit
from trio_sched.daemon.leader_election import LeaderElectionLost
from trio_sched.engine.lease_rules import Candidate, ObservedRecord, Step
from trio_sched.kube_client import leases
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.leases import StoredLease
from trio_sched.objects.lease import LeaseSpec
from trio_sched.objects.timestamps import SECOND_NS, format_micro_time

REPLICAS: Final = "trio-sched.dev/replicas"
"""Identity → a number that grows as long as the replica is alive, as JSON."""
FENCE_BEFORE: Final = "trio-sched.dev/fence-before"
"""Shards that were held last in an earlier term of the group are fenced for all pods: others scheduled since."""
_HOLDER: Final = "shards-of-"
_WITH_GROUPS: Final = "-with-groups"
_BY: Final = "-by-"
_READ_HOLDER: Final = re.compile(f"{_HOLDER}([1-9][0-9]{{0,2}})({_WITH_GROUPS})?(?:{_BY}(.+))?").fullmatch
_MAX_REPLICAS: Final = 1000
_read_replicas: Final = msgspec.json.Decoder(dict[str, int]).decode


@define(eq=False, kw_only=True)
class GroupLease:
    """The part of one replica in it."""

    client: KubeClient
    settings: LeaderElection
    shards: int
    has_groups: bool
    """Gate GenericWorkload: who does not know of groups would bind pods of a gang one by one."""
    node_label: str
    """The label that says which shard a node belongs to; empty: its name does."""
    replica: str
    """The identity of this process."""
    wall_clock: Callable[[], datetime]
    permit: WritePermit
    term: int = field(default=0, init=False)
    """How often the lease has changed hands."""
    fence_before: int = field(default=-1, init=False)
    """See `FENCE_BEFORE`."""
    observed: ObservedRecord | None = field(default=None, init=False)
    is_joined: bool = field(default=False, init=False)
    _beats: dict[str, tuple[int, float]] = field(factory=dict, init=False)
    """By replica: the number that was seen, and when on the local clock."""

    @property
    def holder(self) -> str:
        """What the lease calls its holders."""
        return Holder(self.shards, self.has_groups, self.node_label).name

    @property
    def lock(self) -> str:
        """The lease as ``namespace/name``."""
        return f"{self.settings.resource_namespace}/{self.settings.resource_name}"

    @property
    def candidate(self) -> Candidate:
        """All replicas together, as one candidate."""
        return Candidate(identity=self.holder, lease_duration_seconds=self.settings.lease_duration_ns // SECOND_NS)

    @property
    def renew_deadline_seconds(self) -> float:
        """For how long after a renewal this process may write."""
        return self.settings.renew_deadline_ns / SECOND_NS

    @property
    def request_seconds(self) -> float:
        """The timeout of a request."""
        return max(1.0, self.renew_deadline_seconds / 2)

    @property
    def alive(self) -> frozenset[str]:
        """The replicas that were seen to be alive lately; this one, too."""
        since = trio.current_time() - self.settings.lease_duration_ns / SECOND_NS
        return frozenset({one for one, (_beat, at) in self._beats.items() if at > since} | {self.replica})

    def wall_time(self) -> str:
        """The time of day, as in leases."""
        return format_micro_time(self.wall_clock())

    def observe(self, stored: StoredLease | None) -> None:
        """The lease was listed."""
        now = trio.current_time()
        if stored is None:
            self.observed = None
            return
        spec, record, known = stored.lease.spec, stored.record, self.observed
        self.observed = ObservedRecord(spec, record, now) if known is None else known.observe(spec, record, now)
        beats = replicas_of(stored)
        for one, beat in beats.items():
            before = self._beats.get(one)
            if before is None or before[0] != beat:
                self._beats[one] = beat, now
        for gone in self._beats.keys() - beats.keys():
            del self._beats[gone]

    async def renew(self, stored: StoredLease | None) -> bool:
        """Join, or say that this replica is alive; returns whether the group holds the lease.

        Raises:
            LeaderElectionLost: somebody else holds it now.
            KubeClientError: it could not be written.
        """
        self.observe(stored)
        candidate, sent = self.candidate, trio.current_time()
        if candidate.next_step(self.observed, sent) is Step.WAIT:
            if self.is_joined:
                self.permit.until = -math.inf
                holder = "" if self.observed is None else self.observed.spec.holder_identity or ""
                raise LeaderElectionLost(self.lock, holder)
            return False
        spec = candidate.record_to_write(self.observed, self.wall_time())
        alive = self.alive
        beats = {one: beat for one, (beat, _at) in self._beats.items() if one in alive}
        beats[self.replica] = beats.get(self.replica, 0) + 1
        fence_before = self._fence_before(stored, spec)
        annotations = {REPLICAS: msgspec.json.encode(beats).decode(), FENCE_BEFORE: str(fence_before)}
        written = await self.write(stored, self.settings.resource_name, spec, annotations)
        self.observe(written)
        self.term, self.fence_before = written.lease.spec.lease_transitions or 0, fence_before
        self.permit.until = sent + self.renew_deadline_seconds
        self.is_joined = True
        return True

    def _fence_before(self, stored: StoredLease | None, spec: LeaseSpec) -> int:
        """From which term on shards need no special fence."""
        observed, kept = self.observed, number(stored, FENCE_BEFORE, -1)
        was_released = observed is None or not observed.spec.holder_identity
        if was_released or self.candidate.holds(observed):
            return kept
        return spec.lease_transitions or 0

    async def leave(self, stored: StoredLease | None, *, release: bool) -> None:
        """This replica is no longer there; with *release* nobody is.

        Raises:
            KubeClientError: that could not be written.
        """
        self.observe(stored)
        if stored is None or self.observed is None or not self.candidate.holds(self.observed):
            return
        beats = replicas_of(stored)
        beats.pop(self.replica, None)
        release = release and not self.alive - {self.replica}
        now, candidate = self.wall_time(), self.candidate
        spec = candidate.release(self.observed, now) if release else candidate.record_to_write(self.observed, now)
        annotations = {REPLICAS: msgspec.json.encode(beats).decode()}
        await self.write(stored, self.settings.resource_name, spec, annotations)

    async def write(
        self, stored: StoredLease | None, name: str, spec: LeaseSpec, annotations: dict[str, str]
    ) -> StoredLease:
        """Create a lease of the group, or update it if it is still as it is *stored*.

        Raises:
            KubeClientError: it could not be written.
        """
        seconds = self.request_seconds
        if stored is None:
            return await leases.create_lease(
                self.client,
                namespace=self.settings.resource_namespace,
                name=name,
                spec=spec,
                annotations=annotations,
                timeout_seconds=seconds,
            )
        return await leases.update_lease(
            self.client, stored.with_annotations(annotations), spec, timeout_seconds=seconds
        )


def replicas_of(stored: StoredLease) -> dict[str, int]:
    """What the lease says of its replicas; whatever else is there is nothing that a replica has written."""
    text = (stored.lease.metadata.annotations or {}).get(REPLICAS, "{}")
    try:
        found = _read_replicas(text)
    except msgspec.DecodeError:
        return {}
    return dict(list(found.items())[-_MAX_REPLICAS:])


@frozen
class Holder:
    """What the name says under which replicas hold the group lease."""

    shards: int
    has_groups: bool
    """Whether they know of groups."""
    node_label: str
    """The label that says which shard a node belongs to; empty: its name does."""

    @property
    def name(self) -> str:
        """What the lease calls them."""
        by_label = f"{_BY}{self.node_label}" if self.node_label else ""
        return f"{_HOLDER}{self.shards}{_WITH_GROUPS if self.has_groups else ''}{by_label}"


def read_holder(text: str) -> Holder | None:
    """What the holder of a lease says; None: no replicas hold it that share the work."""
    found = _READ_HOLDER(text)
    return None if found is None else Holder(int(found[1]), found[2] is not None, found[3] or "")


def number(stored: StoredLease | None, annotation: str, default: int) -> int:
    """An *annotation* that is a number; *default* if there is none."""
    text = "" if stored is None else (stored.lease.metadata.annotations or {}).get(annotation, "")
    return int(text) if len(text) < 20 and text.isascii() and text.removeprefix("-").isdecimal() else default
