"""Pod groups are scheduled, and what their attempts found is recorded."""

from __future__ import annotations

import trio
from attrs import define

from trio_sched.daemon.pod_groups.pod_group_report import condition_of
from trio_sched.daemon.pod_groups.schedule_pod_groups import SchedulePodGroups
from trio_sched.daemon.pods.preemption_executor import HeldPreemption
from trio_sched.daemon.recording.decision_recorder import DecisionRecorder
from trio_sched.daemon.recording.recorded_scheduler import RecordedScheduler
from trio_sched.engine.pod_groups.pod_group_cycle import PodGroupCycle
from trio_sched.engine.pod_groups.pod_group_results import GroupResult
from trio_sched.recording.records import GroupTried, PlacesReleased


@define(eq=False, kw_only=True)
class RecordedPodGroups(SchedulePodGroups):
    """Schedules pod groups as `SchedulePodGroups` does, and notes where their pods fit."""

    scheduler: RecordedScheduler
    decisions: DecisionRecorder

    async def find_places(self, cycle: PodGroupCycle) -> tuple[GroupResult, list[HeldPreemption]]:
        """Find out whether the group of *cycle* fits, and note it."""
        scheduler, decisions, now = self.scheduler, self.decisions, trio.current_time()
        scheduler.rng.take()
        start, before = scheduler.next_start_node_index, decisions.count_notes()
        result, preemptions = await super().find_places(cycle)
        is_asked = any(cycle.is_extended(info.pod) for info in cycle.infos)
        condition = condition_of(result)
        decisions.note(
            GroupTried(
                now,
                cycle.entity_key,
                [info.uid for info in cycle.infos],
                places(result),
                condition.reason,
                condition.message,
                start,
                scheduler.rng.take(),
                not is_asked and decisions.count_notes() == before,
            )
        )
        return result, preemptions

    def release_places(self, key: str, now: float) -> None:
        """The gang called *key* has held places for long enough; that is noted."""
        self.decisions.note(PlacesReleased(now, key))
        super().release_places(key, now)


def places(result: GroupResult) -> list[tuple[str, list[str]]]:
    """What an attempt found for each pod; see `trio_sched.recording.records.GroupTried.places`."""
    found = []
    for pod in result.pods:
        diagnosis = None if pod.failed is None else pod.failed.diagnosis
        plugins = [] if diagnosis is None else sorted(diagnosis.unschedulable_plugins)
        found.append(("" if pod.placed is None else pod.placed.node_name, plugins))
    return found
