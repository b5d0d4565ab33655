import subprocess
import sys

import pytest

from trio_sched.cli.exit_code import ExitCode
from trio_sched.cli.main import main

Capture = pytest.CaptureFixture[str]


def test_help_shows_the_commands_and_every_section_of_flags(capsys: Capture) -> None:
    assert main(["--help"]) == ExitCode.OK
    printed = capsys.readouterr().out
    assert "  simulate         Schedule a cluster" in printed
    assert "  plugins          List the installed plugins." in printed
    assert "Leader election flags:" in printed
    assert "--write-config-to string" in printed


@pytest.mark.parametrize("command", ["simulate", "plugins", "convert-config"])
def test_each_command_has_a_help_of_its_own(command: str, capsys: Capture) -> None:
    assert main([command, "--help"]) == ExitCode.OK
    assert f"Usage: trio-sched {command} [OPTIONS]" in capsys.readouterr().out


def test_the_version_is_that_of_kubernetes_and_ours(capsys: Capture) -> None:
    assert main(["--version"]) == ExitCode.OK
    assert capsys.readouterr().out == "Kubernetes v1.36.2 (trio-sched 0.1.0)\n"
    assert main(["--version=raw"]) == ExitCode.OK
    assert 'GitVersion:"v1.36.2"' in capsys.readouterr().out
    assert main(["--version=v1.36.2-patched"]) == ExitCode.OK
    assert capsys.readouterr().out == "Kubernetes v1.36.2-patched (trio-sched 0.1.0)\n"


@pytest.mark.parametrize("asked", ["v1.36.9", "v1.35.2"])
def test_no_other_version_is_reported(asked: str, capsys: Capture) -> None:
    assert main([f"--version={asked}"]) == ExitCode.FAILURE
    expected = f'version "{asked}" must match major/minor/patch of default version "v1.36.2"'
    assert expected in capsys.readouterr().err


def test_a_wrong_flag_is_told_after_the_usage(capsys: Capture) -> None:
    assert main(["--nosuchflag"]) == ExitCode.FAILURE
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("Usage:\n  trio-sched [flags]\n")
    assert printed.err.endswith("\n\nError: unknown flag: --nosuchflag\n")


def test_a_misspelt_command_is_told_alone_and_names_the_commands(capsys: Capture) -> None:
    assert main(["simluate"]) == ExitCode.FAILURE
    assert capsys.readouterr().err == (
        'Error: "kube-scheduler" does not take any arguments, got ["simluate"]; '
        "the commands are simulate, plugins and convert-config, see trio-sched --help\n"
    )


def test_the_module_can_be_run_and_its_exit_code_is_the_commands() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "trio_sched", "--nosuchflag"], capture_output=True, check=False, text=True
    )
    assert done.returncode == ExitCode.FAILURE
    assert done.stderr.endswith("Error: unknown flag: --nosuchflag\n")
