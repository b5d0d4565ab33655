"""Pods in pre_bind; until that is done, preemption can cancel them."""

from __future__ import annotations

import trio
from attrs import define, field


@define(eq=False)
class PodInPreBind:
    """One pod in pre_bind, which can be cancelled until *is_done*."""

    scope: trio.CancelScope = field(factory=trio.CancelScope)
    cause: str | None = None
    is_done: bool = False


@define(eq=False)
class PodsInPreBind:
    """All pods in pre_bind, by UID."""

    _by_uid: dict[str, PodInPreBind] = field(factory=dict)

    def add(self, uid: str) -> PodInPreBind:
        """Add the pod *uid*, whose pre_bind starts."""
        entered = self._by_uid[uid] = PodInPreBind()
        return entered

    def remove(self, uid: str) -> None:
        """Remove the pod *uid*, whose pre_bind has ended."""
        self._by_uid.pop(uid, None)

    def cancel(self, uid: str, cause: str) -> bool:
        """Cancel the pre_bind of the pod *uid*; returns False if there is none, or it is done."""
        found = self._by_uid.get(uid)
        if found is None or found.is_done:
            return False
        if found.cause is None:
            found.cause = cause
            found.scope.cancel()
        return True
