"""What the pages about plugins show runs: their tests pass, and commands print what the pages say."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from markdown_pages import DOCS, ROOT, Block, blocks, codes, files_of

from contrib.docs import make_handle
from trio_sched.engine.registry import likely_mistakes
from trio_sched.plugin_api.extension_points import HOOK_NAMES
from trio_sched.testing.fake_handle import FakeHandle

HOW_TO = DOCS / "how_to"
REFERENCE = DOCS / "reference"
EXECUTED = [
    block
    for block in blocks("python")
    if block.page.parent in (HOW_TO, REFERENCE) and not block.file and re.match(r"from |import ", block.text)
]


def paste(page: Path, folder: Path) -> list[str]:
    """Write the files that *page* shows; returns the names of those with tests."""
    files = files_of(page)
    for name, text in files.items():
        (folder / name).write_text(text)
    return sorted(name for name in files if name.startswith("test_"))


def run(folder: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
    """What ``python -m`` says in *folder*."""
    path = os.pathsep.join([str(ROOT), str(folder)])
    given = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "120", **(environment or {})}
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env={**os.environ, **given}, check=False)
    return done.stdout + done.stderr


def run_tests(folder: Path, *arguments: str) -> str:
    """What pytest says in *folder* with the plugin of this distribution; loading all others takes most of a second."""
    alone = ("-p", "trio_sched.pytest_plugin", "-p", "no:cacheprovider")
    environment = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return run(folder, "pytest", "-q", *alone, "--rootdir", str(folder), *arguments, environment=environment)


def text_block(page: Path, start: str) -> str:
    """The block of text that begins with *start*, without line breaks."""
    (found,) = [block.text for block in blocks("text") if block.page == page and block.text.startswith(start)]
    return " ".join(found.split())


WITH_TESTS = ("plugin_recipes", "test_a_plugin", "make_a_plugin_fast", "explain_what_your_plugin_asks_for")


def test_the_tests_that_pages_show_pass(tmp_path: Path) -> None:
    """In one process: to start pytest takes longer than most of the tests."""
    pages = {name: files_of(HOW_TO / f"{name}.md") for name in WITH_TESTS}
    every_file = [file for files in pages.values() for file in files]
    assert len(set(every_file)) == len(every_file)
    tests = []
    for name, files in pages.items():
        found = paste(HOW_TO / f"{name}.md", tmp_path)
        assert found, name
        tests += found
        imported = re.findall(r"^(?:from|import) (\w+)", "\n".join(files.values()), re.MULTILINE)
        of_other_pages = {f"{module}.py" for module in imported} & (set(every_file) - set(files))
        assert of_other_pages == set(), name
    said = run_tests(tmp_path, *tests)
    assert re.search(r"^\d+ passed in", said, re.MULTILINE), said


def test_every_recipe_has_a_test() -> None:
    shown = files_of(HOW_TO / "plugin_recipes.md")
    plugins = {name for name in shown if name.endswith(".py") and not name.startswith("test_")}
    assert {f"test_{name}" for name in plugins} == {name for name in shown if name.startswith("test_")}
    assert all("conformance_test(" in shown[f"test_{name}"] for name in plugins)


@pytest.mark.parametrize("block", EXECUTED, ids=lambda block: block.place)
def test_a_block_without_a_name_runs(block: Block) -> None:
    names = {"__name__": "block"}
    exec(compile(block.text, block.place, "exec"), names)
    assert len(names) > 2  # those of the block are there besides two that are always


def test_the_roles_of_the_recipe_are_those_that_are_printed(tmp_path: Path) -> None:
    page = HOW_TO / "plugin_recipes.md"
    paste(page, tmp_path)
    rules = run(tmp_path, "trio_sched", "rbac", "--plugin", "freezes.py", "--config", "freezes.yaml", "--rules")
    assert text_block(page, "- apiGroups") in " ".join(rules.split())


def test_the_plugin_that_is_developed_decides_and_is_traced(tmp_path: Path) -> None:
    page = HOW_TO / "develop_a_plugin.md"
    paste(page, tmp_path)
    options = ("-f", "cluster.yaml", "--config", "racks.yaml", "--plugin", "rack_order.py")
    said = run(tmp_path, "trio_sched", "simulate", *options, "--pods", "--trace-plugins", "default/web-1")
    assert re.search(r"web-1 +node-2 +Running", said)
    line = text_block(page, '"Plugin called"')
    assert re.search(re.escape(line).replace("…", r"\S+"), said), line
    assert '"label"' in run(tmp_path, "trio_sched", "plugins", "--plugin", "rack_order.py", "--schema", "RackOrder")


@pytest.mark.parametrize(
    ("pod", "files"),
    [
        ("web-1", ("repair.yaml", "quiet.yaml", "quiet_zone.py")),
        ("train-1", ("racks.yaml", "watts.yaml", "watt_budget.py")),
    ],
)
def test_what_a_plugin_asks_for_is_explained_as_shown(pod: str, files: tuple[str, str, str], tmp_path: Path) -> None:
    page = HOW_TO / "explain_what_your_plugin_asks_for.md"
    paste(page, tmp_path)
    cluster, config, plugin = files
    said = run(tmp_path, "trio_sched", "explain", pod, "-f", cluster, "--config", config, "--plugin", plugin)
    shown, printed = (re.sub(r"pending \d+ \w+", "", text) for text in (text_block(page, f"default/{pod}"), said))
    assert shown in " ".join(printed.split())


def test_the_package_that_is_shipped_is_where_the_page_says(tmp_path: Path) -> None:
    said = run(tmp_path, "trio_sched", "new-plugin", "FastDisk")
    assert "Wrote fast-disk." in said
    assert (tmp_path / "fast-disk/src/fast_disk/plugin.py").is_file()
    assert 'FastDisk = "fast_disk:FastDisk"' in (tmp_path / "fast-disk/pyproject.toml").read_text()


def test_every_plugin_of_contrib_is_listed() -> None:
    folder = ROOT / "contrib/plugins"
    text = (folder / "README.md").read_text(encoding="utf-8")
    for project in folder.glob("*/pyproject.toml"):
        assert f"[{project.parent.name}]({project.parent.name}/README.md)" in text


def test_errors_about_arguments_are_those_that_are_shown(tmp_path: Path) -> None:
    page = REFERENCE / "arguments.md"
    paste(page, tmp_path)
    file = tmp_path / "quiet.yaml"
    assert run(tmp_path, "trio_sched", "check-config", "--plugin", "quiet.py", file.name) == "quiet.yaml: ok\n"
    file.write_text(file.read_text().replace("maxPods: 20", "maxPods: 0").replace("mode:", "moed:"))
    said = run(tmp_path, "trio_sched", "check-config", "--plugin", "quiet.py", file.name)
    assert " ".join(said.split()) == text_block(page, "quiet.yaml:")


def test_the_problem_that_conformance_finds_is_the_one_that_is_shown(tmp_path: Path) -> None:
    page = HOW_TO / "test_a_plugin.md"
    paste(page, tmp_path)
    file = tmp_path / "fast_disk.py"
    file.write_text(file.read_text().replace("Action.ADD | Action.UPDATE_NODE_LABEL", "Action.ADD"))
    said = run_tests(tmp_path, "test_conformance.py", "-k", "events")
    shown, _, _ = text_block(page, "an event is missing").partition(" The change: ")
    assert re.search(re.escape(shown).replace("'impossible'", r"'\w+'"), said), said


def test_what_a_test_sets_and_reads_of_the_fake_handle_is_there() -> None:
    handle = FakeHandle()
    text = (HOW_TO / "test_a_plugin.md").read_text(encoding="utf-8").partition("| the plugin uses |")[2]
    rows = re.findall(r"^\| (.+) \| (.*) \| (.*) \|$", text.partition("\n\n")[0], re.MULTILINE)[1:]
    named = {name for row in rows for cell in row for name in re.findall(r"`([a-z_]+)", cell)}
    assert {"known_objects", "refusal", "clock", "retries"} <= named
    assert [name for name in named - {"is_allowed", "rejection", "caplog"} if not hasattr(handle, name)] == []


def test_everything_that_a_class_may_declare_is_listed() -> None:
    listed = re.findall(r"^\| `(\w+): ", make_handle.CLASS_ATTRIBUTES, re.MULTILINE)
    assert sorted(listed) == sorted(("name", *likely_mistakes._ATTRIBUTES))


def test_every_hook_is_compared_with_go() -> None:
    page = HOW_TO / "coming_from_go_plugins.md"
    missing = (
        set(HOOK_NAMES)
        - codes(page)
        - {"placement_score", "normalize_placement_score", "pod_group_post_filter", "placement_feasible"}
    )
    assert missing == set()
