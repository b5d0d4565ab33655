"""The thread that makes records of the notes of `DecisionRecorder`, and writes them."""

from __future__ import annotations

import threading
import uuid
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

from attrs import define, field

from trio_sched import __version__
from trio_sched.daemon.recording.notes import Batch, Note, SegmentBegins
from trio_sched.engine.hooks.hook_failure import describe_error
from trio_sched.objects.changes import Listed
from trio_sched.plugin_api.custom_resources import Watched
from trio_sched.recording.folder import RecordingFolder
from trio_sched.recording.hashed_names import NameHasher
from trio_sched.recording.object_encoder import ObjectEncoder
from trio_sched.recording.records import (
    Began,
    Changed,
    Ended,
    Existed,
    FirstList,
    Missed,
    OnNodes,
    Record,
    Templates,
    encode_records,
)
from trio_sched.recording.redaction import Redaction
from trio_sched.recording.segments import SegmentWriter
from trio_sched.recording.unread_changes import UnreadChanges

_COLLECT_SECONDS: Final = 0.25
"""So long notes are collected: each time costs as much as some changes, and a crash loses what came since."""
_BLOCK_BYTES: Final = 1 << 16
"""From this size on a block is written."""
PART: Final = 64
"""So many objects are in a record at most: as many as API servers store make a block that can be read."""
_UNREAD: Final = UnreadChanges()
"""Pods come encoded, and for what else there is no plugin matters."""
_PLACEMENTS: Final = 1000
"""So many pods on nodes are in a record at most: encoding it holds Python's lock."""

T = TypeVar("T")


@define(eq=False, kw_only=True)
class RecordingThread:
    """Writes notes, in their order, until it is closed or the disk refuses.

    Attributes:
        wants_segment: set by the thread when the segment is large enough; whoever appends a `SegmentBegins` resets it.
        taken_bytes: how many bytes of notes are written.
        problem: why it has ended before it was closed; None as long as it has not.
    """

    folder: RecordingFolder
    redaction: Redaction
    hasher: NameHasher | None = None
    """Replaces names; None: they are written."""
    notes: deque[Note] = field(factory=deque, init=False)
    """The event loop puts, the thread takes; both are single steps of a deque."""
    wants_segment: bool = field(default=False, init=False)
    taken_bytes: int = field(default=0, init=False)
    problem: str | None = field(default=None, init=False)
    _has_asked: bool = field(default=False, init=False)
    """Whether another segment was wanted since this one began."""
    _has_gap: bool = field(default=False, init=False)
    """Whether notes are missing in this segment, so that the next one does not continue it."""
    _run_id: str = field(factory=lambda: uuid.uuid4().hex, init=False)
    _segment: SegmentWriter = field(init=False)
    _encoder: ObjectEncoder = field(init=False)
    _lines: list[bytes] = field(factory=list, init=False)
    """The records of the next block."""
    _noted: threading.Event = field(factory=threading.Event, init=False)
    _closing: threading.Event = field(factory=threading.Event, init=False)
    _ends_at: float = field(default=0.0, init=False)
    _thread: threading.Thread = field(init=False)

    def begin(self, first: SegmentBegins) -> None:
        """Create the first segment, and start.

        Raises:
            OSError: it cannot be created or written to.
        """
        self._begin_segment(first)
        # A thread that cannot write must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="recording of decisions", daemon=True)
        self._thread.start()

    def put(self, note: Note) -> None:
        """Have *note* written; the event loop calls this."""
        self.notes.append(note)
        if self.is_waiting:
            self._noted.set()

    @property
    def is_waiting(self) -> bool:
        """Whether it may sleep until there is a note: looking again and again costs more than most changes."""
        return not self._noted.is_set()

    def close(self, now: float, timeout_seconds: float) -> None:
        """Wait until everything is written, but not for ever."""
        self._ends_at = now
        self._closing.set()
        self._noted.set()
        self._thread.join(timeout_seconds)
        if self._thread.is_alive():
            self.problem = f"the end could not be written within {timeout_seconds:.0f} s"

    def _run(self) -> None:
        try:
            while self._wait_for_notes():
                self._drain()
            self._drain()
            self._end_segment(self._ends_at)
        except OSError as error:
            self.problem = error.strerror or str(error)
        except Exception as error:  # whatever is wrong here, scheduling goes on
            self.problem = describe_error(error)

    def _wait_for_notes(self) -> bool:
        """Wait until there are notes, and some more if there are; returns False once this is being closed."""
        self._noted.clear()
        if not (self.notes or self._closing.is_set()):  # what comes from now on sets the event
            self._noted.wait()
        return not self._closing.wait(_COLLECT_SECONDS)

    def _drain(self) -> None:
        """Write the notes that there are."""
        notes, lines, size = self.notes, self._lines, 0
        while notes:
            note = notes.popleft()
            if isinstance(note, bytes):
                lines.append(note)
                size += len(note)
            elif isinstance(note, Batch):
                self._add_batch(note)
            elif isinstance(note, Missed):
                self._add(note)
                self._has_gap = True
            else:
                self._end_segment(note.now)
                self._begin_segment(note)
            if size >= _BLOCK_BYTES:
                self._write()
                self.taken_bytes += size
                size = 0
        self._write()
        self.taken_bytes += size
        if self._segment.size >= self.folder.segment_bytes and not self._has_asked:
            self.wants_segment = self._has_asked = True

    def _add(self, record: Record) -> None:
        self._lines.append(encode_records((record,)))

    def _write(self) -> None:
        """Write the records that there are as a block."""
        if self._lines:
            hasher = self.hasher
            self._segment.write(self._lines if hasher is None else list(map(hasher.replace, self._lines)))
            self._lines.clear()

    def _end_segment(self, now: float) -> None:
        if not self._has_gap:
            self._add(Ended(now))
        self._write()
        self._segment.close()

    def _begin_segment(self, begins: SegmentBegins) -> None:
        """Create a segment, and write what exists."""
        self._segment = self.folder.next_segment()
        self._has_asked = self._has_gap = False
        self._encoder = ObjectEncoder(self.redaction)
        self._add(Began(self._run_id, begins.now, begins.posix_seconds, __version__))
        self._write()
        if begins.configured is not None:
            self._add(begins.configured)
        for kind, objects in begins.objects.items():
            self._add_list(begins.now, kind, objects)
        placements = begins.placements()
        while part := list(islice(placements, _PLACEMENTS)):
            self._add(OnNodes(part))
            self._write()
        self._add(Existed(dict(begins.nominated)))
        self._write()

    def _add_batch(self, note: Batch) -> None:
        """Make records of what a watch has delivered."""
        if isinstance(note.batch, Listed):
            self._add_list(note.now, note.kind, note.batch.objects)
            return
        for part in parts(note.batch.changes):
            encoded = self._encoder.encode_changes(note.kind, filter(_UNREAD.is_read, part))
            self._add_templates()
            self._add(Changed(note.now, str(note.kind), encoded))

    def _add_list(self, now: float, kind: Watched, objects: Sequence[Any]) -> None:
        """Make records of all objects of a kind; one without objects says that there are none."""
        for part in parts(objects) if objects else ((),):
            encoded = [self._encoder.encode(kind, one) for one in part]
            self._add_templates()
            self._add(FirstList(now, str(kind), encoded))
            self._write()

    def _add_templates(self) -> None:
        """What is new of the templates that the next record needs."""
        if new := self._encoder.templates.take_new():
            self._add(Templates(new))


def parts(items: Sequence[T]) -> Iterable[Sequence[T]]:
    """*items* in parts, which become a record each."""
    return (items[at : at + PART] for at in range(0, len(items), PART))
