"""What the API server stores, as far as sharing the work needs it."""

from __future__ import annotations

from attrs import field, frozen


@frozen(kw_only=True)
class Node:
    """A node."""

    name: str
    cpu: int
    """In millicores."""
    zone: str
    devices: int = 0
    """So many claims can have one each."""


@frozen(kw_only=True)
class ShardedPod:
    """A pod."""

    name: str
    owner: str
    """The name of what made it, which is the label that others repel it by, too."""
    cpu: int
    repels: str = ""
    """It must not be in a zone with pods of this owner: required anti-affinity."""
    priority: int = 0
    claim: str = ""
    """It needs the device of this claim."""
    group: str = ""
    """It runs with the pods of this group or not at all."""
    version: int = 0
    node: str = ""
    nominated: str = ""
    preempts: bool = False
    """Whoever nominated it found no room without victims."""
    is_reserved: bool = False
    """The owner of the node that it is nominated to keeps the place, until victims are gone or its group has places."""
    is_terminating: bool = False
    touched: int = 0
    """Something in its status that nobody reads: a change of it makes every former version outdated."""


@frozen(kw_only=True)
class Claim:
    """A claim of one device, which one or several pods use."""

    name: str
    version: int = 0
    node: str = ""
    """Where the device is; empty: none is allocated."""
    device: int = 0
    """Its number on the node."""
    touched: int = 0


@frozen(kw_only=True)
class PodGroup:
    """Pods of which at least so many run, or none."""

    name: str
    min_count: int
    version: int = 0
    is_scheduled: bool = False
    """So many have a reserved place, and are bound from now on."""
    touched: int = 0


Stored = ShardedPod | Claim | PodGroup


@frozen(kw_only=True)
class Lease:
    """A lease."""

    holder: str
    """Empty: it was released."""
    acknowledged: int = 0
    """The revision that the holder has seen before all that it decides from now on or has decided without an end."""
    version: int = 0
    shards: int = 0
    """The number of shards that the holder divides by."""
    generation: int = 0
    """Grows with each change of that number."""
    reach: int = 0
    """The largest number that there was."""
    is_fresh: bool = False
    """Nobody has made sure yet that nothing of the former generation is under way."""


@frozen
class Reply:
    """What became of a request."""

    is_done: bool
    value: Stored | Lease | None = None
    """As it is stored now; None: it does not exist."""


@frozen
class Listing:
    """All that is stored, and where a watch goes on."""

    revision: int
    position: int
    """In the log."""
    pods: dict[str, ShardedPod] = field(repr=False)
    claims: dict[str, Claim] = field(repr=False)
    groups: dict[str, PodGroup] = field(repr=False)


@frozen
class Change:
    """Something was written; None: deleted."""

    revision: int
    name: str
    stored: Stored | None
