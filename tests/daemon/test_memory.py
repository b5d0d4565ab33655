import ctypes
import gc
import logging
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from trio_sched.daemon import memory


@pytest.fixture
def collector() -> Iterator[None]:
    """Puts the collector's thresholds back; what is frozen stays so, as after the start of any scheduler in a test."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_objects_that_exist_at_the_freeze_are_not_scanned_again(collector: None) -> None:
    frozen_before = gc.get_freeze_count()
    memory.freeze_garbage_collector()
    assert gc.get_threshold() == memory.GC_THRESHOLDS
    assert gc.get_freeze_count() > frozen_before


def test_garbage_that_is_made_after_the_freeze_is_still_collected(collector: None) -> None:
    memory.freeze_garbage_collector()
    one: list[Any] = []
    one.append(one)
    del one
    assert gc.collect() >= 1


def test_the_c_library_keeps_the_memory_of_freed_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    set_options: dict[int, int] = {}

    def mallopt(option: int, value: int) -> int:
        set_options[option] = value
        return 1

    monkeypatch.setattr(ctypes, "CDLL", lambda _name: SimpleNamespace(mallopt=mallopt))
    memory.set_malloc_thresholds()
    assert set_options == {-1: 64 << 20, -3: 16 << 20}


def no_library(_name: Any) -> Any:
    raise OSError("there is none")


@pytest.mark.parametrize("library", [no_library, lambda _name: SimpleNamespace()], ids=["no library", "no mallopt"])
def test_a_c_library_that_cannot_do_that_is_left_as_it_is(
    library: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(ctypes, "CDLL", library)
    memory.set_malloc_thresholds()
    assert "no mallopt here" in caplog.text


MIB = 1 << 20


def trimmed(*looks: tuple[int, int]) -> list[bool]:
    """At which of *looks* memory was returned: resident MiB, and how many of them are free."""
    resident, free, done = 0, 0, False

    def malloc_trim(_pad: int) -> int:
        nonlocal resident, done
        resident, done = resident - free, True
        return 1

    trim, found = memory.Trim(malloc_trim, lambda: resident * MIB), []
    for resident, free in looks:  # noqa: B007
        done = False
        trim.look()
        found.append(done)
    return found


def test_memory_is_returned_the_more_seldom_the_less_of_it_is_free() -> None:
    found = trimmed(*[(100, 1)] * 40)
    assert [position for position, done in enumerate(found) if done] == [0, 2, 6, 14, 24, 34]


def test_memory_is_returned_at_once_when_the_process_has_grown() -> None:
    quiet = [(100, 0)] * 30
    assert not trimmed(*quiet, (110, 10))[-1]
    assert trimmed(*quiet, (200, 90))[-1]
    assert trimmed(*quiet, (200, 90), (115, 10))[-1]


def test_without_that_function_memory_is_left_as_it_is() -> None:
    looked: list[int] = []
    memory.Trim(None, lambda: looked.append(1) or 100 * MIB).look()
    assert looked == []


def test_the_thresholds_can_be_set_more_than_once() -> None:
    memory.set_malloc_thresholds()
    memory.set_malloc_thresholds()
    assert bytes(32 << 20)[-1] == 0
