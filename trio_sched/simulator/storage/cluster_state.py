"""What the handlers of requests share: the objects, the served types, the clock and the random numbers."""

import random
from datetime import datetime

from attrs import define, field

from trio_sched.objects.timestamps import format_time
from trio_sched.simulator.storage.clock import Clock
from trio_sched.simulator.storage.object_store import ObjectStore, StoredObject
from trio_sched.simulator.storage.resource_types import ResourceType, TypeRegistry

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
_VARIANTS = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}
"""Random digit → the digit of a UUID whose two upper bits are fixed."""


@define(eq=False)
class ClusterState:
    """The cluster behind the API.

    Args:
        store: every object.
        clock: the cluster's time.
        rng: where uids, generated names and random timeouts come from.
        watch_backlog_limit: how many events may wait for the reader of a watch.
    """

    store: ObjectStore
    clock: Clock
    rng: random.Random
    watch_backlog_limit: int
    types: TypeRegistry = field(factory=TypeRegistry, init=False)
    terminating: set[str] = field(factory=set, init=False)
    _written: tuple[datetime | None, str] = field(default=(None, ""), init=False)

    def now(self) -> datetime:
        """The cluster's time."""
        return self.clock()

    def timestamp(self) -> str:
        """The cluster's time as objects carry it."""
        moment = self.clock()
        written, text = self._written
        if moment is not written:  # thousands of objects are written at one instant
            text = format_time(moment)
            self._written = moment, text
        return text

    def new_uid(self) -> str:
        """A random UUID of version 4."""
        digits = self.rng.getrandbits(128).to_bytes(16).hex()
        variant = _VARIANTS[digits[16]]
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"

    def new_name(self, stem: str) -> str:
        """A name made from ``generateName``."""
        suffix = "".join(self.rng.choices(_SUFFIX_LETTERS, k=_SUFFIX_LENGTH))
        return stem[: 63 - _SUFFIX_LENGTH] + suffix

    def get(self, resource: ResourceType, namespace: str, name: str) -> StoredObject | None:
        """The stored object of that name, if there is one."""
        return self.store.get(resource.collection, object_key(resource, namespace, name))


def object_key(resource: ResourceType, namespace: str, name: str) -> str:
    """The key an object is stored under."""
    return f"{namespace}/{name}" if resource.namespaced else name
