"""Which gang may hold the places it has found, so that small pods that keep coming do not starve it.

A gang that has waited for long holds places by nominations, which pods of the same or lower priority respect: the
places that its last attempt has found, and for its other pods places that pods leave sooner or later. It is one gang at
a time per priority, and for a bounded time; then all places are released for at least as long, so that the gang does
not starve the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import define, field

HOLD_AFTER_SECONDS: Final = 60.0
"""How long a gang waits before it may hold places."""
HOLD_SECONDS: Final = 120.0
"""How long it may hold them; after that no gang of its priority holds any for as long."""


@define(eq=False)
class _Hold:
    key: str
    since: float
    until: float
    rest_until: float
    targets: Mapping[str, str]
    is_released: bool = False


@define(eq=False)
class GangHolds:
    """At most one hold per priority; times are seconds of the scheduler's clock."""

    _by_priority: dict[int, _Hold] = field(factory=dict)

    def may_hold(self, key: str, priority: int, *, waiting_since: float, now: float) -> bool:
        """Whether the gang called *key* may hold places now, or begin to."""
        hold = self._by_priority.get(priority)
        if hold is not None and now < hold.rest_until:
            return hold.key == key and not hold.is_released and now < hold.until
        return now - waiting_since >= HOLD_AFTER_SECONDS

    def hold(self, key: str, priority: int, targets: Mapping[str, str], now: float) -> None:
        """The gang called *key*, which may, holds places from now on.

        Args:
            key: the gang.
            priority: of its pods.
            targets: UID → the node of a place that is not free yet.
            now: the time.
        """
        until = now + HOLD_SECONDS
        self._by_priority[priority] = _Hold(key, now, until, until + HOLD_SECONDS, targets)

    def targets(self, key: str) -> Mapping[str, str] | None:
        """UID → the node of a place that is not free yet; None if the gang called *key* holds nothing."""
        for hold in self._by_priority.values():
            if hold.key == key and not hold.is_released:
                return hold.targets
        return None

    def release(self, key: str, now: float) -> None:
        """The gang called *key* is scheduled, or cannot be: the others get as long as it has held places."""
        for hold in self._by_priority.values():
            if hold.key == key and not hold.is_released:
                hold.is_released = True
                hold.rest_until = now + (now - hold.since)

    def take_expired(self, now: float) -> list[str]:
        """The gangs whose time is over, each once: their places are to be released."""
        expired = []
        for priority, hold in list(self._by_priority.items()):
            if hold.until <= now and not hold.is_released:
                hold.is_released = True
                expired.append(hold.key)
            if hold.rest_until <= now:
                del self._by_priority[priority]
        return expired

    def next_check(self) -> float:
        """When the next hold ends; infinity if there is none."""
        return min((one.until for one in self._by_priority.values() if not one.is_released), default=float("inf"))
