"""A heap of queued pods from which any pod can be taken out by its key."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, KeysView
from itertools import count
from typing import Any

from trio_sched.engine.queue.queued_pod import QueuedPodInfo


class PodHeap:
    """Smallest sort key first; equal keys in order of arrival. Removal leaves a stale entry that is skipped later.

    Keys come from a plugin, so comparing two of them can raise: then *replace_keys* is called with the error and every
    pod, and has to give them keys that compare with each other and with all later ones.
    """

    __slots__ = ("_entries", "_heap", "_replace_keys", "_sequence", "_sort_key")

    def __init__(
        self,
        sort_key: Callable[[QueuedPodInfo], Any],
        replace_keys: Callable[[BaseException, Iterable[QueuedPodInfo]], None] | None = None,
    ) -> None:
        self._sort_key = sort_key
        self._replace_keys = replace_keys
        self._heap: list[tuple[Any, int, QueuedPodInfo]] = []
        self._entries: dict[str, tuple[Any, int, QueuedPodInfo]] = {}
        self._sequence = count()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        """All pods in the order in which they would be popped."""
        try:
            entries = sorted(self._entries.values(), key=lambda entry: entry[:2])
        except BaseException as error:
            self._rebuild(error)
            entries = sorted(self._entries.values(), key=lambda entry: entry[:2])
        return (entry[2] for entry in entries)

    def ahead_of(self, key: str) -> int:
        """How many pods would be popped before the pod called *key*, which is here."""
        try:
            return self._count_before(key)
        except BaseException as error:
            self._rebuild(error)
            return self._count_before(key)

    def _count_before(self, key: str) -> int:
        place = self._entries[key][:2]
        return sum(entry[:2] < place for entry in self._entries.values())

    def keys(self) -> KeysView[str]:
        """The names of all pods, in no order."""
        return self._entries.keys()

    def unordered(self) -> list[QueuedPodInfo]:
        """All pods; their order means nothing, and takes no time."""
        return [entry[2] for entry in self._entries.values()]

    def get(self, key: str) -> QueuedPodInfo | None:
        """The pod called *key*, if it is here."""
        entry = self._entries.get(key)
        return entry[2] if entry is not None else None

    def push(self, info: QueuedPodInfo) -> None:
        """Put *info* in, or in its new place if it is here already."""
        entry = (self._sort_key(info), next(self._sequence), info)
        self._entries[info.key] = entry
        try:
            heapq.heappush(self._heap, entry)
        except BaseException as error:
            self._rebuild(error)

    def remove(self, key: str) -> QueuedPodInfo | None:
        """Take the pod called *key* out, if it is here."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return None
        if not self._entries:  # nobody would skip what is left
            self._heap.clear()
        elif len(self._heap) > 64 and len(self._heap) > 4 * len(self._entries):
            self._heapify()
        return entry[2]

    def peek(self) -> QueuedPodInfo | None:
        """The first pod."""
        while self._heap:
            entry = self._heap[0]
            if self._entries.get(entry[2].key) is entry:
                return entry[2]
            self._pop_first()
        return None

    def pop(self) -> QueuedPodInfo | None:
        """Take the first pod out."""
        info = self.peek()
        if info is not None:
            del self._entries[info.key]
            self._pop_first()
        return info

    def sort_again(self) -> None:
        """Every pod may have another sort key now."""
        self._entries = {key: (self._sort_key(info), number, info) for key, (_, number, info) in self._entries.items()}
        self._heapify()

    def _pop_first(self) -> None:
        try:
            heapq.heappop(self._heap)
        except BaseException as error:
            self._rebuild(error)

    def _heapify(self) -> None:
        self._heap = list(self._entries.values())
        try:
            heapq.heapify(self._heap)
        except BaseException as error:
            self._rebuild(error)

    def _rebuild(self, error: BaseException) -> None:
        """Two keys cannot be compared: replace them all."""
        if self._replace_keys is None:
            raise error
        self._replace_keys(error, [entry[2] for entry in self._entries.values()])
        self._entries = {key: (self._sort_key(info), number, info) for key, (_, number, info) in self._entries.items()}
        self._heap = list(self._entries.values())
        heapq.heapify(self._heap)
