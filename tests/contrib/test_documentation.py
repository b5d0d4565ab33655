"""What the README and the docs say can be pasted, and works."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from markdown_pages import blocks

from contrib.docs import make_causes, make_configuration, make_exit_codes, make_flags
from contrib.docs.all_pages import PAGES
from contrib.docs.pages import Page
from trio_sched.cli.flags.flag_table import ALL_SECTIONS
from trio_sched.cli.process.exit_code import ExitCode
from trio_sched.config.known_plugins import KNOWN_PLUGINS
from trio_sched.config.load import load_configuration
from trio_sched.engine.registry.plugin_registry import PluginRegistry
from trio_sched.testing.conformance.check import CHECKS

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
TUTORIAL = ROOT / "docs" / "tutorial" / "write_a_plugin.md"
OLD_CONFIGURATION = ROOT / "docs" / "how_to" / "keep_an_old_configuration.md"
DEVICES = ROOT / "docs" / "how_to" / "allocate_devices.md"
_NAMED_BLOCK = re.compile(r"^```\w+\n# (\S+\.\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def paste(page: Path, folder: Path) -> set[str]:
    """Write the files of *page* into *folder*, and what pip would write for the package that they make up."""
    files = dict(_NAMED_BLOCK.findall(page.read_text(encoding="utf-8")))
    for name, content in files.items():
        (folder / name).write_text(content)
    project = tomllib.loads(files["pyproject.toml"])["project"]
    metadata = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    metadata.mkdir()
    about = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (metadata / "METADATA").write_text(about)
    entries = [f"{name} = {value}" for name, value in project["entry-points"]["trio_sched"].items()]
    (metadata / "entry_points.txt").write_text("\n".join(["[trio_sched]", *entries]))
    return set(files)


def run(folder: Path, *arguments: str) -> str:
    """What a command says that runs with *folder* installed."""
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        capture_output=True,
        check=True,
        text=True,
        cwd=ROOT,
        env={"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    return done.stdout


def test_the_plugin_of_the_readme_keeps_pods_out_of_the_zone(tmp_path: Path) -> None:
    assert paste(README, tmp_path) >= {"quiet_zone.py", "pyproject.toml", "quiet.yaml"}
    said = run(tmp_path, "trio_sched", "simulate", "--demo", "--config", str(tmp_path / "quiet.yaml"))
    assert "node(s) were in a zone under repair" in said
    general = re.findall(r"^ general-\d\d +general +(eu-1.) +(\d+)/110", said, re.MULTILINE)
    assert len(general) == 24
    assert all(pods == "0" for zone, pods in general if zone == "eu-1a")
    assert any(int(pods) > 1 for zone, pods in general if zone == "eu-1b")


@pytest.mark.parametrize("page", [README, TUTORIAL], ids=lambda page: page.name)
def test_the_packages_that_are_shown_say_how_they_are_built(page: Path) -> None:
    files = dict(_NAMED_BLOCK.findall(page.read_text(encoding="utf-8")))
    assert tomllib.loads(files["pyproject.toml"])["build-system"]["build-backend"] == "hatchling.build"


def test_the_plugin_of_the_readme_is_as_short_as_promised() -> None:
    files = dict(_NAMED_BLOCK.findall(README.read_text(encoding="utf-8")))
    assert sum(1 for line in files["quiet_zone.py"].split("\n") if line.strip()) <= 15


def test_the_plugin_of_the_readme_keeps_the_contract(tmp_path: Path) -> None:
    paste(README, tmp_path)
    imports = "from quiet_zone import QuietZone\nfrom trio_sched.testing import check_conformance\n"
    (tmp_path / "check.py").write_text(f"{imports}check_conformance(QuietZone)")
    assert run(tmp_path, "check") == ""


def test_the_tutorial_works_from_its_first_file_to_its_last(tmp_path: Path) -> None:
    written = paste(TUTORIAL, tmp_path)
    tests = {"test_team_nodes.py", "test_conformance.py"}
    assert written == {"pyproject.toml", "team_nodes.py", "scheduler.yaml", "cluster.yaml", *tests}
    assert re.search(r"TeamNodes +team-nodes 0\.1\.0 +filter", run(tmp_path, "trio_sched", "plugins"))
    cluster, config = str(tmp_path / "cluster.yaml"), str(tmp_path / "scheduler.yaml")
    said = run(tmp_path, "trio_sched", "simulate", "-f", cluster, "--config", config, "--pods")
    assert re.search(r"fits +node-1 +Running", said)
    assert "0/1 nodes are available: 1 node(s) belonged to another team." in said
    of_pytest = ("-q", "-p", "trio_sched.pytest_plugin", "--rootdir", str(tmp_path))
    said = run(tmp_path, "pytest", *of_pytest, *(str(tmp_path / test) for test in sorted(tests)))
    assert f"{2 + len(CHECKS)} passed" in said


def test_the_pending_pod_of_the_readme_is_explained_as_shown() -> None:
    (text,) = re.findall(r"^```text\n(misfits/wrong-label.*?)^```", README.read_text(encoding="utf-8"), re.M | re.S)
    command = (sys.executable, "-m", "trio_sched", "explain", "--demo", "-n", "misfits", "wrong-label-001")
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == ExitCode.FAILURE
    headline, printed = done.stdout.split("\n", 1)
    shown_headline, shown = text.split("\n", 1)
    assert headline.startswith("misfits/wrong-label-001  pending ")
    assert shown_headline.split(";")[1] in headline
    for part in shown.split("…"):
        assert " ".join(part.split()) in " ".join(printed.split())


def test_the_fields_of_explanations_that_are_described_are_in_the_schema() -> None:
    schema = json.loads((ROOT / "docs" / "reference" / "explanation.schema.json").read_text(encoding="utf-8"))
    fields = {name for cell, _what in make_causes.FIELDS for name in re.findall(r"\w+", cell)} | {"triedAll"}
    known = {"alike", *schema["$defs"]["explanation"]["properties"]}
    assert fields <= known
    assert known - fields == {
        "schedulerName",
        "events",
        "nodes",
        "passing",
        "funnel",
        "notes",
    }  # which say it themselves


def test_the_devices_that_are_described_can_be_tried(tmp_path: Path) -> None:
    files = dict(_NAMED_BLOCK.findall(DEVICES.read_text(encoding="utf-8")))
    (tmp_path / "devices.yaml").write_text(files["devices.yaml"])
    said = run(tmp_path, "trio_sched", "simulate", "-f", str(tmp_path / "devices.yaml"), "--pods")
    assert re.search(r"train +gpu-1 +Running", said)
    assert re.search(r"gpu.example.com +- +2 +1 +0", said)


def test_the_old_configuration_is_converted_into_the_one_shown(tmp_path: Path) -> None:
    files = dict(_NAMED_BLOCK.findall(OLD_CONFIGURATION.read_text(encoding="utf-8")))
    (tmp_path / "old.yaml").write_text(files["old.yaml"])
    assert run(tmp_path, "trio_sched", "convert-config", str(tmp_path / "old.yaml")) == files["new.yaml"]


def test_the_extender_that_is_described_can_be_configured() -> None:
    page = (ROOT / "docs" / "how_to" / "use_an_extender.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (extender,) = load_configuration(text).extenders
    assert (extender.filter_verb, extender.weight, extender.http_timeout_ns) == ("filter", 5, 2_000_000_000)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_reference_page_is_up_to_date(page: Page) -> None:
    assert page.target.read_text(encoding="utf-8") == page.text(), "run make docs"


def test_every_page_of_the_reference_is_made_from_the_code() -> None:
    assert {page.name for page in PAGES} == {path.name for path in (ROOT / "docs" / "reference").glob("*.md")}


def test_the_reference_pages_have_every_flag_field_and_exit_code() -> None:
    flags = make_flags.text()
    assert all(f"`--{flag.name}`" in flags for section in ALL_SECTIONS.values() for flag in section)
    codes = make_exit_codes.text()
    assert all(re.search(rf"^\| {code.value} \| `{code.name}` \| \w", codes, re.MULTILINE) for code in ExitCode)
    fields = make_configuration.text()
    assert "| `leaderElection.leaseDuration` | duration, like `15s` | `15s` |" in fields
    assert "| `extenders[].tlsConfig.keyData` | base64 |  |" in fields


def test_the_readme_names_exactly_the_plugins_that_are_missing() -> None:
    text = README.read_text(encoding="utf-8")
    have, _start, missing = text.partition("## Status")[2].partition("Not yet:")
    installed = PluginRegistry.discover()
    for name in KNOWN_PLUGINS:
        assert re.search(rf"\b{name}\b", have if name in installed else missing), name
        assert not re.search(rf"\b{name}\b", missing if name in installed else have), name


def test_make_knows_every_verb_that_is_promised() -> None:
    verbs = set(re.findall(r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    # Only commands: prose may make do, make sense, and make room.
    for block in blocks("sh"):
        assert set(re.findall(r"^make (\w+)", block.text, re.MULTILINE)) <= verbs, block.place
