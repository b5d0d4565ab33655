"""Whatever plugins, files and names say, a terminal is shown no control character of it."""

import json
import unicodedata
from pathlib import Path

import pytest

from trio_sched.cli.main import main
from trio_sched.cli.process.exit_code import ExitCode

Capture = pytest.CaptureFixture[str]

PLUGIN = r"""
import numpy as np
from trio_sched.plugin_api import Verdicts, hookimpl, unschedulable

TEXT = "red\x1b[31m\nline\r\x9b2J \u202eevil\u2028\x07"

class Painter:
    name = "Painter"

    def __init__(self, args, handle):
        pass

    @hookimpl
    def filter(self, pod, nodes, state):
        codes = np.array([1 if pod.name == "huge" else 0] * len(nodes))
        return Verdicts(codes, lambda code: unschedulable(TEXT))

    @hookimpl
    def score(self, pod, nodes, state):
        if pod.name == "db":
            raise ValueError(TEXT)
        return np.zeros(len(nodes), dtype=np.int64)
"""
SHOWN = r"red\x1b[31m\nline\r\u009b2J \u202eevil\u2028\a"
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {enabled: [{name: Painter}], disabled: [{name: NodeResourcesFit}]}}}]
"""


@pytest.fixture
def painter(tmp_path: Path) -> list[str]:
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "painter.py").write_text(PLUGIN)
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG)
    return ["--config", str(config), "--plugins-dir", str(folder)]


def folded(text: str) -> str:
    """*text* without the line breaks and the rulings of tables."""
    return "".join(text.split())


def assert_shown(text: str) -> None:
    """That *text* has what the plugin says, escaped, and nothing that a terminal would obey."""
    assert folded(SHOWN) in folded(text)
    assert {character for character in text if unicodedata.category(character)[0] == "C"} <= {"\n"}
    assert "\u2028" not in text


def test_a_table_of_pending_pods_shows_what_a_plugin_says_escaped(
    small_cluster: Path, painter: list[str], capsys: Capture
) -> None:
    assert main(["simulate", "-f", str(small_cluster), *painter]) == ExitCode.OK
    printed = capsys.readouterr()
    assert_shown(printed.out)
    assert printed.err.replace("\n\t", "").replace("\n", "").isprintable()


def test_json_is_as_it_was(small_cluster: Path, painter: list[str], capsys: Capture) -> None:
    assert main(["simulate", "-f", str(small_cluster), *painter, "--output", "json"]) == ExitCode.OK
    messages = [one["message"] for one in json.loads(capsys.readouterr().out)["pending"]]
    assert any("red\x1b[31m\nline\r\x9b2J \u202eevil\u2028\x07" in message for message in messages)


def test_explanations_are_shown_escaped(small_cluster: Path, painter: list[str], capsys: Capture) -> None:
    explained = ["--explain", "huge", "--explain", "db"]
    assert main(["simulate", "-f", str(small_cluster), *painter, *explained]) == ExitCode.OK
    assert_shown(capsys.readouterr().out)


def test_what_keeps_a_pod_pending_is_shown_escaped(small_cluster: Path, painter: list[str], capsys: Capture) -> None:
    assert main(["explain", "huge", "-f", str(small_cluster), *painter]) == ExitCode.FAILURE
    assert_shown(capsys.readouterr().out)


def test_lines_of_an_explanation_end_where_they_are_to_end(small_cluster: Path, capsys: Capture) -> None:
    assert main(["simulate", "-f", str(small_cluster), "--explain", "huge"]) == ExitCode.OK
    printed = capsys.readouterr().out
    assert "\nCause: cpu 7. 2 of 2 nodes pass everything else" in printed
    assert r"\n" not in printed


def test_a_comparison_is_shown_escaped(
    small_cluster: Path, tmp_path: Path, painter: list[str], capsys: Capture
) -> None:
    config, plugins = painter[:2], painter[2:]
    first = tmp_path / "plain.yaml"
    first.write_text(CONFIG.replace("{name: Painter}", ""))
    main(["compare", "-f", str(small_cluster), *plugins, "--config", str(first), *config])
    assert_shown(capsys.readouterr().out)


def test_what_is_wrong_with_a_file_is_shown_escaped(tmp_path: Path, capsys: Capture) -> None:
    config = tmp_path / "con\x1b[2Jfig.yaml"
    config.write_text(CONFIG.replace("Painter", '"Pa\\eint\\u202eer"'))
    assert main(["check-config", str(config)]) == ExitCode.FAILURE
    printed = capsys.readouterr()
    assert r"con\x1b[2Jfig.yaml" in printed.out
    assert (printed.out + printed.err).replace("\n", "").isprintable()


def test_a_command_line_is_quoted_escaped(capsys: Capture) -> None:
    assert main(["simulate", "-f", "no\x1b[2Jthing.yaml"]) != ExitCode.OK
    assert main(["--nothing\x1b[2J"]) == ExitCode.FAILURE
    assert main(["explain\x1b[2J"]) == ExitCode.FAILURE
    printed = capsys.readouterr()
    assert "\x1b" not in printed.out + printed.err
