"""A process that schedules its shards: what it sees, and when it decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import define, field

from contrib.sharding.claims import Claims
from contrib.sharding.fencing import Fencing
from contrib.sharding.groups import Groups
from contrib.sharding.objects import Change, Listing
from contrib.sharding.owners import Owners
from contrib.sharding.placing import Placing
from contrib.sharding.process import Process
from contrib.sharding.proposals import Proposals
from contrib.sharding.requests import Requests
from contrib.sharding.room import Room
from contrib.sharding.shard_leases import Former, ShardLeases
from contrib.sharding.terms import Terms
from contrib.sharding.view import View


@define(eq=False)
class Replica:
    """Puts the parts of one process together."""

    process: Process
    view: View = field(factory=View, init=False)
    leases: ShardLeases = field(init=False)
    _requests: Requests = field(init=False)
    _terms: Terms = field(init=False)
    _fencing: Fencing = field(init=False)
    _owners: Owners = field(init=False)
    _claims: Claims = field(init=False)
    _placing: Placing = field(init=False)
    _proposals: Proposals = field(init=False)
    _groups: Groups = field(init=False)
    _is_deciding: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        process, view = self.process, self.view
        self.leases = leases = ShardLeases(
            process=process,
            taken=self._taken,
            acknowledged=lambda shard: self._requests.acknowledged(shard),
            is_drained=lambda shard: self._requests.is_drained(shard),
        )
        self._requests = requests = Requests(process, view, leases, self._decide_soon)
        self._terms = Terms(process, view, leases, self._list)
        self._fencing = Fencing(process, view, leases, self._list, self._decide_soon)
        self._owners = owners = Owners(process, view)
        self._claims = Claims(requests)
        self._placing = Placing(requests, owners, self._terms, self._claims)
        self._proposals = Proposals(requests, owners)
        self._groups = Groups(requests, owners, self._proposals)

    def start(self) -> None:
        """Begin: list everything, watch it, look at the leases again and again."""
        self._list(lambda: None)
        self._tick()

    def _tick(self) -> None:
        process = self.process
        process.ask(lambda: dict(process.link.server.leases), self._take_in_leases)
        self._decide_soon()
        process.later(process.protocol.retry_seconds * process.random.uniform(1.0, 1.2), self._tick)

    def _take_in_leases(self, leases: dict[str, Any]) -> None:
        self.leases.take_in(leases)
        self._terms.agree(leases)

    def _taken(self, shard: int, former: Former) -> None:
        self._fencing.taken(shard, former)

    def _list(self, then: Callable[[], None]) -> None:
        """List everything, watch on from there, and do *then*; again if nothing comes."""
        link = self.process.link

        def take(listing: Listing | None) -> None:
            if listing is None:
                self._list(then)
                return
            if self.view.replace(listing):
                self._terms.look()
                link.watch(listing.position, self._changed)
            then()
            self._decide_soon()

        link.request(link.server.list, take, self.process.protocol.request_seconds)

    def _changed(self, changes: list[Change]) -> None:
        self.view.apply(changes)
        self._terms.look()
        self._decide_soon()

    def _decide_soon(self) -> None:
        if not self._is_deciding:
            self._is_deciding = True
            self.process.later(self.process.protocol.decision_seconds, self._decide)

    def _decide(self) -> None:
        """Decide on all pods that this process is to decide on, those of high priority first."""
        self._is_deciding = False
        room = Room(self.process.link.server.nodes, self._requests)
        for pod in sorted(self.view.pods.values(), key=lambda pod: -pod.priority):
            if pod.node or pod.name in self._requests.under_way:
                continue
            if pod.nominated:
                self._proposals.answer(pod, room)
            elif self._groups.is_waiting(pod):
                continue
            elif self.leases.may_decide(shard := self._owners.decider(pod)):
                self._placing.place(pod, shard, room)
        self._claims.give_back()
        self._groups.decide(room)
