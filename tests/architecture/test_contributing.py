"""What CONTRIBUTING says about where things are is so."""

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
TABLE: Final = [
    line for line in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines() if line.startswith("| ")
][1:]
PATHS: Final = sorted({path for row in TABLE for path in re.findall(r"`([\w./]+[/.][\w./]*)`", row)})


def test_there_is_a_row_for_each_of_many_common_changes() -> None:
    assert len(TABLE) >= 20
    assert all(re.findall(r"`[\w./]+`", row) for row in TABLE)


@pytest.mark.parametrize("path", PATHS)
def test_a_file_that_is_named_exists(path: str) -> None:
    found = ROOT / path
    assert found.is_dir() if path.endswith("/") else found.is_file()
