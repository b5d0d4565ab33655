"""For all tests: tasks that are ready at the same time run in the same order every time."""

import pytest
import trio


@pytest.fixture(autouse=True)
def _deterministic_task_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trio shuffles ready tasks on purpose, but a test that fails must fail again; the switch is trio's own."""
    monkeypatch.setattr(trio._core._run, "_ALLOW_DETERMINISTIC_SCHEDULING", True)
    trio._core._run._r.seed(0)
