"""What CONTRIBUTING says about where things are is so."""

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
TABLE: Final = [
    line for line in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines() if line.startswith("| ")
][1:]
PATHS: Final = sorted({path for row in TABLE for path in re.findall(r"`([\w./]+[/.][\w./]*)`", row)})


def test_there_is_a_row_for_each_of_many_common_changes() -> None:
    assert len(TABLE) >= 20
    assert all(re.findall(r"`[\w./]+`", row) for row in TABLE)


def test_every_file_that_is_named_exists() -> None:
    assert PATHS
    missing = [path for path in PATHS if not ((ROOT / path).is_dir if path.endswith("/") else (ROOT / path).is_file)()]
    assert missing == []
