"""The records of a recording; a block of a segment is a list of them in MessagePack.

Times are seconds of the scheduler's clock. Objects are JSON as `trio_sched.recording.redaction` leaves it.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct


class Began(Struct, frozen=True, tag="began", array_like=True):
    """The first record of a segment; what existed then follows, up to `Existed`."""

    run: str
    """Differs among all processes; segments of the same run continue each other."""
    now: float
    posix_seconds: float
    """The time of day at *now*."""
    program: str
    """The version of trio-sched."""


class Configured(Struct, frozen=True, tag="configured", array_like=True):
    """The configuration in force from now on."""

    now: float
    configuration: str
    """The effective configuration as YAML."""
    gates: dict[str, bool]
    """The feature gates that were set."""
    plugins: dict[str, str]
    """The plugins of the profiles → the distribution and version that each comes from."""


class FirstList(Struct, frozen=True, tag="list", array_like=True):
    """All objects of a kind."""

    now: float
    kind: str
    objects: list[bytes]


class Changed(Struct, frozen=True, tag="changes", array_like=True):
    """Changes of objects of a kind, in the order in which they were delivered."""

    now: float
    kind: str
    changes: list[tuple[str, bytes]]
    """``ADDED``, ``MODIFIED`` or ``DELETED`` → the object, of one that was deleted its name and UID; or `PATCHED`."""


PATCHED: Final = "PATCHED"
"""A pod was modified; the bytes are a `trio_sched.recording.pod_patch.PodPatch`."""


class Existed(Struct, frozen=True, tag="existed", array_like=True):
    """The end of what existed when a segment began: what the objects themselves do not show."""

    on_nodes: list[tuple[str, str, bool]]
    """The pods on nodes in the order of the cache: UID, node, whether it is assumed."""
    nominated: dict[str, str]
    """UID of a pod → the node that it is nominated to."""


class Asked(Struct, frozen=True, array_like=True):
    """What extenders said about a pod."""

    left: list[str]
    """The nodes that they left."""
    scores: dict[str, int]
    """What they add to the totals of nodes."""
    plugins: list[str]
    """What has rejected other nodes by then, sorted."""
    only_nominated: bool
    """They were asked about the pod's nominated node alone."""


class Decided(Struct, frozen=True, tag="decided", array_like=True):
    """A decision on a pod."""

    now: float
    uid: str
    node: str
    """Empty if no node was found."""
    plugins: list[str]
    """The plugins that rejected it, sorted; none of both: it failed."""
    feasible: int
    """How many nodes passed."""
    start: int
    """Where the search for feasible nodes began, if not all were looked at."""
    drawn: list[tuple[int, int | float]]
    """What chance decided: of how many (0: not a choice), and the number that was drawn."""
    asked: Asked | None = None
    """What extenders said; None: they were not asked."""


class Reserved(Struct, frozen=True, tag="reserved", array_like=True):
    """A pod was assumed on a node, and what reserve and permit said then."""

    now: float
    uid: str
    node: str
    outcome: str
    """`BINDS`, `WAITS`, or `REFUSED`."""


BINDS: Final = "binds"
WAITS: Final = "waits"
REFUSED: Final = "refused"


class Forgotten(Struct, frozen=True, tag="forgotten", array_like=True):
    """An assumed pod was not bound after all."""

    now: float
    uid: str


class Permitted(Struct, frozen=True, tag="permitted", array_like=True):
    """No plugin lets the pod wait on permit any more."""

    now: float
    uid: str


class Requeued(Struct, frozen=True, tag="requeued", array_like=True):
    """A pod was not scheduled and is back in the queue."""

    now: float
    uid: str
    plugins: list[str]
    """Those that rejected it; none: it failed."""
    pending: list[str]
    nominated: str | None
    """The node that it is nominated to from now on; None: as before."""
    drawn: list[tuple[int, int | float]]
    """What plugins drew since the decision; see `Decided`."""


class Ended(Struct, frozen=True, tag="ended", array_like=True):
    """The last record of a segment: nothing is missing between it and the next one of the same run."""

    now: float


class Missed(Struct, frozen=True, tag="missed", array_like=True):
    """The disk was too slow: so many records were not written, and the next segment begins with what exists then."""

    now: float
    records: int


Record = (
    Began
    | Configured
    | FirstList
    | Changed
    | Existed
    | Decided
    | Reserved
    | Forgotten
    | Permitted
    | Requeued
    | Ended
    | Missed
)

encode_records: Final = msgspec.msgpack.Encoder().encode
decode_records: Final[Any] = msgspec.msgpack.Decoder(list[Record]).decode
