"""Recording a scheduler: what is written, and that scheduling goes on whatever becomes of the disk."""

import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trio

from trio_sched.daemon.recording.decision_recorder import ENCODED_AT_ONCE, CannotRecord, DecisionRecorder
from trio_sched.daemon.recording.notes import Batch, SegmentBegins
from trio_sched.daemon.recording.recording_thread import RecordingThread
from trio_sched.objects.changes import Change, Changes, Listed
from trio_sched.recording.folder import RecordingFolder, RecordingReader, segment_paths
from trio_sched.recording.recording_settings import RecordingSettings
from trio_sched.recording.records import (
    Changed,
    Decided,
    Ended,
    FirstList,
    Forgotten,
    Missed,
    Record,
    Requeued,
    encode_records,
)
from trio_sched.recording.redaction import Redaction
from trio_sched.simulator import jumping_clock
from trio_sched.testing import node, pod, virtual_cluster

ENDED = "Recording ended; scheduling goes on"


def recorder(folder: Path, max_notes: int = 1000) -> DecisionRecorder:
    settings = RecordingSettings(folder=folder)
    return DecisionRecorder(settings=settings, wall_clock=lambda: datetime(2026, 1, 1, tzinfo=UTC), max_notes=max_notes)


def read(folder: Path) -> list[Record]:
    return [record for _follows, records in RecordingReader(folder).segments() for record in records]


def schedule_recorded(folder: Path) -> None:
    async def run() -> None:
        async with virtual_cluster(nodes=3, record=folder) as cluster:
            one = pod("p", cpu="1", annotations={"note": "hunter2"})
            await cluster.create(one)
            await cluster.create(pod("huge", cpu="1000"))
            await cluster.settle()
            cluster.assert_scheduled("p")
            await cluster.stop_scheduler()

    trio.run(run, clock=jumping_clock())


def test_first_lists_changes_and_decisions_are_written_without_secrets(tmp_path: Path) -> None:
    schedule_recorded(tmp_path)
    records = read(tmp_path)
    counts = Counter(type(record).__name__ for record in records)
    assert counts["Began"] == counts["Configured"] == counts["Existed"] == counts["Ended"] == 1
    assert [record.binds for record in records if isinstance(record, Decided)] == [True, False]
    assert counts["Reserved"] == 0
    assert counts["Requeued"] == 1
    assert {record.kind for record in records if isinstance(record, FirstList)} >= {"Node", "Pod"}
    written = b"".join(bytes(raw) for one in records if isinstance(one, Changed) for _type, raw in one.changes)
    assert b'"p"' in written
    assert b"hunter2" not in written


async def test_a_folder_that_cannot_be_written_to_ends_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotRecord, match="cannot record into"), recorder(tmp_path / "file").running():
        pass


def test_scheduling_goes_on_when_the_recording_cannot_be_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trio_sched.recording.folder.MIN_SEGMENT_BYTES", 1)
    monkeypatch.setattr("trio_sched.recording.folder.MAX_SEGMENT_BYTES", 1)
    monkeypatch.setattr("trio_sched.daemon.recording.recording_thread._COLLECT_SECONDS", 0.001)
    folder = tmp_path / "recording"

    async def run() -> None:
        async with virtual_cluster(nodes=3, record=folder) as cluster:
            folder.rename(tmp_path / "elsewhere")  # in one step: the next segment cannot be created
            after_the_end = 3
            for _number in range(1000):  # the thread runs when the system lets it
                await cluster.create(pod("p", cpu="100m"))
                await cluster.settle()
                cluster.assert_scheduled("p")
                await cluster.delete(cluster.pod("p"), grace_seconds=0)
                after_the_end -= ENDED in caplog.messages
                if not after_the_end:
                    break
            await cluster.stop_scheduler()

    trio.run(run, clock=jumping_clock())
    assert caplog.messages.count(ENDED) == 1


def test_the_thread_sleeps_while_there_is_nothing_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trio_sched.daemon.recording.recording_thread._COLLECT_SECONDS", 0)
    thread = RecordingThread(folder=RecordingFolder(tmp_path, 1 << 20), redaction=Redaction())
    thread.begin(SegmentBegins(now=0.0, posix_seconds=0.0, configured=None))
    for number in range(100):
        thread.put(encode_records([Forgotten(float(number), "uid")]))
        while thread.notes or not thread.is_waiting:  # another thread is at work
            time.sleep(0.0001)
        assert thread.problem is None
    thread.close(100.0, timeout_seconds=10)
    assert [record.now for record in read(tmp_path) if isinstance(record, Forgotten)] == list(range(100))


async def test_what_the_thread_is_too_slow_for_is_counted(tmp_path: Path) -> None:
    slow = recorder(tmp_path, max_notes=0)
    with slow.running():
        for number in range(5):
            slow.note(Forgotten(float(number), "uid"))
    assert slow.left_out == 5
    last = read(tmp_path)[-1]  # there is no end behind it: the next segment does not continue this one
    assert isinstance(last, Missed)
    assert last.records == 5


