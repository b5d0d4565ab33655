"""For all tests: what test files share lies in the folders of ``support``; tasks run in the same order every time."""

import gc
import os
import signal
import sys
from collections.abc import Generator
from pathlib import Path

import hypothesis
import pytest
import trio
from trio.testing import MockClock

# Else every process of the tests would compile the modules of the tests, and what pytest rewrites, again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

SUPPORT = sorted({module.parent for module in (Path(__file__).parent / "support").rglob("*.py")})

sys.path[:0] = map(str, SUPPORT)  # importlib mode puts no folder on the path
pytest.register_assert_rewrite(*(module.stem for folder in SUPPORT for module in folder.glob("*.py")))
# Under nohup, or behind a shell's "&", they are ignored, by all processes that tests start as well.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)


# How long an example takes depends on what else the machine does.
hypothesis.settings.register_profile("without deadline", deadline=None)
hypothesis.settings.load_profile("without deadline")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """The half million objects of modules and tests are no garbage: the collector looks at what tests make."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000, 50, 100)  # as a scheduler sets them, so that it is the same before the first one
        gc.enable()


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Compressed bytes hold the time, and the processes of pytest-xdist must agree on the names of the tests."""
    return argname if isinstance(val, bytes) and not val.isascii() else None


@pytest.fixture(autouse=True)
def _deterministic_task_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trio shuffles ready tasks on purpose, but a test that fails must fail again; the switch is trio's own."""
    monkeypatch.setattr(trio._core._run, "_ALLOW_DETERMINISTIC_SCHEDULING", True)
    trio._core._run._r.seed(0)


@pytest.fixture
def autojump_clock() -> MockClock:
    """In place of that of pytest-trio: it waits for threads, and is asked for the time at half the cost."""
    from trio_sched.simulator import jumping_clock  # not before bytecode is written, see above

    return jumping_clock()
