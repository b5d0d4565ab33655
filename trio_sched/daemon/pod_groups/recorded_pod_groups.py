"""Pod groups are scheduled, and what their attempts found is recorded."""

from __future__ import annotations

import trio
from attrs import define, field

from trio_sched.daemon.extenders.extender_scheduling import ExtenderScheduling
from trio_sched.daemon.pod_groups.pod_group_report import condition_of
from trio_sched.daemon.pod_groups.schedule_pod_groups import SchedulePodGroups
from trio_sched.daemon.recording.decision_recorder import DecisionRecorder
from trio_sched.daemon.recording.recorded_scheduler import RecordedScheduler, asked_of
from trio_sched.engine.evaluation.decision import SchedulingFailure
from trio_sched.engine.evaluation.extender_cycle import ExtendersAnswer
from trio_sched.engine.pod_groups.group_steps import AskExtenders
from trio_sched.engine.pod_groups.pod_group_cycle import PodGroupCycle
from trio_sched.engine.pod_groups.pod_group_results import GroupResult
from trio_sched.recording.records import Asked, GroupTried, PlacesReleased


@define(eq=False, kw_only=True)
class RecordedPodGroups(SchedulePodGroups):
    """Schedules pod groups as `SchedulePodGroups` does, and notes where their pods fit."""

    scheduler: RecordedScheduler
    decisions: DecisionRecorder

    async def evaluate(self, cycle: PodGroupCycle) -> tuple[GroupResult, GroupResult]:
        """Find out whether the group of *cycle* fits, make room for it if that helps, and note what was found."""
        scheduler, decisions, now = self.scheduler, self.decisions, trio.current_time()
        scheduler.rng.take()
        start, before = scheduler.next_start_node_index, decisions.count_notes()
        extenders = None if self.extender_scheduling is None else _NotingExtenders(self.extender_scheduling)
        found, preemptions = await self.find_places(cycle, None if extenders is None else extenders.ask)
        is_undisturbed = decisions.count_notes() == before and (extenders is None or not extenders.has_failed)

        def note(victims: list[str] | None) -> None:
            condition = condition_of(found)
            decisions.note(
                GroupTried(
                    now,
                    cycle.entity_key,
                    [info.uid for info in cycle.infos],
                    places(found),
                    condition.reason,
                    condition.message,
                    start,
                    scheduler.rng.take(),
                    is_undisturbed,
                    [] if extenders is None else list(extenders.asked),
                    victims,
                )
            )

        if not self.preemption.in_background:  # the victims will be gone when it has ended
            note(None)
        result = await self.preemption.preempt(cycle, found, preemptions)
        if self.preemption.in_background:
            note([victim.uid for victim in result.victims])
        return found, result

    def release_places(self, key: str, now: float) -> None:
        """The gang called *key* has held places for long enough; that is noted."""
        self.decisions.note(PlacesReleased(now, key))
        super().release_places(key, now)


@define(eq=False)
class _NotingExtenders:
    """Asks extenders about the pods of an attempt, and keeps what they say."""

    _extenders: ExtenderScheduling
    asked: list[tuple[str, Asked]] = field(factory=list, init=False)
    has_failed: bool = field(default=False, init=False)
    """Whether one could not be asked."""

    async def ask(self, step: AskExtenders) -> ExtendersAnswer:
        answer = await self._extenders.ask_for_group(step)
        if isinstance(answer, SchedulingFailure):
            self.has_failed = True
        else:
            self.asked.append((step.info.uid, asked_of(*answer)))
        return answer


def places(result: GroupResult) -> list[tuple[str, list[str]]]:
    """What an attempt found for each pod; see `trio_sched.recording.records.GroupTried.places`."""
    found = []
    for pod in result.pods:
        diagnosis = None if pod.failed is None else pod.failed.diagnosis
        plugins = [] if diagnosis is None else sorted(diagnosis.unschedulable_plugins)
        found.append(("" if pod.placed is None else pod.placed.node_name, plugins))
    return found
