"""Replays configuration files: accepted or refused and why, completed how, expanded to which plugins."""

import logging
import re
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from command_line import CLUSTER_VARIABLES, KUBECONFIG, Places, difference, text_difference
from comparison import refuses_former_version
from scoreboard import Case, GoldenRun

from trio_sched.cli.commands.check_config import Warned, all_findings
from trio_sched.cli.flags.flags import parse_flags
from trio_sched.cli.startup import start_log
from trio_sched.cli.startup.configuration_choice import choose_configuration
from trio_sched.cli.startup.prepare import Prepared, check_elector, prepare
from trio_sched.config.errors import ConfigError
from trio_sched.config.feature_gates import DEFAULT_GATES
from trio_sched.config.known_plugins import KNOWN_PLUGINS
from trio_sched.config.resolved_profile import ResolvedProfile
from trio_sched.config.wire_types import POINTS
from trio_sched.documents.tree import plain
from trio_sched.documents.yaml_reader import read_yaml
from trio_sched.engine.registry.plugin_registry import PluginRegistry
from trio_sched.errors import TrioSchedError

CHUNKS: Final = 4
AREA: Final = "configfile"
_OF_OTHER_FILES: Final = re.compile(
    "invalid configuration: no configuration|stat /|couldn't build extenders: (open|specifying)"
)
_ONLY_HERE: Final = re.compile("couldn't create leader elector|does not extend Placement")
_REFUSES_1_37: Final = "emulation version 1.37 is not between [1.33, 1.36.0]"
_FIELD: Final = re.compile(r"([\w.\[\]-]+): (?:Required|Invalid|Unsupported|Duplicate|Forbidden)")


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_configuration_files_are_taken_as_kube_scheduler_takes_them(
    golden: GoldenRun, chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    for name in CLUSTER_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for case in golden.cases(AREA, chunk=chunk, chunks=CHUNKS, sample=300):
        _replay(golden, case, tmp_path, caplog)
    golden.check()


def _replay(golden: GoldenRun, case: Case, directory: Path, caplog: pytest.LogCaptureFixture) -> None:
    places = Places({"{kubeconfig}": str(directory / "kubeconfig"), "{config}": str(directory / "config")})
    put, back = places.put, places.back
    # An empty "kubeconfig" is taken as none of its own: the recording of that case was accepted, while
    # kube-scheduler refuses an empty file, so the recorder must have put the default there.
    places.write("{kubeconfig}", case.get("kubeconfig") or KUBECONFIG)
    places.write("{config}", put(case["text"]))
    runs = case.get("mode") == "start"
    argv = [put("--config={config}"), *map(put, case["flags"]), "--secure-port=0"]
    if not runs:
        argv += [f"--write-config-to={directory / 'out'}"]
    expected, name = case["expect"], case["name"]
    if not expected["ok"] and refuses_former_version(expected.get("error", "")):
        _compare_conversion(golden, name, argv, expected["error"])
        return
    if not expected["ok"] and expected.get("error") == _REFUSES_1_37:
        _compare_newer_version(golden, name, argv, expected["error"])
        return
    if not case["flags"] and not runs and "kubeconfig" not in case:
        _compare_check(golden, case, put(case["text"]))
    try:
        prepared = prepare(parse_flags(argv))
        if runs and prepared.config.leader_election.leader_elect:
            check_elector(prepared.config.leader_election)
    except TrioSchedError as error:
        _compare_refusal(golden, name, expected, error, back(str(error)))
        return
    golden.record(AREA, "verdict", expected["ok"], f"{name}: expected refusal {expected.get('error')!r}, got accepted")
    if expected["ok"] and not runs:
        written = prepared.effective_yaml()
        completed = places.back_in_tree(plain(read_yaml(written).tree))
        _compare_completed(golden, name, expected, prepared, back(written), completed)
        caplog.clear()
        with caplog.at_level(logging.INFO, start_log.log.name):
            start_log.log_overrides(prepared, KNOWN_PLUGINS)
        got = [[one.getMessage(), vars(one)["plugin"]] for one in caplog.records]
        wanted = [[one["msg"], one["plugin"]] for one in expected.get("log", ()) if "re-configured" in one["msg"]]
        golden.record(AREA, "overrides", got == wanted, f"{name}: expected {wanted}, got {got}")


@cache
def _registry() -> PluginRegistry:
    return PluginRegistry.discover()


def _compare_check(golden: GoldenRun, case: Case, text: str) -> None:
    """check-config finds something where kube-scheduler refuses; files that are named it does not look at.

    It finds what kube-scheduler does not where that only fails later (the election), or a plugin is not there yet.
    """
    expected, name = case["expect"], case["name"]
    found = all_findings(text, DEFAULT_GATES, _registry())
    errors = [f"{one.path}: {one.message}" for one in found if not isinstance(one, Warned)]
    detail = f"{name}: expected refusal {expected.get('error')!r}, found {errors}"
    agreed = expected["ok"] != bool(errors)
    if not agreed and (_OF_OTHER_FILES.match(expected.get("error", "")) or all(map(_ONLY_HERE.search, errors))):
        golden.record_on_purpose(AREA, "check-config-on-purpose", True, detail)
    else:
        golden.record(AREA, "check-config", agreed, detail)


def _compare_conversion(golden: GoldenRun, name: str, argv: list[str], error: str) -> None:
    """kube-scheduler refuses what former versions read; we mean to convert it, so that it is refused no more for that.

    Whatever else is wrong with it (it may name no cluster) keeps its own error.
    """
    try:
        source = choose_configuration(parse_flags(argv))
        read = source.conversion is not None or bool(source.ignored)
    except TrioSchedError as problem:
        read = error not in str(problem)
    golden.record_on_purpose(AREA, "legacy-accepted", read, f"{name}: we read what kube-scheduler refuses: {error}")


def _compare_newer_version(golden: GoldenRun, name: str, argv: list[str], error: str) -> None:
    """kube-scheduler 1.36 refuses to act as 1.37; we mean to act as either, so that the flag chooses 1.37."""
    try:
        got = prepare(parse_flags(argv)).gates.version_text
    except TrioSchedError as problem:
        got = str(problem)
    detail = f"{name}: we act as 1.37, which kube-scheduler 1.36 refuses: {error}; got {got}"
    golden.record_on_purpose(AREA, "newer-version-accepted", got == "1.37", detail)


def _compare_refusal(golden: GoldenRun, name: str, expected: dict[str, Any], error: TrioSchedError, text: str) -> None:
    if expected["ok"]:
        golden.record(AREA, "verdict", False, f"{name}: expected accepted, got {text!r}")
        return
    parts: list[str] = expected.get("errorSet") or [expected["error"]]
    fields = sorted(_FIELD.findall(" ".join(parts)))
    got = sorted(_FIELD.findall(text))
    golden.record(AREA, "verdict", fields == got, f"{name}: expected problems at {fields}, got {got}")
    if "errorSet" in expected:
        said = sorted(map(str, error.problems)) if isinstance(error, ConfigError) else [text]
        golden.record(AREA, "text", said == sorted(parts), f"{name}: expected {parts!r}, got {said!r}")
    else:
        golden.record(AREA, "text", text == parts[0], f"{name}: expected {parts[0]!r}, got {text!r}")


def _compare_completed(
    golden: GoldenRun, name: str, expected: dict[str, Any], prepared: Prepared, written: str, completed: Any
) -> None:
    wanted_config = expected["completed"]
    agreed = completed == wanted_config
    golden.record(AREA, "completed", agreed, f"{name}: {difference(wanted_config, completed)}")
    agreed = written == expected["written"]
    golden.record(AREA, "written", agreed, f"{name}: {text_difference(expected['written'], written)}")
    got = [_named(profile) for profile in prepared.profiles]
    wanted = [{point: plugins for point, plugins in profile.items() if plugins} for profile in expected["plugins"]]
    golden.record(AREA, "plugins", got == wanted, f"{name}: expected {wanted!r}, got {got!r}")


def _named(profile: ResolvedProfile) -> dict[str, list[Any]]:
    """The plugins of a profile by kube-scheduler's names of the points; those that weigh with their weights."""
    named: dict[str, list[Any]] = {}
    for key, point in POINTS.items():
        if refs := profile.points.get(point):
            weighs = point in ("score", "placement_score")
            named[key[0].upper() + key[1:]] = [[ref.name, ref.weight] if weighs else ref.name for ref in refs]
    return named
