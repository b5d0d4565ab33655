"""A segment: a file of blocks, each a part of one stream of zlib with its length and checksum before it.

A block that is there in full can be read, whatever has become of those behind it. The compressed stream goes on from
block to block, so that what was said in one costs little in the next.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

import msgspec
from attrs import define, field

from trio_sched.errors import TrioSchedError
from trio_sched.recording.records import Record, decode_records

_KIND: Final = b"trio-sched recording "
MAGIC: Final = _KIND + b"3\n"
"""What segments of this version begin with; one of another version is refused."""
_HEAD: Final = struct.Struct(">II")
"""The length of the compressed block, and its CRC-32."""
_LEVEL: Final = 1
"""The fastest: records repeat each other so much that slower levels save little."""
MAX_BLOCK_BYTES: Final = 1 << 27
"""A block that claims more, compressed or not, is damaged."""


class NotARecording(TrioSchedError):
    """A file, or a folder, that is no recording."""


class RecordTooLarge(Exception):
    """A record alone has more than `MAX_BLOCK_BYTES`."""


@define(eq=False)
class SegmentWriter:
    """Writes one segment.

    Args:
        file: is written to without a buffer, so that nothing is left behind when the process ends at once.
    """

    _file: BinaryIO
    size: int = field(default=0, init=False)
    """Bytes written so far."""
    _stream: zlib._Compress = field(factory=lambda: zlib.compressobj(_LEVEL), init=False)

    @classmethod
    def create(cls, path: Path) -> SegmentWriter:
        """A new file; its parts are written in full or not at all, as far as the system allows.

        Raises:
            OSError: it cannot be created, or exists.
        """
        writer = cls(path.open("xb", buffering=0))
        writer._write(MAGIC)
        return writer

    def write(self, records: Iterable[bytes]) -> None:
        """Write records, as `encode_records` makes them, as one block.

        Raises:
            RecordTooLarge: one alone would be no block that is read.
            OSError: the disk is full, for instance.
        """
        text = b"".join(records)
        if len(text) > MAX_BLOCK_BYTES:
            lines = text.splitlines(keepends=True)
            if len(lines) == 1:
                raise RecordTooLarge(f"a record would take {len(text)} bytes")
            middle = len(lines) // 2
            self.write(lines[:middle])
            self.write(lines[middle:])
            return
        data = self._stream.compress(text) + self._stream.flush(zlib.Z_SYNC_FLUSH)
        self._write(_HEAD.pack(len(data), zlib.crc32(data)) + data)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            written = self._file.write(view)
            view = view[written:]
            self.size += written

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@define(eq=False)
class SegmentReader:
    """Reads one segment as far as it is whole.

    Attributes:
        lost_bytes: how many bytes at the end were not readable, known once everything was read.
    """

    path: Path
    lost_bytes: int = field(default=0, init=False)

    def blocks(self) -> Iterator[list[Record]]:
        """The records, a block at a time; ends without an error where a block is cut off or damaged.

        Raises:
            NotARecording: the file is something else.
            OSError: it cannot be read.
        """
        with self.path.open("rb") as file:
            size, whole = self.path.stat().st_size, 0
            head = file.read(len(MAGIC))
            if head != MAGIC[: len(head)]:
                raise NotARecording(_why_refused(self.path, head))
            if len(head) == len(MAGIC):
                whole = len(MAGIC)
                for length, records in _blocks(file):
                    whole += length
                    yield records
            self.lost_bytes = size - whole


def _why_refused(path: Path, head: bytes) -> str:
    version = head.removeprefix(_KIND)
    if version == head or not version[:1].isdigit():
        return f"{path} is no segment of a recording"
    number, ours = (text[:-1].decode(errors="replace") for text in (version, MAGIC.removeprefix(_KIND)))
    return (
        f"{path} has version {number} of the format of recordings, and this version of trio-sched reads version {ours} "
        "alone; replay it with the version of trio-sched that has recorded it"
    )


def _blocks(file: BinaryIO) -> Iterator[tuple[int, list[Record]]]:
    """The lengths in the file, and the records, of all blocks up to the first that is not whole."""
    stream = zlib.decompressobj()
    while len(head := file.read(_HEAD.size)) == _HEAD.size:
        length, checksum = _HEAD.unpack(head)
        if length > MAX_BLOCK_BYTES:
            return
        data = file.read(length)
        if len(data) < length or zlib.crc32(data) != checksum:
            return
        try:
            text = stream.decompress(data, MAX_BLOCK_BYTES)
            records = decode_records(text)
        except (zlib.error, msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            return
        yield _HEAD.size + length, records
