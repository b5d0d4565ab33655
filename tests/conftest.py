"""For all tests: what test files share lies in ``support``, and tasks run in the same order every time."""

import sys
from pathlib import Path

import pytest
import trio

SUPPORT = Path(__file__).parent / "support"

sys.path.insert(0, str(SUPPORT))  # importlib mode puts no folder on the path
pytest.register_assert_rewrite(*(module.stem for module in SUPPORT.glob("*.py")))


@pytest.fixture(autouse=True)
def _deterministic_task_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trio shuffles ready tasks on purpose, but a test that fails must fail again; the switch is trio's own."""
    monkeypatch.setattr(trio._core._run, "_ALLOW_DETERMINISTIC_SCHEDULING", True)
    trio._core._run._r.seed(0)
