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


def test_what_is_there_when_things_settle_is_not_looked_at_again(collector: None) -> None:
    frozen_before = gc.get_freeze_count()
    memory.settle_down()
    assert gc.get_threshold() == memory.GC_THRESHOLDS
    assert gc.get_freeze_count() > frozen_before


def test_garbage_that_comes_later_is_still_collected(collector: None) -> None:
    memory.settle_down()
    one: list[Any] = []
    one.append(one)
    del one
    assert gc.collect() >= 1


def test_the_c_library_is_told_to_keep_what_arrays_give_back(monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[int, int] = {}

    def mallopt(option: int, value: int) -> int:
        told[option] = value
        return 1

    monkeypatch.setattr(ctypes, "CDLL", lambda _name: SimpleNamespace(mallopt=mallopt))
    memory.keep_freed_memory()
    assert told == {-1: 64 << 20, -3: 16 << 20}


def no_library(_name: Any) -> Any:
    raise OSError("there is none")


@pytest.mark.parametrize("library", [no_library, lambda _name: SimpleNamespace()], ids=["no library", "no mallopt"])
def test_a_c_library_that_cannot_do_that_is_left_as_it_is(
    library: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(ctypes, "CDLL", library)
    memory.keep_freed_memory()
    assert "no mallopt here" in caplog.text


def test_it_can_be_said_more_than_once() -> None:
    memory.keep_freed_memory()
    memory.keep_freed_memory()
    assert bytes(32 << 20)[-1] == 0
