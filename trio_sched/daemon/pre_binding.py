"""Pods whose plugins prepare what must be there before they are bound; until that is done they can be stopped."""

from __future__ import annotations

import trio
from attrs import define, field


@define(eq=False)
class PreBindingPod:
    """One pod on its way; whoever comes first, the canceller or the end of pre_bind, decides."""

    scope: trio.CancelScope = field(factory=trio.CancelScope)
    cause: str | None = None
    is_done: bool = False


@define(eq=False)
class PreBindingPods:
    """All of them, by UID."""

    _by_uid: dict[str, PreBindingPod] = field(factory=dict)

    def add(self, uid: str) -> PreBindingPod:
        """The pod *uid* starts its pre_bind."""
        entered = self._by_uid[uid] = PreBindingPod()
        return entered

    def remove(self, uid: str) -> None:
        """The pod *uid* is bound, or has failed."""
        self._by_uid.pop(uid, None)

    def cancel(self, uid: str, cause: str) -> bool:
        """Stop the pod *uid*; False if it is not here, or is past that point."""
        found = self._by_uid.get(uid)
        if found is None or found.is_done:
            return False
        if found.cause is None:
            found.cause = cause
            found.scope.cancel()
        return True
