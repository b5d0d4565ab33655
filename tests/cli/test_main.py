import subprocess
import sys

import pytest
from restored_logging import restored_logging

from trio_sched.cli.command_table import COMMANDS
from trio_sched.cli.main import main
from trio_sched.cli.process.exit_code import ExitCode

Capture = pytest.CaptureFixture[str]


def test_help_shows_the_commands_and_every_section_of_flags(capsys: Capture) -> None:
    assert main(["--help"]) == ExitCode.OK
    printed = capsys.readouterr().out
    assert "  simulate         Schedule a cluster" in printed
    assert "  plugins          List the installed plugins." in printed
    assert "Leader election flags:" in printed
    assert "--write-config-to string" in printed


@pytest.mark.parametrize("option", ["-h", "--help"])
@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_a_help_of_its_own(command: str, option: str, capsys: Capture) -> None:
    assert main([command, option]) == ExitCode.OK
    printed = capsys.readouterr().out
    assert f"Usage: trio-sched {command} [OPTIONS]" in printed
    assert "\\b" not in printed  # the mark of lines that are not wrapped, if it is misspelt


def test_the_version_is_that_of_kubernetes_and_ours(capsys: Capture) -> None:
    assert main(["--version"]) == ExitCode.OK
    assert capsys.readouterr().out == "Kubernetes v1.36.2\n"  # which programs read
    assert main(["--version=raw"]) == ExitCode.OK
    printed = capsys.readouterr().out
    assert 'GitVersion:"v1.36.2", GitCommit:"trio-sched 0.2.0"' in printed


def test_a_version_of_the_same_number_is_reported_by_the_daemon(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trio.run", lambda *_arguments: None)
    flags = ["--master=http://127.0.0.1:1", "--secure-port=0", "--leader-elect=false", "--version=v1.36.2-patched"]
    with restored_logging():
        assert main(flags) == ExitCode.FAILURE  # as ever without an election
    assert '"Starting Kubernetes Scheduler" version="v1.36.2-patched"' in capsys.readouterr().err


def test_wrong_gates_are_told_even_before_the_version(capsys: Capture) -> None:
    with restored_logging():
        assert main(["--version", "--feature-gates=Foo=true"]) == ExitCode.FAILURE
    printed = capsys.readouterr()
    assert printed.out == ""
    assert '"command failed" err="unrecognized feature gate: Foo"' in printed.err


@pytest.mark.parametrize("asked", ["v1.36.9", "v1.35.2"])
def test_no_other_version_is_reported(asked: str, capsys: Capture) -> None:
    assert main([f"--version={asked}"]) == ExitCode.FAILURE
    expected = f'version "{asked}" must match major/minor/patch of default version "v1.36.2"'
    assert expected in capsys.readouterr().err


SEE_HELP = "See trio-sched --help."


@pytest.mark.parametrize(
    ("flag", "hint"),
    [
        ("--nosuchflag", ""),
        ("--confg=x", "Did you mean --config?"),
        ("--leader-elekt", "Did you mean --leader-elect?"),
        ("-config=x", "Did you mean --config?"),
        ("--secure-port=abc", ""),
    ],
)
def test_a_wrong_flag_is_told_after_the_usage_and_on_a_terminal_after_a_hint(
    flag: str, hint: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main([flag]) == ExitCode.FAILURE
    printed = capsys.readouterr()
    assert printed.out == ""
    *usage, empty, last = printed.err.splitlines()
    assert usage[:2] == ["Usage:", "  kube-scheduler [flags]"]
    assert (usage[-1] == hint) == bool(hint)
    assert empty == ""
    assert last.startswith("Error: ")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main([flag]) == ExitCode.FAILURE
    first, again = capsys.readouterr().err.splitlines()
    assert first == f"{hint} {SEE_HELP}".lstrip()
    assert again == last


@pytest.mark.parametrize("word", ["simulat", "simluate", "Simulate", "simulated"])
def test_a_misspelt_command_is_told_whatever_follows_it(word: str, capsys: Capture) -> None:
    assert main([word, "-f", "x.yaml", "--nosuchflag"]) == ExitCode.FAILURE
    expected = f'Error: unknown command "{word}" for "trio-sched". Did you mean "simulate"? {SEE_HELP}\n'
    assert capsys.readouterr().err == expected


def test_words_that_are_no_command_are_told_in_kube_schedulers_words_and_on_a_terminal_under_our_name(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = (["foo", "bar"], ["--leader-elect=false", "foo"])
    said = []
    for is_terminal in (False, True):
        monkeypatch.setattr(sys.stderr, "isatty", lambda answer=is_terminal: answer)
        for words in given:
            assert main(words) == ExitCode.FAILURE
            said.append(capsys.readouterr().err)
    assert said == [
        f'{SEE_HELP}\nError: "kube-scheduler" does not take any arguments, got ["foo" "bar"]\n',
        f'{SEE_HELP}\nError: "kube-scheduler" does not take any arguments, got ["foo"]\n',
        f'Error: unknown command "foo" for "trio-sched". {SEE_HELP}\n',
        f'{SEE_HELP}\nError: "trio-sched" does not take any arguments, got ["foo"]\n',
    ]


def test_version_and_help_are_commands_too(capsys: Capture) -> None:
    for words, flags in ((["help"], ["--help"]), (["help", "rbac"], ["rbac", "--help"])):
        assert main(flags) == ExitCode.OK
        expected = capsys.readouterr().out
        assert main(words) == ExitCode.OK
        assert capsys.readouterr().out == expected
    assert main(["help", "simulat"]) == ExitCode.FAILURE
    assert 'unknown command "simulat"' in capsys.readouterr().err
    assert main(["version"]) == ExitCode.OK
    assert capsys.readouterr().out == "Kubernetes v1.36.2\ntrio-sched 0.2.0\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_that_is_not_imported_yet_is_its_own(name: str) -> None:
    command = COMMANDS[name].load()
    assert command.name == name
    assert command.get_short_help_str(limit=90) == COMMANDS[name].short_help


def test_the_module_can_be_run_and_its_exit_code_is_the_commands() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "trio_sched", "--nosuchflag"], capture_output=True, check=False, text=True
    )
    assert done.returncode == ExitCode.FAILURE
    assert done.stderr.endswith("Error: unknown flag: --nosuchflag\n")
