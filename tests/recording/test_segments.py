"""Segments: whatever is cut off or changed at their end, what is before it is read."""

from pathlib import Path

import pytest
from msgspec import Raw

from trio_sched.recording.records import Began, Decided, Ended, FirstList, Record, encode_records
from trio_sched.recording.segments import MAGIC, NotARecording, RecordTooLarge, SegmentReader, SegmentWriter


def began(run: str = "a") -> Began:
    return Began(run=run, now=0.0, posix_seconds=1.0, program="1")


def decided(number: int) -> Decided:
    return Decided(float(number), f"uid-{number}", "node-1", [], 3, 0, [(3, number % 3)], None, False)


def write(path: Path, blocks: list[list[Record]]) -> None:
    writer = SegmentWriter.create(path)
    try:
        for block in blocks:
            writer.write([encode_records(block)])
    finally:
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


def test_numbers_of_any_size_that_were_drawn_are_written(tmp_path: Path) -> None:
    bits = Decided(0.0, "uid", "", ["DynamicResources"], 0, 0, [(0, 1 << 127)], None, False)
    write(tmp_path / "segment", [[began(), bits]])
    assert read(tmp_path / "segment")[0][1] == bits


def test_what_is_too_large_for_a_block_becomes_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trio_sched.recording.segments.MAX_BLOCK_BYTES", 400)
    records = [began(), *(FirstList(float(number), "Node", [Raw(b"1234567890")] * 20) for number in range(5))]
    write(tmp_path / "segment", [records])
    assert read(tmp_path / "segment") == (records, 0)
    with pytest.raises(RecordTooLarge):
        write(tmp_path / "other", [[FirstList(0.0, "Node", [Raw(b'"%s"' % (b"x" * 500))])]])


def test_a_segment_that_is_cut_at_any_byte_has_the_blocks_before_the_cut(tmp_path: Path) -> None:
    path, cut = tmp_path / "segment", tmp_path / "cut"
    sizes = [len(MAGIC)]
    writer = SegmentWriter.create(path)
    for block in BLOCKS:
        writer.write([encode_records(block)])
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


def test_a_segment_of_another_version_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "segment").write_bytes(b"trio-sched recording 1\n" + bytes(50))
    with pytest.raises(NotARecording, match=r"has version 1 of the format .* reads version 3 alone; replay it with"):
        read(tmp_path / "segment")
