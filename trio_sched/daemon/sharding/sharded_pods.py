"""What becomes of pods of others: they are bound to own nodes or refused, and whoever decides on them tells of it."""

from __future__ import annotations

from functools import partial

import trio
from attrs import define

from trio_sched.daemon.plugins.plugin_jobs import PluginJobs
from trio_sched.daemon.pods.binding_cycle import BindingCycle
from trio_sched.daemon.pods.failure_handler import FailureHandler
from trio_sched.daemon.pods.pod_status import PodStatusWriter
from trio_sched.daemon.sharding.proposals import Proposals
from trio_sched.daemon.sharding.shard_plugin import NAME
from trio_sched.engine.evaluation.decision import ScheduleResult, SchedulingFailure
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.sharding.owned_shards import OwnedShards
from trio_sched.objects.pod import Pod


@define(eq=False, kw_only=True)
class ShardedStatusWriter(PodStatusWriter):
    """Writes no nominations: one in the status of a pod asks the owner of the node to bind it.

    The node that pods were evicted from for another one is known to this process only. What is written in the
    background names no version, so it could arrive when somebody else decides.
    """

    def write(self, pod: Pod, *, reason: str, message: str, nominated_node_name: str | None) -> None:
        """Write why *pod* was not scheduled; see `PodStatusWriter.write`."""
        cleared = "" if nominated_node_name == "" else None
        super().write(pod, reason=reason, message=message, nominated_node_name=cleared)


@define(eq=False, kw_only=True)
class ShardedFailureHandler(FailureHandler):
    """Deals with own pods like any other scheduler, and answers whoever has proposed one of his."""

    owned: OwnedShards
    proposals: Proposals
    jobs: PluginJobs

    def handle(self, info: QueuedPodInfo, outcome: SchedulingFailure, *, assumed_pod: Pod | None = None) -> None:
        """Requeue an own pod; take back the nomination of one of another process, and forget the pod."""
        info.signature = None  # it depends on which nodes have refused the pod
        if self.owned.decides_on(info.pod):
            super().handle(info, outcome, assumed_pod=assumed_pod)
            return
        self.scheduler.requeue(info, outcome, None, now=trio.current_time(), assumed_pod=assumed_pod)
        known = self.scheduler.cache.unassigned.get(info.key)
        if known is not None and known.uid == info.uid and known.nominated_node_name:
            answer = partial(self.proposals.refuse, known, known.nominated_node_name, outcome.message)
            self.jobs.submit(NAME, info.pod.scheduler_name, answer)


@define(eq=False, kw_only=True)
class ShardedBindingCycle(BindingCycle):
    """Tells of the pods that this process has bound itself."""

    owned: OwnedShards
    proposals: Proposals

    def _record_bound(self, info: QueuedPodInfo, placed: ScheduleResult) -> None:
        self.owned.ended(info.uid)
        if info.uid in self.proposals.bound:
            self.proposals.bound.discard(info.uid)  # the owner of the node has told
        else:
            super()._record_bound(info, placed)
