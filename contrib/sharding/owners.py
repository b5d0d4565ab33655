"""Who decides on a pod, who owns a node, and whose owner did not answer of late."""

from __future__ import annotations

from attrs import define, field

from contrib.sharding.objects import ShardedPod
from contrib.sharding.process import Process
from contrib.sharding.view import View
from trio_sched.engine.sharding.ownership import LANE


@define(eq=False)
class Owners:
    """As one process sees them."""

    process: Process
    view: View
    _slow: dict[int, float] = field(factory=dict, init=False)
    """Shards that did not answer → until when nothing is proposed to them."""

    def decider(self, pod: ShardedPod) -> int:
        """The shard whose owner decides on the pod: its own one, or the lane if others in other places matter."""
        is_claimed = bool(pod.claim) and self.process.protocol.lane_allocates
        if pod.repels or pod.owner in self.view.since or is_claimed or pod.group:
            return LANE
        return self.process.shard(pod.owner)

    def is_slow(self, node: str) -> bool:
        """Whether the owner of a node did not answer."""
        return self._slow.get(self.process.shard(node), 0.0) > self.process.clock()

    def did_not_answer(self, node: str) -> None:
        """The owner of a node has not answered in time."""
        self._slow[self.process.shard(node)] = self.process.clock() + self.process.protocol.proposal_seconds
