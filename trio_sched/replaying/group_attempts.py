"""Recorded attempts of pod groups, made again."""

from __future__ import annotations

from itertools import zip_longest
from typing import Final

from attrs import define

from trio_sched.daemon.pod_groups.pod_group_report import condition_of
from trio_sched.daemon.pod_groups.recorded_pod_groups import places
from trio_sched.daemon.pod_groups.schedule_pod_groups import SchedulePodGroups
from trio_sched.engine.pod_groups.pod_group_results import GroupResult
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.recording.records import GroupTried, PlacesReleased
from trio_sched.replaying.attempts import Attempts, in_words

DISTURBED: Final = "attempts of pod groups, while something else happened or extenders were asked"
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
        result, preemptions = await groups.find_places(groups.cycle(record.key, infos))
        if result.waiting_on_preemption and groups.preemption.in_background:
            for preempt in preemptions:
                await preempt()
        attempts.leave_victims()
        for pod in result.pods:
            if pod.placed is not None and pod.failed is None:
                attempts.under_way(pod.info, pod.placed)
        if attempts.is_counted(record.now):
            self._compare(record, infos, result)

    def _compare(self, record: GroupTried, infos: list[QueuedPodInfo], result: GroupResult) -> None:
        pairs = zip_longest(record.places, places(result), fillvalue=_NOT_TRIED)
        for number, (recorded, replayed) in enumerate(pairs):
            pod = result.pods[number] if number < len(result.pods) else None
            why = pod.failed.message if pod is not None and pod.failed is not None else ""
            subject = infos[number].key if number < len(infos) else f"pod group {record.key}"
            self._compare_one(subject, record.now, _place(*recorded), _place(*replayed), why)
        condition = condition_of(result)
        # With another configuration, pods that fit nowhere are counted otherwise; with hashed names there is no text.
        has_text = self.attempts.is_same_configuration and record.message
        was, now = (
            f"{reason}: {message}" if message and has_text else reason
            for reason, message in ((record.reason, record.message), (condition.reason, condition.message))
        )
        self._compare_one(f"pod group {record.key}", record.now, was, now, "")

    def _compare_one(self, subject: str, now: float, recorded: str, replayed: str, why: str) -> None:
        self.attempts.result.add(subject, self.attempts.posix(now), replayed)
        if recorded != replayed:
            self.attempts.differs(subject, now, recorded, replayed, why)


def _share_profile(groups: SchedulePodGroups, infos: list[QueuedPodInfo]) -> bool:
    names = {info.pod.scheduler_name for info in infos}
    return len(names) == 1 and names <= groups.scheduler.profiles.keys()


def _place(node: str, plugins: list[str]) -> str:
    return f"{node} after preemption" if node and plugins else in_words(node, plugins)
