"""What a replay has found."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any, Final

from attrs import define, field, frozen

MAX_DIFFERENCES: Final = 1_000
"""So many differences are kept with their pods and reasons; those behind them are counted."""


@frozen(kw_only=True)
class Difference:
    """A decision that is another one in the replay."""

    pod: str
    """``namespace/name``."""
    at: float
    """POSIX seconds at which it was recorded."""
    recorded: str
    """The node, or what became of the pod, in words."""
    replayed: str
    why: str
    """What plugins say of the two; empty if that is not known."""


@define(eq=False, kw_only=True)
class ReplayResult:
    """What came of a replay, or comes of one under way."""

    decisions: int = 0
    """How many were compared."""
    different: int = 0
    """How many of them were others."""
    differences: list[Difference] = field(factory=list)
    """The first `MAX_DIFFERENCES` of them."""
    in_order: int = 0
    """Pods that the queue would have returned next when they were, as far as that can be told."""
    out_of_order: list[str] = field(factory=list)
    """Those before which it would have returned another one; the first `MAX_DIFFERENCES`, as lines."""
    equally_good: int = 0
    """Decisions that chance would make different with another configuration: the recorded node is one of the best."""
    not_compared: Counter[str] = field(factory=Counter)
    """Decisions that cannot be made again, by the reason."""
    changes: int = 0
    """Changes of objects, those of first lists included."""
    beginnings: int = 0
    """How often the replay began with what existed: once, and wherever something is missing before."""
    lost_bytes: dict[str, int] = field(factory=dict)
    """Segments of which something cannot be read → how many bytes."""
    missed: int = 0
    """Records that were not written because the disk was too slow."""
    notes: list[str] = field(factory=list)
    """What is not as it was when the recording was made, such as versions of plugins."""
    first_at: float | None = None
    """POSIX seconds of the first decision that was compared; None: there was none."""
    last_at: float = 0.0
    _digest: Any = field(factory=hashlib.sha256, init=False)

    @property
    def digest(self) -> str:
        """The SHA-256 of all decisions of the replay, as hexadecimal text: equal for equal decisions in equal order."""
        return str(self._digest.hexdigest())

    @property
    def is_complete(self) -> bool:
        """Whether everything that was decided was recorded, read and compared."""
        return not (self.not_compared or self.lost_bytes or self.missed)

    def add(self, pod: str, at: float, outcome: str) -> None:
        """A decision was compared; *outcome* is what the replay decided."""
        self.decisions += 1
        self.first_at = at if self.first_at is None else self.first_at
        self.last_at = at
        self._digest.update(f"{pod} {outcome}\n".encode("utf-8", "surrogatepass"))

    def is_out_of_order(self, text: str) -> None:
        """The queue would have returned another pod."""
        if len(self.out_of_order) < MAX_DIFFERENCES:
            self.out_of_order.append(text)

    def differs(self, difference: Difference) -> None:
        """It is another one."""
        self.different += 1
        if len(self.differences) < MAX_DIFFERENCES:
            self.differences.append(difference)
