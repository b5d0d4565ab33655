"""The folder of a recording: its segments by number, and how much room they take."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
from attrs import define, field

from trio_sched.recording.pod_templates import KnownTemplates
from trio_sched.recording.records import Began, Ended, Record, Templates
from trio_sched.recording.segments import NotARecording, SegmentReader, SegmentWriter

_is_segment: Final = re.compile(r"segment-([0-9]{8})\.trio").fullmatch
MIN_SEGMENT_BYTES: Final = 1 << 16
MAX_SEGMENT_BYTES: Final = 1 << 26
_SEGMENTS: Final = 16
"""Into so many segments the room is divided: at most so much of it is empty after the oldest was dropped."""


def segment_paths(folder: Path) -> list[Path]:
    """The segments in *folder*, oldest first.

    Raises:
        OSError: it cannot be read.
    """
    return sorted(path for path in folder.iterdir() if _is_segment(path.name))


@define(eq=False)
class RecordingFolder:
    """Creates segments in a folder, and removes the oldest ones so that all together stay below a size.

    Args:
        path: the folder; it is created.
        max_bytes: of all segments together.
    """

    path: Path
    max_bytes: int
    segment_bytes: int = field(init=False)
    """From this size on a segment is followed by the next one."""

    def __attrs_post_init__(self) -> None:
        self.segment_bytes = min(max(self.max_bytes // _SEGMENTS, MIN_SEGMENT_BYTES), MAX_SEGMENT_BYTES)

    def prepare(self) -> None:
        """Create the folder.

        Raises:
            OSError: it cannot be created, or read.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        segment_paths(self.path)

    def next_segment(self) -> SegmentWriter:
        """A new segment; the oldest ones are removed if there is no room for it.

        Raises:
            OSError: it cannot be created.
        """
        paths = segment_paths(self.path)
        sizes = {path: path.stat().st_size for path in paths}
        total = sum(sizes.values()) + self.segment_bytes
        for path in paths:
            if total <= self.max_bytes:
                break
            path.unlink(missing_ok=True)
            total -= sizes[path]
        last = int(paths[-1].name[8:16]) if paths else 0
        return SegmentWriter.create(self.path / f"segment-{last + 1:08d}.trio")


@define(eq=False)
class RecordingReader:
    """Reads a recording from its oldest segment on.

    Attributes:
        lost: the segments of which something could not be read → how many bytes.
        records: how many were read.
        pods: decodes the pods of the records that were read.
    """

    path: Path
    lost: dict[str, int] = field(factory=dict, init=False)
    records: int = field(default=0, init=False)
    pods: KnownTemplates = field(factory=KnownTemplates, init=False)

    def segments(self) -> Iterator[tuple[bool, Iterator[Record]]]:
        """The segments, each with whether it continues the one before without a gap.

        The records of one are to be read before the next segment is asked for, and the pods of a record before the next
        record is.

        Raises:
            NotARecording: there is nothing to read.
            OSError: a file cannot be read.
        """
        try:
            paths = segment_paths(self.path)
        except NotADirectoryError as error:
            raise NotARecording(f"{self.path} is no folder; give the folder that --record has written to") from error
        except FileNotFoundError as error:
            raise NotARecording(f"there is no folder {self.path}") from error
        if not paths:
            raise NotARecording(f"{self.path} has no segments of a recording; they are called segment-*.trio")
        run, number, ended = "", 0, False
        for path in paths:
            reader = SegmentReader(path)
            records = (record for block in reader.blocks() for record in block)
            first = next(records, None)
            if isinstance(first, Began):
                follows = ended and first.run == run and int(path.name[8:16]) == number + 1
                run, number, ended = first.run, int(path.name[8:16]), False
                self.records += 1

                def rest(first: Began = first, records: Iterator[Record] = records) -> Iterator[Record]:
                    nonlocal ended
                    yield first
                    for record in records:
                        self.records += 1
                        ended = isinstance(record, Ended)
                        if isinstance(record, Templates):
                            self._add_templates(record)
                        else:
                            yield record

                yield follows, rest()
            for _ in records:  # so that it is known how much of it can be read
                pass
            if reader.lost_bytes or first is None:
                self.lost[path.name] = reader.lost_bytes

    def _add_templates(self, record: Templates) -> None:
        try:
            self.pods.add(record.pods)
        except msgspec.MsgspecError as problem:
            raise NotARecording(f"{self.path} has a template of pods that is no pod: {problem}") from problem
