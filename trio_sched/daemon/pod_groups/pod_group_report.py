"""Reports what became of pod groups: the condition ``PodGroupScheduled``, and events that explain."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, Final

import msgspec
import trio
from attrs import define, field

from trio_sched.daemon.limits import MAX_CONDITION_MESSAGE_BYTES, STATUS_RETRY_SECONDS
from trio_sched.daemon.pods.pod_status import merge_condition
from trio_sched.daemon.watching.watched_kinds import KINDS
from trio_sched.daemon.writes.cut_text import cut_text
from trio_sched.daemon.writes.event_recorder import EventRecorder
from trio_sched.daemon.writes.scheduler_events import EventType, PodGroupEvent
from trio_sched.daemon.writes.work_pool import WorkPool
from trio_sched.engine.object_cache import ObjectCache
from trio_sched.engine.pod_groups.pod_group_results import GroupResult, error_text
from trio_sched.kube_client import verbs
from trio_sched.kube_client.connection import STRATEGIC_MERGE_PATCH
from trio_sched.kube_client.errors import Conflict, ConnectionFailed, KubeClientError, NotFound, ServerError
from trio_sched.kube_client.kinds import Kind
from trio_sched.kube_client.versions.api_versions import body_in_version
from trio_sched.kube_client.versions.served_versions import ServedVersions
from trio_sched.objects.pod_groups.pod_group import PodGroup, PodGroupCondition
from trio_sched.objects.pod_groups.workload_groups import is_of_workload, workload_of
from trio_sched.objects.timestamps import format_time

log = logging.getLogger(__name__)

POD_GROUP_SCHEDULED: Final = "PodGroupScheduled"
_KIND: Final[Kind[PodGroup]] = KINDS["PodGroup"]
_SLACK: Final = 100
"""Groups that are gone of which it is still remembered what was written last."""


@define(eq=False, kw_only=True)
class PodGroupReporter:
    """Writes conditions and events of pod groups, in the background."""

    served: ServedVersions
    pool: WorkPool
    recorder: EventRecorder
    object_cache: ObjectCache
    wall_clock: Callable[[], datetime]
    _pending: dict[str, PodGroupCondition | None] = field(factory=dict)
    """UID → the condition to write; None while one is being written and no other waits."""
    _written: dict[str, PodGroupCondition] = field(factory=dict)
    """UID → the condition that was written last and that no watch has shown yet."""
    _explained: dict[str, str] = field(factory=dict)
    """UID → the text of its last event."""

    def group(self, key: str) -> PodGroup | None:
        """The pod group called *key*, as the watch shows it."""
        namespace, _slash, name = key.partition("/")
        found: PodGroup | None = self.object_cache.get("PodGroup", name, namespace)
        return found

    def min_count(self, key: str) -> int | None:
        """How many pods the gang called *key* needs; None if it is no gang, or does not exist."""
        group = self.group(key)
        return None if group is None else group.min_count

    def report(self, key: str, result: GroupResult) -> None:
        """Write what an attempt came to, unless the status of the group says so already."""
        group = self.group(key)
        if group is None:
            log.error("Failed to get PodGroup for status update", extra={"podGroup": key})
            return
        if is_of_workload(group.name):
            return  # workloads have no status
        wanted = condition_of(result)
        current = self._current(group)
        if current is not None and current.status == "True" and wanted.status != "True":
            return
        wanted = msgspec.structs.replace(
            wanted,
            message=cut_text(wanted.message, MAX_CONDITION_MESSAGE_BYTES),
            observed_generation=group.metadata.generation or None,
        )
        if current is None or _differ(current, wanted):
            self._enqueue(group, wanted)

    def explain(self, key: str, note: str, *, controller: str, reason: str = "FailedScheduling") -> None:
        """Record why the group called *key* is not scheduled, as a warning; not if its last event said the same."""
        group = self.group(key)
        if group is None or self._explained.get(group.metadata.uid) == note:
            return
        self._drop_gone(self._explained)
        self._explained[group.metadata.uid] = note
        self.record(group, note, controller=controller, reason=reason)

    def record(
        self, group: PodGroup, note: str, *, controller: str, reason: str, event_type: EventType = "Warning"
    ) -> None:
        """Record an event about *group*, or about the workload that it is of."""
        kind, about = "PodGroup", group.metadata
        if is_of_workload(group.name):
            kind, about = "Workload", workload_of(group)
        self.recorder.record_on_pod_group(
            PodGroupEvent(
                kind=kind,
                about=about,
                api_version=self.served.known(_KIND).api_version,
                type=event_type,
                reason=reason,
                note=note,
                component=controller,
            )
        )

    def scheduled(self, key: str) -> None:
        """The group called *key* is scheduled: what kept it from that can be said again."""
        group = self.group(key)
        if group is not None:
            self._explained.pop(group.metadata.uid, None)

    # --- the condition ----------------------------------------------------------------------------------------------

    def _current(self, group: PodGroup) -> PodGroupCondition | None:
        """The condition as it is, or will be once what is under way is written."""
        uid = group.metadata.uid
        shown = next((one for one in group.status.conditions or () if one.type == POD_GROUP_SCHEDULED), None)
        written = self._written.get(uid)
        if written is not None and shown is not None and not _differ(written, shown):
            del self._written[uid]
        return self._pending.get(uid) or self._written.get(uid) or shown

    def _enqueue(self, group: PodGroup, condition: PodGroupCondition) -> None:
        uid = group.metadata.uid
        is_under_way = uid in self._pending
        self._pending[uid] = condition
        if not is_under_way:
            self.pool.submit(partial(self._write, f"{group.namespace}/{group.name}", uid))

    def _drop_gone(self, remembered: dict[str, Any]) -> None:
        """Forget groups that do not exist any more, once there are many."""
        groups = self.object_cache.objects("PodGroup")
        if len(remembered) >= 2 * len(groups) + _SLACK:
            existing = {group.metadata.uid for group in groups}
            for uid in [uid for uid in remembered if uid not in existing]:
                del remembered[uid]

    async def _write(self, key: str, uid: str) -> None:
        try:
            while (condition := self._pending.get(uid)) is not None:
                self._pending[uid] = None
                group = self.group(key)
                if group is None or group.metadata.uid != uid:
                    return
                await self._send(group, condition)
                self._drop_gone(self._written)
                self._written[uid] = condition
        except NotFound:
            self._written.pop(uid, None)
        except KubeClientError as problem:
            log.error("Failed to update PodGroup status: %s", problem, extra={"podGroup": key.partition("/")[2]})
        finally:
            self._pending.pop(uid, None)

    async def _send(self, group: PodGroup, condition: PodGroupCondition) -> None:
        status = merge_condition(group.status.conditions or (), condition, now=format_time(self.wall_clock()))

        async def patch(kind: Kind[PodGroup]) -> None:
            body = msgspec.json.encode(body_in_version(_KIND, kind, {"status": status}))
            await verbs.patch(
                self.served.client,
                kind,
                group.name,
                body,
                namespace=group.namespace,
                subresource="status",
                patch_type=STRATEGIC_MERGE_PATCH,
            )

        pauses, began = iter(STATUS_RETRY_SECONDS), trio.current_time()
        while True:
            try:
                await self.served.use(_KIND, patch)
            except (ServerError, Conflict, ConnectionFailed) as problem:
                pause = next(pauses, None)
                if pause is not None:
                    await trio.sleep(pause)
                elif isinstance(problem, ConnectionFailed):  # a group that waits for events only needs its reason
                    await self.served.client.reachability.outlast(began)
                else:
                    raise
            else:
                return


def condition_of(result: GroupResult) -> PodGroupCondition:
    """The condition of a group after an attempt."""
    status = result.status
    if status is None:
        return PodGroupCondition(type=POD_GROUP_SCHEDULED, status="True", reason="Scheduled")
    if status.is_rejected:
        return PodGroupCondition(
            type=POD_GROUP_SCHEDULED, status="False", reason="Unschedulable", message=status.message
        )
    return PodGroupCondition(
        type=POD_GROUP_SCHEDULED, status="False", reason="SchedulerError", message=error_text(status)
    )


def _differ(one: PodGroupCondition, other: PodGroupCondition) -> bool:
    return (one.status, one.reason, one.message, one.observed_generation) != (
        other.status,
        other.reason,
        other.message,
        other.observed_generation,
    )
