import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trio_sched.cli.main import main
from trio_sched.cli.process.exit_code import ExitCode

Capture = pytest.CaptureFixture[str]
InstallPlugin = Callable[..., Path]

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
WRONG = """\
paralelism: 3
parallelism: x
leaderElection: {leaseDuration: 5, renewDeadline: abc}
profiles:
- schedulerName: a
  plugins:
    score: {enabled: [{name: 3, wieght: 2}, {name: NodeAffinty}]}
    multiPoint: {disabled: [{name: Foo}, {name: "*"}]}
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: Foo}}
  - name: DefaultPreemption
    args: {minCandidateNodesPercentage: 200, kind: FooArgs}
  - name: Unknwon
"""
PICKY = """
from attrs import field, frozen, validators
from trio_sched.plugin_api import hookimpl

@frozen(kw_only=True)
class Args:
    zones: tuple[str, ...] = ()
    limit: int = field(default=1, validator=validators.le(9))

class Picky:
    name = "Picky"
    Args = Args
    def __init__(self, args, handle): pass
    @hookimpl
    def filter_node(self, pod, node): return None
"""


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    def write(body: str, name: str = "config.yaml", head: str = HEAD) -> str:
        (tmp_path / name).write_text(head + body)
        return str(tmp_path / name)

    return write


def found(capsys: Capture, *arguments: str) -> tuple[ExitCode, dict[str, list[dict[str, Any]]]]:
    """The exit code, and the problems of each file."""
    code = main(["check-config", "-o", "json", *arguments])
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] == (code == ExitCode.OK)
    return code, {file["file"]: file["problems"] for file in report["files"]}


def test_everything_that_is_wrong_is_told_at_once_with_its_line(write: Callable[..., str], capsys: Capture) -> None:
    file = write(WRONG)
    code, problems = found(capsys, file)
    assert code == ExitCode.FAILURE
    listed = [(one["line"], one["severity"], one["path"], one["suggestion"]) for one in problems[file]]
    plugins, arguments = "profiles[0].plugins", "profiles[0].pluginConfig"
    assert listed == [
        (3, "error", "paralelism", "parallelism"),
        (4, "error", "parallelism", None),
        (5, "error", "leaderElection.leaseDuration", None),
        (5, "error", "leaderElection.renewDeadline", None),
        (9, "error", f"{plugins}.score.enabled[0].name", None),
        (9, "error", f"{plugins}.score.enabled[0].wieght", "weight"),
        (9, "error", f"{plugins}.score.enabled[1].name", "NodeAffinity"),
        (10, "warning", f"{plugins}.multiPoint.disabled[0].name", None),
        (13, "error", f"{arguments}[0].args.scoringStrategy.type", None),
        (15, "error", f"{arguments}[1].args.kind", None),
        (15, "error", f"{arguments}[1].args.minCandidateNodesPercentage", None),
        (16, "warning", f"{arguments}[2].name", None),
    ]
    assert "must be of type int32, not string" in problems[file][1]["message"]


def test_the_text_has_a_line_per_problem_that_editors_can_follow(write: Callable[..., str], capsys: Capture) -> None:
    wrong, right = write("paralelism: 1\n", "wrong.yaml"), write("", "right.yaml")
    assert main(["check-config", wrong, right, "/nonexistent"]) == ExitCode.FAILURE
    assert capsys.readouterr().out.splitlines() == [
        f"{wrong}:3: paralelism: unknown field; did you mean 'parallelism'?",
        f"{right}: ok",
        "/nonexistent: open /nonexistent: no such file or directory",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [\n", "did not find expected node content"),
        ("a: b\n", "Object 'Kind' is missing"),
        (HEAD.replace("Kube", "Cube"), 'no kind "CubeSchedulerConfiguration"'),
        ('{"kind": "Policy", "apiVersion": "v1"}', "this is a policy"),
        ("", "Object 'Kind' is missing"),
    ],
)
def test_what_is_no_configuration_is_one_problem(
    text: str, message: str, write: Callable[..., str], capsys: Capture
) -> None:
    file = write(text, head="")
    code, problems = found(capsys, file)
    assert code == ExitCode.FAILURE
    (problem,) = problems[file]
    assert message in problem["message"]


def test_values_of_other_types_anywhere_are_told(write: Callable[..., str], capsys: Capture) -> None:
    file = write("profiles: [3, {plugins: [], pluginConfig: [x, {name: [], args: 1}]}]\nextenders: [y, {weight: z}]\n")
    code, problems = found(capsys, file)
    assert code == ExitCode.FAILURE
    assert {
        "profiles[0]",
        "profiles[1].plugins",
        "profiles[1].pluginConfig[0]",
        "profiles[1].pluginConfig[1].name",
        "extenders[0]",
        "extenders[1].weight",
    } <= {one["path"] for one in problems[file]}


