"""Evicts the bound pods of gangs, and of trees of them, that stay incomplete: they are scheduled again as a whole."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import Final

from attrs import define

from trio_sched.daemon.pod_groups.pod_group_report import PodGroupReporter
from trio_sched.daemon.pods.pod_status import PodStatusWriter
from trio_sched.daemon.writes.event_recorder import EventRecorder
from trio_sched.daemon.writes.scheduler_events import evicted_with_gang
from trio_sched.daemon.writes.work_pool import WorkPool
from trio_sched.engine.group_forest import is_composite
from trio_sched.engine.pod_groups.gang_recovery import INCOMPLETE_SECONDS
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.errors import Conflict, KubeClientError, NotFound
from trio_sched.kube_client.pods import delete_pod
from trio_sched.objects.pod import Pod

log = logging.getLogger(__name__)

INCOMPLETE_POD_GROUP: Final = "IncompletePodGroup"
"""The reason of the condition ``DisruptionTarget``."""


@define(eq=False, kw_only=True)
class GangEviction:
    """Deletes pods in the background, with a condition and an event that say why."""

    client: KubeClient
    pool: WorkPool
    recorder: EventRecorder
    status_writer: PodStatusWriter
    reporter: PodGroupReporter

    def evict(self, key: str, pods: Sequence[Pod]) -> None:
        """Evict *pods*, the bound ones of the gang called *key*, or of the tree called ``namespace//name``."""
        if is_composite(key):
            what = f"composite pod group {key.replace('//', '/')}"
            note = (
                f"too few child groups of {what} have their pods bound, and the others could not be within "
                f"{INCOMPLETE_SECONDS:.0f} s: the bound pods are evicted, and the tree is scheduled again as a whole"
            )
        else:
            what, group = f"pod group {key}", self.reporter.group(key)
            note = (
                f"{len(pods)} of at least {None if group is None else group.min_count} pods are bound, and the others "
                f"could not be within {INCOMPLETE_SECONDS:.0f} s: the bound pods are evicted, and the gang is "
                "scheduled again as a whole"
            )
        log.warning("%s is incomplete for %.0f s, evicting its %d bound pods", what, INCOMPLETE_SECONDS, len(pods))
        for of_group, first in {pod.group_key or "": pod for pod in reversed(pods)}.items():
            group = self.reporter.group(of_group)
            if group is not None:
                self.reporter.record(group, note, controller=first.scheduler_name, reason="IncompleteGangEvicted")
        for pod in pods:
            self.pool.submit(partial(self._evict, what, pod))

    async def _evict(self, what: str, pod: Pod) -> None:
        try:
            await self.status_writer.write_disruption_target(
                pod,
                reason=INCOMPLETE_POD_GROUP,
                message=f"{pod.scheduler_name}: evicted because {what} stayed incomplete",
            )
            await delete_pod(self.client, namespace=pod.namespace, name=pod.name, uid=pod.uid)
        except (NotFound, Conflict):
            return
        except KubeClientError as problem:
            log.error("Failed to evict a pod of an incomplete gang: %s", problem, extra={"pod": pod.key})
            return
        self.recorder.record(evicted_with_gang(pod, what))
