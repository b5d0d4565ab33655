"""As many files as the process may open; what it starts has its own limit."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from trio_sched import open_files

_HARD = 300
_PRINT = "print(resource.getrlimit(resource.RLIMIT_NOFILE))"


def _limited(code: str) -> str:
    """What a process prints that may open 100 files, and raise that to 300."""
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (100, {_HARD}))"
    run = subprocess.run(
        [sys.executable, "-c", f"{limit}\nfrom trio_sched import open_files\n{code}"],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parent.parent,
    )
    return run.stdout


def test_the_soft_limit_is_raised_to_the_hard_one() -> None:
    assert _limited(f"open_files.raise_open_files_limit(); {_PRINT}") == f"({_HARD}, {_HARD})\n"


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="Linux has it")
def test_a_process_that_was_started_gets_the_limit_of_the_start_back() -> None:
    child = """
import subprocess, sys
open_files.raise_open_files_limit()
code = "import resource; input(); print(resource.getrlimit(resource.RLIMIT_NOFILE))"
child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
open_files.restore_open_files_limit(child.pid)
print(child.communicate("\\n")[0], end="")
"""
    assert _limited(child) == f"(100, {_HARD})\n"


def test_a_process_that_has_ended_is_left_alone() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    open_files.restore_open_files_limit(child.pid)
    assert child.returncode == 0
