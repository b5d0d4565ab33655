"""What CONTRIBUTING and the pages of the rooms say about where things are is so."""

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
ROOMS: Final = [path for name in ("trio_sched", "plugins_builtin") for path in (ROOT / name).rglob("README.md")]


def rows(page: Path) -> list[str]:
    lines = page.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.startswith("| ") and not line.endswith("| files |")]


@pytest.mark.parametrize("page", [ROOT / "CONTRIBUTING.md", *ROOMS], ids=lambda page: page.parent.name)
def test_every_file_that_is_named_exists(page: Path) -> None:
    prefix = "(?:trio_sched|plugins_builtin|tests|contrib|docs)/"
    paths = {path for row in rows(page) for path in re.findall(rf"`({prefix}[\w./]*)`", row)}
    assert paths
    missing = [path for path in paths if not ((ROOT / path).is_dir if path.endswith("/") else (ROOT / path).is_file)()]
    assert missing == []


@pytest.mark.parametrize("page", ROOMS, ids=lambda page: page.parent.name)
def test_files_of_a_room_that_its_page_lists_exist(page: Path) -> None:
    listed = {name for row in rows(page) for name in re.findall(r"`(\w[\w/]*\.py)`", row.split("|")[1])}
    others = {"serving/", "metrics/", "tracing/"}
    folders = [page.parent, *(page.parent / other for other in others)]
    assert [name for name in listed if not any((folder / name).is_file() for folder in folders)] == []


def test_contributing_leads_to_every_page_of_a_room() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert [page for page in ROOMS if f"({page.relative_to(ROOT).as_posix()})" not in text] == []
