"""In processes, because a stream that is not the process's own is left alone."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx
import pytest
from full_pipe import full_pipe
from simulator_thread import Simulator, simulator_in_thread

SECONDS: Final = 30
STREAMS: Final = "import sys\nfrom trio_sched.cli.process.standard_streams import standard_error, standard_output\n"
QUEUED: Final = "from trio_sched.cli.process.queued_streams import queued_streams\n"
BLOCK: Final = "with standard_error(), standard_output(), queued_streams():\n    "


@pytest.fixture
def unread() -> Iterator[int]:
    """A pipe that is full and that nobody reads."""
    with full_pipe() as write_end:
        yield write_end


@pytest.mark.parametrize(
    ("statement", "code"),  # more than the 4 MiB that are kept
    [
        ("print('x' * 5_000_000)", 0),
        ("print('x\\n' * 2_500_000, file=sys.stderr)", 0),
        ("raise ValueError('y' * 1_000_000)", 1),
        ("sys.exit('z' * 1_000_000)", 1),
        ("import threading; threading.Timer(0.2, print, ['late']).start()", 0),
    ],
)
def test_a_process_ends_although_nobody_reads_what_it_says(unread: int, statement: str, code: int) -> None:
    program = [sys.executable, "-c", STREAMS + QUEUED + BLOCK + statement]
    done = subprocess.run(program, stdout=unread, stderr=unread, timeout=SECONDS, check=False)
    assert done.returncode == code


def test_what_is_said_is_read_in_order_and_to_the_end() -> None:
    statement = (
        "for n in range(3):\n        print('out', n); print('err', n, file=sys.stderr)\n    raise ValueError('last')"
    )
    program = [sys.executable, "-c", STREAMS + QUEUED + BLOCK + statement]
    done = subprocess.run(
        program, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS, check=False, text=True
    )
    assert done.stdout.startswith("out 0\nerr 0\nout 1\nerr 1\nout 2\nerr 2\nTraceback")
    assert done.stdout.endswith("ValueError: last\n")


def test_streams_that_are_not_those_of_the_process_are_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    from trio_sched.cli.process.queued_streams import queued_streams

    before = sys.stdout, sys.stderr
    with queued_streams():
        assert (sys.stdout, sys.stderr) == before


def pod(name: str) -> dict[str, object]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "x"}]}}


def bound(client: httpx.Client) -> int:
    pods = client.get("/api/v1/pods").raise_for_status().json()["items"]
    return sum(1 for one in pods if one["spec"].get("nodeName"))


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with simulator_in_thread() as running:
        yield running


def test_a_log_that_nobody_reads_stops_neither_scheduling_nor_the_end(
    simulator: Simulator, tmp_path: Path, unread: int
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(simulator.kubeconfig()))
    flags = ["--kubeconfig", str(kubeconfig), "--leader-elect=false", "--secure-port=0", "-v=10"]
    with httpx.Client(base_url=simulator.url) as client:
        allocatable = {"cpu": "4", "memory": "8Gi", "pods": "100"}
        node = {"metadata": {"name": "n"}, "status": {"allocatable": allocatable}}
        client.post("/api/v1/nodes", json=node).raise_for_status()
        for number in range(20):
            client.post("/api/v1/namespaces/default/pods", json=pod(f"p{number}")).raise_for_status()
        with subprocess.Popen([sys.executable, "-m", "trio_sched", *flags], stdout=unread, stderr=unread) as process:
            try:
                end = time.monotonic() + SECONDS
                while bound(client) < 20 and time.monotonic() < end:
                    time.sleep(0.05)
                assert bound(client) == 20
                process.send_signal(signal.SIGTERM)
                assert process.wait(SECONDS) == 1
            finally:
                process.kill()
