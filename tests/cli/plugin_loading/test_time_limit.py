"""Code of others that never returns is interrupted, whatever it does."""

import signal
import threading
import time
from pathlib import Path

import pytest

from trio_sched.cli.plugin_loading import plugin_files
from trio_sched.cli.plugin_loading.plugin_files import load_plugin_files
from trio_sched.cli.plugin_loading.time_limit import TookTooLong, time_limit

ENDLESS = {
    "a loop": "\n\nwhile True: pass\n",
    "a sleep": "import time\n\ntime.sleep(60)\n",
    "what catches everything": (
        "def spin():\n    try:\n        while True: pass\n    except BaseException: pass\nspin()\nspin()\n"
    ),
}


@pytest.mark.parametrize("source", ENDLESS.values(), ids=ENDLESS)
def test_importing_a_file_ends(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin_files, "IMPORT_SECONDS", 0.1)
    file = tmp_path / "endless.py"
    file.write_text(source)
    began = time.monotonic()
    (error,) = load_plugin_files([str(file)], []).errors
    assert time.monotonic() - began < 20
    if "BaseException" not in source:
        assert str(error) == f"{file}, line 3: importing it failed: TookTooLong: it took longer than 0.1 s"
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL


def test_a_timer_of_somebody_else_is_left_alone() -> None:
    signal.setitimer(signal.ITIMER_REAL, 1000)
    try:
        with time_limit(0.001):
            time.sleep(0.01)
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 900
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def test_in_another_thread_there_is_no_limit() -> None:
    found = []

    def run() -> None:
        with time_limit(0.001):
            time.sleep(0.01)
        found.append("done")

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == ["done"]


def test_what_is_in_time_is_not_interrupted_later() -> None:
    with time_limit(0.02):
        pass
    time.sleep(0.04)
    with pytest.raises(TookTooLong, match=r"it took longer than 0\.01 s"), time_limit(0.01):
        time.sleep(5)
