"""Pods that the other scheduler has decided on, and that are not bound yet: it counts them on their nodes."""

from __future__ import annotations

from attrs import define, field

from trio_sched.engine.scheduler import Scheduler
from trio_sched.objects.changes import Change
from trio_sched.objects.pod import Pod


@define(eq=False)
class ExpectedBindings:
    """They are assumed, as the other scheduler has done; a scheduler that decides for itself assumes others."""

    scheduler: Scheduler
    _node_of: dict[str, str] = field(factory=dict, init=False)
    """UID → the node."""

    def expect(self, pod: Pod) -> None:
        """*pod* is nominated to the node that it will be bound to."""
        self.scheduler.queue.nominator.delete(pod.uid)
        self.scheduler.cache.assume(pod, pod.nominated_node_name)
        self._node_of[pod.uid] = pod.nominated_node_name

    def is_fulfilled(self, change: Change[Pod]) -> bool:
        """Take in what has become of a pod; returns whether it is bound to the node that was expected.

        To be called before the cache gets *change*: what did not come as expected is on no node then.
        """
        pod = change.subject
        expected = self._node_of.get(pod.uid)
        if expected is None:
            return False
        if change.type != "DELETED" and not pod.node_name and pod.nominated_node_name == expected:
            return False
        del self._node_of[pod.uid]
        if change.type != "DELETED" and pod.node_name == expected:
            return True
        self.scheduler.cache.forget(pod.uid)
        return False
