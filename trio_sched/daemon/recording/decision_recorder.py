"""Notes, in the event loop, what decisions depend on, changes of pods for one; a thread writes that into a recording.

The event loop appends to a queue that has a bound, and never waits: where the disk is too slow, notes are left out and
the recording goes on with what exists later; where it is full, the recording ends with a line in the log.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Final

import trio
from attrs import define, field
from msgspec.structs import force_setattr

from trio_sched.daemon.recording.notes import Batch, Note, SegmentBegins, what_exists
from trio_sched.daemon.recording.recording_thread import PART, RecordingThread, parts
from trio_sched.daemon.wake_up import WakeUp
from trio_sched.engine.hooks.hook_failure import describe_error
from trio_sched.engine.scheduler import Scheduler
from trio_sched.errors import TrioSchedError
from trio_sched.objects.changes import Change
from trio_sched.objects.pod import Pod
from trio_sched.recording.folder import RecordingFolder
from trio_sched.recording.hashed_names import KEY_BYTES, NameHasher
from trio_sched.recording.object_encoder import ObjectEncoder
from trio_sched.recording.pod_templates import MAX_TEMPLATES
from trio_sched.recording.recording_settings import RecordingSettings
from trio_sched.recording.records import (
    Activated,
    Changed,
    Configured,
    Decided,
    Flushed,
    Missed,
    Record,
    Templates,
    encode_records,
)
from trio_sched.recording.redaction import Redaction
from trio_sched.recording.unread_changes import UnreadChanges

log = logging.getLogger(__name__)

MAX_NOTES: Final = 200_000
"""So many notes wait for the thread at most."""
MAX_NOTED_BYTES: Final = 1 << 26
"""So many bytes of them."""
ENCODED_AT_ONCE: Final = 256
"""So many records, which takes a third of a millisecond: in smaller parts each takes a quarter more."""
_ENCODE_SECONDS: Final = 0.25
"""So long records wait to be encoded at most."""
_CLOSE_SECONDS: Final = 10.0
"""How long the end waits until everything is written."""


_PodChanges = tuple[float, Sequence[Change[Pod]]]
"""When the watch of pods has delivered which changes."""


class CannotRecord(TrioSchedError):
    """The folder of a recording cannot be written to."""


@define(eq=False, kw_only=True)
class DecisionRecorder:
    """Records one run of a scheduler."""

    settings: RecordingSettings
    wall_clock: Callable[[], datetime]
    max_notes: int = MAX_NOTES
    scheduler: Scheduler | None = field(default=None, init=False)
    """What is recorded, once it is there."""
    is_on: bool = field(default=False, init=False)
    """Whether anything is noted: not before the beginning, nor after the disk was full."""
    unread: UnreadChanges = field(factory=UnreadChanges, init=False)
    """Tells which changes need not be noted."""
    left_out: int = field(default=0, init=False)
    """How many records were left out because the thread was too slow."""
    _thread: RecordingThread = field(init=False)
    _redaction: Redaction = field(init=False)
    _encoder: ObjectEncoder = field(init=False)
    """Encodes the changes of pods in this segment."""
    _noted_bytes: int = field(default=0, init=False)
    _count: int = field(default=0, init=False)
    _records: list[Record | _PodChanges] = field(factory=list, init=False)
    """What is not encoded yet."""
    _size: int = field(default=0, init=False)
    """How many records that will be, and changes of pods."""
    _held: Decided | None = field(default=None, init=False)
    """The last decision, if nothing was noted since and it is not encoded."""
    _noted: WakeUp = field(factory=WakeUp, init=False)
    _missed: int = field(default=0, init=False)
    """How many of those that were left out since the last segment began."""
    _begins_again: bool = field(default=False, init=False)
    _configured: Configured | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        folder = RecordingFolder(self.settings.folder, self.settings.max_bytes)
        self._redaction = Redaction(self.settings.annotations)
        hasher = NameHasher(secrets.token_bytes(KEY_BYTES)) if self.settings.hash_names else None
        self._thread = RecordingThread(folder=folder, redaction=self._redaction, hasher=hasher)
        self._encoder = self._new_encoder()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Record while the block runs; when it is left, what was noted is written.

        Raises:
            CannotRecord: the folder cannot be written to.
        """
        now = trio.current_time()
        try:
            self._thread.folder.prepare()
            self._thread.begin(SegmentBegins(now=now, posix_seconds=self._posix_seconds(), configured=self._configured))
        except OSError as error:
            raise CannotRecord(f"cannot record into {self.settings.folder}: {error.strerror or error}") from error
        self.is_on = True
        try:
            yield
        finally:
            self._encode()
            if self._missed:
                self._thread.put(Missed(trio.current_time(), self._missed))
            self._thread.close(trio.current_time(), _CLOSE_SECONDS)
            self._check()
            self.is_on = False

    def configured(self, configured: Configured, *, only_built_in: bool) -> None:
        """Another configuration is in force; *only_built_in*: no plugin of it is of another package."""
        self._configured = configured
        if not (only_built_in or self.unread.reads_all_conditions):
            self.unread.reads_all_conditions = True
            self._begins_again = self.is_on  # what was left out so far may be read from now on
        self.note(configured)

    def delivered(self, batch: Batch) -> None:
        """A watch has delivered a batch, which is about to be taken in: the moment for another segment to begin."""
        self._begin_segment_if_due()
        self._encode()
        self._count += 1
        self._append(batch)

    def pods_changed(self, now: float, changes: Sequence[Change[Pod]]) -> None:
        """The watch of pods has delivered *changes*, which are about to be taken in; likewise.

        Those that nothing reads are left out.
        """
        is_read, read = self.unread.pod_is_read, []
        for one in changes:
            if one.type != "MODIFIED" or is_read(one.old, one.new):
                read.append(one)
        if not read:
            return
        self._begin_segment_if_due()
        self._count += 1
        self._add((now, read), len(read))

    def decided(self, decided: Decided) -> None:
        """Take note of a decision; `reserved` may follow."""
        self.note(decided)
        self._held = decided

    def reserved(self, uid: str, node: str) -> bool:
        """Reserve and permit let a pod pass; returns whether that is noted together with the decision on it."""
        held = self._held
        if held is None or held.uid != uid or held.node != node:
            return False
        force_setattr(held, "binds", True)  # a copy would take three times as long, and nobody has it yet
        self._held = None
        return True

    def note(self, record: Record) -> None:
        """Take note of what has happened."""
        self._count += 1
        self._add(record)

    def note_of_queue(self, record: Flushed | Activated) -> None:
        """Take note of what has happened to the queue alone, on which no decision depends."""
        self._add(record)

    def count_notes(self) -> int:
        """How many notes were taken, or would have been, of what decisions depend on."""
        return self._count

    async def run(self) -> None:
        """See to it that what was noted is written soon, for ever."""
        while True:
            await self._noted.wait()
            await trio.sleep(_ENCODE_SECONDS)
            self._encode()

    def _add(self, record: Record | _PodChanges, size: int = 1) -> None:
        """Keep *record* until it is encoded: among many others it takes a quarter of the time that it takes alone."""
        if not self.is_on:
            return
        if self._size >= ENCODED_AT_ONCE:
            self._encode()
        if not self._size:
            self._noted.set()
        self._records.append(record)
        self._size += size
        self._held = None

    def _encode(self) -> None:
        """Hand the thread what was noted; the recording ends if that cannot be encoded."""
        self._held = None
        if not self._size:
            return
        noted, self._records, self._size = self._records, [], 0
        records: list[Record] = []
        try:
            for one in noted:
                if isinstance(one, tuple):
                    records += self._records_of(*one)
                else:
                    records.append(one)
            lines = encode_records(records)
        except Exception as problem:  # a plugin, for instance, may have a name that is no text
            self._thread.problem = describe_error(problem)
            self._check()
        else:
            if self._append(lines, len(records)):
                self._noted_bytes += len(lines)

    def _records_of(self, now: float, changes: Sequence[Change[Pod]]) -> Iterator[Record]:
        encoder = self._encoder
        for part in (changes,) if len(changes) <= PART else parts(changes):
            encoded = encoder.encode_changes("Pod", part)
            if encoder.templates.new:
                yield Templates(encoder.templates.take_new())
            yield Changed(now, "Pod", encoded)

    @property
    def waiting_bytes(self) -> int:
        """How many bytes of records wait for the thread."""
        return self._noted_bytes - self._thread.taken_bytes

    def _append(self, note: Note, records: int = 1) -> bool:
        """Have the thread write *note*; returns False if it was left out."""
        if not self.is_on:
            return False
        if self._missed or len(self._thread.notes) >= self.max_notes or self.waiting_bytes >= MAX_NOTED_BYTES:
            self._missed += records
            self.left_out += records
            return False
        self._thread.put(note)
        return True

    def state_repaired(self) -> None:
        """The cache was changed by something else than what is noted: what exists is recorded as a new beginning."""
        self._begins_again = True

    def _begin_segment_if_due(self) -> None:
        thread = self._thread
        if thread.problem is not None or thread.wants_segment or self._begins_again or self._missed:
            self._begin_segment()

    def _begin_segment(self) -> None:
        self._check()
        if not self.is_on or self.scheduler is None or len(self._thread.notes) > self.max_notes // 2:
            return
        self._encode()
        now = trio.current_time()
        if self._missed or self._begins_again:
            self._thread.put(Missed(now, self._missed))
        self._thread.wants_segment = self._begins_again = False
        self._missed = 0
        self._encoder = self._new_encoder()
        self._thread.put(
            what_exists(self.scheduler, now=now, posix_seconds=self._posix_seconds(), configured=self._configured)
        )

    def _new_encoder(self) -> ObjectEncoder:
        return ObjectEncoder(self._redaction, MAX_TEMPLATES)  # the thread has the numbers before

    def _check(self) -> None:
        """End the recording if the thread could not write."""
        problem = self._thread.problem
        if self.is_on and problem is not None:
            self.is_on = False
            self._thread.notes.clear()
            log.error(
                "Recording ended; scheduling goes on", extra={"folder": str(self.settings.folder), "err": problem}
            )

    def _posix_seconds(self) -> float:
        return self.wall_clock().timestamp()