def test_a_former_version_is_checked_as_what_it_is_converted_to(write: Callable[..., str], capsys: Capture) -> None:
    head = HEAD.replace("/v1\n", "/v1beta3\n")
    file = write("", head=head)
    code, problems = found(capsys, file)
    assert (code, [one["severity"] for one in problems[file]]) == (ExitCode.OK, ["warning"])
    file = write("parallelism: -1\n", head=head)
    code, problems = found(capsys, file)
    assert code == ExitCode.FAILURE
    assert [one["path"] for one in problems[file]] == ["apiVersion", "parallelism"]


def test_the_arguments_of_installed_plugins_are_checked(
    install_plugin: InstallPlugin, write: Callable[..., str], capsys: Capture
) -> None:
    install_plugin("Picky", PICKY)
    entry = "{name: Picky, args: {zones: [1], colour: red}}"
    enabled = "plugins: {multiPoint: {enabled: [{name: Picky}]}}"
    file = write(f"profiles: [{{{enabled}, pluginConfig: [{entry}]}}]\n")
    code, problems = found(capsys, file)
    assert code == ExitCode.FAILURE
    assert [one["path"] for one in problems[file]] == [
        "profiles[0].pluginConfig[0].args.colour",
        "profiles[0].pluginConfig[0].args.zones[0]",
    ]
    assert problems[file][0]["message"].startswith("unknown field")
    file = write(f"profiles: [{{{enabled}, pluginConfig: [{{name: Picky, args: {{limit: 10}}}}]}}]\n")
    (problem,) = found(capsys, file)[1][file]
    assert problem["path"] == "profiles[0].pluginConfig[0].args.limit"
    assert "must be <= 9" in problem["message"]


def test_arguments_of_a_plugin_that_is_not_enabled_are_a_warning(
    write: Callable[..., str], capsys: Capture, install_plugin: InstallPlugin
) -> None:
    install_plugin("Picky", PICKY)
    file = write("profiles:\n- pluginConfig:\n  - name: Picky\n    args: {limit: 3}\n")
    code, problems = found(capsys, file)
    assert code == ExitCode.OK
    [problem] = problems[file]
    assert (problem["severity"], problem["line"]) == ("warning", 5)
    assert problem["message"] == "plugin 'Picky' is not enabled in this profile, so its arguments have no effect"


def test_what_the_author_of_a_plugin_hardly_meant_is_a_warning(
    write: Callable[..., str], capsys: Capture, install_plugin: InstallPlugin
) -> None:
    install_plugin("Picky", PICKY + "    watches = ('Namspace',)\n    on_failur = 'open'\n")
    code, problems = found(capsys, write("profiles:\n- plugins: {multiPoint: {enabled: [{name: Picky}]}}\n"))
    [near, kind] = next(iter(problems.values()))
    assert code == ExitCode.OK
    assert near["severity"] == kind["severity"] == "warning"
    assert near["message"] == "plugin 'Picky': Picky.on_failur means nothing; did you mean 'on_failure'?"
    assert "its watches name 'Namspace'" in kind["message"]


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ("profiles: [{plugins: {queueSort: {disabled: [{name: '*'}]}}}]\n", "profiles"),
        ("leaderElection: {leaseDuration: 11s, renewDeadline: 10s, retryPeriod: 9s}\n", "leaderElection"),
    ],
)
def test_what_only_a_start_would_find_out_is_told(
    body: str, path: str, write: Callable[..., str], capsys: Capture
) -> None:
    file = write(body)
    code, problems = found(capsys, file)
    assert code == ExitCode.FAILURE
    assert problems[file]
    assert all(one["path"].startswith(path) for one in problems[file])


def test_the_standard_input_is_a_dash(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"{HEAD}parallelism: 0\n".encode())))
    code, problems = found(capsys, "-")
    assert (code, problems["-"][0]["line"]) == (ExitCode.FAILURE, 3)
    monkeypatch.setattr(sys, "stdin", None)
    assert "there is no standard input" in found(capsys, "-")[1]["-"][0]["message"]


def test_gates_are_those_of_the_scheduler_that_will_run(write: Callable[..., str], capsys: Capture) -> None:
    file = write("")
    assert main(["check-config", file, "--feature-gates=NodeDeclaredFeatures=true"]) == ExitCode.OK
    capsys.readouterr()
    for flags, message in (
        (["--feature-gates=GangSchedulin=true"], "GangSchedulin; did you mean 'GangScheduling'?"),
        (["--emulated-version=1.2"], "emulation version 1.2 is not between"),
        ([], "Missing argument"),
    ):
        assert main(["check-config", *([file] if flags else []), *flags]) == ExitCode.USAGE
        assert message in capsys.readouterr().err
