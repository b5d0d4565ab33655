"""The records of a recording; a block of a segment has a line of JSON for each.

Times are seconds of the scheduler's clock. Objects are as `trio_sched.recording.redaction` leaves them.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw, Struct


class Began(Struct, frozen=True, gc=False, tag="began", array_like=True):
    """The first record of a segment; what existed then follows, up to `Existed`."""

    run: str
    """Differs among all processes; segments of the same run continue each other."""
    now: float
    posix_seconds: float
    """The time of day at *now*."""
    program: str
    """The version of trio-sched."""


class Configured(Struct, frozen=True, gc=False, tag="configured", array_like=True):
    """The configuration in force from now on."""

    now: float
    configuration: str
    """The effective configuration as YAML."""
    gates: dict[str, bool]
    """The feature gates that were set."""
    plugins: dict[str, str]
    """The plugins of the profiles → the distribution and version that each comes from."""
    failure_policies: dict[str, str]
    """What ``--plugin-failure-policy`` has set, by plugin."""
    emulated_version: str = ""
    """What ``--emulated-version`` has set, ``1.37``; empty in recordings of versions that did not note it."""


class Templates(Struct, frozen=True, gc=False, tag="templates", array_like=True):
    """Pods that others are like, see `trio_sched.recording.pod_templates`; before the first record that needs them."""

    pods: dict[int, Raw]


class FirstList(Struct, frozen=True, gc=False, tag="list", array_like=True):
    """All objects of a kind."""

    now: float
    kind: str
    objects: list[Raw]
    """Pods as `trio_sched.recording.pod_templates.NewPod`."""


class Changed(Struct, frozen=True, gc=False, tag="changes", array_like=True):
    """Changes of objects of a kind, in the order in which they were delivered."""

    now: float
    kind: str
    changes: list[tuple[str, Raw]]
    """``ADDED`` or ``MODIFIED`` → the object, as in a list; ``DELETED`` → its name and UID; or `PATCHED`."""


PATCHED: Final = "PATCHED"
"""A pod was modified: a `trio_sched.recording.pod_patch.PodPatch`."""


class OnNodes(Struct, frozen=True, gc=False, tag="on nodes", array_like=True):
    """Pods on nodes when a segment began."""

    pods: list[tuple[str, str, bool]]
    """UID, node, whether it is assumed; all such records together in the order of the cache."""


class Existed(Struct, frozen=True, gc=False, tag="existed", array_like=True):
    """The end of what existed when a segment began: what the objects themselves do not show."""

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


class Decided(Struct, frozen=True, gc=False, tag="decided", array_like=True):
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
    asked: Asked | None
    """What extenders said; None: they were not asked."""
    binds: bool
    """The pod was assumed on the node at once, and neither reserve nor permit objected; else `Reserved` follows."""


class GroupTried(Struct, frozen=True, gc=False, tag="group", array_like=True):
    """An attempt to find places for the pods of a group; what becomes of each follows."""

    now: float
    """When it began."""
    key: str
    """``namespace/name`` of the group."""
    uids: list[str]
    """The pods, in the order in which they were tried."""
    places: list[tuple[str, list[str]]]
    """For each pod that was tried the node, empty if there is none, and the plugins that rejected it, sorted; both if
    it fits there once others are preempted."""
    reason: str
    """The reason of the group's condition after it, as if nothing were preempted for the group as a whole."""
    message: str
    start: int
    """See `Decided`, as of *drawn*."""
    drawn: list[tuple[int, int | float]]
    is_undisturbed: bool
    """Nothing else happened meanwhile, and no extender failed."""
    asked: list[tuple[str, Asked]] = []
    """The UIDs of the pods that extenders were asked about, one after the other, and what they said."""
    victims: list[str] | None = None
    """The UIDs of what was evicted for the group as a whole; None: that was not known yet."""


class PlacesReleased(Struct, frozen=True, gc=False, tag="released", array_like=True):
    """A gang that waits has held places for as long as it may."""

    now: float
    key: str
    """``namespace/name`` of the gang."""


class Reserved(Struct, frozen=True, gc=False, tag="reserved", array_like=True):
    """A pod was assumed on a node, and what reserve and permit said then, unless `Decided.binds` says it."""

    now: float
    uid: str
    node: str
    outcome: str
    """`BINDS`, `WAITS`, or `REFUSED`."""


BINDS: Final = "binds"
WAITS: Final = "waits"
REFUSED: Final = "refused"


class Forgotten(Struct, frozen=True, gc=False, tag="forgotten", array_like=True):
    """An assumed pod was not bound after all."""

    now: float
    uid: str


class Permitted(Struct, frozen=True, gc=False, tag="permitted", array_like=True):
    """No plugin lets the pod wait on permit any more."""

    now: float
    uid: str


class Requeued(Struct, frozen=True, gc=False, tag="requeued", array_like=True):
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


class Skipped(Struct, frozen=True, gc=False, tag="skipped", array_like=True):
    """The queue has returned a pod, and there was no point in scheduling it."""

    now: float
    uid: str


class Flushed(Struct, frozen=True, gc=False, tag="flushed", array_like=True):
    """A timer has moved pods of the queue."""

    now: float
    timer: str
    """`BACKOFF`, `RETRIES`, or `UNSCHEDULABLE`."""


BACKOFF: Final = "backoff"
RETRIES: Final = "retries"
UNSCHEDULABLE: Final = "unschedulable"


class Activated(Struct, frozen=True, gc=False, tag="activated", array_like=True):
    """A plugin, a failed preemption or a person has asked for pods to be tried next."""

    now: float
    uids: list[str]


class Ended(Struct, frozen=True, gc=False, tag="ended", array_like=True):
    """The last record of a segment: nothing is missing between it and the next one of the same run."""

    now: float


class Missed(Struct, frozen=True, gc=False, tag="missed", array_like=True):
    """The disk was too slow: so many records were not written, and the next segment begins with what exists then."""

    now: float
    records: int


Record = (
    Began
    | Configured
    | Templates
    | FirstList
    | Changed
    | OnNodes
    | Existed
    | Decided
    | GroupTried
    | PlacesReleased
    | Reserved
    | Forgotten
    | Permitted
    | Requeued
    | Skipped
    | Flushed
    | Activated
    | Ended
    | Missed
)

# JSON, because MessagePack has no integers of more than 64 bits, which objects may have and random generators give.
encode_records: Final = msgspec.json.Encoder().encode_lines
"""Each as a line with its end."""
decode_records: Final[Any] = msgspec.json.Decoder(Record).decode_lines
