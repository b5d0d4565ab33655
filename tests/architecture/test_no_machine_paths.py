"""What is committed runs anywhere, so it names no folder of the machine it was written on."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
_FOLDERS: Final = ("work", "root", r"home/\w+", r"Users/\w+")
MACHINE_PATH: Final = re.compile(rf"(?<![\w.}}>-])/(?:{'|'.join(_FOLDERS)})/".encode())


def test_no_tracked_file_names_a_folder_of_somebodys_machine() -> None:
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    names = [name for name in listed.decode().split("\0") if name and (ROOT / name).is_file()]
    assert "pyproject.toml" in names
    found = [name for name in names if MACHINE_PATH.search((ROOT / name).read_bytes())]
    assert found == []


@pytest.mark.parametrize(
    ("text", "found"),
    [("/".join(["", "work", "main"]), True), ("/".join(["", "home", "me", "x"]), True), ("net/work/x", False)],
)
def test_such_a_folder_would_be_found(text: str, found: bool) -> None:
    assert bool(MACHINE_PATH.search(text.encode())) is found
