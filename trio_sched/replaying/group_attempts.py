"""Recorded attempts of pod groups, made again."""

from __future__ import annotations

from itertools import zip_longest
from typing import Final

from attrs import define

from trio_sched.daemon.pod_groups.pod_group_report import condition_of
from trio_sched.daemon.pod_groups.recorded_pod_groups import places
from trio_sched.daemon.pod_groups.schedule_pod_groups import SchedulePodGroups
from trio_sched.engine.evaluation.decision import SchedulingFailure
from trio_sched.engine.evaluation.extender_cycle import ExtenderResult, ExtendersAnswer
from trio_sched.engine.pod_groups.group_steps import AskExtenders
from trio_sched.engine.pod_groups.pod_group_results import GroupResult
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.plugin_api.status import unschedulable
from trio_sched.recording.records import Asked, GroupTried, PlacesReleased
from trio_sched.replaying.attempts import AS_RECORDED, Attempts, in_words

DISTURBED: Final = "attempts of pod groups, while something else happened or an extender failed"
NOT_ASKED: Final = "attempts of pod groups, with pods that extenders were not asked about"
UNKNOWN_MEMBERS: Final = "attempts of pod groups with pods that the recording does not show, or that have no profile"
NO_GROUPS: Final = "attempts of pod groups, which this configuration does not schedule"
_NOT_TRIED: Final[tuple[str, list[str]]] = ("", ["none: it was not tried"])


@define(eq=False, kw_only=True)
class GroupAttempts:
    """Makes attempts of pod groups again, and leaves what becomes of the pods to *attempts*."""

    attempts: Attempts

    async def tried(self, record: GroupTried) -> None:
        """Find places for a group again, and compare."""
        attempts, groups = self.attempts, self.attempts.assembly.schedule_one.pod_groups
        pods = [pod for pod in map(attempts.find_pod, record.uids) if pod is not None]
        infos = [attempts.info(pod, record.now) for pod in pods]
        for info in infos:
            attempts.under_way(info, None)
        if groups is None:
            attempts.skip(NO_GROUPS, record.now)
        elif not record.is_undisturbed:
            attempts.skip(DISTURBED, record.now)
        elif len(pods) < len(record.uids) or not _share_profile(groups, infos):
            attempts.skip(UNKNOWN_MEMBERS, record.now)
        else:
            await self._try(record, groups, infos)
        is_scheduled = record.reason == "Scheduled"
        attempts.assembly.scheduler.queue.finish_group(record.key, is_scheduled=is_scheduled, now=record.now)

    def released(self, record: PlacesReleased) -> None:
        """Release the places that a gang has held."""
        groups = self.attempts.assembly.schedule_one.pod_groups
        if groups is not None:
            groups.release_places(record.key, record.now)
            self.attempts.leave_victims()

    async def _try(self, record: GroupTried, groups: SchedulePodGroups, infos: list[QueuedPodInfo]) -> None:
        attempts = self.attempts
        attempts.rng.load(record.drawn)
        attempts.assembly.scheduler.next_start_node_index = record.start
        cycle = groups.cycle(record.key, infos)
        try:
            found, preemptions = await groups.find_places(cycle, _RecordedExtenders(list(record.asked)).ask)
        except _NotAsked:
            attempts.skip(NOT_ASKED, record.now)
            return
        groups.preemption.in_background = True  # and there it ends, since nothing is deleted in a replay
        result = found if record.victims is None else await groups.preemption.preempt(cycle, found, preemptions)
        attempts.leave_victims()
        for pod in found.pods:
            if pod.placed is not None and pod.failed is None:
                attempts.under_way(pod.info, pod.placed)
        if attempts.is_counted(record.now):
            self._compare(record, infos, found)
            if record.victims is not None:
                self._compare_victims(record, [victim.uid for victim in result.victims])

    def _compare(self, record: GroupTried, infos: list[QueuedPodInfo], result: GroupResult) -> None:
        pairs = zip_longest(record.places, places(result), fillvalue=_NOT_TRIED)
        for number, (recorded, replayed) in enumerate(pairs):
            pod = result.pods[number] if number < len(result.pods) else None
            why = pod.failed.message if pod is not None and pod.failed is not None else ""
            subject = infos[number].key if number < len(infos) else f"pod group {record.key}"
            self._compare_one(subject, record.now, _place(*recorded), _place(*replayed), why)
        condition = condition_of(result)
        # With another configuration, pods that fit nowhere are counted otherwise; with hashed names there is no text.
        # What extenders have said of nodes is not recorded, and stands in the text.
        has_text = self.attempts.is_same_configuration and record.message and not record.asked
        was, now = (
            f"{reason}: {message}" if message and has_text else reason
            for reason, message in ((record.reason, record.message), (condition.reason, condition.message))
        )
        self._compare_one(f"pod group {record.key}", record.now, was, now, "")

    def _compare_victims(self, record: GroupTried, victims: list[str]) -> None:
        recorded, replayed = (sorted(map(self._name, uids)) for uids in (record.victims or (), victims))
        if recorded or replayed:
            self._compare_one(f"pod group {record.key}", record.now, _evicted(recorded), _evicted(replayed), "")

    def _name(self, uid: str) -> str:
        pod = self.attempts.find_pod(uid)
        return uid if pod is None else pod.key

    def _compare_one(self, subject: str, now: float, recorded: str, replayed: str, why: str) -> None:
        self.attempts.result.add(subject, self.attempts.posix(now), replayed)
        if recorded != replayed:
            self.attempts.differs(subject, now, recorded, replayed, why)


class _NotAsked(Exception):
    """Extenders were not asked about a pod when the recording was made."""


@define(eq=False)
class _RecordedExtenders:
    """Answers as the extenders have."""

    _asked: list[tuple[str, Asked]]

    async def ask(self, step: AskExtenders) -> ExtendersAnswer:
        asked = next((one for one in self._asked if one[0] == step.info.uid), None)
        if asked is None:
            raise _NotAsked
        self._asked.remove(asked)
        feasible, left = step.feasible, set(asked[1].left)
        if feasible.only_nominated and not asked[1].only_nominated:  # they have refused that node
            others = step.find_again()
            if isinstance(others, SchedulingFailure):
                return others
            feasible = others
        refused = {name: unschedulable(AS_RECORDED) for name in feasible.nodes if name not in left}
        names = tuple(name for name in asked[1].left if name in feasible.nodes)
        return feasible, ExtenderResult(names=names, statuses=refused, scores=asked[1].scores)


def _share_profile(groups: SchedulePodGroups, infos: list[QueuedPodInfo]) -> bool:
    names = {info.pod.scheduler_name for info in infos}
    return len(names) == 1 and names <= groups.scheduler.profiles.keys()


def _evicted(names: list[str]) -> str:
    return f"evicts {', '.join(names)}" if names else "evicts nothing"


def _place(node: str, plugins: list[str]) -> str:
    return f"{node} after preemption" if node and plugins else in_words(node, plugins)
