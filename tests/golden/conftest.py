"""``--golden-dir``, the fixture `golden`, and the lines ``golden AREA ROW AGREED/TOTAL`` at the end."""

import sys
from pathlib import Path
from typing import Any

import pytest

_HERE = Path(__file__).parent
sys.path.insert(0, str(_HERE))  # the replays of this folder share helper modules, and importlib mode knows no siblings

from scoreboard import GoldenRun, Scoreboard  # noqa: E402

_BOARD = pytest.StashKey[Scoreboard]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--golden-dir",
        metavar="DIR",
        default=None,
        help="replay all recordings in DIR; without it a sample of those in tests/golden/data",
    )


def _board(config: pytest.Config) -> Scoreboard:
    return config.stash.setdefault(_BOARD, Scoreboard())


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> GoldenRun:
    # This file is read too late for its option when the tests are started further up; then nobody gave the option.
    directory = request.config.getoption("golden_dir", default=None)
    return GoldenRun(
        directory=Path(directory) if directory else _HERE / "data",
        everything=directory is not None,
        scoreboard=_board(request.config),
    )


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["golden"] = _board(session.config).to_wire()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    _board(node.config).merge(getattr(node, "workeroutput", {}).get("golden", []))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for line in _board(config).lines():
        terminalreporter.write_line(line)
