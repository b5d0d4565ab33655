"""The thread that makes records of notes, and writes them."""

from __future__ import annotations

import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

from attrs import define, field

from trio_sched import __version__
from trio_sched.daemon.recording.notes import Batch, Note, SegmentBegins
from trio_sched.engine.hooks.hook_failure import describe_error
from trio_sched.objects.changes import Listed
from trio_sched.plugin_api.custom_resources import Watched
from trio_sched.recording.folder import RecordingFolder
from trio_sched.recording.records import Began, Changed, Ended, Existed, FirstList, Missed, Record
from trio_sched.recording.redaction import Redaction
from trio_sched.recording.segments import SegmentWriter

_POLL_SECONDS: Final = 0.1
"""How often the thread looks for notes; waking it for each would cost the event loop more than the note."""
_BLOCK_BYTES: Final = 1 << 16
"""From this size on a block is written: encoding it holds Python's lock, and what is not written is lost in a crash."""
_RECORD_BYTES: Final = 64
"""About what a record takes that has no objects."""

T = TypeVar("T")


@define(eq=False, kw_only=True)
class RecordingThread:
    """Writes notes, in their order, until it is closed or the disk refuses.

    Attributes:
        wants_segment: set by the thread when the segment is large enough; whoever appends a `SegmentBegins` resets it.
        problem: why it has ended before it was closed; None as long as it has not.
    """

    notes: deque[Note]
    """The event loop appends, the thread takes; both are single steps of a deque."""
    folder: RecordingFolder
    redaction: Redaction
    wants_segment: bool = field(default=False, init=False)
    problem: str | None = field(default=None, init=False)
    _has_asked: bool = field(default=False, init=False)
    """Whether another segment was wanted since this one began."""
    _has_gap: bool = field(default=False, init=False)
    """Whether notes are missing in this segment, so that the next one does not continue it."""
    _run_id: str = field(factory=lambda: uuid.uuid4().hex, init=False)
    _segment: SegmentWriter = field(init=False)
    _closing: threading.Event = field(factory=threading.Event, init=False)
    _ends_at: float = field(default=0.0, init=False)
    _thread: threading.Thread = field(init=False)

    def begin(self, first: SegmentBegins) -> None:
        """Create the first segment, and start.

        Raises:
            OSError: it cannot be created or written to.
        """
        self._segment = self.folder.next_segment()
        self._write_beginning(first)
        # A thread that cannot write must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="recording of decisions", daemon=True)
        self._thread.start()

    def close(self, now: float, timeout_seconds: float) -> None:
        """Wait until everything is written, but not for ever."""
        self._ends_at = now
        self._closing.set()
        self._thread.join(timeout_seconds)
        if self._thread.is_alive():
            self.problem = f"the end could not be written within {timeout_seconds:.0f} s"

    def _run(self) -> None:
        try:
            while not self._closing.wait(_POLL_SECONDS):
                self._drain()
            self._drain()
            self._end_segment([], self._ends_at)
        except OSError as error:
            self.problem = error.strerror or str(error)
        except Exception as error:  # whatever is wrong here, scheduling goes on
            self.problem = describe_error(error)

    def _drain(self) -> None:
        """Write the notes that there are."""
        records: list[Record] = []
        size = 0
        while self.notes:
            note = self.notes.popleft()
            if isinstance(note, SegmentBegins):
                self._next_segment(records, note)
                records, size = [], 0
                continue
            if not isinstance(note, Batch):
                records.append(note)
                size += _RECORD_BYTES
                self._has_gap |= isinstance(note, Missed)
                continue
            for record, record_bytes in self._records_of(note):
                records.append(record)
                size += record_bytes
                if size >= _BLOCK_BYTES:
                    self._segment.write(records)
                    records, size = [], 0
        if records:
            self._segment.write(records)
        if self._segment.size >= self.folder.segment_bytes and not self._has_asked:
            self.wants_segment = self._has_asked = True

    def _next_segment(self, records: list[Record], begins: SegmentBegins) -> None:
        self._end_segment(records, begins.now)
        self._segment = self.folder.next_segment()
        self._has_asked = self._has_gap = False
        self._write_beginning(begins)

    def _end_segment(self, records: list[Record], now: float) -> None:
        self._segment.write(records if self._has_gap else [*records, Ended(now)])
        self._segment.close()

    def _write_beginning(self, begins: SegmentBegins) -> None:
        """What exists, in small blocks."""
        write, now = self._segment.write, begins.now
        write([Began(self._run_id, now, begins.posix_seconds, __version__)])
        if begins.configured is not None:
            write([begins.configured])
        for kind, objects in begins.objects.items():
            for part, _size in self._lists(now, kind, objects):
                write([part])
        write([Existed(list(begins.on_nodes), dict(begins.nominated))])

    def _records_of(self, note: Batch) -> Iterator[tuple[Record, int]]:
        """The records of a batch, each with about how many bytes it takes."""
        if isinstance(note.batch, Listed):
            yield from self._lists(note.now, note.kind, note.batch.objects)
        else:
            name = str(note.kind)
            changes = [self.redaction.encode_change(note.kind, change) for change in note.batch.changes]
            for part, size in _parts(changes, _size_of_change):
                yield Changed(note.now, name, part), size

    def _lists(self, now: float, kind: Watched, objects: Iterable[Any]) -> Iterator[tuple[Record, int]]:
        is_empty = True
        for part, size in _parts((self.redaction.encode(kind, one) for one in objects), len):
            yield FirstList(now, str(kind), part), size
            is_empty = False
        if is_empty:
            yield FirstList(now, str(kind), []), _RECORD_BYTES


def _size_of_change(change: tuple[str, bytes]) -> int:
    return len(change[1])


def _parts(items: Iterable[T], size_of: Callable[[T], int]) -> Iterator[tuple[list[T], int]]:
    """*items* in parts of about the size of a block, with the size of each."""
    part: list[T] = []
    size = 0
    for item in items:
        part.append(item)
        size += size_of(item) + _RECORD_BYTES
        if size >= _BLOCK_BYTES:
            yield part, size
            part, size = [], 0
    if part:
        yield part, size
