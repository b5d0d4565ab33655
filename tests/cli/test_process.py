"""The process around the commands: standard streams, signals, what is imported."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from trio_sched.cli.main import main
from trio_sched.cli.process.exit_code import ExitCode

COMMANDS: Final = {
    "version": ["--version"],
    "help": ["--help"],
    "help of a command": ["simulate", "-h"],
    "plugins": ["plugins"],
    "plugins in JSON": ["plugins", "-o", "json"],
    "completion": ["completion", "zsh"],
    "simulation": ["simulate", "-f", "cluster.yaml"],
    "simulation in JSON": ["simulate", "-f", "cluster.yaml", "-o", "json"],
    "conversion": ["convert-config", "old.yaml"],
}
OLD: Final = "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n"
FULL: Final = "error: cannot write to standard output: No space left on device\n"
CLOSED: Final = "error: cannot write to standard output: Bad file descriptor\n"

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path, small_cluster: Path) -> Run:
    """Runs a shell line in which ``"$@"`` is the program and its arguments."""
    (tmp_path / "old.yaml").write_text(OLD)

    def run_line(line: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        program = [sys.executable, "-m", "trio_sched", *arguments]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        return subprocess.run(
            ["bash", "-c", line, "bash", *program],
            cwd=small_cluster.parent,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return run_line


@pytest.mark.parametrize("command", COMMANDS)
def test_output_that_cannot_be_written_is_an_error_in_one_line(run: Run, command: str) -> None:
    done = run('"$@" > /dev/full', *COMMANDS[command])
    assert (done.returncode, done.stderr.splitlines(keepends=True)[-1]) == (ExitCode.FAILURE, FULL)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["version", "simulation", "plugins"])
def test_output_that_is_closed_is_an_error_in_one_line(run: Run, command: str) -> None:
    done = run('"$@" >&-', *COMMANDS[command])
    assert (done.returncode, done.stderr.splitlines(keepends=True)[-1]) == (ExitCode.FAILURE, CLOSED)


@pytest.mark.parametrize("command", ["version", "simulation", "plugins", "help of a command"])
def test_a_reader_that_has_gone_ends_the_command_quietly(run: Run, command: str) -> None:
    done = run('"$@" | true; exit ${PIPESTATUS[0]}', *COMMANDS[command])
    assert done.returncode == ExitCode.BROKEN_PIPE
    assert "error" not in done.stderr.lower()


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", "<&-", "<&- 2>&-"])
@pytest.mark.parametrize("command", ["version", "conversion"])
def test_nothing_depends_on_standard_error_and_input(run: Run, command: str, redirection: str) -> None:
    done = run(f'"$@" {redirection}', *COMMANDS[command])
    assert done.returncode == ExitCode.OK
    assert done.stdout


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
def test_an_error_that_nobody_can_read_has_its_exit_code(run: Run, redirection: str) -> None:
    assert run(f'"$@" {redirection}', "--nosuchflag").returncode == ExitCode.FAILURE
    assert run(f'"$@" {redirection}', "simulate").returncode == ExitCode.USAGE


def test_no_standard_descriptor_is_given_to_another_file(run: Run) -> None:
    begin = '"$1" -c "import os; from trio_sched.cli.process.standard_streams import standard_error\n'
    assert run(begin + 'with standard_error():\n os._exit(os.open(os.devnull, 0))" <&- >&- 2>&-').returncode == 3


def test_manifests_from_a_closed_standard_input_are_a_usage_error(run: Run) -> None:
    done = run('"$@" <&-', "simulate", "-f", "-")
    assert done.returncode == ExitCode.USAGE
    assert "there is no standard input" in done.stderr


def test_a_terminal_that_is_not_blocking_is_waited_for(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    program = [sys.executable, "-m", "trio_sched", "--help"]
    filler = 0
    try:
        while True:
            filler += os.write(write_end, b"x" * 4096)
    except BlockingIOError:
        pass
    with subprocess.Popen(program, stdout=write_end, stderr=subprocess.PIPE) as process:
        os.close(write_end)
        with open(read_end, "rb") as file:
            content = file.read()
        assert process.stderr is not None
        assert (process.wait(30), process.stderr.read()) == (0, b"")
    assert content[filler:].startswith(b"A Kubernetes scheduler")


DURING_IMPORT: Final = """
import importlib.abc, os, signal, sys

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "numpy":
            os.kill(os.getpid(), signal.{signal})

