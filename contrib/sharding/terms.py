"""What pods repel: the lane places the first pod with a term once all shards have seen it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import define, field

from contrib.sharding.objects import ShardedPod
from contrib.sharding.process import Process
from contrib.sharding.shard_leases import ShardLeases, all_have_seen
from contrib.sharding.view import View
from trio_sched.engine.sharding.ownership import LANE


@define(eq=False)
class Terms:
    """Those that one process has seen."""

    process: Process
    view: View
    leases: ShardLeases
    list_again: Callable[[Callable[[], None]], None]
    """Lists everything and does something then."""
    _agreed: set[str] = field(factory=set, init=False)
    """Those that all shards have seen."""

    def may_place(self, pod: ShardedPod) -> bool:
        """Whether all have seen what the pod repels."""
        return not pod.repels or not self.process.protocol.awaits_terms or pod.repels in self._agreed

    def look(self) -> None:
        """Look what the pods that were seen repel."""
        is_new = self.view.new_terms()
        self._agreed &= self.view.since.keys()
        if is_new:
            self.leases.renew_at_once()
            self.process.later(self.process.protocol.agreement_seconds, self._look_at_leases)

    def agree(self, leases: dict[str, Any]) -> None:
        """Look who has seen it, now that all leases were listed."""
        terms, shards = self._open(), range(self.process.protocol.shards)
        seen = [term for term, since in terms.items() if all_have_seen(since, leases, shards)]
        if seen and self.leases.may_decide(LANE):
            # What was bound by those who had not seen it is in what is listed now.
            self.list_again(lambda: self._agreed.update(one for one in seen if self.view.since.get(one) == terms[one]))

    def _look_at_leases(self) -> None:
        """Look who has seen it, soon again where somebody has not; the next tick does so anyway."""
        if self._open() and self.leases.may_decide(LANE):
            server = self.process.link.server
            self.process.ask(lambda: dict(server.leases), self.agree)
            self.process.later(self.process.protocol.agreement_seconds, self._look_at_leases)

    def _open(self) -> dict[str, int]:
        return {term: since for term, since in self.view.since.items() if term not in self._agreed}
