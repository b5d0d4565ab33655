"""Segments: whatever is cut off or changed at their end, what is before it is read."""

from pathlib import Path

import pytest

from trio_sched.recording.records import Began, Decided, Ended, Record
from trio_sched.recording.segments import MAGIC, NotARecording, SegmentReader, SegmentWriter


def began(run: str = "a") -> Began:
    return Began(run=run, now=0.0, posix_seconds=1.0, program="1")


def decided(number: int) -> Decided:
    return Decided(float(number), f"uid-{number}", "node-1", [], 3, 0, [(3, number % 3)])


def write(path: Path, blocks: list[list[Record]]) -> None:
    writer = SegmentWriter.create(path)
    for block in blocks:
        writer.write(block)
    writer.close()


def read(path: Path) -> tuple[list[Record], int]:
    reader = SegmentReader(path)
    records = [record for block in reader.blocks() for record in block]
    return records, reader.lost_bytes


BLOCKS: list[list[Record]] = [[began()], [decided(1), decided(2)], [decided(3)], [Ended(4.0)]]


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    write(path, BLOCKS)
    assert read(path) == ([record for block in BLOCKS for record in block], 0)


def test_a_segment_that_is_cut_at_any_byte_has_the_blocks_before_the_cut(tmp_path: Path) -> None:
    path, cut = tmp_path / "segment", tmp_path / "cut"
    sizes = [len(MAGIC)]
    writer = SegmentWriter.create(path)
    for block in BLOCKS:
        writer.write(block)
        sizes.append(writer.size)
    writer.close()
    whole = path.read_bytes()
    for length in range(len(whole) + 1):
        cut.write_bytes(whole[:length])
        count = max((n for n, size in enumerate(sizes) if size <= length), default=0)
        end = sizes[count] if length >= sizes[0] else 0
        assert read(cut) == ([record for block in BLOCKS[:count] for record in block], length - end), length


def test_a_segment_with_any_byte_changed_has_the_blocks_before_it(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    write(path, BLOCKS)
    whole, everything = path.read_bytes(), [record for block in BLOCKS for record in block]
    for position in range(len(MAGIC), len(whole)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0xFF]) + whole[position + 1 :])
        records, lost = read(path)
        assert records == everything[: len(records)]
        assert lost, position


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "segment").write_text("something else, which is longer")
    with pytest.raises(NotARecording, match="no segment of a recording"):
        read(tmp_path / "segment")
