"""Watch streams: from a change in the store to a line on the wire."""

from collections import deque
from collections.abc import Callable, Iterator

import msgspec
import trio

from trio_sched.errors import TrioSchedError
from trio_sched.simulator.endpoints.views import View
from trio_sched.simulator.storage.object_store import Change, ChangeType, Collection, ObjectStore, StoredObject
from trio_sched.simulator.storage.resource_types import ResourceType
from trio_sched.simulator.storage.selectors import Predicate

BOOKMARK_SECONDS = 60.0
"""How often watches with bookmarks get one, all of them at the same time: simulated time stops less often."""

_LAST_BOOKMARK_SECONDS = 2.0
_BATCH_LINES = 1000
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class StreamCut(TrioSchedError):
    """The server was stopped in the middle of a stream."""


class WatchStream:
    """The body of a watch's response: an asynchronous iterator over batches of lines.

    Nothing is sent until the next batch is read: changes wait as shared bytes. If more than *backlog_limit* wait, the
    stream ends and the client has to watch again.

    Args:
        resource: what is watched.
        namespace: only this one; empty for all.
        predicate: only what it selects.
        timeout_seconds: when the stream ends by itself.
        bookmarks: whether to send the version from time to time.
        backlog_limit: how many lines may wait for the reader before the stream ends.
        on_close: called once, when the stream ends for whatever reason.
    """

    def __init__(
        self,
        store: ObjectStore,
        resource: ResourceType,
        view: View,
        *,
        namespace: str,
        predicate: Predicate | None,
        timeout_seconds: float,
        bookmarks: bool,
        backlog_limit: int,
        on_close: Callable[["WatchStream"], None],
    ) -> None:
        self._store, self._resource, self._view = store, resource, view
        self._collection: Collection = store.collection(resource.collection)
        self._key_prefix = f"{namespace}/" if namespace else ""
        self._namespace, self._predicate = namespace, predicate
        self._bookmarks = bookmarks
        self._backlog_limit = backlog_limit
        self._on_close = on_close
        self._pending: deque[bytes] = deque()
        self._initial: Iterator[bytes] = iter(())
        self._wake: trio.Event | None = None
        self._ended = self._cut = False
        began = trio.current_time()
        self._deadline = began + timeout_seconds
        self._next_bookmark = self._bookmark_after(began) if bookmarks else float("inf")
        self._stop_listening: Callable[[], None] = lambda: None

    def start_after(self, version: int) -> None:
        """Send what happened after *version*, and whatever happens from now on.

        Raises:
            HistoryLost: the history does not reach back so far.
        """
        for change in self._collection.since(version):
            self._on_change(change)
        self._stop_listening = self._collection.listen(self._on_change)

    def start_with_everything(self, *, mark_end: bool) -> None:
        """Send every object as ADDED, then whatever happens from now on.

        Args:
            mark_end: send the bookmark that marks the end of the initial objects.
        """
        found = [stored for stored in self._collection.in_order(self._namespace) if self._selects(stored)]
        self._initial = self._initial_lines(found, self._store.version if mark_end else 0)
        self._stop_listening = self._collection.listen(self._on_change)

    def send_error(self, status: bytes) -> None:
        """Send one ERROR event that holds *status*, and end."""
        self._pending.append(b'{"type":"ERROR","object":%s}\n' % status)
        self._ended = True

    def cut(self) -> None:
        """End as if the connection were lost."""
        self._cut = True
        self._wake_reader()

    def close(self) -> None:
        """Unsubscribe from changes; the client has disconnected."""
        self._ended = True
        self._pending.clear()
        self._finish()
        self._wake_reader()

    def __aiter__(self) -> "WatchStream":
        return self

    async def __anext__(self) -> bytes:
        """The next batch of lines.

        Raises:
            StreamCut: the server was stopped.
        """
        while True:
            if self._cut:
                self._finish()
                raise StreamCut("the API server went away during a watch")
            batch = self._take_batch()
            if batch:
                return batch
            if self._ended:
                self._finish()
                raise StopAsyncIteration
            await self._wait()

    def _take_batch(self) -> bytes:
        lines: list[bytes] = []
        for line in self._initial:
            lines.append(line)
            if len(lines) == _BATCH_LINES:
                return b"".join(lines)
        pending = self._pending
        while pending and len(lines) < _BATCH_LINES:
            lines.append(pending.popleft())
        return b"".join(lines)

    async def _wait(self) -> None:
        """Until there is something to send, a bookmark is due, or time is up."""
        self._wake = trio.Event()
        with trio.move_on_at(min(self._deadline, self._next_bookmark)):
            await self._wake.wait()
        self._wake = None
        now = trio.current_time()
        if self._bookmarks and now >= self._next_bookmark:
            self._pending.append(self._bookmark(self._store.version))
            self._next_bookmark = self._bookmark_after(now)
        if now >= self._deadline:
            self._ended = True

    def _bookmark_after(self, now: float) -> float:
        """The next regular bookmark, or the last one, shortly before the end; never again after that."""
        last = self._deadline - _LAST_BOOKMARK_SECONDS
        if now >= last:
            return float("inf")
        return min((now // BOOKMARK_SECONDS + 1) * BOOKMARK_SECONDS, last)

    def _initial_lines(self, found: list[StoredObject], end_version: int) -> Iterator[bytes]:
        for stored in found:
            yield self._view.event("ADDED", Change("ADDED", stored, None))
        if end_version:
            yield self._bookmark(end_version, {_INITIAL_EVENTS_END: "true"})

    def _bookmark(self, version: int, annotations: dict[str, str] | None = None) -> bytes:
        metadata: dict[str, object] = {"resourceVersion": str(version)}
        if annotations:
            metadata["annotations"] = annotations
        shown: dict[str, object] = {
            "kind": self._resource.kind,
            "apiVersion": self._resource.api_version,
            "metadata": metadata,
        }
        if self._resource.collection == "pods":  # empty structs, as Go writes them
            shown |= {"spec": {"containers": None}, "status": {}}
        return msgspec.json.encode({"type": "BOOKMARK", "object": shown}) + b"\n"

    def _selects(self, stored: StoredObject) -> bool:
        return self._predicate is None or self._predicate(stored.fields)

    def _on_change(self, change: Change) -> None:
        if self._key_prefix and not change.current.key.startswith(self._key_prefix):
            return
        kind = change.type if self._predicate is None else self._type_for(self._predicate, change)
        if kind is None:
            return
        if len(self._pending) >= self._backlog_limit:
            self._pending.clear()
            self._ended = True
            self._finish()
        else:
            self._pending.append(self._view.event(kind, change))
        if self._wake is not None:
            self._wake.set()

    def _type_for(self, predicate: Predicate, change: Change) -> ChangeType | None:
        """The type of *change* for a watch of what *predicate* selects; ``None``: no event."""
        before = change.previous is not None and predicate(change.previous.fields)
        after = change.type != "DELETED" and predicate(change.current.fields)
        if after:
            return "MODIFIED" if before else "ADDED"
        return "DELETED" if before else None

    def _wake_reader(self) -> None:
        if self._wake is not None:
            self._wake.set()

    def _finish(self) -> None:
        self._stop_listening()
        self._stop_listening = lambda: None
        self._on_close(self)
