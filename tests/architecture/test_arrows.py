"""The contracts of import-linter hold: a room imports only from floors below its own."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]


def test_arrows_point_down() -> None:
    executable = Path(sys.executable).with_name("lint-imports")
    found = subprocess.run([executable, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "0 broken" in found.stdout, found.stdout + found.stderr
    assert found.returncode == os.EX_OK