async def test_what_waits_for_the_thread_is_bounded_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trio_sched.daemon.recording.decision_recorder.MAX_NOTED_BYTES", 100)
    slow = recorder(tmp_path)
    with slow.running():
        for number in range(2 * ENCODED_AT_ONCE):
            slow.note(Forgotten(float(number), "uid"))
    assert slow.left_out == ENCODED_AT_ONCE
    assert slow.waiting_bytes == 0  # what was left out does not count as waiting for ever


async def test_what_cannot_be_written_ends_the_recording(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    one = recorder(tmp_path)
    with one.running():
        one.note(Forgotten(0.0, "before"))
        one.note(Requeued(1.0, "uid", ["\ud800"], [], None, []))
        one.note(Forgotten(2.0, "after"))
    assert caplog.messages.count(ENDED) == 1
    assert not one.is_on


async def test_changes_of_pods_become_records_of_some_each(tmp_path: Path) -> None:
    one = recorder(tmp_path)
    pods = [pod(f"p{number}") for number in range(200)]
    with one.running():
        one.pods_changed(0.0, [Change("ADDED", None, each) for each in pods])
    found = [record for record in read(tmp_path) if isinstance(record, Changed)]
    assert len(found) == 4
    reader = RecordingReader(tmp_path)
    names = [
        reader.pods.decode(raw).name
        for _follows, records in reader.segments()
        for record in records
        if isinstance(record, Changed)
        for _type, raw in record.changes
    ]
    assert names == [each.name for each in pods]


async def test_changes_and_decisions_are_written_in_the_order_in_which_they_came(tmp_path: Path) -> None:
    one = recorder(tmp_path)
    with one.running():
        for second, name in enumerate(("first", "second")):
            one.pods_changed(float(second), [Change("ADDED", None, pod(name))])
        one.decided(decided("first"))
        one.pods_changed(2.0, [Change("DELETED", pod("first"), None)])
        one.note(Forgotten(3.0, "first"))
        one.pods_changed(4.0, [Change("DELETED", pod("second"), None)])
    written = [record for record in read(tmp_path) if isinstance(record, Changed | Decided | Forgotten)]
    assert [type(record) for record in written] == [Changed, Changed, Decided, Changed, Forgotten, Changed]
    assert [record.now for record in written] == [0.0, 1.0, 0.0, 2.0, 3.0, 4.0]


async def test_a_large_batch_becomes_several_records(tmp_path: Path) -> None:
    one = recorder(tmp_path)
    pods = [pod(f"p{number}") for number in range(3000)]
    with one.running():
        one.delivered(Batch(0.0, "Pod", Listed(pods, "1")))
        one.delivered(Batch(1.0, "Pod", Changes([Change("DELETED", each, None) for each in pods], "2")))
    records = read(tmp_path)
    lists = [record for record in records if isinstance(record, FirstList)]
    deletions = [change for record in records if isinstance(record, Changed) for change in record.changes]
    assert sum(len(record.objects) for record in lists) == len(deletions) == 3000
    assert len(lists) > 3
    assert isinstance(records[-1], Ended)


async def test_a_decision_is_written_with_whether_its_pod_was_reserved_at_once(tmp_path: Path) -> None:
    one = recorder(tmp_path)
    with one.running():
        one.decided(decided("bound"))
        assert one.reserved("bound", "node-1")
        assert not one.reserved("bound", "node-1")
        one.decided(decided("late"))
        one.note(Forgotten(1.0, "other"))
        assert not one.reserved("late", "node-1")
        one.decided(decided("elsewhere"))
        assert not one.reserved("elsewhere", "node-2")
    written = [record for record in read(tmp_path) if isinstance(record, Decided | Forgotten)]
    assert [record.uid for record in written] == ["bound", "late", "other", "elsewhere"]
    assert [record.binds for record in written if isinstance(record, Decided)] == [True, False, False]


def decided(uid: str) -> Decided:
    return Decided(0.0, uid, "node-1", [], 1, 0, [], None, False)


async def test_nothing_is_noted_before_the_beginning_or_after_the_end(tmp_path: Path) -> None:
    one = recorder(tmp_path)
    one.note(Forgotten(0.0, "before"))
    with one.running():
        one.note(Forgotten(1.0, "during"))
    one.note(Forgotten(2.0, "after"))
    assert [record.uid for record in read(tmp_path) if isinstance(record, Forgotten)] == ["during"]


async def test_every_run_has_segments_of_its_own(tmp_path: Path) -> None:
    for uid in ("first", "second"):
        one = recorder(tmp_path)
        with one.running():
            one.note(Forgotten(1.0, uid))
    assert len(segment_paths(tmp_path)) == 2
    assert [follows for follows, records in RecordingReader(tmp_path).segments() if list(records)] == [False, False]


async def test_a_node_takes_few_bytes_once_another_was_written(tmp_path: Path) -> None:
    one = recorder(tmp_path)
    nodes = [node(f"node-{number:04d}", labels={"zone": f"z{number % 3}"}) for number in range(1000)]
    with one.running():
        one.delivered(Batch(0.0, "Node", Listed(nodes, "1")))
    (path,) = segment_paths(tmp_path)
    assert path.stat().st_size / len(nodes) < 100
