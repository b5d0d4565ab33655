import tracemalloc

import pytest

from trio_sched.daemon.writes import event_series
from trio_sched.daemon.writes.event_series import Series, SeriesKey, SeriesTable
from trio_sched.objects.event import Event, ObjectReference
from trio_sched.objects.metadata import ObjectMeta


def key_of(name: str) -> SeriesKey:
    return "Warning", "Scheduling", "FailedScheduling", "default-scheduler", f"uid of {name}", "7"


def series_of(name: str, *, now: float = 0.0, note: str = "no room") -> Series:
    about = ObjectReference("Pod", "default", name, f"uid of {name}", "v1", "7")
    event = Event(
        ObjectMeta(f"{name}.17", "default"),
        event_time="2026-01-01T00:00:00.000000Z",
        reporting_controller="default-scheduler",
        reporting_instance=f"default-scheduler-{name}",
        action="Scheduling",
        reason="FailedScheduling",
        regarding=about,
        note=note,
        type="Warning",
    )
    return Series(event, now, now)


def begin(table: SeriesTable, name: str, *, now: float = 0.0, note: str = "no room") -> list[str]:
    return [ended.event.regarding.name for ended in table.add(key_of(name), series_of(name, now=now, note=note))]


def test_beyond_the_limit_the_series_that_saw_no_repetition_for_longest_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_series, "MAX_EVENT_SERIES", 3)
    table = SeriesTable()
    for name in "abc":
        assert begin(table, name) == []
    for name in "cba":
        assert table.repeated(key_of(name), now=1.0) is not None
    assert begin(table, "d") == ["c"]
    assert begin(table, "e") == ["b"]
    assert [name for name in "abcde" if table.repeated(key_of(name), now=2.0)] == ["a", "d", "e"]


def test_a_series_that_ends_early_is_given_back_only_if_its_count_was_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_series, "MAX_EVENT_SERIES", 1)
    table = SeriesTable()
    begin(table, "never repeated")
    assert begin(table, "sent") == []
    repeated = table.repeated(key_of("sent"), now=1.0)
    assert repeated is not None
    repeated.sent_count = repeated.count
    assert begin(table, "last") == []


@pytest.mark.parametrize("note", ["x" * 1000, "é" * 512, "x" * 1000 + "\U0001f600"], ids=["ASCII", "Latin-1", "emoji"])
def test_series_take_no_more_memory_together_than_their_limit(note: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_series, "MAX_EVENT_SERIES_BYTES", 1 << 20)
    table = SeriesTable()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(3000):
            begin(table, f"pod-{number}", note=f"{number} {note}")
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert len(table) > 100
    assert 0.6 * (1 << 20) < taken < 1.1 * (1 << 20)


def test_all_memory_is_free_again_when_the_series_are_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_series, "MAX_EVENT_SERIES_BYTES", 10_000)
    table = SeriesTable()
    for round_ in range(5):
        for number in range(20):
            begin(table, f"pod-{number}", now=round_ * 1000.0)
        assert 3 <= len(table) < 10
        table.sweep(now=round_ * 1000.0 + 361.0)
        assert len(table) == 0


def test_a_series_is_over_six_minutes_after_its_last_repetition() -> None:
    table = SeriesTable()
    begin(table, "p")
    table.repeated(key_of("p"), now=100.0)
    assert table.sweep(now=400.0) == []
    (ended,) = table.sweep(now=461.0)
    assert ended.count == 2
    assert len(table) == 0
