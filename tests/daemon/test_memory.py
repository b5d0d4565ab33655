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
    """Puts the collector back as it was."""
    before = gc.get_threshold()
    yield
    gc.unfreeze()
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


def test_free_memory_is_returned_to_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: SimpleNamespace(malloc_trim=asked.append))
    memory.return_free_memory()
    assert asked == [0]


def no_library(_name: Any) -> Any:
    raise OSError("there is none")


@pytest.mark.parametrize("library", [no_library, lambda _name: SimpleNamespace()], ids=["no library", "no mallopt"])
def test_a_c_library_that_cannot_do_that_is_left_as_it_is(
    library: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(ctypes, "CDLL", library)
    memory.set_malloc_thresholds()
    memory.return_free_memory()
    assert "no mallopt here" in caplog.text
    assert "no malloc_trim here" in caplog.text


def test_the_thresholds_can_be_set_more_than_once() -> None:
    memory.set_malloc_thresholds()
    memory.set_malloc_thresholds()
    assert bytes(32 << 20)[-1] == 0
