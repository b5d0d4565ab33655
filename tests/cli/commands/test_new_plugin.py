import json
import os
import re
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml

from trio_sched import __version__
from trio_sched.cli.commands.new_plugin import PluginNames, usable_name
from trio_sched.cli.main import main
from trio_sched.cli.process.exit_code import ExitCode

ROOT = Path(__file__).parents[3]
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packages")
    assert main(["new-plugin", "PreferQuietNodes", "--dir", str(folder / "new")]) == ExitCode.OK
    return folder / "new" / "prefer-quiet-nodes"


def check_with(package: Path, *command: str) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{package / 'src'}"}
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=package, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_new_package_is_in_order_and_its_tests_pass(package: Path) -> None:
    check_with(package, "ruff", "check", "--no-cache", ".")
    check_with(package, "ruff", "format", "--no-cache", "--check", ".")
    check_with(package, "mypy")
    check_with(package, "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist")


def test_the_example_is_simulated(package: Path, capsys: Capture) -> None:
    plugin = package / "src" / "prefer_quiet_nodes" / "plugin.py"
    example = package / "example"
    arguments = ["--config", str(example / "scheduler.yaml"), "--plugin", str(plugin)]
    assert main(["simulate", "-f", str(example / "cluster.yaml"), "-o", "json", *arguments]) == ExitCode.OK
    assert "2 node(s) had too many pods" in capsys.readouterr().out
    assert main(["check-config", str(example / "scheduler.yaml"), "--plugin", str(plugin)]) == ExitCode.OK
    capsys.readouterr()
    assert main(["plugins", "--schema", "PreferQuietNodes", "--plugin", str(plugin)]) == ExitCode.OK
    schema = json.loads(capsys.readouterr().out)
    assert schema["properties"]["maxPods"]["minimum"] == 1
    assert "How many pods" in schema["properties"]["maxPods"]["description"]


def test_the_longest_name_leaves_the_code_in_order(tmp_path: Path) -> None:
    name = "A" + "b" * 31
    assert main(["new-plugin", name, "--dir", str(tmp_path)]) == ExitCode.OK
    texts = {path: path.read_text() for path in (tmp_path / PluginNames(name).distribution).rglob("*.py")}
    assert [path for path, text in texts.items() if name in text]
    assert [line for text in texts.values() for line in text.splitlines() if len(line) > 120] == []


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("prefer-quiet", "use 'PreferQuiet'"),
        ("prefer_quiet", "use 'PreferQuiet'"),
        ("preferQuiet", "use 'PreferQuiet'"),
        ("9lives", "use 'Lives'"),
        ("../../etc", "use 'Etc'"),
        ("", "use 'MyPlugin'"),
        ("é", "use 'MyPlugin'"),
        ("None", "use 'NonePlugin'"),
        ("X" * 5000, f"use '{'X' * 32}'"),
        ("NodeName", "is a plugin of Kubernetes; use 'MyNodeName'"),
    ],
)
def test_names_that_cannot_be_used_come_back_with_one_that_can(
    name: str, problem: str, tmp_path: Path, capsys: Capture
) -> None:
    assert main(["new-plugin", "--dir", str(tmp_path), "--", name]) == ExitCode.USAGE
    assert problem in " ".join(capsys.readouterr().err.split())
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_exists_is_left_alone(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "mine").mkdir()
    assert main(["new-plugin", "Mine", "--dir", str(tmp_path)]) == ExitCode.FAILURE
    assert "exists already" in capsys.readouterr().err
    assert list((tmp_path / "mine").iterdir()) == []
    (tmp_path / "file").touch()
    assert main(["new-plugin", "Mine", "--dir", str(tmp_path / "file")]) == ExitCode.FAILURE
    assert "cannot be made" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("PreferQuietNodes", "prefer_quiet_nodes"),
        ("GPUPacking", "gpu_packing"),
        ("Json", "json_plugin"),
        ("Zone2", "zone_2"),
        ("Trio", "trio_plugin"),
        ("Class", "class_plugin"),
    ],
)
def test_modules_are_called_after_the_class(name: str, module: str) -> None:
    assert PluginNames(name).module == module
    assert usable_name(name) == name


def wheel_of(name: str, folder: Path) -> None:
    with ZipFile(folder / f"{name.replace('-', '_')}-9.9-py3-none-any.whl", "w") as wheel:
        info = f"{name.replace('-', '_')}-9.9.dist-info"
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 9.9\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def test_trio_sched_is_found_in_a_folder_while_it_is_on_no_index(package: Path) -> None:
    workflow = yaml.safe_load((package / ".github/workflows/ci.yaml").read_text())
    readme = (package / "README.md").read_text()
    assert f"export PIP_FIND_LINKS={workflow['env']['PIP_FIND_LINKS']}\n" in readme
    (package / "wheels").mkdir()
    wheel_of("trio-sched", package / "wheels")
    install = [sys.executable, "-m", "pip", "install", "--no-index", "--dry-run", "--no-deps", "trio-sched==9.9"]
    environment = {**os.environ, **workflow["env"], "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(install, cwd=package, env=environment, capture_output=True, text=True, check=False)
    assert "Would install trio-sched-9.9" in done.stdout, done.stderr


def test_the_image_gets_the_wheel_that_the_readme_makes(package: Path) -> None:
    readme, dockerfile = (package / "README.md").read_text(), (package / "Dockerfile").read_text()
    made = re.search(r"^pip wheel --no-deps --wheel-dir (\w+) \.$", readme, re.M)
    assert made is not None
    assert f"COPY {made[1]}/*.whl /tmp/wheels/\n" in dockerfile
    assert "FROM ${TRIO_SCHED}\n" in dockerfile
    for text in (readme, dockerfile):
        assert f"TRIO_SCHED=registry.example/trio-sched:{__version__} -t trio-sched-prefer-quiet-nodes ." in text