sys.meta_path.insert(0, Finder())
from trio_sched.cli.main import main
sys.exit(main(["plugins"]))
"""


@pytest.mark.parametrize(
    ("number", "code"),
    [
        ("SIGINT", ExitCode.INTERRUPTED),
        ("SIGTERM", ExitCode.TERMINATED),
        ("SIGHUP", ExitCode.HUNG_UP),
        ("SIGUSR1", ExitCode.OK),
        ("SIGUSR2", ExitCode.OK),
    ],
)
def test_signals_while_modules_are_imported_leave_no_traceback(number: str, code: ExitCode) -> None:
    source = DURING_IMPORT.format(signal=number)
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (code, "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_a_served_cluster_and_removes_its_kubeconfig(
    number: signal.Signals, small_cluster: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    program = [sys.executable, "-m", "trio_sched", "simulate", "-f", str(small_cluster), "--serve", "127.0.0.1:0"]
    with subprocess.Popen(
        program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(folder)}
    ) as process:
        assert process.stdout is not None
        assert "The cluster is alive" in process.stdout.readline()
        assert len(list(folder.glob("trio-sched-*/kubeconfig"))) == 1
        process.send_signal(number)
        _out, err = process.communicate(timeout=30)
    assert process.returncode == ExitCode.OK
    assert "Traceback" not in err
    assert list(folder.iterdir()) == []


SIGNALLING: Final = """
import os, signal

from trio_sched.plugin_api import hookimpl


class Signalling:
    name = "Signalling"

    def __init__(self, args, handle):
        pass

    @hookimpl
    def filter_node(self, pod, node):
        os.kill(os.getpid(), signal.{signal})
"""
SIGNALLING_CONFIG: Final = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins: {multiPoint: {enabled: [{name: Signalling}]}}
"""


@pytest.mark.parametrize(
    ("number", "code"),
    [("SIGINT", ExitCode.INTERRUPTED), ("SIGTERM", ExitCode.TERMINATED), ("SIGHUP", ExitCode.HUNG_UP)],
)
def test_signals_during_a_simulation_leave_no_traceback(
    number: str, code: ExitCode, small_cluster: Path, tmp_path: Path
) -> None:
    (tmp_path / "signalling.py").write_text(SIGNALLING.format(signal=number), encoding="utf-8")
    (tmp_path / "config.yaml").write_text(SIGNALLING_CONFIG, encoding="utf-8")
    files = ["-f", str(small_cluster), "--plugin", "signalling.py", "--config", "config.yaml"]
    program = [sys.executable, "-m", "trio_sched", "simulate", *files]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert "abandoned" not in done.stderr


HEAVY: Final = ("trio", "numpy", "httpx", "rich", "click", "yaml", "msgspec", "prometheus_client", "asyncio")


@pytest.mark.parametrize("argument", ["--version", "--help", "--nosuchflag", "simulat"])
def test_what_runs_nothing_imports_nothing_heavy(argument: str) -> None:
    source = f"""
import sys
from trio_sched.cli.main import main
main([{argument!r}])
loaded = [name for name in {HEAVY!r} if name in sys.modules]
print("loaded:", loaded, "of ours:", sum(name.startswith("trio_sched") for name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    last = done.stdout.splitlines()[-1]
    assert last.startswith("loaded: [] ")
    assert int(last.rpartition(" ")[2]) < 40


UNUSED: Final = ("httpx", "hypercorn", "numpy.ma", "prometheus_client", "trio_sched.cel.planning.program")


def test_a_simulation_imports_nothing_that_it_does_not_use(small_cluster: Path) -> None:
    source = f"""
import sys
from trio_sched.cli.main import main
main(["simulate", "-f", {str(small_cluster)!r}])
print("loaded:", [name for name in {UNUSED!r} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "loaded: []"


def test_completions_name_commands_flags_and_files(run: Run) -> None:
    def completed(words: str, index: int) -> list[str]:
        line = f'COMP_WORDS="{words}" COMP_CWORD={index} _TRIO_SCHED_COMPLETE=bash_complete "$@"'
        return run(line).stdout.splitlines()

    assert completed("trio-sched sim", 1) == ["plain,simulate"]
    assert completed("trio-sched --leader-elect-re", 1) == [
        "plain,--leader-elect-renew-deadline",
        "plain,--leader-elect-resource-lock",
        "plain,--leader-elect-resource-name",
        "plain,--leader-elect-resource-namespace",
        "plain,--leader-elect-retry-period",
    ]
    assert completed("trio-sched --config ", 2) == ["file,"]
    assert completed("trio-sched simulate --out", 2) == ["plain,--output"]
    assert completed("trio-sched completion ", 2) == ["plain,bash", "plain,zsh", "plain,fish"]


@pytest.mark.parametrize(
    ("variables", "code", "output"),
    [
        (r"COMP_WORDS=$'trio-sched simulate -f caf\xe9' COMP_CWORD=3", 0, "file,café\n"),
        ("", 1, ""),
        ("COMP_WORDS=trio-sched COMP_CWORD=x", 1, ""),
    ],
    ids=["a file's name in Latin-1", "no words", "no index"],
)
def test_a_completion_shows_no_traceback_in_the_shell(run: Run, variables: str, code: int, output: str) -> None:
    done = run(f'{variables} _TRIO_SCHED_COMPLETE=bash_complete "$@" | iconv -f latin1; exit $PIPESTATUS')
    assert (done.returncode, done.stdout, done.stderr) == (code, output, "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_completion_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == ExitCode.OK
    assert f"_TRIO_SCHED_COMPLETE={shell}_complete" in capsys.readouterr().out
