"""The blocks of code in the documentation: each is what it claims to be, and names what exists."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import kubernetes_validate
import pytest
import trio
import yaml
from failing_cases import failing
from markdown_pages import PAGES, ROOT, Block, blocks, files_of, languages
from shell_commands import commands
from simulator_api import Api

from trio_sched.cli.command_table import COMMANDS
from trio_sched.cli.commands.check_config import Warned, all_findings
from trio_sched.cli.flags.flags import parse_flags, split_arguments
from trio_sched.cli.main import main
from trio_sched.config.feature_gates import DEFAULT_GATES
from trio_sched.config.legacy import read_legacy_configuration
from trio_sched.engine.registry.plugin_registry import PluginRegistry
from trio_sched.simulator import ApiServer

HELM = Path(sys.executable).parent / "helm"
CHART = "contrib/deploy/helm/trio-sched"
KUBERNETES = "1.36"
SINCE_1_37 = {"scheduling.k8s.io/v1alpha3", "scheduling.k8s.io/v1beta1"}
"""Versions that the schemas of KUBERNETES do not have."""
CONFIGURATION = "KubeSchedulerConfiguration"
OTHER_PROGRAMS = {
    "cat",
    "cd",
    "cp",
    "curl",
    "cut",
    "docker",
    "eval",
    "export",
    "grep",
    "install",
    "jq",
    "make",
    "pip",
    "sed",
    "sort",
    "uniq",
}
OTHER_PROGRAMS |= {"mypy", "pytest", "python", "ruff"}
CHECKED = {"python", "toml", "json", "yaml", "sh"}
NOT_CHECKED = {"text", "dockerfile", "go"}
SIGNATURE = re.compile(r"((?:@classmethod\n)?(?:async )?(?:def|with) \w+\(.*?)(?=\n(?:async |def |@)|\Z)", re.DOTALL)
PLUGIN_NAME = re.compile(r'^    name = "(\w+)"$', re.MULTILINE)
HARMLESS = ("plugins", "check-config", "rbac", "completion")
SHELL = blocks("sh")
COMMANDS_SHOWN = [(block, words) for block in SHELL for words in commands(block.text)]
YAML = blocks("yaml")


def commands_of(program: str) -> dict[str, tuple[Block, list[str]]]:
    """The commands of *program*, each once, by a name for a test."""
    shown = {tuple(words): block for block, words in COMMANDS_SHOWN if Path(words[0]).name == program}
    return {f"{block.place} {' '.join(words[1:])}": (block, list(words)) for words, block in shown.items()}


TRIO_SCHED, KUBECTL, HELM_COMMANDS = map(commands_of, ("trio-sched", "kubectl", "helm"))


def in_block(found: list[Block]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("block", found, ids=lambda block: block.place)


def test_every_language_is_checked_or_has_nothing_to_check() -> None:
    assert languages() == CHECKED | NOT_CHECKED


# --- commands -------------------------------------------------------------------------------------------------------


def test_a_shell_block_has_the_syntax_of_a_shell_and_names_known_programs() -> None:
    def check(block: Block) -> None:
        done = subprocess.run(["bash", "-n"], input=block.text, capture_output=True, text=True, check=False)
        assert done.stderr == ""
        found = list(commands(block.text))
        assert found
        for words in found:
            if words[0] == ".venv/bin/python":
                assert words[1] == "-m"
                assert importlib.util.find_spec(words[2]) is not None, words[2]
            else:
                assert Path(words[0]).name in {"trio-sched", "kubectl", "helm"} | OTHER_PROGRAMS, words[0]

    assert failing({block.place: block for block in SHELL}, check) == {}


def test_shell_blocks_name_files_of_the_project_that_exist() -> None:
    project = re.compile(r"(?<![\w/.])(?:contrib|docs|tests|trio_sched|plugins_builtin)/[\w./-]+")
    named = [(path, block.place) for block in SHELL for path in project.findall(block.text)]
    missing = [(path, place) for path, place in named if not (ROOT / path).exists()]
    # The chart that a command writes, from results to choose.
    assert [one for one in missing if one[0] != "docs/speed.svg" and "DATE" not in one[0]] == []


def test_a_command_of_trio_sched_has_the_options_that_it_is_given() -> None:
    def check(shown: tuple[Block, list[str]]) -> None:
        _, (_, first, *rest) = shown
        match first:
            case "convert-config":
                assert split_arguments(rest) is not None
            case _ if first in COMMANDS:
                context = COMMANDS[first].load().make_context(first, rest, help_option_names=["-h", "--help"])
                assert context.info_name == first
            case _:
                assert parse_flags([first, *rest]).given

    assert failing(TRIO_SCHED, check) == {}


@pytest.mark.parametrize("name", [name for name, (_, words) in TRIO_SCHED.items() if words[1] in HARMLESS])
def test_a_harmless_command_of_trio_sched_works(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    block, words = TRIO_SCHED[name]
    for file, text in files_of(block.page).items():
        (tmp_path / file).write_text(text)
    for own in (tmp_path / word.rpartition("=")[2] for word in words if word.endswith("scheduler.yaml")):
        if not own.exists():  # the reader's own
            own.parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / "contrib/deploy/kustomize/scheduler.yaml", own)
    monkeypatch.chdir(tmp_path)
    assert main(words[1:]) == 0
    assert capsys.readouterr().out


def test_kubectl_has_the_command_and_its_options() -> None:
    def check(shown: tuple[Block, list[str]]) -> None:
        _, words = shown
        end = words.index("--") if "--" in words else len(words)
        done = subprocess.run([*words[:end], "--help"], capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0, done.stderr

    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # where the plugin kubectl-why is
    environment = {**os.environ, "PATH": path}
    assert failing(KUBECTL, check) == {}


@pytest.mark.parametrize("name", HELM_COMMANDS)
def test_helm_has_the_command_and_the_chart_the_values(name: str, tmp_path: Path) -> None:
    block, words = HELM_COMMANDS[name]
    done = subprocess.run([str(HELM), *words[1:], "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    if CHART not in words:
        return
    given = [word for pair in pairwise(words) if pair[0] in ("-f", "--set") for word in pair]
    for file, text in files_of(block.page).items():
        (tmp_path / file).write_text(text)
    command = [str(HELM), "template", "trio-sched", str(ROOT / CHART), *given]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_commands_that_move_a_control_plane_make_the_manifest_that_is_shown(tmp_path: Path) -> None:
    page = ROOT / "docs/how_to/migrate_from_kube_scheduler.md"
    (expected,) = [block.text for block in YAML if block.page == page and block.file == "trio-sched.yaml"]
    (edit,) = [words for block, words in COMMANDS_SHOWN if block.page == page and words[0] == "sed"]
    before = (ROOT / "tests/contrib/kubeadm_scheduler.yaml").read_text()
    done = subprocess.run(edit, input=before, capture_output=True, text=True, check=True)
    assert yaml.safe_load(done.stdout) == yaml.safe_load(expected)


def test_a_command_is_found_wherever_it_stands() -> None:
    text = 'A=$(one -a | two) # not\nsudo three "x y" > file \\\n  && four "$(five z)" <in &\n'
    assert list(commands(text)) == [["one", "-a"], ["two"], ["three", "x y"], ["five", "z"], ["four", "$(five z)"]]


# --- documents ------------------------------------------------------------------------------------------------------


def plugins_shown() -> set[str]:
    """The plugins of the packages and files that the pages show."""
    projects = (tomllib.loads(block.text).get("project", {}) for block in blocks("toml"))
    packaged = {name for project in projects for name in project.get("entry-points", {}).get("trio_sched", {})}
    return packaged | {name for block in blocks("python") for name in PLUGIN_NAME.findall(block.text)}


def check_configuration(text: str) -> None:
    """Fail unless the scheduler takes *text*; plugins may be those that the pages show."""
    legacy = read_legacy_configuration(text)
    source = text if legacy is None else legacy.convert().text()
    problems = [
        one for one in all_findings(source, DEFAULT_GATES, PluginRegistry.discover()) if type(one) is not Warned
    ]
    unknown = {f"no installed distribution offers a plugin named {name!r}" for name in plugins_shown()}
    assert [str(one) for one in problems if one.message not in unknown] == []


def containers(one: dict[str, Any]) -> Iterator[dict[str, Any]]:
    spec = one.get("spec", {})
    yield from spec.get("containers", spec.get("template", {}).get("spec", {}).get("containers", ()))


def check_on_server(one: dict[str, Any]) -> None:
    """Fail unless the simulated API server of 1.37 takes *one* with all of its fields."""
    api = Api(ApiServer(kubernetes_version="1.37"))
    one = {**one, "metadata": {**one["metadata"], "namespace": "default"}}
    path = f"/apis/{one['apiVersion']}/namespaces/default/{one['kind'].lower()}s?fieldValidation=Strict"
    trio.run(api, "POST", path, one)


def check_object(one: dict[str, Any]) -> None:
    """Fail unless an API server takes *one*, and trio-sched the flags in it."""
    if one["apiVersion"] in SINCE_1_37:
        check_on_server(one)
        return
    is_of_1_35 = one["apiVersion"] == "scheduling.k8s.io/v1alpha1" or "workloadRef" in one.get("spec", {})
    kubernetes_validate.validate(one, "1.35" if is_of_1_35 else KUBERNETES, strict=True)
    for container in containers(one):
        command = container.get("command", [""])
        if command[0] == "trio-sched":
            parse_flags([*command[1:], *container.get("args", ())])


@in_block(YAML)
def test_a_yaml_block_is_what_it_seems(block: Block, tmp_path: Path) -> None:
    for one in yaml.safe_load_all(block.text):
        assert isinstance(one, dict)
        match one.get("kind"):
            case "KubeSchedulerConfiguration":
                check_configuration(block.text)
            case "Kustomization":
                check_kustomization(block, tmp_path)
            case None if block.file == "values.yaml":
                pass  # the command that uses it is tested
            case None if block.file == "prometheus.yaml":
                check_scrape_configuration(one)
            case None:  # the part of a pod that a sentence is about
                assert one.keys() == {"spec"}, one.keys()
                part = {"containers": [{"name": "main", "image": "main"}], **one["spec"]}
                check_object({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "part"}, "spec": part})
            case _:
                check_object(one)


def check_kustomization(block: Block, tmp_path: Path) -> None:
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    (overlay / block.file).write_text(block.text)
    shutil.copytree(ROOT / "contrib/deploy", tmp_path / "path/to/contrib/deploy")
    command = ["kubectl", "kustomize", str(overlay)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "image: registry.example/trio-sched:0.2.0" in done.stdout
    assert "kind: PodMonitor" in done.stdout


def check_scrape_configuration(one: dict[str, Any]) -> None:
    """Fail unless it selects the pods of the base, at a path and in a way in which these answer."""
    (job,) = one["scrape_configs"]
    base = yaml.safe_load((ROOT / "contrib/deploy/kustomize/deployment.yaml").read_text())
    template = base["spec"]["template"]
    (port,) = template["spec"]["containers"][0]["ports"]
    keep, _ = job["relabel_configs"]
    assert keep["source_labels"] == [
        "__meta_kubernetes_pod_label_app_kubernetes_io_name",
        "__meta_kubernetes_pod_container_port_name",
    ]
    assert keep["regex"] == f"{template['metadata']['labels']['app.kubernetes.io/name']};{port['name']}"
    assert job["scheme"] == "https"
    assert job["authorization"].keys() == {"credentials_file"}


def test_every_python_block_compiles() -> None:
    problems: list[SyntaxError] = []
    for block in blocks("python"):
        text = block.text
        if block.page.parent.name == "reference" and SIGNATURE.match(text) and ":\n" not in text:
            text = "".join(f"{one.rstrip()}: ...\n" for one in SIGNATURE.findall(text))
            text = text.replace("async with ", "async def ")
        try:
            compile(text, block.place, "exec")
        except SyntaxError as problem:  # it names the place
            problems.append(problem)
    assert problems == []


@in_block(blocks("toml"))
def test_a_toml_block_is_toml(block: Block) -> None:
    assert tomllib.loads(block.text)


@in_block(blocks("json"))
def test_a_json_block_is_json(block: Block) -> None:
    assert json.loads(block.text)


def test_there_are_pages_and_blocks_to_check() -> None:
    assert len(PAGES) >= 20
    assert min(len(SHELL), len(YAML), len(TRIO_SCHED), len(KUBECTL), len(HELM_COMMANDS)) >= 5
    assert plugins_shown() >= {"QuietZone", "TeamNodes", "FastDisk", "NodePower"}
    with pytest.raises(click.UsageError):
        COMMANDS["simulate"].load().make_context("simulate", ["--no-such-option"])
