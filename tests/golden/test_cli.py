"""Replays command lines: accepted or refused and how, the words, the configuration that comes of it."""

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from attrs import frozen
from command_line import CLUSTER_VARIABLES, KUBECONFIG, Places, difference, text_difference
from comparison import refuses_former_version
from restored_logging import restored_logging
from scoreboard import Case, GoldenRun

from trio_sched.cli.commands import run
from trio_sched.cli.main import main
from trio_sched.documents.tree import plain
from trio_sched.documents.yaml_reader import read_yaml

CHUNKS: Final = 2
AREA: Final = "cli"
_MINIMAL: Final = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: "{kubeconfig}"}
"""
_COMMAND_FAILED: Final = re.compile(r'E\d{4} [\d:.]+ +\d+ \S+:\d+\] "command failed" err=(.*)', re.DOTALL)
_FLAG: Final = re.compile(r" +((?:-\w, )?--\S+(?: \S+)?)(?: {2,}.*?(\(default .*\))?)?")
_GATE: Final = re.compile(r" *(kube:\w+=true\|false \(.*\))")
_SECTION: Final = re.compile(r"(.*) flags:")
_STARTED: Final = (
    "Starting Kubernetes Scheduler",
    "Starting informers and waiting for sync...",
    "Sync completed",
    "Attempting to acquire leader lease...",
    "Successfully acquired lease",
)


@frozen(kw_only=True)
class _Result:
    """What one command line did."""

    code: int
    out: str
    err: str

    @property
    def last_line(self) -> str:
        return self.err.rstrip("\n").rpartition("\n")[2]

    @property
    def via(self) -> str:
        """The form of the failure: as the recordings name it."""
        if self.last_line.startswith("Error: "):
            return "usage" if self.err.startswith("Usage:\n") else "raw"
        return "log" if _logged(self.err) is not None else "raw"

    @property
    def error(self) -> str:
        """The text of the failure."""
        found = _logged(self.err)
        return self.last_line.removeprefix("Error: ") if found is None else found


def _logged(err: str) -> str | None:
    """The value of ``err`` in the line about the failure; None if there is no such line."""
    starts = [found.start() for found in re.finditer(r'^E.*"command failed" err=', err, re.MULTILINE)]
    found = _COMMAND_FAILED.fullmatch(err[starts[-1] :].rstrip("\n")) if starts else None
    if found is None:
        return None
    if found[1].startswith("<\n\t"):
        return found[1].removeprefix("<\n\t").partition("\n >")[0].replace("\n\t", "\n")
    return str(json.JSONDecoder().raw_decode(found[1])[0])


@pytest.fixture
def _clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in CLUSTER_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with restored_logging():
        yield


@pytest.mark.usefixtures("_clean")
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_command_lines_are_taken_as_kube_scheduler_takes_them(
    golden: GoldenRun,
    chunk: int,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for number, case in enumerate(golden.cases(AREA, chunk=chunk, chunks=CHUNKS, sample=200)):
        directory = tmp_path / str(number)
        directory.mkdir()
        with monkeypatch.context() as patch:
            _replay(golden, case, directory, capfd, patch)
    golden.check()


def _replay(
    golden: GoldenRun,
    case: Case,
    directory: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = case.get("files", {})
    names = {"{kubeconfig}": "kubeconfig", "{config}": "config", "{out}": "out", "{dir}": "dir"}
    names |= {f"{{file:{name}}}": f"file-{name}" for name in files}
    places = Places({placeholder: str(directory / name) for placeholder, name in names.items()})
    (directory / "dir").mkdir()
    places.write("{kubeconfig}", KUBECONFIG)
    places.write("{config}", places.put(case.get("config") or _MINIMAL))
    for name, content in files.items():
        places.write(f"{{file:{name}}}", places.put(content))
    for name, value in case.get("env", {}).items():
        monkeypatch.setenv(name, places.put(value))
    expected, name = case["expect"], case["name"]
    starts = case.get("mode") == "start"
    if starts:
        monkeypatch.setattr(run.trio, "run", _stop_before_connecting)  # what follows needs a cluster
    capfd.readouterr()
    code = main([places.put(argument) for argument in case["argv"]])
    printed = capfd.readouterr()
    result = _Result(code=code, out=places.back(printed.out), err=places.back(printed.err))
    if starts:
        _compare_start(golden, name, expected, result)
    elif refuses_former_version(expected.get("error", "")):
        read = expected["error"] not in result.err
        detail = f"{name}: we read what kube-scheduler refuses: {expected['error']}"
        golden.record_on_purpose(AREA, "legacy-accepted", read, detail)
    else:
        _compare(golden, name, expected, result)
        _compare_written(golden, name, expected, places)


def _stop_before_connecting(*_arguments: object) -> None:
    logging.getLogger("trio_sched").info("would connect now")


def _compare_start(golden: GoldenRun, name: str, expected: dict[str, Any], result: _Result) -> None:
    """Up to the first request: what the lease does is no matter of the command line."""
    connects = "would connect now" in result.err
    golden.record(AREA, "verdict", connects == expected["ok"], f"{name}: expected {expected}, got {result}")
    logged = [text for text in _STARTED if text in result.err]
    wanted = [text for text in expected["log"] if "lease" not in text]
    golden.record(AREA, "text", logged == wanted, f"{name}: expected {wanted}, got {logged}")
    if not expected["ok"]:
        golden.record(AREA, "verdict", result.code == expected["exitCode"], f"{name}: exit code {result.code}")
        golden.record(AREA, "text", result.error == expected["error"], f"{name}: got {result.error!r}")


def _compare(golden: GoldenRun, name: str, expected: dict[str, Any], result: _Result) -> None:
    wanted = (expected["exitCode"], expected.get("via"))
    got = (result.code, result.via if result.code else None)
    golden.record(AREA, "verdict", got == wanted, f"{name}: expected {wanted}, got {got}: {result.err[-300:]!r}")
    for key in ("error", "errorSet"):
        if key in expected:
            agreed = result.error == expected[key] if key == "error" else _parts_agree(expected[key], result.error)
            golden.record(AREA, "text", agreed, f"{name}: expected {expected[key]!r}, got {result.error!r}")
    if "stderrLast" in expected:
        agreed = result.last_line == expected["stderrLast"]
        golden.record(AREA, "text", agreed, f"{name}: expected {expected['stderrLast']!r}, got {result.last_line!r}")
    for what, got_text in (("stdout", result.out), ("stderr", result.err)):
        if what not in expected:
            continue
        if "Usage:\n" in expected[what]:
            _compare_usage(golden, name, expected[what], got_text)
        else:
            agreed = re.fullmatch(re.escape(expected[what]).replace(r"\*", '[^"]*'), got_text) is not None
            golden.record(AREA, "text", agreed, f"{name}: expected {expected[what]!r}, got {got_text!r}")


def _parts_agree(parts: list[str], text: str) -> bool:
    """Whether *text* lists *parts*, in any order: Go prints them as its maps have them."""
    inside = text.removeprefix("[").removesuffix("]") if len(parts) > 1 else text
    for part in sorted(parts, key=len, reverse=True):
        if part not in inside:
            return False
        inside = inside.replace(part, "", 1)
    return inside.replace(", ", "") == ""


def _compare_usage(golden: GoldenRun, name: str, wanted: str, got: str) -> None:
    """Sections, flags, types, defaults and gates are compared; what flags are said to do is said in our own words."""
    left, right = list(_usage_parts(wanted)), list(_usage_parts(got))
    missing = [part for part in left if part not in right] or [part for part in right if part not in left]
    golden.record(AREA, "text", left == right, f"{name}: the usage differs in {missing[:3]}")
    golden.record_on_purpose(AREA, "help-prose", wanted != got, f"{name}: flags are described in our own words")


def _usage_parts(text: str) -> Iterator[tuple[str, ...]]:
    for line in text.splitlines():
        if section := _SECTION.fullmatch(line):
            yield (section[1],)
        elif gate := _GATE.fullmatch(line):
            yield (gate[1],)
        elif flag := _FLAG.fullmatch(line):
            yield (flag[1], flag[2] or "")


def _compare_written(golden: GoldenRun, name: str, expected: dict[str, Any], places: Places) -> None:
    path = Path(places.paths["{out}"])
    if not path.exists():
        golden.record(AREA, "written", "written" not in expected, f"{name}: nothing was written")
        return
    written, wanted = path.read_text(), expected.get("written", "")
    completed = places.back_in_tree(plain(read_yaml(written).tree))
    written = places.back(written)
    golden.record(AREA, "written", written == wanted, f"{name}: {text_difference(wanted, written)}")
    agreed = completed == expected.get("completed")
    golden.record(AREA, "completed", agreed, f"{name}: {difference(expected.get('completed'), completed)}")
