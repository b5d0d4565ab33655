import os
import pty
import subprocess
import sys

import pytest

from trio_sched.cli.options.progress import shown_progress

SHOWN = """
import sys, time
from trio_sched.cli.options.progress import shown_progress

with shown_progress() as progress:
    progress.begin({what!r})
    progress.count(3, 7)
    time.sleep(0.3)
    print("a warning", file=sys.stderr)
"""


def on_a_terminal(what: str) -> str:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen([sys.executable, "-c", SHOWN.format(what=what)], stderr=theirs, env=environment) as process:
        os.close(theirs)
        seen = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            seen += piece
        assert process.wait(20) == 0
    os.close(ours)
    return seen.decode()


def test_a_terminal_shows_what_is_done_and_how_much() -> None:
    seen = on_a_terminal("reading cluster.json")
    assert "reading cluster.json" in seen
    assert "3/7" in seen
    assert "a warning" in seen


def test_names_from_outside_are_cut_and_cannot_write_on_the_terminal() -> None:
    seen = on_a_terminal("reading \x1b]0;title\x07" + "x" * 500 + "[red]end")
    assert "\x1b]0;title" not in seen
    assert "x" * 100 not in seen
    assert "[red]end" in seen


def test_elsewhere_nothing_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_progress() as progress:
        progress.begin("reading")
        progress.count(1, 2)
    assert capsys.readouterr() == ("", "")
