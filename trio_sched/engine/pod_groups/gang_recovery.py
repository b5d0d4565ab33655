"""Gangs of which some pods are bound, but fewer than the gang needs: which to complete first, which to give up.

That state is left behind by a process that ended between two binds, by binds that are refused, and by nodes that are
lost. Such a gang is tried before every other pod. If it is still incomplete after a while, its bound pods are to be
evicted, so that it is scheduled again as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from attrs import define, field

from trio_sched.engine.pod_group_state import GroupMembers, PodGroupStates
from trio_sched.objects.pod import Pod

INCOMPLETE_SECONDS: Final = 120.0
"""How long a gang may be incomplete before its bound pods are evicted."""
_PAUSES: Final = (1.0, 2.0, 4.0, 8.0, 10.0)
"""Seconds between two tries of an incomplete gang."""

MinCount = Callable[[str], int | None]
"""How many pods the gang called ``namespace/name`` needs; None if there is no such gang."""


@define(eq=False)
class _Incomplete:
    since: float
    next_try: float
    tries: int = 0


@define(eq=False, kw_only=True)
class GangRecovery:
    """The incomplete gangs among *states*."""

    states: PodGroupStates
    min_count: MinCount
    _gangs: dict[str, _Incomplete] = field(factory=dict, init=False)

    def update(self, now: float) -> None:
        """Take in which groups have changed."""
        changed = self.states.take_changed()
        for key in changed | self._gangs.keys() if changed else ():
            if not self._is_incomplete(key):
                self._gangs.pop(key, None)
            elif key not in self._gangs:
                self._gangs[key] = _Incomplete(now, now)

    def next_to_try(self, now: float) -> GroupMembers | None:
        """The gang to try now: the one that has been incomplete for longest; None if none is due."""
        due = [
            (gang.since, key) for key, gang in self._gangs.items() if gang.next_try <= now and self._can_be_tried(key)
        ]
        if not due:
            return None
        _since, key = min(due)
        gang = self._gangs[key]
        gang.next_try = now + _PAUSES[min(gang.tries, len(_PAUSES) - 1)]
        gang.tries += 1
        return self.states.get(key)

    def take_overdue(self, now: float) -> list[tuple[str, list[Pod]]]:
        """The gangs to give up, with their bound pods; each again only after as long a time."""
        found = []
        for key, gang in self._gangs.items():
            group = self.states.get(key)
            if group is not None and now >= gang.since + INCOMPLETE_SECONDS and not group.assumed:
                gang.since = now
                found.append((key, bound_pods(group)))
        return found

    def next_check(self) -> float:
        """When the next gang is due to be tried or given up; infinity if none is incomplete."""
        gangs = self._gangs.values()
        return min((min(gang.next_try, gang.since + INCOMPLETE_SECONDS) for gang in gangs), default=math.inf)

    def is_incomplete(self, key: str) -> bool:
        """Whether the gang called *key* is incomplete, as of the last `update`."""
        return key in self._gangs

    def _is_incomplete(self, key: str) -> bool:
        group, needed = self.states.get(key), self.min_count(key)
        if group is None or needed is None or not group.assigned or group.pod_count < needed:
            return False
        if not group.unscheduled and not group.assumed:
            return False  # the others have run their course, or never existed
        return 0 < len(bound_pods(group)) < needed

    def _can_be_tried(self, key: str) -> bool:
        group = self.states.get(key)
        return group is not None and bool(group.unscheduled) and not group.assumed


def bound_pods(group: GroupMembers) -> list[Pod]:
    """The pods of *group* that are bound and not being deleted."""
    assigned = (group.pods[uid] for uid in group.assigned)
    return [pod for pod in assigned if pod.metadata.deletion_timestamp is None]
