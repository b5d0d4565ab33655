"""The folder of a recording: its segments follow each other, and the oldest make room."""

from pathlib import Path

import pytest
from msgspec import Raw

from trio_sched.recording.folder import MIN_SEGMENT_BYTES, RecordingFolder, RecordingReader, segment_paths
from trio_sched.recording.records import Began, Ended, Record, Requeued, Templates, encode_records
from trio_sched.recording.segments import NotARecording


def add_segment(folder: RecordingFolder, run: str, *records: Record) -> Path:
    before = segment_paths(folder.path)
    writer = folder.next_segment()
    writer.write([encode_records((Began(run, 0.0, 0.0, "1"), *records))])
    writer.close()
    (path,) = set(segment_paths(folder.path)) - set(before)
    return path


def read(folder: RecordingFolder) -> tuple[list[bool], list[Record], dict[str, int]]:
    reader = RecordingReader(folder.path)
    follows: list[bool] = []
    records: list[Record] = []
    for one, found in reader.segments():
        follows.append(one)
        records += found
    return follows, records, reader.lost


@pytest.fixture
def folder(tmp_path: Path) -> RecordingFolder:
    folder = RecordingFolder(tmp_path / "recording", 1 << 20)
    folder.prepare()
    return folder


def test_segments_of_one_run_follow_each_other_unless_one_is_not_complete(folder: RecordingFolder) -> None:
    add_segment(folder, "a", Ended(1.0))
    add_segment(folder, "a")
    add_segment(folder, "a", Ended(2.0))
    add_segment(folder, "b", Ended(3.0))
    assert read(folder)[0] == [False, True, False, False]


def test_a_segment_follows_none_that_is_missing(folder: RecordingFolder) -> None:
    add_segment(folder, "a", Ended(1.0))
    add_segment(folder, "a", Ended(2.0)).unlink()
    add_segment(folder, "a", Ended(3.0))
    # The number of the removed one is free again only if it was the last.
    paths = segment_paths(folder.path)
    paths[-1].rename(folder.path / "segment-00000003.trio")
    assert read(folder)[0] == [False, False]


def test_what_is_cut_off_is_counted_by_segment(folder: RecordingFolder) -> None:
    add_segment(folder, "a", Ended(1.0))
    path = add_segment(folder, "a", Ended(2.0))
    whole = path.read_bytes()
    path.write_bytes(whole + b"tail")
    assert read(folder)[2] == {path.name: 4}


def test_a_template_that_is_no_pod_is_refused(folder: RecordingFolder) -> None:
    add_segment(folder, "a", Templates({0: Raw(b"[]")}))
    with pytest.raises(NotARecording, match="template of pods that is no pod"):
        read(folder)


def test_the_oldest_segments_make_room(folder: RecordingFolder) -> None:
    text = [Requeued(0.0, str(number * 7919 % 10007), [], [], None, []) for number in range(30_000)]
    for _ in range(20):
        add_segment(folder, "a", *text)
        sizes = [path.stat().st_size for path in segment_paths(folder.path)]
        assert sizes[-1] > MIN_SEGMENT_BYTES
        assert sum(sizes) <= folder.max_bytes + sizes[-1]
    assert segment_paths(folder.path)[0].name > "segment-00000001.trio"


def test_a_folder_without_segments_is_no_recording(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("")
    for path, problem in (
        (tmp_path, "no segments"),
        (tmp_path / "gone", "there is no"),
        (tmp_path / "notes.txt", "no"),
    ):
        with pytest.raises(NotARecording, match=problem):
            list(RecordingReader(path).segments())
